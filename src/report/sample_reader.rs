//! Reads the selected samples of messages: resolves their stacks to nodes of a tree, and passes them on.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use foldhash::fast::RandomState as FastState;

use super::call_tree::{CallTree, NodeId, ROOT};
use super::frame_table::{FrameId, FrameTable};
use super::measure::{Measure, ProfileMeasure};
use super::selection::{Selection, StackMatches, Window, text_of};
use crate::otlp::encoded::{EncodedMessage, EncodedTables};
use crate::otlp::encoded_profiles::{EncodedProfile, EncodedResource, EncodedScope};
use crate::otlp::frames::{frames, push_location};
use crate::otlp::wire::{Profile, Sample};

/// A profile whose samples are being read.
#[derive(Debug)]
pub struct ProfileContext<'p> {
    /// The tables of the profile's message.
    pub tables: EncodedTables<'p>,
    /// The measure.
    pub measure: Measure,
    /// The factor from values to the measure's unit.
    pub factor: i64,
    /// A number that is equal for equal resources.
    pub process: u64,
    /// The attributes of the resource, with their values as text.
    pub resource: &'p [(String, String)],
    /// The indices of the profile's own attributes.
    pub attribute_indices: &'p [i32],
    /// The start, in nanoseconds since 1970.
    pub start_ns: u64,
    /// The length, in nanoseconds.
    pub duration_ns: u64,
}

/// A sample with its stack.
#[derive(Debug)]
pub struct SelectedSample<'s> {
    /// The sample.
    pub sample: &'s Sample,
    /// The node of its youngest frame.
    pub node: NodeId,
    /// A number that is equal for samples of equal labels in one message.
    pub labels: u64,
}

/// A receiver of samples.
pub trait SampleSink {
    /// Begins the next message, in which indices have another meaning.
    fn begin_message(&mut self);

    /// Begins a profile. Returns whether its samples are wanted.
    fn begin_profile(&mut self, profile: &ProfileContext<'_>) -> bool;

    /// Takes a sample of the profile that was begun last.
    fn take(&mut self, profile: &ProfileContext<'_>, sample: &SelectedSample<'_>);
}

/// Reads messages. Frames and stacks are interned over all of them.
#[derive(Debug)]
pub struct SampleReader<'s> {
    selection: &'s Selection,
    /// Whether each line of a function is a frame of its own.
    with_lines: bool,
    /// The frames of the tree.
    pub frames: FrameTable,
    /// The stacks.
    pub tree: CallTree,
    matches: StackMatches<'s>,
    /// By node: the bits of its stack (`StackMatches`).
    bits: Vec<u64>,
    hasher: RandomState,
}

impl<'s> SampleReader<'s> {
    /// Reads nothing yet.
    pub fn new(selection: &'s Selection, with_lines: bool) -> Self {
        Self {
            selection,
            with_lines,
            frames: FrameTable::default(),
            tree: CallTree::default(),
            matches: StackMatches::new(selection),
            bits: vec![0],
            hasher: RandomState::new(),
        }
    }

    /// Passes the selected samples of a message to the sink.
    pub fn read(&mut self, message: &EncodedMessage, sink: &mut impl SampleSink) {
        let tables = message.tables();
        let mut stacks = MessageStacks::default();
        sink.begin_message();
        for resource in message.resources() {
            let mut found = vec![false; self.selection.attributes.len()];
            let attributes = self.note_resource(tables, resource, &mut found);
            let process = self.hasher.hash_one(&attributes);
            for profile in resource.scopes().flat_map(EncodedScope::profiles) {
                let header = profile.header();
                let ProfileMeasure { measure, factor } = ProfileMeasure::of(tables, &header);
                let (start_ns, duration_ns) = (header.time_unix_nano, header.duration_nano);
                let context = ProfileContext {
                    tables,
                    measure,
                    factor,
                    process,
                    resource: &attributes,
                    attribute_indices: &header.attribute_indices,
                    start_ns,
                    duration_ns,
                };
                if may_have_selected(&context, self.selection.window) && sink.begin_profile(&context) {
                    self.read_profile(profile, &header, &context, &found, &mut stacks, sink);
                }
            }
        }
    }

    /// Compares the resource's attributes with the selection. Returns them, sorted.
    fn note_resource(
        &self,
        tables: EncodedTables<'_>,
        resource: EncodedResource<'_>,
        found: &mut [bool],
    ) -> Vec<(String, String)> {
        let mut attributes = Vec::new();
        for attribute in resource.resource().unwrap_or_default().attributes {
            let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
            let (key, value) = (tables.key(&attribute).to_owned(), text_of(tables, value).into_owned());
            self.selection.note(&key, &value, found);
            attributes.push((key, value));
        }
        attributes.sort_unstable();
        attributes
    }

    fn read_profile(
        &mut self,
        profile: EncodedProfile<'_>,
        header: &Profile,
        context: &ProfileContext<'_>,
        found: &[bool],
        stacks: &mut MessageStacks,
        sink: &mut impl SampleSink,
    ) {
        let mut found = found.to_vec();
        self.selection.note_attributes(context.tables, &header.attribute_indices, &mut found);
        // By the number of a sample's labels: whether they are selected.
        let mut are_selected: HashMap<u64, bool, FastState> = HashMap::default();
        for sample in profile.samples() {
            let labels = self.hasher.hash_one((&sample.attribute_indices, sample.link_index));
            let is_selected = *are_selected
                .entry(labels)
                .or_insert_with(|| self.selects_labels(context.tables, &sample, found.clone()));
            if is_selected && let Some(node) = self.node_of(context.tables, sample.stack_index, stacks) {
                sink.take(context, &SelectedSample { sample: &sample, node, labels });
            }
        }
    }

    /// Whether a sample's attributes and trace are selected. `found` has the conditions that already hold.
    fn selects_labels(&self, tables: EncodedTables<'_>, sample: &Sample, mut found: Vec<bool>) -> bool {
        self.selection.note_attributes(tables, &sample.attribute_indices, &mut found);
        let is_of_trace = self
            .selection
            .trace
            .is_none_or(|trace| tables.link(sample.link_index).is_some_and(|link| *link.trace_id == trace));
        is_of_trace && found.iter().all(|&found| found)
    }

    /// The node of a message's stack; `None` if the stack is not selected.
    fn node_of(
        &mut self,
        tables: EncodedTables<'_>,
        stack_index: i32,
        stacks: &mut MessageStacks,
    ) -> Option<NodeId> {
        if let Some(&known) = stacks.nodes.get(&stack_index) {
            return known;
        }
        let mut node = ROOT;
        match tables.stack(stack_index) {
            Some(locations) => {
                for &location in locations.iter().rev() {
                    let of_location = stacks.locations.entry(location).or_insert_with(|| {
                        let mut found = Vec::new();
                        push_location(tables, location, &mut found);
                        found.iter().map(|frame| self.frames.intern(frame, self.with_lines)).collect()
                    });
                    // A location's frames are innermost first.
                    for &frame in of_location.iter().rev() {
                        node = self.child(node, frame);
                    }
                }
            }
            None => {
                for frame in frames(tables, stack_index).iter().rev() {
                    let frame = self.frames.intern(frame, self.with_lines);
                    node = self.child(node, frame);
                }
            }
        }
        let selected = self.matches.is_wanted(self.bits[node as usize]).then_some(node);
        stacks.nodes.insert(stack_index, selected);
        selected
    }

    /// The child of `node` with this frame. Its bits are computed when it is added.
    fn child(&mut self, node: NodeId, frame: FrameId) -> NodeId {
        let child = self.tree.child(node, frame);
        if child as usize == self.bits.len() {
            let of_callers = self.bits[node as usize];
            self.bits.push(self.matches.bits(&self.frames, frame, of_callers));
        }
        child
    }
}

/// Whether samples of this profile may be in the window. Samples without a time have the start of their
/// profile.
fn may_have_selected(profile: &ProfileContext<'_>, window: Window) -> bool {
    let end_ns = profile.start_ns.saturating_add(profile.duration_ns);
    profile.start_ns < window.to_ns && (end_ns >= window.from_ns || window.has(profile.start_ns))
}

/// Calls `take` with the values of a sample in the window, in the measure's unit, each with its time. Values
/// without a time of their own have the start of the profile.
pub fn timed_values(
    profile: &ProfileContext<'_>,
    sample: &Sample,
    window: Window,
    mut take: impl FnMut(u64, i64),
) {
    let mut take_scaled = |unix_ns: u64, value: i64| {
        if window.has(unix_ns) && value != 0 {
            take(unix_ns, value.saturating_mul(profile.factor));
        }
    };
    let (values, times) = (&sample.values, &sample.timestamps_unix_nano);
    if times.is_empty() {
        values.iter().for_each(|&value| take_scaled(profile.start_ns, value));
    } else if values.len() == times.len() {
        times.iter().zip(values).for_each(|(&time, &value)| take_scaled(time, value));
    } else if values.is_empty() {
        times.iter().for_each(|&time| take_scaled(time, 1));
    } else {
        // The values are not of these times. They are taken once, at the first time.
        values.iter().for_each(|&value| take_scaled(times[0], value));
    }
}

/// A message's stacks and locations, as far as they have been met.
#[derive(Debug, Default)]
struct MessageStacks {
    locations: HashMap<i32, Box<[FrameId]>, FastState>,
    /// By stack: its node; `None` if the stack is not selected.
    nodes: HashMap<i32, Option<NodeId>, FastState>,
}

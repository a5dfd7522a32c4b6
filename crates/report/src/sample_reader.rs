//! Reads the selected samples of messages: resolves their stacks to nodes of a tree, and passes them on.

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher as _;

use foldhash::fast::RandomState as FastState;
// Its hashes stand for what they are made of.
use foldhash::quality::RandomState;
use otlpprof_model::{attribute_keys, markers};
use otlpprof_otlp::encoded::{EncodedMessage, EncodedTables};
use otlpprof_otlp::encoded_profiles::{EncodedProfile, EncodedResource, EncodedScope};
use otlpprof_otlp::frames::{Frame, frames, push_location};
use otlpprof_otlp::wire::Sample;

use super::call_tree::{CallTree, NodeId, ROOT};
use super::frame_origin::FrameOrigins;
use super::frame_table::{FrameId, FrameTable};
use super::framed_message::{FrameResolver, FramedMessage, LocationFrames};
use super::idle_threads::Idleness;
use super::measure::Weight;
use super::message_stacks::MessageStacks;
use super::objects::ObjectTable;
use super::observations::sum_in;
use super::pending_samples::{PendingSample, PendingSamples, SampleLabels};
use super::profile_context::ProfileContext;
use super::selected_resources::SelectedResources;
use super::selection::{Selection, StackMatches, Window, text_of};
use super::state_times::resource_attributes;
use super::thread_role::ThreadRole;

/// The form in which samples are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleForm {
    /// Whether each line of a function is a frame of its own.
    pub lines: bool,
    /// Whether the thread's name is the root frame of each stack.
    pub threads: bool,
    /// Whether equal functions of different loaded objects are told apart.
    pub objects: bool,
    /// The quantity by which stacks are weighed.
    pub weight: Weight,
    /// Whether the sink reads the stacks itself: unless an expression selects stacks, their frames are not
    /// looked at, and all samples are at the root of the tree.
    pub ignores_stacks: bool,
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
    /// The role of the sample's thread.
    pub thread: ThreadRole,
}

/// A receiver of samples.
pub trait SampleSink {
    /// Begins the next message, in which indices have another meaning.
    fn begin_message(&mut self);

    /// Begins a profile. Returns whether its samples are wanted.
    fn begin_profile(&mut self, profile: &ProfileContext<'_>) -> bool;

    /// Prepares to take a sample. Preparations for several samples take hardly longer than one: they overlap.
    fn prepare(&self, _sample: &SelectedSample<'_>) {}

    /// Takes a sample of the profile that was begun last.
    fn take(&mut self, profile: &ProfileContext<'_>, sample: &SelectedSample<'_>);

    /// Whether the sink has too little room for its sums beside `bytes` of frames and stacks.
    fn lacks_room(&self, _bytes: usize) -> bool {
        false
    }

    /// Evicts what the sink does not keep (`eviction::keep_stacks`). Nodes and frames get other numbers.
    fn make_room(&mut self, _tree: &mut CallTree, _frames: &mut FrameTable) {}
}

/// Reads messages. Frames and stacks are interned over all of them.
#[derive(Debug)]
pub struct SampleReader<'s> {
    selection: &'s Selection,
    form: SampleForm,
    /// The window of time: that of the selection, unless another one is set for the next messages.
    pub window: Window,
    /// The keys of the attributes of all samples in the profiles that the sink wanted, selected or not.
    pub label_keys: BTreeSet<String>,
    /// The frames of the tree.
    pub frames: FrameTable,
    /// The objects of the frames, if the form tells them apart.
    pub objects: ObjectTable,
    /// The stacks.
    pub tree: CallTree,
    matches: StackMatches<'s>,
    /// By node: the bits of its stack (`StackMatches`). Empty if the selection has no expressions.
    bits: Vec<u64>,
    hasher: RandomState,
    origins: FrameOrigins,
    /// Scratch space: the locations of a stack.
    locations: Vec<i32>,
    /// The most bytes that frames and tree may occupy, if there is a bound.
    most_bytes: Option<usize>,
    /// The number of selected samples, those of idle threads included.
    pub selected_samples: u64,
    /// The resources of the selected samples and, if no condition is about samples alone, those of profiles
    /// without samples.
    pub selected: SelectedResources,
    /// Whether the resource of the present profile is among the selected ones.
    is_noted: bool,
    /// The sum of the selected samples of idle threads, which are not passed to sinks
    /// ([`Selection::without_idle`]).
    pub idle: i64,
}

impl<'s> SampleReader<'s> {
    /// Reads nothing yet.
    pub fn new(selection: &'s Selection, form: SampleForm) -> Self {
        Self {
            selection,
            form,
            window: selection.window,
            label_keys: BTreeSet::new(),
            frames: FrameTable::default(),
            objects: ObjectTable::default(),
            tree: CallTree::default(),
            matches: StackMatches::new(selection),
            bits: Vec::new(),
            hasher: RandomState::default(),
            origins: FrameOrigins::default(),
            locations: Vec::new(),
            most_bytes: None,
            selected_samples: 0,
            selected: SelectedResources::default(),
            is_noted: false,
            idle: 0,
        }
    }

    /// Stops the reader once frames and tree occupy about `most_bytes`. Without a bound they grow with the
    /// number of different stacks.
    pub fn with_bound(self, most_bytes: usize) -> Self {
        Self { most_bytes: Some(most_bytes), ..self }
    }

    /// Leaves the bound to the sink ([`SampleSink::lacks_room`]). The selection must be without expressions,
    /// whose results are by node.
    pub fn bounded_by_sink(self) -> Self {
        assert!(!self.selection.has_expressions(), "nodes get other numbers");
        self.with_bound(usize::MAX)
    }

    /// The form in which samples are read.
    pub fn form(&self) -> SampleForm {
        self.form
    }

    /// Whether the reader has stopped at its bound.
    pub fn is_full(&self) -> bool {
        self.most_bytes.is_some_and(|most| self.bytes() > most)
    }

    /// The approximate bytes that frames and tree occupy.
    fn bytes(&self) -> usize {
        self.frames.bytes() + self.tree.bytes()
    }

    /// Whether the nodes of stacks are wanted.
    fn searches_stacks(&self) -> bool {
        !self.form.ignores_stacks || self.selection.has_expressions()
    }

    /// The resolver of the frames of messages that are passed to [`SampleReader::read_framed`].
    pub fn resolver(&self) -> FrameResolver {
        // Objects are numbered in the order of samples, and a bounded reader must not know other frames than
        // those of samples.
        let is_usual = !self.form.objects && self.most_bytes.is_none() && self.searches_stacks();
        FrameResolver { known: is_usual.then(|| self.frames.known().clone()), lines: self.form.lines }
    }

    /// Passes the selected samples of a message to the sink.
    pub fn read(&mut self, message: &EncodedMessage, sink: &mut impl SampleSink) {
        self.read_with(message, &LocationFrames::default(), sink);
    }

    /// As [`SampleReader::read`], for a message that this reader's resolver has resolved.
    pub fn read_framed(&mut self, resolved: &FramedMessage, sink: &mut impl SampleSink) {
        self.read_with(&resolved.message, &resolved.locations, sink);
    }

    fn read_with(&mut self, message: &EncodedMessage, resolved: &LocationFrames, sink: &mut impl SampleSink) {
        let tables = message.tables();
        let mut stacks = MessageStacks::new(tables, resolved, self.most_bytes.is_some());
        self.origins.begin(tables);
        sink.begin_message();
        for resource in message.resources() {
            let mut found = vec![false; self.selection.attributes.len()];
            let attributes = self.note_resource(tables, resource, &mut found);
            let process = self.hasher.hash_one(&attributes);
            for profile in resource.scopes().flat_map(EncodedScope::profiles) {
                let header = profile.header();
                let context = ProfileContext::new(tables, &header, self.form.weight, process, &attributes);
                if context.may_have_samples_in(self.window) && sink.begin_profile(&context) {
                    self.read_profile(profile, &context, &found, &mut stacks, sink);
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
        let attributes = resource_attributes(tables, resource);
        attributes.iter().for_each(|(key, value)| self.selection.note(key, value, found));
        attributes
    }

    fn read_profile(
        &mut self,
        profile: EncodedProfile<'_>,
        context: &ProfileContext<'_>,
        found: &[bool],
        stacks: &mut MessageStacks<'_>,
        sink: &mut impl SampleSink,
    ) {
        let mut found = found.to_vec();
        self.selection.note_attributes(context.tables, &context.header.attribute_indices, &mut found);
        let is_in_window = self.window.has(context.start_ns) || context.ns_in(self.window) > 0;
        self.is_noted = is_in_window && self.selection.is_fulfilled_by_attributes(&found);
        if self.is_noted {
            self.selected.add(context.process, context.resource);
        }
        // By the number of a sample's labels; `None` if they are not selected.
        let mut known: HashMap<u64, Option<SampleLabels>, FastState> = HashMap::default();
        let mut pending = PendingSamples::default();
        for encoded in profile.encoded_samples() {
            let mut sample = pending.spare();
            encoded.decode_to(&mut sample);
            let number = self.hasher.hash_one((&sample.attribute_indices, sample.link_index));
            if self.is_full() {
                return;
            }
            if sink.lacks_room(self.bytes()) {
                self.pass_on(context, &mut pending, stacks, sink);
                sink.make_room(&mut self.tree, &mut self.frames);
                *stacks = MessageStacks::new(context.tables, stacks.resolved, true);
                known.clear();
            }
            let labels = *known
                .entry(number)
                .or_insert_with(|| self.read_labels(context, &sample, number, found.clone()));
            let Some(mut labels) = labels else {
                pending.put_back(sample);
                continue;
            };
            let is_idle = labels.idleness.is_idle(context.tables, sample.stack_index);
            labels.idleness = if is_idle { Idleness::Idle } else { Idleness::Busy };
            if is_idle && !self.selection.has_expressions() {
                // Only an expression would need the stack.
                self.leave_out(context, &sample);
                pending.put_back(sample);
                continue;
            }
            let known = match self.searches_stacks() {
                true => stacks.node(labels.root, sample.stack_index),
                false => Some(Some(labels.root)),
            };
            match known {
                Some(Some(node)) => pending.add_known(sample, labels, node),
                Some(None) => pending.put_back(sample),
                None => {
                    let first = pending.frames.len();
                    self.push_frames(context.tables, sample.stack_index, stacks, &mut pending.frames);
                    pending.add_stack(sample, labels, first);
                }
            }
            if pending.is_full() {
                self.pass_on(context, &mut pending, stacks, sink);
            }
        }
        self.pass_on(context, &mut pending, stacks, sink);
    }

    /// Searches the stacks of pending samples, and passes the selected samples to the sink.
    fn pass_on(
        &mut self,
        context: &ProfileContext<'_>,
        pending: &mut PendingSamples,
        stacks: &mut MessageStacks<'_>,
        sink: &mut impl SampleSink,
    ) {
        let mut open = pending.open();
        while !open.is_empty() && !self.is_full() {
            for (node, frame) in open.iter().filter_map(|&index| pending.step(index)) {
                self.tree.prepare_child(node, frame);
            }
            for &index in &open {
                self.search_child(pending, index);
            }
            open.retain(|&index| {
                while let Some((node, frame)) = pending.step(index) {
                    let Some(child) = self.tree.following_child(node, frame) else { return true };
                    pending.go_on(index, child);
                }
                false
            });
        }
        if self.is_full() {
            // Some stacks may lack frames.
            pending.drain(|_| {});
        }
        for &PendingSample { ref sample, labels, node, .. } in pending.all() {
            let SampleLabels { number, thread, .. } = labels;
            sink.prepare(&SelectedSample { sample, node, labels: number, thread });
        }
        pending.drain(|&PendingSample { ref sample, labels, node, is_known, .. }| {
            let SampleLabels { number, thread, idleness, root } = labels;
            let is_selected = is_known || self.matches.is_wanted(self.bits_of(node));
            if !is_known {
                stacks.set_node(root, sample.stack_index, is_selected.then_some(node));
            }
            if is_selected && idleness == Idleness::Idle {
                self.leave_out(context, sample);
            } else if is_selected {
                self.count(context, sample);
                sink.take(context, &SelectedSample { sample, node, labels: number, thread });
            }
        });
    }

    /// Counts a selected sample.
    fn count(&mut self, context: &ProfileContext<'_>, sample: &Sample) {
        self.selected_samples += 1;
        if !self.is_noted && sum_in(context, sample, self.window) != 0 {
            self.is_noted = true;
            self.selected.add(context.process, context.resource);
        }
    }

    /// Counts a selected sample of an idle thread.
    fn leave_out(&mut self, context: &ProfileContext<'_>, sample: &Sample) {
        self.count(context, sample);
        self.idle = self.idle.saturating_add(sum_in(context, sample, self.window));
    }

    /// The labels of a sample, which have this number; `None` if they are not selected. Notes their keys.
    fn read_labels(
        &mut self,
        context: &ProfileContext<'_>,
        sample: &Sample,
        number: u64,
        found: Vec<bool>,
    ) -> Option<SampleLabels> {
        let tables = context.tables;
        let (mut thread, mut role) = (None, ThreadRole::default());
        for (key, value) in tables.attributes(&sample.attribute_indices) {
            if self.most_bytes.is_none() && !self.label_keys.contains(key) {
                self.label_keys.insert(key.to_owned());
            }
            if key == attribute_keys::THREAD_NAME {
                let name = text_of(tables, value.as_ref());
                role = ThreadRole::of(&name);
                thread = self.form.threads.then(|| name.into_owned());
            }
        }
        if !self.selects_labels(tables, sample, found) {
            return None;
        }
        let idleness = match self.selection.without_idle {
            true => Idleness::of(&context.measure, tables, &sample.attribute_indices),
            false => Idleness::Busy,
        };
        // The frame of a thread that is left out would be in the tree.
        let root = match self.form.threads && idleness != Idleness::Idle {
            true => self.thread_root(thread.as_deref().unwrap_or(markers::NO_THREAD)),
            false => ROOT,
        };
        Some(SampleLabels { number, thread: role, idleness, root })
    }

    /// The node of a thread. A thread is no function, so no expression of the selection matches its name.
    fn thread_root(&mut self, name: &str) -> NodeId {
        let frame = self.frames.intern_group(name);
        let node = self.tree.child(ROOT, frame);
        self.note_bits(node, |_| 0);
        node
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

    /// Appends the frames of a message's stack, its root first.
    fn push_frames(
        &mut self,
        tables: EncodedTables<'_>,
        stack_index: i32,
        stacks: &mut MessageStacks<'_>,
        into: &mut Vec<FrameId>,
    ) {
        let mut locations = std::mem::take(&mut self.locations);
        if !tables.stack_to(stack_index, &mut locations) {
            let frames = frames(tables, stack_index);
            into.extend(frames.iter().rev().map(|frame| self.intern(tables, frame)));
        }
        for &location in locations.iter().rev() {
            if self.is_full() {
                break;
            }
            if let Some(frame) = stacks.only_frame(location) {
                into.push(frame);
                continue;
            }
            if let Some(&[known]) = stacks.resolved.of(location) {
                let frame = self.frames.number(known);
                stacks.set_only_frame(location, frame);
                into.push(frame);
                continue;
            }
            if let Some(known) = stacks.resolved.of(location) {
                let first = into.len();
                into.extend(known.iter().map(|&known| self.frames.number(known)));
                into[first..].reverse();
                continue;
            }
            stacks.push_frames(location, into, || {
                let mut found = Vec::new();
                push_location(tables, location, &mut found);
                found.iter().map(|frame| self.intern(tables, frame)).collect()
            });
        }
        self.locations = locations;
    }

    fn intern(&mut self, tables: EncodedTables<'_>, frame: &Frame<'_>) -> FrameId {
        let object = match self.form.objects {
            true => self.objects.of_mapping(tables, frame.mapping_index),
            false => 0,
        };
        let origin = self.origins.of(tables, frame);
        self.frames.intern(frame, self.form.lines, object, origin)
    }

    /// Searches the next child of a pending sample's stack. Adds the rest of the stack below a new node.
    fn search_child(&mut self, pending: &mut PendingSamples, index: usize) {
        let Some((node, frame)) = pending.step(index) else { return };
        let child = self.child(node, frame);
        pending.go_on(index, child);
        if !self.tree.is_last(child) {
            return self.tree.prepare_following(child);
        }
        let leaf = self.tree.append(pending.rest(index));
        pending.end_at(index, leaf);
        if self.selection.has_expressions() {
            for node in child + 1..=leaf {
                let (frame, of_callers) = (self.tree.frame(node), self.bits_of(node - 1));
                self.note_bits(node, |reader| reader.matches.bits(&reader.frames, frame, of_callers));
            }
        }
    }

    /// The child of `node` with this frame. Its bits are computed when it is added.
    fn child(&mut self, node: NodeId, frame: FrameId) -> NodeId {
        let child = self.tree.child(node, frame);
        let of_callers = self.bits_of(node);
        self.note_bits(child, |reader| reader.matches.bits(&reader.frames, frame, of_callers));
        child
    }

    /// The bits of a node's stack.
    fn bits_of(&self, node: NodeId) -> u64 {
        self.bits.get(node as usize).copied().unwrap_or(0)
    }

    /// Stores the bits of a node that has just been added. Nodes are numbered in the order of their addition.
    fn note_bits(&mut self, node: NodeId, bits: impl FnOnce(&mut Self) -> u64) {
        if self.selection.has_expressions() && node as usize >= self.bits.len() {
            let bits = bits(self);
            // The root has no frame.
            self.bits.resize(node as usize, 0);
            self.bits.push(bits);
        }
    }
}

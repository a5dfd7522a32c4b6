//! The sums of an interval, and their conversion to profiles of whole numbers with each thread's attributes.

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use otlpprof_core::engine::Engine;
use otlpprof_core::record::Owner;
use otlpprof_model::{
    AttributeSetId, Frame, FrameId, LinkId, Profile, SampleIdentity, SliceInterner, StackId, Tables,
};

use super::keys::{ThreadKey, UnnamedFrame};
use super::profile_kind::{EngineProfiles, Rounding};
use super::survivors::NumberedSample;

/// The sum of records that differ only in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub(super) key: SumKey,
    pub(super) values: [f64; 2],
    /// The number of samples in the sum.
    pub(super) samples: u64,
    /// Whether the sum is left out of all profiles.
    pub(super) is_left_out: bool,
}

/// The key by which records are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SumKey {
    pub(super) engine: Engine,
    pub(super) stack: StackId,
    pub(super) thread: ThreadKey,
    pub(super) owner: Owner,
    /// The labels of the context and the subject.
    pub(super) labels: AttributeSetId,
    pub(super) link: LinkId,
}

/// One sample's time, kept only with `timestamps`.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleTime {
    pub(super) sum: u32,
    pub(super) values: [f64; 2],
    pub(super) monotonic_ns: u64,
}

/// A sample whose memory or object may outlive the interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbered {
    pub(super) number: u32,
    pub(super) sum: u32,
    pub(super) values: [f64; 2],
}

/// The sums of an interval.
pub struct Interval {
    /// The tables that the sums refer to.
    pub tables: Tables,
    /// Frames that have no name yet.
    pub(super) unnamed: Vec<(UnnamedFrame, FrameId)>,
    pub(super) sums: Vec<Sum>,
    pub(super) moments: Option<Vec<SampleTime>>,
    pub(super) numbered: Vec<Numbered>,
}

impl Interval {
    /// Names the frames that were recorded without a name. Must be called before anything else is done with
    /// the interval.
    pub fn name_frames(&mut self, mut name: impl FnMut(&mut Tables, UnnamedFrame) -> Frame) {
        let Self { tables, unnamed, sums, .. } = self;
        let mut merged: HashMap<FrameId, FrameId, RandomState> = HashMap::default();
        for (frame, id) in std::mem::take(unnamed) {
            let named = name(tables, frame);
            let one = tables.frames.define(id, named);
            if one != id {
                merged.insert(id, one);
            }
        }
        if merged.is_empty() {
            return;
        }
        // Different addresses have turned out to be one frame, so different stacks may turn out to be one
        // stack.
        let mut stacks = SliceInterner::default();
        let mut stack = Vec::new();
        let ids: Vec<StackId> = tables
            .stacks
            .iter()
            .map(|frames| {
                stack.clear();
                stack.extend(frames.iter().map(|frame| *merged.get(frame).unwrap_or(frame)));
                stacks.intern(&stack)
            })
            .collect();
        tables.stacks = stacks;
        for sum in sums {
            sum.key.stack = ids[sum.key.stack.0 as usize];
        }
    }

    /// Returns the two outermost frames of each stack, the callee first, if neither has a name yet. Each pair
    /// is returned once. Must be called before [`Interval::name_frames`].
    pub fn outermost_calls(&self) -> HashSet<(UnnamedFrame, UnnamedFrame), RandomState> {
        let unnamed: HashMap<FrameId, UnnamedFrame, RandomState> =
            self.unnamed.iter().map(|(frame, id)| (*id, *frame)).collect();
        let pairs = self.tables.stacks.iter().filter_map(|frames| frames.last_chunk());
        let pairs: HashSet<[FrameId; 2], RandomState> = pairs.copied().collect();
        let named = |[callee, root]: [FrameId; 2]| Some((*unnamed.get(&callee)?, *unnamed.get(&root)?));
        pairs.into_iter().filter_map(named).collect()
    }

    /// Returns the samples whose memory or objects may outlive the interval, in the interval's tables.
    /// `attributes_of` is as in [`Interval::into_profiles`].
    pub fn numbered_samples(
        &mut self,
        mut attributes_of: impl FnMut(&mut Tables, ThreadKey) -> AttributeSetId,
    ) -> Vec<NumberedSample> {
        let Self { tables, sums, numbered, .. } = self;
        let mut threads: HashMap<ThreadKey, AttributeSetId, RandomState> = HashMap::default();
        let wanted = numbered.iter().filter(|numbered| !sums[numbered.sum as usize].is_left_out);
        let samples = wanted.map(|&Numbered { number, sum, values }| {
            let SumKey { engine, stack, thread, labels, link, .. } = sums[sum as usize].key;
            let of_thread = *threads.entry(thread).or_insert_with(|| attributes_of(tables, thread));
            let attributes = tables.union_of_attributes(labels, of_thread);
            NumberedSample { engine, number, identity: SampleIdentity { stack, attributes, link }, values }
        });
        samples.collect()
    }

    /// Leaves the samples of stacks and threads that are not wanted out of all profiles. Returns their
    /// number.
    pub fn leave_out(
        &mut self,
        mut wants_thread: impl FnMut(ThreadKey) -> bool,
        mut wants_stack: impl FnMut(&Tables, StackId) -> bool,
    ) -> u64 {
        let mut threads: HashMap<ThreadKey, bool, RandomState> = HashMap::default();
        let mut stacks: HashMap<StackId, bool, RandomState> = HashMap::default();
        let mut left_out = 0;
        for sum in &mut self.sums {
            let SumKey { thread, stack, .. } = sum.key;
            let is_wanted = *threads.entry(thread).or_insert_with(|| wants_thread(thread))
                && *stacks.entry(stack).or_insert_with(|| wants_stack(&self.tables, stack));
            if !is_wanted {
                sum.is_left_out = true;
                left_out += sum.samples;
            }
        }
        left_out
    }

    /// Converts the interval to profiles, in the order of engines, without empty ones. `kinds_of` gives an
    /// engine's profiles, `attributes_of` each thread's attributes, and `owner_attributes_of` the attributes
    /// of the thread that owned what another waited for. `unix_offset_ns` is added to CLOCK_MONOTONIC to give
    /// Unix time.
    pub fn into_profiles(
        self,
        kinds_of: impl Fn(Engine) -> EngineProfiles,
        unix_offset_ns: i64,
        mut attributes_of: impl FnMut(&mut Tables, ThreadKey) -> AttributeSetId,
        mut owner_attributes_of: impl FnMut(&mut Tables, Owner) -> AttributeSetId,
    ) -> (Tables, Vec<Profile>) {
        let Self { mut tables, sums, moments, .. } = self;
        let mut profiles = Engine::ALL.map(|engine| kinds_of(engine).map(|kind| kind.map(Rounding::new)));
        let mut threads: HashMap<ThreadKey, AttributeSetId, RandomState> = HashMap::default();
        let mut labelled: HashMap<(AttributeSetId, Owner, AttributeSetId), AttributeSetId, RandomState> =
            HashMap::default();
        let mut add = |tables: &mut Tables, key: SumKey, values: [f64; 2], at_unix_nano: Option<u64>| {
            let SumKey { engine, stack, thread, owner, labels, link } = key;
            let of_thread = *threads.entry(thread).or_insert_with(|| attributes_of(tables, thread));
            let attributes = *labelled
                .entry((of_thread, owner, labels))
                // An attribute of the threads overrides a label of the same name.
                .or_insert_with(|| {
                    let of_owner = match owner {
                        Owner::NONE => AttributeSetId::EMPTY,
                        owner => owner_attributes_of(tables, owner),
                    };
                    let labels = tables.union_of_attributes(labels, of_owner);
                    tables.union_of_attributes(labels, of_thread)
                });
            let identity = SampleIdentity { stack, attributes, link };
            for (profile, value) in profiles[engine as usize].iter_mut().zip(values) {
                if let Some(profile) = profile {
                    profile.add(identity, value, at_unix_nano);
                }
            }
        };
        match moments {
            Some(moments) => {
                for SampleTime { sum, values, monotonic_ns } in moments {
                    let unix_nano = monotonic_ns.saturating_add_signed(unix_offset_ns);
                    let sum = &sums[sum as usize];
                    if !sum.is_left_out {
                        add(&mut tables, sum.key, values, Some(unix_nano));
                    }
                }
            }
            None => {
                for sum in sums.iter().filter(|sum| !sum.is_left_out) {
                    add(&mut tables, sum.key, sum.values, None);
                }
            }
        }
        let profiles = profiles.into_iter().flatten().flatten().map(Rounding::finish);
        (tables, profiles.filter(|profile| !profile.is_empty()).collect())
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }
}

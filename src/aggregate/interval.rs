//! What an interval has come to, as profiles: whole numbers, with what is known of each thread.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::aggregator::{ThreadKey, UnnamedFrame};
use super::survivors::NumberedSample;
use crate::core::record::{Engine, Owner};
use crate::model::{
    AttributeSetId, Frame, FrameId, LinkId, Profile, ProfileType, SampleIdentity, SliceInterner, StackId,
    Tables,
};

/// One of the profiles that an engine's samples become, with its period.
#[derive(Clone, Copy, Debug)]
pub struct ProfileKind {
    /// Its type.
    pub profile_type: &'static ProfileType,
    /// In the type's period unit.
    pub period: i64,
    /// What a sample's values are multiplied by.
    pub scale: f64,
}

/// The profiles of an engine, one for each of a sample's values: the first alone, or both.
pub type EngineProfiles = [Option<ProfileKind>; 2];

/// The sum of what is alike in all but time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub(super) key: SumKey,
    pub(super) values: [f64; 2],
    /// How many samples have come to it.
    pub(super) samples: u64,
    /// Whether it is in no profile.
    pub(super) is_left_out: bool,
}

/// What makes two records one sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SumKey {
    pub(super) engine: Engine,
    pub(super) stack: StackId,
    pub(super) thread: ThreadKey,
    pub(super) owner: Owner,
    /// Of the context and the subject.
    pub(super) labels: AttributeSetId,
    pub(super) link: LinkId,
}

/// One sample's time, kept where `timestamps` asks for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) sum: u32,
    pub(super) values: [f64; 2],
    pub(super) monotonic_ns: u64,
}

/// A sample of what may outlive the interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbered {
    pub(super) number: u32,
    pub(super) sum: u32,
    pub(super) values: [f64; 2],
}

/// What an interval has come to.
pub struct Interval {
    /// The tables that the sums refer to.
    pub tables: Tables,
    /// Frames that have no name yet.
    pub(super) unnamed: Vec<(UnnamedFrame, FrameId)>,
    pub(super) sums: Vec<Sum>,
    pub(super) moments: Option<Vec<Moment>>,
    pub(super) numbered: Vec<Numbered>,
}

impl Interval {
    /// Names the frames that were put down without one. Nothing else is to be done with the interval before.
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
        // Two places have turned out to be one, and so may two stacks.
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

    /// The samples of what may outlive the interval, in its tables; `attributes_of` as in [`Interval::into_profiles`].
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

    /// Leaves the samples of stacks and threads that are not wanted out of the profiles. Returns how many those are.
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

    /// The interval as profiles, those that are not empty, in the order of engines; `kinds_of` says which an engine's are,
    /// `attributes_of` gives each thread's attributes, `owner_attributes_of` those that say who had what was waited for, `unix_offset_ns` is what turns CLOCK_MONOTONIC into Unix time.
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
                // What is known of the threads wins over a label of the same name.
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
                for Moment { sum, values, monotonic_ns } in moments {
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

/// A profile of whole numbers that is given fractions: what rounding takes from one sample the next one has, so that the
/// sum is right to one.
pub(super) struct Rounding {
    profile: Profile,
    scale: f64,
    carried: f64,
}

impl Rounding {
    pub(super) fn new(kind: ProfileKind) -> Self {
        Self { profile: Profile::new(kind.profile_type, kind.period), scale: kind.scale, carried: 0.0 }
    }

    pub(super) fn finish(self) -> Profile {
        self.profile
    }

    pub(super) fn add(&mut self, identity: SampleIdentity, value: f64, at_unix_nano: Option<u64>) {
        let exact = value * self.scale + self.carried;
        let whole = exact.round().max(0.0);
        self.carried = exact - whole;
        // What is rounded away is no sample: a value of 0 says that there was none.
        if whole > 0.0 {
            self.profile.add(identity, whole as i64, at_unix_nano);
        }
    }
}

//! Sums samples by engine, stack, thread, context and subject over an interval.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashTable};

use super::interval::{Interval, Moment, Numbered, Sum, SumKey};
use super::recent_frames::RecentFrames;
use super::thread_state::ThreadStates;
use crate::core::context::{ContextRecord, SLOTS, ValueRef};
use crate::core::record::{Engine, FrameKind, FrameRecord, NO_OBJECT, SampleHeader, Subject};
use crate::model::{AttributeSetId, Frame, FrameId, FrameType, FunctionId, Link, LinkId, Tables};

/// A frame as it was put down, self-contained: a remote slot already replaced by what it held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawFrame {
    /// What kind of frame; `Native` with an object is an address in it either way.
    pub kind: FrameKind,
    /// As in [`FrameRecord`]: bytecode index, object index, or error.
    pub aux: u32,
    /// As in [`FrameRecord`]; for `Remote` the ELF virtual address, the object's index in `aux`.
    pub value: u64,
}

impl RawFrame {
    /// The frame of a record that has no slot in the remote pool.
    pub fn new(frame: &FrameRecord) -> Self {
        Self { kind: frame.kind, aux: frame.aux, value: frame.value }
    }

    /// Whether an address is all that is known of it. What lies there may be another thing at the next sample, as when a
    /// library is unloaded and one is loaded in its place.
    fn is_bare_address(&self) -> bool {
        self.kind == FrameKind::Native && self.aux == NO_OBJECT
    }
}

/// How many objects had been loaded and unloaded in the process's life, at some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ObjectCounts {
    /// Loaded.
    pub loaded: u64,
    /// Unloaded.
    pub unloaded: u64,
}

/// A frame that is kept as it was put down, and gets its name when the interval has ended: to find it may take long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnnamedFrame {
    /// What was put down.
    pub frame: RawFrame,
    /// For an address in no known object, the counts from before it was sampled; zeros for all others.
    pub since: ObjectCounts,
}

/// Names what records point to, at the time they are drained.
pub trait Resolver {
    /// The model's frame for `frame`; `None` if it is to be named when the interval has ended, by
    /// [`Interval::name_frames`].
    fn frame(&mut self, tables: &mut Tables, frame: RawFrame) -> Option<FrameId>;

    /// The attributes that a context's slots stand for.
    fn labels(&mut self, tables: &mut Tables, slots: &[ValueRef; SLOTS]) -> AttributeSetId;

    /// The attributes of what a sample of `engine` is about.
    fn subject(&mut self, tables: &mut Tables, engine: Engine, subject: Subject) -> AttributeSetId;
}

/// A thread, in one of its lives as a Java thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadKey {
    /// The kernel's id.
    pub os_tid: i32,
    /// The life; 0 for a thread that never was a Java thread.
    pub java_incarnation: u32,
    /// Whether it was carrying a virtual thread.
    pub is_virtual: bool,
}

/// Sums the records of one interval. One owner at a time.
pub struct Aggregator {
    tables: Tables,
    frames: Frames,
    recent_frames: RecentFrames,
    labels: HashMap<[ValueRef; SLOTS], AttributeSetId, RandomState>,
    subjects: HashMap<(Engine, Subject, AttributeSetId), AttributeSetId, RandomState>,
    states: ThreadStates,
    /// Samples that may be repeated, by number.
    repeatable: HashMap<u32, u32, RandomState>,
    /// Samples of what may outlive the interval.
    numbered: Vec<Numbered>,
    sums: Vec<Sum>,
    index: HashTable<u32>,
    hasher: RandomState,
    moments: Option<Vec<Moment>>,
    stack: Vec<FrameId>,
}

impl Aggregator {
    /// An empty aggregator, which keeps each sample's time if `timestamps` is set.
    pub fn new(timestamps: bool) -> Self {
        Self {
            tables: Tables::new(),
            frames: Frames::default(),
            recent_frames: RecentFrames::new(),
            labels: HashMap::default(),
            subjects: HashMap::default(),
            states: ThreadStates::default(),
            repeatable: HashMap::default(),
            numbered: Vec::new(),
            sums: Vec::new(),
            index: HashTable::new(),
            hasher: RandomState::default(),
            moments: timestamps.then(Vec::new),
            stack: Vec::new(),
        }
    }

    /// Adds one record.
    pub fn add(
        &mut self,
        header: &SampleHeader,
        frames: impl Iterator<Item = RawFrame>,
        resolver: &mut impl Resolver,
    ) {
        let Self { tables, frames: known, recent_frames, labels, subjects, states, stack, .. } = self;
        stack.clear();
        stack.extend(frames.map(|frame| match frame.is_bare_address() {
            true => known.id(tables, resolver, frame),
            false => recent_frames.get_or(frame, || known.id(tables, resolver, frame)),
        }));
        let stack = tables.stacks.intern(stack);
        let context = &header.context;
        let (mut labels, link) = if context.is_some() {
            let label = || resolver.labels(tables, &context.slots);
            (*labels.entry(context.slots).or_insert_with(label), link(tables, context))
        } else {
            (AttributeSetId::EMPTY, LinkId::NONE)
        };
        let about = match header.engine {
            Engine::Wall => states.of(tables, header, stack).subject(),
            _ => header.subject,
        };
        if about != Subject::NONE {
            labels = *subjects.entry((header.engine, about, labels)).or_insert_with(|| {
                let subject = resolver.subject(tables, header.engine, about);
                // What is known of the sample wins over a label of the same name.
                tables.union_of_attributes(labels, subject)
            });
        }
        let thread = ThreadKey {
            os_tid: header.os_tid,
            java_incarnation: header.java_incarnation,
            is_virtual: header.is_virtual != 0,
        };
        let sum =
            self.sum(SumKey { engine: header.engine, stack, thread, owner: header.owner, labels, link });
        if header.number != 0 {
            match header.engine {
                Engine::Wall => drop(self.repeatable.insert(header.number, sum)),
                _ => self.numbered.push(Numbered { number: header.number, sum, values: header.values }),
            }
        }
        self.note(sum, header.values, header.monotonic_ns);
    }

    /// Adds to the sample of this number, which was taken in this interval, once more. `false` if it was not.
    pub fn repeat(&mut self, number: u32, values: [f64; 2], monotonic_ns: u64) -> bool {
        let Some(&sum) = self.repeatable.get(&number) else { return false };
        self.note(sum, values, monotonic_ns);
        true
    }

    fn note(&mut self, sum: u32, values: [f64; 2], monotonic_ns: u64) {
        let to = &mut self.sums[sum as usize];
        to.samples += 1;
        for (total, value) in to.values.iter_mut().zip(values) {
            *total += value;
        }
        if let Some(moments) = &mut self.moments {
            moments.push(Moment { sum, values, monotonic_ns });
        }
    }

    fn sum(&mut self, key: SumKey) -> u32 {
        let Self { sums, index, hasher, .. } = self;
        let key_of = |sums: &[Sum], index: u32| sums[index as usize].key;
        let hash = hasher.hash_one(key);
        if let Some(&found) = index.find(hash, |&index| key_of(sums, index) == key) {
            return found;
        }
        // SANITY: the drain of an interval holds far fewer than 2^32 different stacks.
        let new = u32::try_from(sums.len()).expect("fewer than 2^32 sums");
        sums.push(Sum { key, values: [0.0; 2], samples: 0, is_left_out: false });
        index.insert_unique(hash, new, |&index| hasher.hash_one(key_of(sums, index)));
        new
    }

    /// What is added from now on was sampled when so many objects had been loaded and unloaded, or more.
    pub fn sampled_since(&mut self, since: ObjectCounts) {
        self.frames.since = since;
    }

    /// The frames that are to be named, of those that were added since this was asked last.
    pub fn new_unnamed_frames(&mut self) -> Vec<UnnamedFrame> {
        let Frames { unnamed, told, .. } = &mut self.frames;
        let new = unnamed[*told..].iter().map(|(frame, _)| *frame).collect();
        *told = unnamed.len();
        new
    }

    /// Forgets what Java frames were resolved to: a `Method*` in a record may mean another method from now on.
    /// Sums and names so far stay.
    pub fn forget_java_frames(&mut self) {
        self.frames.java.clear();
        self.recent_frames.clear();
    }

    /// Forgets what slots were resolved to: a value that they refer to may be reclaimed after this drain, and one day its
    /// reference means another.
    pub fn forget_labels(&mut self) {
        self.labels.clear();
    }

    /// Takes the interval's sums and begins a new interval.
    pub fn take(&mut self) -> Interval {
        let mut fresh = Self::new(self.moments.is_some());
        fresh.frames.since = self.frames.since;
        let done = std::mem::replace(self, fresh);
        Interval {
            tables: done.tables,
            unnamed: done.frames.unnamed,
            sums: done.sums,
            moments: done.moments,
            numbered: done.numbered,
        }
    }

    /// How many samples there are of what may outlive the interval.
    pub fn numbered_count(&self) -> usize {
        self.numbered.len()
    }

    /// Forgets that some of those could.
    pub fn retain_numbered(&mut self, is_alive: impl Fn(Engine, u32) -> bool) {
        let Self { numbered, sums, .. } = self;
        numbered.retain(|sample| is_alive(sums[sample.sum as usize].key.engine, sample.number));
    }

    /// Whether nothing was added in this interval.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }
}

/// What the interval's frames were found to be.
#[derive(Default)]
struct Frames {
    /// Those of Java, which are forgotten when a collection starts.
    java: HashMap<RawFrame, FrameId, RandomState>,
    others: HashMap<UnnamedFrame, FrameId, RandomState>,
    /// Those of `others` that are to be named.
    unnamed: Vec<(UnnamedFrame, FrameId)>,
    /// So many of them have been told.
    told: usize,
    since: ObjectCounts,
}

impl Frames {
    /// The frame's id, resolved if it is new in this interval. Not in line: the loop that asks is the hottest of the drain.
    #[cold]
    #[inline(never)]
    fn id(&mut self, tables: &mut Tables, resolver: &mut impl Resolver, frame: RawFrame) -> FrameId {
        let Self { java, others, unnamed, .. } = self;
        let since = if frame.is_bare_address() { self.since } else { ObjectCounts::default() };
        let not_named = UnnamedFrame { frame, since };
        let mut resolve = || {
            resolver.frame(tables, frame).unwrap_or_else(|| {
                let nothing = Frame::Marker { function: FunctionId(0), frame_type: FrameType::Native };
                let id = tables.frames.reserve(nothing);
                unnamed.push((not_named, id));
                id
            })
        };
        if frame.kind.is_java() {
            return *java.entry(frame).or_insert_with(resolve);
        }
        *others.entry(not_named).or_insert_with(&mut resolve)
    }
}

/// The span of a context, if a trace is active.
fn link(tables: &mut Tables, context: &ContextRecord) -> LinkId {
    // Readers reject links of which either part is zero.
    if !context.has_span() {
        return LinkId::NONE;
    }
    tables.links.intern(Link { trace_id: context.trace_id, span_id: context.span_id })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::ProfileKind;
    use crate::core::record::{Owner, OwnerThread};
    use crate::model::{Profile, types};

    struct ByNumber {
        resolved: usize,
    }

    impl Resolver for ByNumber {
        fn frame(&mut self, tables: &mut Tables, frame: RawFrame) -> Option<FrameId> {
            if frame.kind == FrameKind::Native {
                return None;
            }
            self.resolved += 1;
            let function = tables.named_function(&format!("f{}", frame.value));
            Some(tables.frames.intern(Frame::java(function, frame.aux)))
        }

        fn labels(&mut self, tables: &mut Tables, slots: &[ValueRef; SLOTS]) -> AttributeSetId {
            self.resolved += 1;
            let labels: Vec<_> = (0..)
                .zip(slots)
                .filter(|(_, value)| **value != ValueRef::NONE)
                .map(|(slot, value)| tables.string_attribute(&format!("slot{slot}"), &value.0.to_string()))
                .collect();
            tables.attribute_set(&labels)
        }

        fn subject(&mut self, tables: &mut Tables, engine: Engine, subject: Subject) -> AttributeSetId {
            let attribute = tables.int_attribute(&format!("{engine:?}"), i64::from(subject.0), "");
            tables.attribute_set(&[attribute])
        }
    }

    /// The CPU engine's profile, with the given period.
    fn cpu_profile(
        interval: Interval,
        unix_offset_ns: i64,
        attributes_of: impl FnMut(&mut Tables, ThreadKey) -> AttributeSetId,
    ) -> (Tables, Profile) {
        let owner = |tables: &mut Tables, owner: Owner| {
            let attribute = tables.string_attribute("owner", &format!("{:?}", owner.thread()));
            tables.attribute_set(&[attribute])
        };
        let kinds = |_| [Some(ProfileKind { profile_type: &types::CPU, period: 1, scale: 1.0 }), None];
        let (tables, mut profiles) = interval.into_profiles(kinds, unix_offset_ns, attributes_of, owner);
        (tables, profiles.remove(0))
    }

    fn header(os_tid: i32, weight: u64, monotonic_ns: u64) -> SampleHeader {
        SampleHeader {
            monotonic_ns,
            weight,
            values: [weight as f64, 0.0],
            context: ContextRecord::NONE,
            owner: Owner::NONE,
            os_tid,
            java_incarnation: 0,
            frame_count: 0,
            subject: Subject::NONE,
            number: 0,
            engine: Engine::Cpu,
            thread_state: 0,
            is_virtual: 0,
            is_waiting: 0,
            is_runnable: 0,
            reserved: 0,
        }
    }

    fn frames(values: &[u64]) -> impl Iterator<Item = RawFrame> {
        values.iter().map(|&value| RawFrame { kind: FrameKind::Interpreted, aux: 1, value })
    }

    fn no_attributes(_: &mut Tables, _: ThreadKey) -> AttributeSetId {
        AttributeSetId::EMPTY
    }

    #[test]
    fn samples_of_one_stack_and_thread_are_summed_by_weight() {
        let mut aggregator = Aggregator::new(false);
        let mut resolver = ByNumber { resolved: 0 };
        for (tid, weight, stack) in [(1, 2, [1, 2]), (1, 3, [1, 2]), (2, 1, [1, 2]), (1, 1, [2, 1])] {
            aggregator.add(&header(tid, weight, 0), frames(&stack), &mut resolver);
        }
        assert_eq!(resolver.resolved, 2, "each frame is resolved once");
        let interval = aggregator.take();
        assert!(aggregator.is_empty());
        let by_tid = |tables: &mut Tables, thread: ThreadKey| {
            let attribute = tables.int_attribute("tid", i64::from(thread.os_tid), "");
            tables.attribute_set(&[attribute])
        };
        let (_, profile) = cpu_profile(interval, 0, by_tid);
        let mut values: Vec<i64> = profile.samples().iter().map(|sample| sample.value).collect();
        values.sort_unstable();
        assert_eq!(values, [1, 1, 5]);
    }

    #[test]
    fn threads_with_equal_attributes_share_a_sample() {
        let mut aggregator = Aggregator::new(false);
        let mut resolver = ByNumber { resolved: 0 };
        aggregator.add(&header(1, 2, 0), frames(&[1]), &mut resolver);
        aggregator.add(&header(2, 3, 0), frames(&[1]), &mut resolver);
        let (_, profile) = cpu_profile(aggregator.take(), 0, no_attributes);
        assert_eq!(profile.samples().len(), 1);
        assert_eq!(profile.samples()[0].value, 5);
    }

    #[test]
    fn samples_with_different_owners_are_kept_apart() {
        let mut aggregator = Aggregator::new(false);
        let mut resolver = ByNumber { resolved: 0 };
        let owners = [Owner::NONE, Owner::new(OwnerThread::ThreadId(7)), Owner::new(OwnerThread::Carrier(7))];
        for (weight, owner) in (1..).zip(owners).chain([(10, owners[1])]) {
            let header = SampleHeader { owner, ..header(1, weight, 0) };
            aggregator.add(&header, frames(&[1]), &mut resolver);
        }
        let (tables, profile) = cpu_profile(aggregator.take(), 0, no_attributes);
        let found = profile.samples().iter().map(|sample| {
            let attributes = tables.attributes_of(sample.identity.attributes).iter();
            let text = attributes.map(|id| match tables.attributes.get(*id).value {
                crate::model::AttributeValue::Str(text) => tables.strings.get(text).to_owned(),
                _ => panic!("a string"),
            });
            (sample.value, text.collect::<Vec<_>>().join(" "))
        });
        let expected = [(1, ""), (12, "Some(ThreadId(7))"), (3, "Some(Carrier(7))")];
        assert_eq!(found.collect::<Vec<_>>(), expected.map(|(value, text)| (value, text.to_owned())));
    }

    fn native(object: u32, value: u64) -> RawFrame {
        RawFrame { kind: FrameKind::Native, aux: object, value }
    }

    /// Names native frames by their objects, those in none by what has been loaded.
    fn named(tables: &mut Tables, frame: UnnamedFrame) -> Frame {
        let object = if frame.frame.aux == NO_OBJECT { frame.since.loaded } else { frame.frame.aux.into() };
        let function = tables.named_function(&format!("plugin{object}"));
        Frame::Marker { function, frame_type: FrameType::Native }
    }

    /// Regression: within an interval an address in no known object kept the name of what was there at first.
    #[test]
    fn an_address_in_no_object_is_another_one_when_objects_have_come_or_gone() {
        for (object, stacks) in [(NO_OBJECT, 3), (5, 1)] {
            let mut aggregator = Aggregator::new(false);
            let mut resolver = ByNumber { resolved: 0 };
            for since in [(1, 0), (2, 0), (2, 0), (3, 1)] {
                aggregator.sampled_since(ObjectCounts { loaded: since.0, unloaded: since.1 });
                aggregator.add(&header(1, 1, 0), [native(object, 0x7000)].into_iter(), &mut resolver);
            }
            let mut interval = aggregator.take();
            interval.name_frames(named);
            let (_, profile) = cpu_profile(interval, 0, no_attributes);
            assert_eq!(profile.samples().len(), stacks, "{object}");
        }
    }

    /// Regression: symbol tables were read, and names demangled, at the safepoint where a collection begins.
    #[test]
    fn frames_that_take_long_to_name_are_named_when_the_interval_has_ended() {
        let mut aggregator = Aggregator::new(false);
        let mut resolver = ByNumber { resolved: 0 };
        for object in [1, 2, 1] {
            aggregator.add(&header(1, 1, 0), [native(object, 0x10)].into_iter(), &mut resolver);
        }
        assert_eq!(resolver.resolved, 0);
        let frames = |aggregator: &mut Aggregator| {
            aggregator.new_unnamed_frames().iter().map(|unnamed| unnamed.frame.aux).collect::<Vec<_>>()
        };
        assert_eq!(frames(&mut aggregator), [1, 2]);
        aggregator.add(&header(1, 1, 0), [native(1, 0x10), native(3, 0x10)].into_iter(), &mut resolver);
        assert_eq!(frames(&mut aggregator), [3], "each is told once");
        let mut interval = aggregator.take();
        interval.name_frames(named);
        let (tables, profile) = cpu_profile(interval, 0, no_attributes);
        let texts = |identity: crate::model::SampleIdentity| {
            let frames = tables.stacks.get(identity.stack).iter();
            let text = frames.map(|id| match *tables.frames.get(*id) {
                Frame::Marker { function, .. } => tables.strings.get(tables.functions.get(function).name),
                _ => panic!("a marker"),
            });
            text.collect::<Vec<_>>().join(";")
        };
        let found: Vec<_> =
            profile.samples().iter().map(|sample| (texts(sample.identity), sample.value)).collect();
        let expected = [("plugin1", 2), ("plugin2", 1), ("plugin1;plugin3", 1)];
        assert_eq!(found, expected.map(|(text, value)| (text.to_owned(), value)));
    }

    /// An object's address, and the same one with its run-time address: two places, one function.
    #[test]
    fn stacks_of_frames_that_turn_out_to_be_one_are_one() {
        let mut aggregator = Aggregator::new(false);
        let mut resolver = ByNumber { resolved: 0 };
        for value in [0x10, 0x20, 0x10] {
            let java = RawFrame { kind: FrameKind::Interpreted, aux: 1, value: 7 };
            aggregator.add(&header(1, 1, 0), [native(1, value), java].into_iter(), &mut resolver);
            aggregator.add(&header(1, 1, 0), [java].into_iter(), &mut resolver);
        }
        let mut interval = aggregator.take();
        interval.name_frames(named);
        let (tables, profile) = cpu_profile(interval, 0, no_attributes);
        let found: Vec<_> = profile
            .samples()
            .iter()
            .map(|sample| (tables.stacks.get(sample.identity.stack).len(), sample.value))
            .collect();
        assert_eq!(found, [(2, 3), (1, 3)]);
    }

    #[test]
    fn a_forgotten_java_frame_is_resolved_again() {
        let mut aggregator = Aggregator::new(false);
        let mut resolver = ByNumber { resolved: 0 };
        aggregator.add(&header(1, 1, 0), frames(&[1]), &mut resolver);
        aggregator.forget_java_frames();
        aggregator.add(&header(1, 1, 0), frames(&[1]), &mut resolver);
        assert_eq!(resolver.resolved, 2);
    }

    #[test]
    fn times_are_kept_when_asked_for_and_turned_into_unix_time() {
        let mut aggregator = Aggregator::new(true);
        let mut resolver = ByNumber { resolved: 0 };
        aggregator.add(&header(1, 1, 500), frames(&[1]), &mut resolver);
        aggregator.add(&header(1, 1, 700), frames(&[1]), &mut resolver);
        let (_, profile) = cpu_profile(aggregator.take(), 1_000_000, no_attributes);
        let times: Vec<u64> = profile.observations(0).map(|seen| seen.unix_nano).collect();
        assert_eq!(times, [1_000_500, 1_000_700]);
        assert!(profile.is_timed());
    }

    fn in_context(trace: u8, span: u8, slot3: u32) -> SampleHeader {
        let mut slots = [ValueRef::NONE; SLOTS];
        slots[3] = ValueRef(slot3);
        let context = ContextRecord {
            trace_id: [trace; 16],
            span_id: [span; 8],
            valid: 1,
            slots,
            ..ContextRecord::NONE
        };
        SampleHeader { context, ..header(1, 1, 0) }
    }

    #[test]
    fn contexts_are_kept_apart_and_become_labels_and_links() {
        let mut aggregator = Aggregator::new(false);
        let mut resolver = ByNumber { resolved: 0 };
        let contexts = [(1, 2, 0), (1, 2, 9), (1, 3, 9), (1, 2, 9), (0, 0, 0), (1, 0, 0), (0, 2, 0)];
        for (trace, span, slot) in contexts {
            aggregator.add(&in_context(trace, span, slot), frames(&[5]), &mut resolver);
        }
        assert_eq!(resolver.resolved, 3, "a frame and two sets of slots");
        let (tables, profile) = cpu_profile(aggregator.take(), 0, |tables, _| {
            let attributes = ["slot3", "thread.name"].map(|key| tables.string_attribute(key, "thread's"));
            tables.attribute_set(&attributes[1..])
        });
        let found: Vec<_> = profile
            .samples()
            .iter()
            .map(|sample| {
                let link = tables.links.get(sample.identity.link);
                let attributes = tables.attributes_of(sample.identity.attributes).len();
                (link.trace_id[0], link.span_id[0], attributes, sample.value)
            })
            .collect();
        assert_eq!(found, [(1, 2, 1, 1), (1, 2, 2, 2), (1, 3, 2, 1), (0, 0, 1, 3)]);
        let ids: Vec<_> = profile.samples().iter().map(|sample| sample.identity.link).collect();
        assert_eq!(ids[3], LinkId::NONE);
    }

    #[test]
    fn a_label_does_not_hide_what_is_known_of_the_thread() {
        let mut aggregator = Aggregator::new(false);
        let mut resolver = ByNumber { resolved: 0 };
        aggregator.add(&in_context(0, 0, 9), frames(&[5]), &mut resolver);
        let (tables, profile) = cpu_profile(aggregator.take(), 0, |tables, _| {
            let attribute = tables.string_attribute("slot3", "thread's");
            tables.attribute_set(&[attribute])
        });
        let attributes = tables.attributes_of(profile.samples()[0].identity.attributes);
        let [attribute] = attributes else { panic!("{attributes:?}") };
        let crate::model::AttributeValue::Str(value) = tables.attributes.get(*attribute).value else {
            panic!("a string")
        };
        assert_eq!(tables.strings.get(value), "thread's");
    }
}

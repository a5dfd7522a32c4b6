//! Sums samples by engine, stack, thread, context and subject over an interval.
//!
//! | Module | Duty |
//! |---|---|
//! | `carry_over` | samples that the next interval may repeat |

mod carry_over;

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashTable};
use otlpprof_core::context::{ContextRecord, SLOTS, ValueRef};
use otlpprof_core::engine::Engine;
use otlpprof_core::record::{SampleHeader, Subject};
use otlpprof_model::{AttributeSetId, Frame, FrameId, FrameType, FunctionId, Link, LinkId, Tables};

use super::interval::{Interval, Numbered, SampleTime, Sum, SumKey};
use super::keys::{ObjectCounts, RawFrame, ThreadKey, UnnamedFrame};
use super::recent_frames::RecentFrames;
use super::thread_state::ThreadStates;

/// Resolves references in records at the time they are drained.
pub trait Resolver {
    /// Returns the model's frame for `frame`; `None` if [`Interval::name_frames`] names it when the interval
    /// has ended.
    fn frame(&mut self, tables: &mut Tables, frame: RawFrame) -> Option<FrameId>;

    /// Returns the attributes that a context's slots refer to.
    fn labels(&mut self, tables: &mut Tables, slots: &[ValueRef; SLOTS]) -> AttributeSetId;

    /// Returns the attributes for the subject of a sample of `engine`.
    fn subject(&mut self, tables: &mut Tables, engine: Engine, subject: Subject) -> AttributeSetId;
}

/// Sums the records of one interval. One owner at a time.
pub struct Aggregator {
    tables: Tables,
    frames: Frames,
    recent_frames: RecentFrames,
    labels: HashMap<[ValueRef; SLOTS], AttributeSetId, RandomState>,
    subjects: HashMap<(Engine, Subject, AttributeSetId), AttributeSetId, RandomState>,
    states: ThreadStates,
    /// Samples that may be repeated: the index of the sum, by the sample's number.
    repeatable: HashMap<u32, u32, RandomState>,
    /// Samples of the previous interval that may be repeated, and have not been repeated in this one.
    carried_over: HashMap<u32, SumKey, RandomState>,
    /// Samples whose memory or objects may outlive the interval.
    numbered: Vec<Numbered>,
    sums: Vec<Sum>,
    index: HashTable<u32>,
    hasher: RandomState,
    moments: Option<Vec<SampleTime>>,
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
            carried_over: HashMap::default(),
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
                // An attribute of the sample overrides a label of the same name.
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

    /// Adds values to the sample of this number once more. Returns `false` if the sample was neither taken in
    /// this interval nor carried over to it.
    pub fn repeat(&mut self, number: u32, values: [f64; 2], monotonic_ns: u64) -> bool {
        let sum = match self.repeatable.get(&number) {
            Some(&sum) => sum,
            None => {
                let Some(key) = self.carried_over.remove(&number) else { return false };
                let sum = self.sum(key);
                self.repeatable.insert(number, sum);
                sum
            }
        };
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
            moments.push(SampleTime { sum, values, monotonic_ns });
        }
    }

    fn sum(&mut self, key: SumKey) -> u32 {
        let Self { sums, index, hasher, .. } = self;
        let key_of = |sums: &[Sum], index: u32| sums[index as usize].key;
        let hash = hasher.hash_one(key);
        if let Some(&found) = index.find(hash, |&index| key_of(sums, index) == key) {
            return found;
        }
        // SANITY: an interval has far fewer than 2^32 different sums.
        let new = u32::try_from(sums.len()).expect("fewer than 2^32 sums");
        sums.push(Sum { key, values: [0.0; 2], samples: 0, is_left_out: false });
        index.insert_unique(hash, new, |&index| hasher.hash_one(key_of(sums, index)));
        new
    }

    /// Declares that all records added from now on were sampled after at least this many objects had been
    /// loaded and unloaded.
    pub fn sampled_since(&mut self, since: ObjectCounts) {
        self.frames.since = since;
    }

    /// Returns the frames still to be named that were added since the last call.
    pub fn new_unnamed_frames(&mut self) -> Vec<UnnamedFrame> {
        let Frames { unnamed, reported, .. } = &mut self.frames;
        let new = unnamed[*reported..].iter().map(|(frame, _)| *frame).collect();
        *reported = unnamed.len();
        new
    }

    /// Forgets the resolution of Java frames: a `Method*` in a record may mean another method from now on.
    /// Sums and names so far are kept.
    pub fn forget_java_frames(&mut self) {
        self.frames.java.clear();
        self.recent_frames.clear();
    }

    /// Forgets the resolution of slots: a value that they refer to may be reclaimed after this drain, and its
    /// reference may later mean another.
    pub fn forget_labels(&mut self) {
        self.labels.clear();
    }

    /// Takes the interval's sums and begins a new interval, in which the samples of the numbers `repeatable`
    /// can be repeated.
    pub fn take(&mut self, repeatable: &[u32]) -> Interval {
        let mut fresh = Self::new(self.moments.is_some());
        fresh.frames.since = self.frames.since;
        fresh.carry_over(self, repeatable);
        let done = std::mem::replace(self, fresh);
        Interval {
            tables: done.tables,
            unnamed: done.frames.unnamed,
            sums: done.sums,
            moments: done.moments,
            numbered: done.numbered,
        }
    }

    /// Copies the interval's sums so far, without the times and numbers of samples. The interval goes on.
    pub fn so_far(&self) -> Interval {
        Interval {
            tables: self.tables.clone(),
            unnamed: self.frames.unnamed.clone(),
            sums: self.sums.clone(),
            moments: None,
            numbered: Vec::new(),
        }
    }

    /// The number of samples whose memory or objects may outlive the interval.
    pub fn numbered_count(&self) -> usize {
        self.numbered.len()
    }

    /// Keeps only the numbers of samples for which `is_alive` holds.
    pub fn retain_numbered(&mut self, is_alive: impl Fn(Engine, u32) -> bool) {
        let Self { numbered, sums, .. } = self;
        numbered.retain(|sample| is_alive(sums[sample.sum as usize].key.engine, sample.number));
    }

    /// Whether nothing was added in this interval.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }
}

/// Cache: the resolved frames of an interval.
#[derive(Default)]
struct Frames {
    /// Java frames, which are forgotten when a collection starts.
    java: HashMap<RawFrame, FrameId, RandomState>,
    others: HashMap<UnnamedFrame, FrameId, RandomState>,
    /// The frames of `others` that are still to be named.
    unnamed: Vec<(UnnamedFrame, FrameId)>,
    /// The number of these that [`Aggregator::new_unnamed_frames`] has returned.
    reported: usize,
    since: ObjectCounts,
}

impl Frames {
    /// Returns the frame's id, and resolves the frame if it is new in this interval. Not inlined, since the
    /// calling loop is the hottest of the drain.
    #[cold]
    #[inline(never)]
    fn id(&mut self, tables: &mut Tables, resolver: &mut impl Resolver, frame: RawFrame) -> FrameId {
        let Self { java, others, unnamed, .. } = self;
        let since = if frame.is_bare_address() { self.since } else { ObjectCounts::default() };
        let not_named = UnnamedFrame { frame, since };
        let mut resolve =
            || resolver.frame(tables, frame).unwrap_or_else(|| reserve(tables, unnamed, not_named));
        if frame.kind.is_java() {
            return *java.entry(frame).or_insert_with(resolve);
        }
        *others.entry(not_named).or_insert_with(&mut resolve)
    }

    /// Returns the id of a frame that is named when the interval has ended.
    fn unnamed_id(&mut self, tables: &mut Tables, frame: UnnamedFrame) -> FrameId {
        let Self { others, unnamed, .. } = self;
        *others.entry(frame).or_insert_with(|| reserve(tables, unnamed, frame))
    }
}

/// Reserves an id for a frame that is named when the interval has ended.
fn reserve(tables: &mut Tables, unnamed: &mut Vec<(UnnamedFrame, FrameId)>, frame: UnnamedFrame) -> FrameId {
    let nothing = Frame::Marker { function: FunctionId(0), frame_type: FrameType::Native };
    let id = tables.frames.reserve(nothing);
    unnamed.push((frame, id));
    id
}

/// Returns the span of a context, if a trace is active.
fn link(tables: &mut Tables, context: &ContextRecord) -> LinkId {
    // Readers reject links in which either part is zero.
    if !context.has_span() {
        return LinkId::NONE;
    }
    tables.links.intern(Link { trace_id: context.trace_id, span_id: context.span_id })
}

#[cfg(test)]
mod tests;

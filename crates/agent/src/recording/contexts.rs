//! The contexts of threads at moments in the past: the history of their changes, in bounded memory.
//!
//! Contexts that are forgotten, lost or in doubt are not reported: an event without a context is better than
//! an event with a wrong one.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::RandomState;
use otlpprof_aggregate::NameSelection;
use otlpprof_context::changes::{Change, ChangeReader, Noted, RINGS};
use otlpprof_context::dictionary::DICTIONARY;
use otlpprof_context::slot_names::SLOT_NAMES;
use otlpprof_convert::{ContextLabels, EventThread, KnownContext, Occurrence, Witness};
use otlpprof_core::context::{ContextRecord, SLOTS, ValueRef};
use otlpprof_model::{Link, StackId, Tables};
use otlpprof_sampling::threads;
use parking_lot::Mutex;

use super::clocks::{Instant, RecordingClocks};

/// The most that is kept: each change counts as one, each thread as [`COST_OF_THREAD`].
const MOST_KEPT: usize = 1 << 18;
const COST_OF_THREAD: usize = 4;

/// How far back changes are kept, in ns: as far as the first value while there is room, then less and less.
const KEPT_NS: [i64; 4] = [60_000_000_000, 15_000_000_000, 4_000_000_000, 1_000_000_000];

/// The most sets of labels whose texts are cached.
const MOST_LABELS: usize = 1 << 14;

/// How much later than its stated time an event may have happened, in ns, if another thread recorded it.
const DELAY_NS: i64 = 20_000_000;

/// A thread's context from some moment on; `None`: unknown.
#[derive(Clone, Debug)]
struct ContextSince {
    monotonic_ns: i64,
    context: Option<KnownContext>,
}

/// Counts of the contexts that were requested for events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ContextCounts {
    /// Events whose context was found.
    pub(super) known: u64,
    /// Events whose context is in doubt.
    pub(super) doubtful: u64,
}

/// The contexts of all threads.
#[derive(Debug)]
pub(super) struct Contexts {
    reader: ChangeReader<'static>,
    pub(super) clocks: RecordingClocks,
    history: History,
    labels: HashMap<[ValueRef; SLOTS], Arc<ContextLabels>, RandomState>,
    pub(super) found: ContextCounts,
}

#[derive(Debug, Default)]
struct History {
    threads: HashMap<i64, VecDeque<ContextSince>, RandomState>,
    changes: usize,
}

impl Contexts {
    /// Starts a history of changes from now on; `None` if changes cannot be noted.
    pub(super) fn new() -> Option<Self> {
        Some(Self {
            reader: ChangeReader::new()?,
            clocks: RecordingClocks::default(),
            history: History::default(),
            labels: HashMap::default(),
            found: ContextCounts::default(),
        })
    }

    /// Reads the changes that have been noted. On return the values that they refer to are resolved.
    pub(super) fn take_changes(&mut self) {
        let Self { reader, history, labels, .. } = self;
        reader.read(|noted| match noted {
            Noted::Change(change) => {
                let context = change.record.map(|record| resolved(labels, &record));
                history.note(&change, context);
            }
            Noted::Lost(ring) => history.forget_ring(ring),
        });
        history.trim();
    }

    fn context_of(&mut self, occurrence: Occurrence) -> Option<KnownContext> {
        let history = self.history.threads.get(&occurrence.thread.java_id)?;
        let times = [occurrence.start_ticks, occurrence.end_ticks].map(|ticks| self.clocks.at(ticks));
        let [Some(start), Some(end)] = times else {
            self.found.doubtful += 1;
            return None;
        };
        match context_between(history, surely_within(start, end, occurrence.is_seen_by_another)) {
            Some(context) if context == KnownContext::default() => None,
            Some(context) => {
                self.found.known += 1;
                Some(context)
            }
            None => {
                self.found.doubtful += 1;
                None
            }
        }
    }
}

/// Resolves the texts that a record refers to.
fn resolved(
    known: &mut HashMap<[ValueRef; SLOTS], Arc<ContextLabels>, RandomState>,
    record: &ContextRecord,
) -> KnownContext {
    if known.len() >= MOST_LABELS {
        known.clear();
    }
    let labels = known.entry(record.slots).or_insert_with(|| {
        let names = SLOT_NAMES.list();
        let values = DICTIONARY.values();
        let labels = names.iter().zip(record.slots);
        Arc::new(
            labels.filter_map(|(name, slot)| Some((name.clone(), values.get(slot)?.to_owned()))).collect(),
        )
    });
    let link = match record.has_span() {
        true => Link { trace_id: record.trace_id, span_id: record.span_id },
        false => Link::default(),
    };
    KnownContext { labels: labels.clone(), link }
}

/// Returns the time for which a context must have lasted to belong to the event. A thread is in one place at
/// a time: it has changed its context before an event that takes long, or after it, so the time is narrowed
/// by the clocks' error. If another thread recorded the event, or if start and end may be the same moment,
/// the time is widened by the error instead.
fn surely_within(start: Instant, end: Instant, is_seen_by_another: bool) -> (i64, i64) {
    let doubt_ns = start.doubt_ns.max(end.doubt_ns);
    let (start_ns, end_ns) = (start.monotonic_ns, end.monotonic_ns);
    if is_seen_by_another {
        return (start_ns - doubt_ns, end_ns + doubt_ns + DELAY_NS);
    }
    match end_ns - start_ns > 2 * doubt_ns {
        true => (start_ns + doubt_ns, end_ns - doubt_ns),
        false => (start_ns - doubt_ns, end_ns + doubt_ns),
    }
}

/// Returns the context that lasted from the first moment to the last.
fn context_between(
    history: &VecDeque<ContextSince>,
    (first_ns, last_ns): (i64, i64),
) -> Option<KnownContext> {
    let after = history.partition_point(|since| since.monotonic_ns <= first_ns);
    let at_first = history.get(after.checked_sub(1)?)?.context.as_ref()?;
    let meanwhile = history.iter().skip(after).take_while(|since| since.monotonic_ns < last_ns);
    let mut others = meanwhile.map(|since| since.context.as_ref());
    others.all(|other| other == Some(at_first)).then(|| at_first.clone())
}

impl History {
    fn note(&mut self, change: &Change, context: Option<KnownContext>) {
        let history = self.threads.entry(change.thread_id).or_default();
        if history.back().is_some_and(|last| last.monotonic_ns > change.monotonic_ns) {
            return;
        }
        history.push_back(ContextSince { monotonic_ns: change.monotonic_ns, context });
        self.changes += 1;
    }

    fn forget_ring(&mut self, ring: usize) {
        self.retain(|thread_id, _| thread_id.rem_euclid(RINGS as i64) != ring as i64);
    }

    fn retain(&mut self, mut keep: impl FnMut(i64, &mut VecDeque<ContextSince>) -> bool) {
        self.threads.retain(|&thread_id, history| keep(thread_id, history));
        self.changes = self.threads.values().map(VecDeque::len).sum();
    }

    fn is_full(&self) -> bool {
        self.changes + COST_OF_THREAD * self.threads.len() > MOST_KEPT
    }

    /// Forgets old changes if there are too many. The current context of each thread is kept, unless it is
    /// empty or unknown.
    fn trim(&mut self) {
        if !self.is_full() {
            return;
        }
        let newest = self.threads.values().filter_map(|history| history.back()).map(|last| last.monotonic_ns);
        let Some(newest_ns) = newest.max() else { return };
        for kept_ns in KEPT_NS {
            self.retain(|_, history| {
                while history.get(1).is_some_and(|second| second.monotonic_ns < newest_ns - kept_ns) {
                    history.pop_front();
                }
                let is_over = |since: &ContextSince| {
                    since.monotonic_ns < newest_ns - kept_ns
                        && since.context.as_ref().is_none_or(|context| *context == KnownContext::default())
                };
                !(history.len() == 1 && history.front().is_some_and(is_over))
            });
            if !self.is_full() {
                return;
            }
        }
        self.retain(|_, _| false);
    }
}

/// The converter's access to the present process.
#[derive(Debug)]
pub(super) struct CurrentProcess {
    /// `None` if changes of contexts cannot be noted.
    pub(super) contexts: Option<Arc<Mutex<Contexts>>>,
    /// The names of the threads that the user selects.
    pub(super) threads: NameSelection,
    /// The names of the frames that the user selects.
    pub(super) frames: NameSelection,
}

impl Witness for CurrentProcess {
    fn leaves_out(&self, thread: EventThread) -> bool {
        i32::try_from(thread.os_id).is_ok_and(threads::is_own_thread)
    }

    fn wants(&self, thread_name: Option<&str>, stack: StackId, tables: &Tables) -> bool {
        self.threads.selects(thread_name.into_iter())
            && (self.frames.is_everything() || self.frames.selects_stack(tables, stack))
    }

    fn context(&mut self, occurrence: Occurrence) -> Option<KnownContext> {
        self.contexts.as_ref()?.lock().context_of(occurrence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(span: u8) -> KnownContext {
        KnownContext { labels: Arc::default(), link: Link { trace_id: [1; 16], span_id: [span; 8] } }
    }

    fn history(changes: &[(i64, u8)]) -> History {
        let mut history = History::default();
        for &(monotonic_ns, span) in changes {
            history.note(&Change { thread_id: 1, monotonic_ns, record: None }, Some(context(span)));
        }
        history
    }

    fn at(monotonic_ns: i64, doubt_ns: i64) -> Instant {
        Instant { monotonic_ns, doubt_ns }
    }

    #[test]
    fn an_event_has_the_context_that_lasted_all_the_time() {
        let history = &history(&[(1_000, 1), (2_000, 2), (3_000, 2), (4_000, 3)]).threads[&1];
        let between =
            |first, last| context_between(history, (first, last)).map(|context| context.link.span_id[0]);
        assert_eq!(between(1_100, 1_900), Some(1));
        assert_eq!(between(2_000, 4_000), Some(2), "it is set once more, to the same");
        assert_eq!(between(1_999, 2_001), None, "it changes meanwhile");
        assert_eq!(between(999, 1_500), None, "before the first");
        assert_eq!(between(9_000, 9_999), Some(3));
    }

    #[test]
    fn clock_error_narrows_long_events_and_widens_short_ones() {
        assert_eq!(surely_within(at(10_000, 100), at(20_000, 200), false), (10_200, 19_800));
        assert_eq!(surely_within(at(10_000, 100), at(10_150, 100), false), (9_900, 10_250));
        let (first, last) = surely_within(at(10_000, 100), at(10_000, 100), true);
        assert_eq!((first, last), (9_900, 10_100 + DELAY_NS));
    }

    #[test]
    fn lost_rings_and_old_changes_are_forgotten() {
        let mut history = history(&[(1_000, 1)]);
        let change = |thread_id, monotonic_ns| Change { thread_id, monotonic_ns, record: None };
        history.note(&change(33, 5), Some(context(2)));
        history.note(&change(34, 5), Some(context(2)));
        history.forget_ring(1);
        assert_eq!((history.threads.len(), history.changes), (1, 1));
        for n in 0..(MOST_KEPT as i64) {
            history.note(&change(34, 1_000_000_000 + n * 1_000_000), Some(context(3)));
        }
        history.note(&change(35, 7), Some(KnownContext::default()));
        history.note(&change(36, 7), Some(context(4)));
        history.trim();
        assert!(!history.is_full());
        assert!(!history.threads.contains_key(&35), "nothing is worth remembering");
        assert_eq!(history.threads[&36].len(), 1, "what a thread has is");
        let kept = &history.threads[&34];
        assert!(kept.len() > 50_000 && kept.len() < 70_000, "{}", kept.len());
    }

    #[test]
    fn more_threads_than_there_is_room_for_are_forgotten() {
        let mut history = History::default();
        for thread_id in 0..(MOST_KEPT as i64) {
            history.note(&Change { thread_id, monotonic_ns: 1, record: None }, Some(context(1)));
        }
        history.trim();
        assert!(history.threads.is_empty() && history.changes == 0);
    }
}

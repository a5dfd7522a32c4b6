//! A log of changes of contexts with their times, from which a thread's context at a past moment can be
//! found.
//!
//! Java writes the changes (`ContextChanges` in java/api) while
//! [`Published::notices`](super::dictionary::Published) demands it, into rings that threads share by their
//! ids. So memory is bounded for any number of threads, including virtual ones. One reader reads the rings at
//! intervals. A full ring is overwritten, which the reader detects: then nothing is known of the ring's
//! threads until they change their contexts again.
//!
//! An entry's first word is its turn: 2n while the entry waits for the ring's n-th round (or still holds an
//! earlier one), 2n + 1 while it is being written in that round, 2n + 2 once it has been written. If a thread
//! finds that another is still writing the entry, it skips its own change, and counts that.

use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use otlpprof_core::context::{BLOCK_WORDS, ContextRecord};

/// The number of rings. A thread uses the ring that the lowest bits of its id select.
pub const RINGS: usize = 32;
/// The number of entries of a ring.
pub const ENTRIES: usize = 4096;

/// Words of an entry: its turn, the thread's id, the time by CLOCK_MONOTONIC, and the block. One word is
/// unused.
const ENTRY_WORDS: usize = 12;
const _: () = assert!(3 + BLOCK_WORDS <= ENTRY_WORDS);

/// Words of a ring's head: the number of entries begun, and the number of changes skipped. The rest is
/// unused, to keep the heads apart.
const HEAD_WORDS: usize = 16;

const WORDS: usize = RINGS * (HEAD_WORDS + ENTRIES * ENTRY_WORDS);

/// The bytes of all rings. The heads come first, then the entries of each ring.
pub const BYTES: usize = WORDS * 8;

/// A thread's context from some moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// `Thread.threadId()`.
    pub thread_id: i64,
    /// The time by CLOCK_MONOTONIC, in ns.
    pub monotonic_ns: i64,
    /// The context; `None` if it was not complete.
    pub record: Option<ContextRecord>,
}

/// All rings.
#[derive(Clone, Copy, Debug)]
struct Rings<'a>(&'a [AtomicU64]);

static MEMORY: OnceLock<Option<&'static [AtomicU64]>> = OnceLock::new();

/// Maps the rings, if they are not mapped yet. Returns `false` if there is no memory for them.
pub fn make() -> bool {
    MEMORY.get_or_init(map).is_some()
}

/// The rings' memory, if they are mapped.
pub fn memory() -> Option<NonNull<u8>> {
    let words = MEMORY.get().copied().flatten()?;
    NonNull::new(words.as_ptr().cast_mut().cast())
}

fn map() -> Option<&'static [AtomicU64]> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh anonymous mapping; nothing else refers to it.
    let memory = unsafe { libc::mmap(ptr::null_mut(), BYTES, protection, flags, -1, 0) };
    // SAFETY: a page's start is aligned, zeros are valid words, and the memory is never unmapped.
    (memory != libc::MAP_FAILED)
        .then(|| unsafe { std::slice::from_raw_parts(memory.cast::<AtomicU64>(), WORDS) })
}

/// Returns the memory of the entries to the system, when nothing will read them any more. A thread that is
/// writing an entry at that moment writes to fresh memory.
pub fn release() {
    if let Some(words) = MEMORY.get().copied().flatten() {
        let entries = &words[RINGS * HEAD_WORDS..];
        let page = 4096;
        let start = entries.as_ptr().addr().next_multiple_of(page);
        let bytes = (entries.as_ptr_range().end.addr() - start) / page * page;
        let start = entries.as_ptr().with_addr(start).cast_mut().cast();
        // SAFETY: the range is within the mapping, which stays; zeroed words are unwritten entries to any
        // reader.
        unsafe { libc::madvise(start, bytes, libc::MADV_DONTNEED) };
    }
}

impl Rings<'_> {
    fn begun(&self, ring: usize) -> u64 {
        self.0[ring * HEAD_WORDS].load(Ordering::Acquire)
    }

    fn left(&self, ring: usize) -> u64 {
        self.0[ring * HEAD_WORDS + 1].load(Ordering::Acquire)
    }

    fn entry(&self, ring: usize, number: u64) -> &[AtomicU64] {
        let index = (number % ENTRIES as u64) as usize;
        let start = RINGS * HEAD_WORDS + (ring * ENTRIES + index) * ENTRY_WORDS;
        &self.0[start..start + ENTRY_WORDS]
    }

    fn read(&self, ring: usize, number: u64) -> ReadChange {
        let entry = self.entry(ring, number);
        let written = (number / ENTRIES as u64) * 2 + 2;
        match entry[0].load(Ordering::Acquire) {
            turn if turn < written => return ReadChange::NotYet,
            turn if turn > written => return ReadChange::Overwritten,
            _ => {}
        }
        let word = |at: usize| entry[at].load(Ordering::Relaxed);
        let (thread_id, monotonic_ns) = (word(1).cast_signed(), word(2).cast_signed());
        let record = ContextRecord::of_block(std::array::from_fn(|at| word(3 + at)));
        fence(Ordering::Acquire);
        match entry[0].load(Ordering::Relaxed) == written {
            true => ReadChange::Change(Change { thread_id, monotonic_ns, record }),
            false => ReadChange::Overwritten,
        }
    }
}

enum ReadChange {
    Change(Change),
    NotYet,
    Overwritten,
}

/// The reader's progress in a ring.
#[derive(Debug)]
struct Progress {
    next: u64,
    left: u64,
    /// Entries before `next` that were not yet complete: their threads were interrupted in the middle of a
    /// change.
    pending: Vec<u64>,
}

/// The reader of the rings. There must be only one at a time.
#[derive(Debug)]
pub struct ChangeReader<'a> {
    rings: Rings<'a>,
    progress: Vec<Progress>,
}

/// An item for the reader: a change, in each thread's order, or the notice that changes of a ring are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// A change.
    Change(Change),
    /// Changes were lost: nothing is known of the threads whose ids have this remainder modulo [`RINGS`].
    Lost(usize),
}

impl ChangeReader<'static> {
    /// A reader of changes from now on; `None` if there are no rings.
    pub fn new() -> Option<Self> {
        MEMORY.get().copied().flatten().map(|words| Self::of(Rings(words)))
    }
}

impl<'a> ChangeReader<'a> {
    fn of(rings: Rings<'a>) -> Self {
        let progress = (0..RINGS).map(|ring| Progress {
            next: rings.begun(ring),
            left: rings.left(ring),
            pending: Vec::new(),
        });
        Self { progress: progress.collect(), rings }
    }

    /// Passes the changes since the last call to `take`.
    pub fn read(&mut self, mut take: impl FnMut(Noted)) {
        let rings = self.rings;
        for (ring, progress) in self.progress.iter_mut().enumerate() {
            let begun = rings.begun(ring);
            let left = rings.left(ring);
            let mut is_lost = left != progress.left || begun - progress.next > ENTRIES as u64;
            let mut pending = Vec::new();
            let mut changes = Vec::new();
            for number in std::mem::take(&mut progress.pending).into_iter().chain(progress.next..begun) {
                if is_lost {
                    break;
                }
                match rings.read(ring, number) {
                    ReadChange::Change(change) => changes.push(change),
                    ReadChange::NotYet => pending.push(number),
                    ReadChange::Overwritten => is_lost = true,
                }
            }
            if is_lost {
                // The threads of the lost changes are unknown. Changes of the ring that were still found are
                // dropped with them.
                take(Noted::Lost(ring));
                pending.clear();
            } else {
                changes.into_iter().for_each(|change| take(Noted::Change(change)));
            }
            (progress.next, progress.left, progress.pending) = (begun, left, pending);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Vec<AtomicU64> {
        (0..WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    /// Writes an entry as Java does, without the last store.
    fn begin(words: &[AtomicU64], ring: usize, thread_id: u64, ns: u64) -> Option<(u64, usize)> {
        let number = words[ring * HEAD_WORDS].fetch_add(1, Ordering::Relaxed);
        let at = RINGS * HEAD_WORDS + (ring * ENTRIES + number as usize % ENTRIES) * ENTRY_WORDS;
        let round = number / ENTRIES as u64;
        let turn = words[at].load(Ordering::Relaxed);
        if turn & 1 != 0 || turn > 2 * round {
            words[ring * HEAD_WORDS + 1].fetch_add(1, Ordering::Relaxed);
            return None;
        }
        words[at].store(2 * round + 1, Ordering::Relaxed);
        for (word, value) in [thread_id, ns, 0, 0, 0, 1 << 8].into_iter().enumerate() {
            words[at + 1 + word].store(value, Ordering::Relaxed);
        }
        Some((2 * round + 2, at))
    }

    fn note(words: &[AtomicU64], ring: usize, thread_id: u64, ns: u64) {
        if let Some((turn, at)) = begin(words, ring, thread_id, ns) {
            words[at].store(turn, Ordering::Release);
        }
    }

    fn read(reader: &mut ChangeReader<'_>) -> Vec<(i64, i64)> {
        let mut found = Vec::new();
        reader.read(|noted| {
            found.push(match noted {
                Noted::Change(change) => (change.thread_id, change.monotonic_ns),
                Noted::Lost(ring) => (-1, ring as i64),
            });
        });
        found
    }

    #[test]
    fn changes_are_read_once_in_their_order_and_round_after_round() {
        let words = words();
        note(&words, 3, 3, 1);
        let mut reader = ChangeReader::of(Rings(&words));
        assert_eq!(read(&mut reader), [], "what was noted before");
        for round in 0..3 {
            let times: Vec<_> = (0..ENTRIES as u64).map(|n| (3, (round * 10_000 + n) as i64)).collect();
            times.iter().for_each(|&(thread, ns)| note(&words, 3, thread as u64, ns as u64));
            assert_eq!(read(&mut reader), times);
        }
        note(&words, 3, 3, 2);
        note(&words, 3, 35, 5);
        note(&words, 4, 4, 6);
        assert_eq!(read(&mut reader), [(3, 2), (35, 5), (4, 6)]);
    }

    #[test]
    fn a_ring_that_was_overwritten_says_so_and_goes_on() {
        let words = words();
        let mut reader = ChangeReader::of(Rings(&words));
        (0..=ENTRIES as u64).for_each(|n| note(&words, 3, 3, n));
        note(&words, 4, 4, 1);
        assert_eq!(read(&mut reader), [(-1, 3), (4, 1)]);
        note(&words, 3, 3, 9);
        assert_eq!(read(&mut reader), [(3, 9)]);
    }

    #[test]
    fn a_reader_waits_for_a_pending_change_and_other_writers_keep_their_own() {
        let words = words();
        let mut reader = ChangeReader::of(Rings(&words));
        let (turn, at) = begin(&words, 3, 3, 1).unwrap();
        note(&words, 3, 35, 2);
        assert_eq!(read(&mut reader), [(35, 2)]);
        words[at].store(turn, Ordering::Release);
        assert_eq!(read(&mut reader), [(3, 1)]);
        let (_, _) = begin(&words, 3, 3, 3).unwrap();
        // As many entries as fit before the next round reaches the incomplete one.
        (1..ENTRIES as u64).for_each(|n| note(&words, 3, 35, n));
        assert_eq!(read(&mut reader).len(), ENTRIES - 1);
        note(&words, 3, 67, 4);
        note(&words, 3, 35, 4);
        assert_eq!(read(&mut reader), [(-1, 3)], "one has been left");
        note(&words, 3, 67, 5);
        assert_eq!(read(&mut reader), [(67, 5)]);
    }
}

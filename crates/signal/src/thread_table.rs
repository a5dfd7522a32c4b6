//! Finds the record of a thread in a handler: by the value in a timer's signal, by an event's descriptor, or
//! by the kernel's thread id.
//!
//! All three tables are fixed in size or grow by whole chunks that are never freed, so a lookup is a few
//! atomic loads at any time. Only `sampling` writes to the tables; it also allocates the chunks.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use otlpprof_core::thread::ThreadRecord;

/// The number of records in a chunk.
pub const RECORDS_PER_CHUNK: u32 = 128;
/// The largest number of chunks: 524,288 threads at once. A [`SignalToken`] has room for twice as many.
pub const MAX_RECORD_CHUNKS: usize = 4096;

/// A chunk of records.
pub type RecordChunk = [ThreadRecord; RECORDS_PER_CHUNK as usize];

static RECORDS: [AtomicPtr<RecordChunk>; MAX_RECORD_CHUNKS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MAX_RECORD_CHUNKS];

/// Returns the record with this index, if it exists.
pub fn record(index: u32) -> Option<&'static ThreadRecord> {
    let chunk = RECORDS.get(index.checked_div(RECORDS_PER_CHUNK)? as usize)?.load(Ordering::Acquire);
    // SAFETY: `publish_records` publishes whole chunks, which are never freed.
    let chunk = unsafe { chunk.as_ref()? };
    chunk.get(index.checked_rem(RECORDS_PER_CHUNK)? as usize)
}

/// Publishes chunk `number`. Returns `false` if that place is taken or does not exist.
pub fn publish_records(number: usize, chunk: &'static RecordChunk) -> bool {
    RECORDS.get(number).is_some_and(|place| {
        let chunk = ptr::from_ref(chunk).cast_mut();
        place.compare_exchange(ptr::null_mut(), chunk, Ordering::AcqRel, Ordering::Acquire).is_ok()
    })
}

/// The number of descriptors in a chunk.
pub const FDS_PER_CHUNK: usize = 1024;
/// The largest number of chunks of descriptors: 1,048,576 descriptors, the usual `fs.nr_open`.
pub const MAX_FD_CHUNKS: usize = 1024;

/// A chunk of entries for descriptors: `FD_NEVER_OURS`, `FD_CLOSED` or a [`SignalToken`].
pub type FdChunk = [AtomicU64; FDS_PER_CHUNK];

const FD_NEVER_OURS: u64 = 0;
/// The descriptor was ours and is closed. Its last signal may still arrive.
const FD_CLOSED: u64 = 1;

static FDS: [AtomicPtr<FdChunk>; MAX_FD_CHUNKS] = [const { AtomicPtr::new(ptr::null_mut()) }; MAX_FD_CHUNKS];

/// The owner of a descriptor that a signal names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FdOwner {
    /// Not ours.
    Foreign,
    /// An event that we closed.
    Closed,
    /// The event of the thread that the token names.
    Event(SignalToken),
}

fn fd_entry(fd: i32) -> Option<&'static AtomicU64> {
    let fd = usize::try_from(fd).ok()?;
    let chunk = FDS.get(fd.checked_div(FDS_PER_CHUNK)?)?.load(Ordering::Acquire);
    // SAFETY: `publish_fds` publishes whole chunks, which are never freed.
    let chunk = unsafe { chunk.as_ref()? };
    chunk.get(fd.checked_rem(FDS_PER_CHUNK)?)
}

/// Returns the owner of a descriptor.
pub fn fd_owner(fd: i32) -> FdOwner {
    match fd_entry(fd).map(|entry| entry.load(Ordering::Acquire)) {
        None | Some(FD_NEVER_OURS) => FdOwner::Foreign,
        Some(FD_CLOSED) => FdOwner::Closed,
        Some(token) => FdOwner::Event(SignalToken(token)),
    }
}

/// Returns the chunk that has to be published before `fd` can be noted. `None` if the chunk exists, or if
/// `fd` is out of range.
pub fn missing_fd_chunk(fd: i32) -> Option<usize> {
    let number = usize::try_from(fd).ok()?.checked_div(FDS_PER_CHUNK)?;
    FDS.get(number)?.load(Ordering::Acquire).is_null().then_some(number)
}

/// Publishes chunk `number`. Returns `false` if that place is taken or does not exist.
pub fn publish_fds(number: usize, chunk: &'static FdChunk) -> bool {
    FDS.get(number).is_some_and(|place| {
        let chunk = ptr::from_ref(chunk).cast_mut();
        place.compare_exchange(ptr::null_mut(), chunk, Ordering::AcqRel, Ordering::Acquire).is_ok()
    })
}

/// Notes that `fd` is the event of the thread that `token` names. Returns `false` if `fd` has no entry.
pub fn note_fd(fd: i32, token: SignalToken) -> bool {
    fd_entry(fd).map(|entry| entry.store(token.0, Ordering::Release)).is_some()
}

/// Notes that `fd` is about to be closed.
pub fn note_fd_closed(fd: i32) {
    if let Some(entry) = fd_entry(fd) {
        entry.store(FD_CLOSED, Ordering::Release);
    }
}

/// The number of places for thread ids; a power of two.
const TID_PLACES: usize = 1 << 16;
/// The largest distance of a thread id from its first place.
const TID_PROBES: u32 = 64;

/// Entries `thread id << 32 | record index`, or 0.
static TIDS: [AtomicU64; TID_PLACES] = [const { AtomicU64::new(0) }; TID_PLACES];

/// Returns the places where `tid` may be. All of them are always searched, so that a removal leaves no mark.
fn tid_places(tid: i32) -> impl Iterator<Item = &'static AtomicU64> {
    // Thread ids are assigned in sequence, so they are their own best hash.
    (0..TID_PROBES).filter_map(move |probe| {
        let place = tid.cast_unsigned().wrapping_add(probe) as usize & TID_PLACES.wrapping_sub(1);
        TIDS.get(place)
    })
}

fn tid_entry(tid: i32, index: u32) -> u64 {
    u64::from(tid.cast_unsigned()).wrapping_shl(32) | u64::from(index)
}

/// Returns the record of the thread with this id.
pub fn record_of_tid(tid: i32) -> Option<&'static ThreadRecord> {
    let entry = tid_places(tid)
        .map(|place| place.load(Ordering::Acquire))
        .find(|entry| entry.wrapping_shr(32) == u64::from(tid.cast_unsigned()))?;
    record(entry as u32)
}

/// Notes that the thread `tid`, which is not in the table yet, has the record `index`. Returns `false` if no
/// place is left.
pub fn note_tid(tid: i32, index: u32) -> bool {
    tid_places(tid).any(|place| {
        place.compare_exchange(0, tid_entry(tid, index), Ordering::AcqRel, Ordering::Relaxed).is_ok()
    })
}

/// Removes the thread `tid` with the record `index`.
pub fn forget_tid(tid: i32, index: u32) {
    let noted = tid_entry(tid, index);
    for place in tid_places(tid) {
        let _ = place.compare_exchange(noted, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// The value that the signals of our timers carry:
/// `cookie (24 bits) | generation (20 bits) | index (20 bits)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct SignalToken(pub u64);

const INDEX_BITS: u32 = 20;
const GENERATION_BITS: u32 = 20;
const FIELD_MASK: u64 = 0xf_ffff;
const COOKIE_SHIFT: u32 = INDEX_BITS + GENERATION_BITS;

static COOKIE: AtomicU64 = AtomicU64::new(0);

impl SignalToken {
    /// Chooses the process's cookie from `random`, once. The cookie's highest bit is set and its lowest is
    /// clear, so that no token looks like a user-space pointer or a small number of either sign. Signals of
    /// other code carry such values.
    pub fn choose_cookie(random: u64) {
        let cookie = random & 0xff_ffff | 0x80_0000;
        let _ = COOKIE.compare_exchange(0, cookie & !1, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Returns the token of a record's present owner.
    pub fn of(record: &ThreadRecord) -> Self {
        let index = u64::from(record.index.load(Ordering::Relaxed)) & FIELD_MASK;
        let generation = u64::from(record.generation.load(Ordering::Relaxed)) & FIELD_MASK;
        let cookie = COOKIE.load(Ordering::Relaxed).wrapping_shl(COOKIE_SHIFT);
        Self(cookie | generation.wrapping_shl(INDEX_BITS) | index)
    }

    /// Whether the token carries our cookie.
    pub fn is_ours(self) -> bool {
        let cookie = COOKIE.load(Ordering::Relaxed);
        cookie != 0 && self.0.wrapping_shr(COOKIE_SHIFT) == cookie
    }

    /// Returns the record that the token names, if the record still has that owner.
    pub fn record(self) -> Option<&'static ThreadRecord> {
        let record = record((self.0 & FIELD_MASK) as u32)?;
        (Self::of(record) == self).then_some(record)
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn thread_ids_that_meet_in_one_place_are_all_found() {
        // Ids that are equal modulo the table's size, and far above any thread id of the test itself.
        let tids: Vec<i32> = (0..TID_PROBES as i32).map(|n| 0x3f00_0000 + n * TID_PLACES as i32).collect();
        for &tid in &tids {
            assert!(note_tid(tid, tid as u32));
        }
        assert!(!note_tid(0x3e00_0000, 1), "all places are taken");
        for &tid in &tids {
            let found =
                tid_places(tid).any(|place| place.load(Ordering::Relaxed) == tid_entry(tid, tid as u32));
            assert!(found);
            forget_tid(tid, tid as u32);
        }
        assert!(note_tid(0x3e00_0000, 1));
        forget_tid(0x3e00_0000, 1);
    }

    #[test]
    fn tokens_distinguish_foreign_signals_and_former_owners() {
        SignalToken::choose_cookie(0x1234_5678_9abc_def1);
        let record = ThreadRecord::default();
        let token = SignalToken::of(&record);
        assert!(token.is_ours());
        for other in [0, 1, -1i64 as u64, -8i64 as u64, 0x7fff_ffff_ffff, &raw const record as u64] {
            assert!(!SignalToken(other).is_ours(), "{other:x}");
        }
        record.generation.store(1, Ordering::Relaxed);
        assert_ne!(SignalToken::of(&record), token);
    }

    #[test]
    fn descriptors_out_of_range_are_foreign() {
        for fd in [-1, i32::MIN, i32::MAX] {
            assert_eq!(fd_owner(fd), FdOwner::Foreign);
            assert!(!note_fd(fd, SignalToken(7)));
        }
    }
}

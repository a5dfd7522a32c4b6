//! The records of sampled threads: claims, releases and visits them.

use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use otlpprof_core::thread::{RecordState, ThreadRecord};
use otlpprof_signal::clock::monotonic_ns;
use otlpprof_signal::thread_table::{
    RECORDS_PER_CHUNK, RecordChunk, forget_tid, note_tid, publish_records, record, record_of_tid,
};

struct Records {
    free: Vec<u32>,
    chunks: u32,
    /// The index from which on no record has ever been claimed.
    ever_used: u32,
}

static RECORDS: Mutex<Records> = Mutex::new(Records { free: Vec::new(), chunks: 0, ever_used: 0 });

impl Records {
    fn take(&mut self) -> Option<&'static ThreadRecord> {
        if self.free.is_empty() {
            let mut chunk: Vec<ThreadRecord> = Vec::new();
            chunk.resize_with(RECORDS_PER_CHUNK as usize, ThreadRecord::default);
            let chunk: Box<RecordChunk> = chunk.try_into().ok()?;
            let first = self.chunks * RECORDS_PER_CHUNK;
            for (record, index) in chunk.iter().zip(first..) {
                record.index.store(index, Ordering::Relaxed);
            }
            // Never freed, since a signal may look up a record at any time. Records are reused.
            if !publish_records(self.chunks as usize, Box::leak(chunk)) {
                return None;
            }
            self.chunks += 1;
            self.free.extend((first..first + RECORDS_PER_CHUNK).rev());
        }
        let index = self.free.pop()?;
        self.ever_used = self.ever_used.max(index + 1);
        record(index)
    }

    fn claim(&mut self, tid: i32) -> Option<&'static ThreadRecord> {
        if record_of_tid(tid).is_some() {
            return None;
        }
        let record = self.take()?;
        let index = record.index.load(Ordering::Relaxed);
        record.generation.fetch_add(1, Ordering::Relaxed);
        record.os_tid.store(tid, Ordering::Relaxed);
        for field in [&record.java_thread, &record.stack_low, &record.stack_high, &record.thread_pointer] {
            field.store(0, Ordering::Relaxed);
        }
        record.java_incarnation.store(0, Ordering::Relaxed);
        record.sampled_incarnation.store(0, Ordering::Relaxed);
        record.wall.reset(monotonic_ns());
        record.clock.clear();
        record.state.store(RecordState::Arming as u32, Ordering::SeqCst);
        if !note_tid(tid, index) {
            record.state.store(RecordState::Free as u32, Ordering::SeqCst);
            self.free.push(index);
            return None;
        }
        Some(record)
    }
}

/// Claims a record for the thread, which the caller then arms. `None` if the thread has one, or if no record
/// is available.
pub(super) fn claim(tid: i32) -> Option<&'static ThreadRecord> {
    RECORDS.lock().claim(tid)
}

/// Releases a record that the caller has taken down.
pub(super) fn release(record: &ThreadRecord) {
    let mut records = RECORDS.lock();
    let index = record.index.load(Ordering::Relaxed);
    forget_tid(record.os_tid.load(Ordering::Relaxed), index);
    record.os_tid.store(0, Ordering::Relaxed);
    record.java_thread.store(0, Ordering::Relaxed);
    record.state.store(RecordState::Free as u32, Ordering::SeqCst);
    records.free.push(index);
}

/// Returns every record that was ever claimed, in any state.
pub(super) fn all_records() -> impl Iterator<Item = &'static ThreadRecord> {
    let ever_used = RECORDS.lock().ever_used;
    (0..ever_used).filter_map(record)
}

/// Visits the record of every sampled thread. Threads may start and end meanwhile.
pub fn for_each_thread(mut visit: impl FnMut(&'static ThreadRecord)) {
    all_records().filter(|record| record.state() == RecordState::Armed).for_each(&mut visit);
}

/// Returns the number of sampled threads.
pub fn thread_count() -> usize {
    let mut count = 0;
    for_each_thread(|_| count += 1);
    count
}

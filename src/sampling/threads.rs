//! Which threads are sampled: records given out and taken back, whoever notices that a thread comes or goes.
//!
//! A thread is noticed by itself where that is possible (its start routine is reached through
//! `thread_start`, its end through a pthread key's destructor), at a session's start by the list of threads,
//! and else by the poller. All meet in the table of thread ids, where each thread has one record at most.

use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{fs, ptr, thread};

use parking_lot::Mutex;

use super::clock;
use super::config::ArmedConfig;
use super::process_account::ENDS;
use crate::core::thread::{ClockKind, RecordState, ThreadRecord};
use crate::signal::cpu::{SESSION, thread_cpu_ns};
use crate::signal::cpu_account::owed_periods;
use crate::signal::cpu_counters::{COUNTERS, add};
use crate::signal::thread_table::{
    RECORDS_PER_CHUNK, RecordChunk, forget_tid, note_tid, publish_records, record, record_of_tid,
};

/// How long a session's end waits for a handler that is still at work.
const HANDLER_PATIENCE: Duration = Duration::from_secs(1);

/// Whether this process is a forked child of a profiled one. It is not profiled, and touches no lock here.
pub(super) static FORKED: AtomicBool = AtomicBool::new(false);

struct Records {
    free: Vec<u32>,
    chunks: u32,
}

static RECORDS: Mutex<Records> = Mutex::new(Records { free: Vec::new(), chunks: 0 });

/// The clock and the signal of the present session.
static ARMED: Mutex<Option<ArmedConfig>> = Mutex::new(None);

/// The profiler's own threads.
static EXCLUDED: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

pub(super) fn set_config(config: Option<ArmedConfig>) {
    *ARMED.lock() = config;
}

/// The current thread's id.
pub(super) fn gettid() -> i32 {
    // SAFETY: gettid takes nothing and cannot fail.
    unsafe { libc::gettid() }
}

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
            // Never freed: a signal may look a record up at any time. They are reused.
            if !publish_records(self.chunks as usize, Box::leak(chunk)) {
                return None;
            }
            self.chunks += 1;
            self.free.extend((first..first + RECORDS_PER_CHUNK).rev());
        }
        record(self.free.pop()?)
    }

    /// Gives the thread a record, which the caller is to arm; `None` if the thread has one.
    fn claim(&mut self, tid: i32) -> Option<&'static ThreadRecord> {
        if record_of_tid(tid).is_some() {
            return None;
        }
        let Some(record) = self.take() else {
            add(&COUNTERS.threads_unsampled, 1);
            return None;
        };
        let index = record.index.load(Ordering::Relaxed);
        record.generation.fetch_add(1, Ordering::Relaxed);
        record.os_tid.store(tid, Ordering::Relaxed);
        for field in [&record.java_thread, &record.stack_low, &record.stack_high, &record.thread_pointer] {
            field.store(0, Ordering::Relaxed);
        }
        record.java_incarnation.store(0, Ordering::Relaxed);
        record.clock.clear();
        record.state.store(RecordState::Arming as u32, Ordering::SeqCst);
        if !note_tid(tid, index) {
            record.state.store(RecordState::Free as u32, Ordering::SeqCst);
            self.free.push(index);
            add(&COUNTERS.threads_unsampled, 1);
            return None;
        }
        Some(record)
    }
}

/// Gives a record back that the caller has taken down.
fn release(record: &ThreadRecord) {
    let mut records = RECORDS.lock();
    let index = record.index.load(Ordering::Relaxed);
    forget_tid(record.os_tid.load(Ordering::Relaxed), index);
    record.os_tid.store(0, Ordering::Relaxed);
    record.java_thread.store(0, Ordering::Relaxed);
    record.state.store(RecordState::Free as u32, Ordering::SeqCst);
    records.free.push(index);
}

/// Arms the thread `tid`, whose CPU clock counts from `base_ns` on, unless it has been armed already. `prepare`
/// may fill in what else the record should say before its first sample.
fn arm(tid: i32, base_ns: i64, prepare: impl FnOnce(&ThreadRecord)) -> Option<&'static ThreadRecord> {
    let config = (*ARMED.lock())?;
    let record = RECORDS.lock().claim(tid)?;
    // Whoever closes the session does so first and then looks for records that are being armed; here it is
    // the other way round. One of the two notices.
    if !SESSION.is_open() {
        release(record);
        return None;
    }
    let phase_ns = (random() % SESSION.interval_ns().cast_unsigned()).cast_signed();
    let account = &record.account;
    account.base_ns.store(base_ns, Ordering::Relaxed);
    account.phase_ns.store(phase_ns, Ordering::Relaxed);
    account.epoch_ns.store(base_ns - phase_ns, Ordering::Relaxed);
    account.last_seen_ns.store(base_ns, Ordering::Relaxed);
    account.credited.store(0, Ordering::Relaxed);
    account.owed.store(0, Ordering::Relaxed);
    account.started.store(false, Ordering::Relaxed);
    prepare(record);
    if !clock::arm(record, config.clock, config.signal) {
        release(record);
        return None;
    }
    record.state.store(RecordState::Armed as u32, Ordering::SeqCst);
    add(&COUNTERS.threads_armed, 1);
    Some(record)
}

/// Takes a record down, whoever noticed that it has to be. `false` if somebody else did.
fn retire(record: &'static ThreadRecord) -> bool {
    take_down(record) && {
        release(record);
        true
    }
}

/// The same for a thread that has come to its end, when its CPU clock showed `ended_at_ns`: what its samples did
/// not stand for goes to the estate.
fn retire_ended(record: &'static ThreadRecord, ended_at_ns: i64) {
    ENDS.note(|| {
        if !take_down(record) {
            return 0;
        }
        let account = &record.account;
        let used = ended_at_ns - account.base_ns.load(Ordering::Relaxed);
        let credited = account.credited.load(Ordering::Relaxed).saturating_mul(SESSION.interval_ns());
        SESSION.estate_ns.fetch_add(used.saturating_sub(credited), Ordering::Relaxed);
        release(record);
        ended_at_ns
    });
}

/// Disarms the thread and waits until no handler works with its record, which the caller is to release.
fn take_down(record: &'static ThreadRecord) -> bool {
    // Arming waits for nothing that is held here, so it comes to its end.
    while record.state() == RecordState::Arming {
        thread::yield_now();
    }
    if !record.move_state(RecordState::Armed, RecordState::Retiring) {
        return false;
    }
    clock::disarm(record);
    let waiting_since = Instant::now();
    while record.busy.load(Ordering::SeqCst) {
        if waiting_since.elapsed() > HANDLER_PATIENCE {
            // The record stays as it is for good: the handler may yet go on.
            add(&COUNTERS.stop_timeouts, 1);
            return false;
        }
        thread::yield_now();
    }
    true
}

/// A number that nobody foresees, cheaply: splitmix64 (Steele, Lea, Flood 2014) over a shared counter.
fn random() -> u64 {
    static STATE: AtomicU64 = AtomicU64::new(0);
    static SEED: OnceLock<u64> = OnceLock::new();
    let seed = *SEED.get_or_init(system_random);
    let mut mixed = STATE.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed).wrapping_add(seed);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// A number from the kernel's generator; the clock's where that is refused.
pub(super) fn system_random() -> u64 {
    let mut number = 0_u64;
    // SAFETY: the kernel writes at most eight bytes.
    let got = unsafe { libc::getrandom((&raw mut number).cast(), 8, libc::GRND_NONBLOCK) };
    if got == 8 { number } else { thread_cpu_ns().cast_unsigned() ^ u64::from(std::process::id()) << 32 }
}

/// What the pthread key holds in threads whose end we are told of.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
enum Mark {
    /// Sampled; first round of destructors.
    Sampled = 1,
    /// Sampled; second round.
    SampledUntilNow = 2,
    /// A thread of the profiler.
    Excluded = 3,
}

/// Made at the first session's start, kept for the life of the process: threads keep their values.
static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();

/// Makes the key, if there is none. `false` if the process has no key left; thread ends are then polled for.
pub(super) fn make_key() -> bool {
    if KEY.get().is_some() {
        return true;
    }
    let mut key = 0;
    // SAFETY: the call writes the key; the destructor lives as long as the library, which is never unloaded.
    let made = unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ends)) } == 0;
    made && KEY.set(key).is_ok()
}

fn mark() -> Option<Mark> {
    // SAFETY: the key exists.
    let value = unsafe { libc::pthread_getspecific(*KEY.get()?) } as usize;
    [Mark::Sampled, Mark::SampledUntilNow, Mark::Excluded].into_iter().find(|mark| *mark as usize == value)
}

fn set_mark(mark: Mark) {
    if let Some(key) = KEY.get() {
        // SAFETY: the key exists; the value is a number to us and a pointer to nobody.
        unsafe { libc::pthread_setspecific(*key, ptr::without_provenance(mark as usize)) };
    }
}

/// The key's destructor. Destructors run in rounds (POSIX: at least 4) while values are set anew; setting ours
/// once more lets the other keys' destructors be sampled.
extern "C" fn thread_ends(mark: *mut libc::c_void) {
    if FORKED.load(Ordering::Relaxed) {
        return;
    }
    let tid = gettid();
    match mark as usize {
        mark if mark == Mark::Sampled as usize => set_mark(Mark::SampledUntilNow),
        mark if mark == Mark::Excluded as usize => {
            ENDS.note(|| {
                if let Some(excluded) = &mut *EXCLUDED.lock() {
                    excluded.remove(&tid);
                }
                thread_cpu_ns()
            });
        }
        _ => {
            if let Some(record) = record_of_tid(tid) {
                retire_ended(record, thread_cpu_ns());
            }
        }
    }
}

/// Whether the current thread is one of the profiler's own.
pub(super) fn is_excluded() -> bool {
    mark() == Some(Mark::Excluded)
}

/// Says that the current thread is the profiler's own: it is never sampled, nor are the threads that it creates.
pub fn exclude_current_thread() {
    make_key();
    let tid = gettid();
    EXCLUDED.lock().get_or_insert_default().insert(tid);
    set_mark(Mark::Excluded);
    if let Some(record) = record_of_tid(tid) {
        retire(record);
    }
}

/// The current thread has just been born: arms it, from its first nanosecond on.
pub(super) fn current_thread_born() {
    if !SESSION.is_open() || FORKED.load(Ordering::Relaxed) {
        return;
    }
    let tid = gettid();
    // Either a thread of the same id ended unnoticed, or the poller was faster and knows less.
    if let Some(record) = record_of_tid(tid) {
        retire(record);
    }
    arm(tid, 0, describe_current_thread);
    set_mark(Mark::Sampled);
}

/// The record of the current thread, armed if it was not.
fn current_record() -> Option<&'static ThreadRecord> {
    if FORKED.load(Ordering::Relaxed) || is_excluded() {
        return None;
    }
    let tid = gettid();
    if let Some(record) = record_of_tid(tid) {
        describe_current_thread(record);
    } else {
        arm(tid, thread_cpu_ns(), describe_current_thread);
    }
    set_mark(Mark::Sampled);
    record_of_tid(tid)
}

/// What only the thread itself can tell cheaply.
fn describe_current_thread(record: &ThreadRecord) {
    // SAFETY: pthread_self takes nothing and cannot fail.
    let current = unsafe { libc::pthread_self() };
    record.thread_pointer.store(current as u64, Ordering::Relaxed);
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut lowest, mut size) = (ptr::null_mut(), 0);
    // SAFETY: the attributes are initialised where the first call succeeds, and destroyed once.
    let known = unsafe {
        libc::pthread_getattr_np(current, attributes.as_mut_ptr()) == 0 && {
            let got = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut size) == 0;
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            got
        }
    };
    if known {
        record.stack_low.store(lowest as u64, Ordering::Relaxed);
        record.stack_high.store((lowest as u64).saturating_add(size as u64), Ordering::Relaxed);
    }
}

/// The incarnations given out, over the life of the process; 0 is none.
static INCARNATIONS: AtomicU32 = AtomicU32::new(0);

fn becomes_java_thread(record: &ThreadRecord, java_thread: u64) {
    // Told twice, by the VM's event and by its list, it is still the same thread.
    if record.java_thread.load(Ordering::Relaxed) != java_thread {
        let incarnation = INCARNATIONS.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        record.java_incarnation.store(incarnation, Ordering::Relaxed);
        record.java_thread.store(java_thread, Ordering::Release);
    }
}

/// The current thread is a Java thread from now on, with this `JavaThread*`. For JVMTI's ThreadStart.
pub fn java_thread_started(java_thread: u64) {
    if let Some(record) = current_record() {
        becomes_java_thread(record, java_thread);
    }
}

/// The current thread is no Java thread any longer; it goes on being sampled. For JVMTI's ThreadEnd. Gives the
/// incarnation that has ended, if the thread is sampled.
pub fn java_thread_ended() -> Option<u32> {
    let record = record_of_tid(gettid())?;
    record.java_thread.store(0, Ordering::Release);
    Some(record.java_incarnation.load(Ordering::Relaxed))
}

/// Says the `JavaThread*` of another thread, one that was a Java thread before the session began. The caller
/// keeps the thread from ending meanwhile. `false` if the thread is not sampled.
pub fn note_java_thread(os_tid: i32, java_thread: u64) -> bool {
    record_of_tid(os_tid).map(|record| becomes_java_thread(record, java_thread)).is_some()
}

/// Visits the record of every sampled thread. Threads may come and go meanwhile.
pub fn for_each_thread(mut visit: impl FnMut(&'static ThreadRecord)) {
    let chunks = RECORDS.lock().chunks;
    (0..chunks * RECORDS_PER_CHUNK)
        .filter_map(record)
        .filter(|record| record.state() == RecordState::Armed)
        .for_each(&mut visit);
}

/// The number of sampled threads.
pub fn thread_count() -> usize {
    let mut count = 0;
    for_each_thread(|_| count += 1);
    count
}

/// The ids of the profiler's own threads.
pub(super) fn excluded_tids() -> HashSet<i32> {
    EXCLUDED.lock().clone().unwrap_or_default()
}

/// The ids of the process's threads. One that comes or goes meanwhile may be missed.
pub(super) fn task_ids() -> Vec<i32> {
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Arms every thread that there is. Those that are born meanwhile arm themselves.
pub(super) fn arm_all() {
    for tid in task_ids() {
        arm_other(tid);
    }
}

fn is_excluded_tid(tid: i32) -> bool {
    EXCLUDED.lock().as_ref().is_some_and(|excluded| excluded.contains(&tid))
}

fn arm_other(tid: i32) -> Option<&'static ThreadRecord> {
    if is_excluded_tid(tid) || record_of_tid(tid).is_some() {
        return None;
    }
    arm(tid, clock::cpu_time_of(tid)?, |_| {})
}

/// A thread that has no record may be in the middle of arming itself, or of ending: it is left alone the first
/// time that it is seen, and as long as it uses no CPU time, but not for ever.
const SIGHTINGS_IF_BUSY: u32 = 2;
const SIGHTINGS_IF_IDLE: u32 = 10;
const BUSY_NS: i64 = 1_000_000;

/// Brings the records into line with the threads that there are. `unarmed` keeps how often each thread without a
/// record has been seen.
pub(super) fn reconcile_with_tasks(unarmed: &mut HashMap<i32, u32>) {
    let tasks: HashSet<i32> = task_ids().into_iter().collect();
    for_each_thread(|record| {
        // The list is older than the records may be: the clock has the last word.
        let tid = record.os_tid.load(Ordering::Relaxed);
        if !tasks.contains(&tid) && clock::cpu_time_of(tid).is_none() {
            retire_dead(record);
        }
    });
    unarmed.retain(|tid, _| tasks.contains(tid));
    for tid in tasks {
        if record_of_tid(tid).is_some() || is_excluded_tid(tid) {
            unarmed.remove(&tid);
            continue;
        }
        let sightings = unarmed.entry(tid).or_default();
        *sightings += 1;
        let is_busy = || clock::cpu_time_of(tid).is_some_and(|used_ns| used_ns >= BUSY_NS);
        if *sightings >= SIGHTINGS_IF_IDLE || (*sightings >= SIGHTINGS_IF_BUSY && is_busy()) {
            unarmed.remove(&tid);
            arm_late(tid);
        }
    }
}

/// Arms a thread that was born during the session and that nobody told of. What it has used until now is owed.
fn arm_late(tid: i32) {
    let Some(record) = arm_other(tid) else { return };
    add(&COUNTERS.threads_found_by_poll, 1);
    let account = &record.account;
    let unseen_ns = account.base_ns.load(Ordering::Relaxed) + account.phase_ns.load(Ordering::Relaxed);
    let unseen = unseen_ns / SESSION.interval_ns().max(1);
    account.credited.fetch_sub(unseen, Ordering::Relaxed);
    account.owed.fetch_add(unseen, Ordering::Relaxed);
}

/// Takes down the record of a thread that is gone.
fn retire_dead(record: &'static ThreadRecord) {
    retire_ended(record, record.account.last_seen_ns.load(Ordering::Relaxed));
}

/// Looks at a thread's CPU clock: finds what its signals did not tell of, and that it is gone.
pub(super) fn reconcile_account(record: &'static ThreadRecord) {
    let account = &record.account;
    let credited_before = account.credited.load(Ordering::Relaxed);
    let now_ns = clock::cpu_time_of(record.os_tid.load(Ordering::Relaxed));
    let last_ns = account.last_seen_ns.load(Ordering::Relaxed);
    let Some(now_ns) = now_ns.filter(|now_ns| *now_ns >= last_ns) else {
        // Gone; or another thread has its id and began anew.
        return retire_dead(record);
    };
    account.last_seen_ns.store(now_ns, Ordering::Relaxed);
    let interval_ns = SESSION.interval_ns();
    // A signal may be under way: for a period, since an event's borders drift against the thread's clock, and
    // for a tick until it fires and another until it is handled.
    let slack_ns = interval_ns + 2 * SESSION.tick_ns();
    if !account.started.load(Ordering::Relaxed) {
        match record.clock.kind() {
            // Its first signal reads the clock and makes up for everything.
            Some(ClockKind::Timer) => return,
            Some(ClockKind::Perf) if now_ns - account.base_ns.load(Ordering::Relaxed) > slack_ns => {
                clock::set_event_period(record, interval_ns);
            }
            _ => {}
        }
    }
    let owed = owed_periods(
        now_ns,
        account.epoch_ns.load(Ordering::Relaxed),
        interval_ns,
        slack_ns,
        credited_before,
        account.credited.load(Ordering::Relaxed),
    );
    account.owed.store(owed, Ordering::Relaxed);
}

/// Takes every record down; the session is closed.
pub(super) fn retire_all() {
    let chunks = RECORDS.lock().chunks;
    for record in (0..chunks * RECORDS_PER_CHUNK).filter_map(record) {
        if record.state() != RecordState::Free {
            retire(record);
        }
    }
}

/// In a forked child: closes the events' descriptors, which are its parent's. Async-signal-safe.
pub(super) fn close_inherited_events() {
    let mut index = 0;
    while let Some(record) = record(index) {
        if record.clock.kind() == Some(ClockKind::Perf) && record.clock.handle() >= 0 {
            // SAFETY: the descriptor is an event's that the parent opened.
            unsafe { libc::close(record.clock.handle()) };
        }
        index += 1;
    }
}

//! Arms and disarms threads: decides which threads are sampled, however a thread's start or end is noticed.
//!
//! A thread notices its own start and end where that is possible (the start through the start routine that
//! `thread_start` replaces, the end through a pthread key's destructor). At a session's start the list of
//! threads is read; all other threads are noticed by the poller (`reconcile`). All of these use the table of
//! thread ids, in which each thread has at most one record.

use std::collections::{BTreeSet, HashSet};
use std::mem::MaybeUninit;
use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{io, ptr, thread};

use otlpprof_core::engine::Engine;
use otlpprof_core::thread::{ClockKind, RecordState, ThreadRecord, current_os_tid};
use otlpprof_signal::clock::thread_cpu_ns;
use otlpprof_signal::cpu::SESSION;
use otlpprof_signal::cpu_counters::{COUNTERS, add};
use otlpprof_signal::thread_table::{record, record_of_tid};
use parking_lot::Mutex;

use super::config::ArmedConfig;
use super::ended_threads::ENDS;
use super::forked_child::FORKED;
use super::handler_wait::HandlerWait;
use super::perf_events::thread_event;
use super::random::random;
use super::tasks::Tasks;
use super::thread_records::{all_records, claim, release};
use super::{clock, kernel_rings, refusals};

/// The clock and the signal of the present session.
static ARMED: Mutex<Option<ArmedConfig>> = Mutex::new(None);

/// The kernel's ids of the profiler's own threads.
static EXCLUDED: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

/// The threads for which no clock or record was available. They are retried, and counted once.
static UNSAMPLED: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

pub(super) fn set_config(config: Option<ArmedConfig>) {
    UNSAMPLED.lock().clear();
    *ARMED.lock() = config;
}

fn cannot_be_sampled(tid: i32) {
    if UNSAMPLED.lock().insert(tid) {
        add(&COUNTERS.threads_unsampled, 1);
    }
}

/// Returns the number of threads that cannot be sampled at present.
pub(super) fn unsampled_count() -> usize {
    UNSAMPLED.lock().len()
}

/// Forgets unsampled threads that have ended, since their ids may be reused.
pub(super) fn forget_unsampled_but(is_alive: impl Fn(i32) -> bool) {
    UNSAMPLED.lock().retain(|tid| is_alive(*tid));
}

/// Arms the thread `tid`, whose CPU clock counts from `base_ns` on, unless it has been armed already.
/// `prepare` may set further fields of the record before the first sample.
fn arm(tid: i32, base_ns: i64, prepare: impl FnOnce(&ThreadRecord)) -> Option<&'static ThreadRecord> {
    let config = (*ARMED.lock())?;
    let Some(record) = claim(tid) else {
        if record_of_tid(tid).is_none() {
            cannot_be_sampled(tid);
        }
        return None;
    };
    // A thread that closes the session first closes it and then looks for records that are being armed; this
    // function does both in reverse order. So at least one of the two sees the other.
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
    account.postponed.store(0, Ordering::Relaxed);
    account.least_weight.store(1, Ordering::Relaxed);
    account.handler_may_be_long.store(false, Ordering::Relaxed);
    account.started.store(false, Ordering::Relaxed);
    prepare(record);
    if config.clock.is_some_and(|clock| !clock::arm(record, config, clock)) {
        release(record);
        cannot_be_sampled(tid);
        refusals::note(Engine::Cpu, || {
            "no perf event, POSIX timer or process timer is left for threads (RLIMIT_NOFILE, \
             RLIMIT_SIGPENDING)"
                .to_owned()
        });
        return None;
    }
    thread_event::arm(record);
    UNSAMPLED.lock().remove(&tid);
    record.state.store(RecordState::Armed as u32, Ordering::SeqCst);
    add(&COUNTERS.threads_armed, 1);
    Some(record)
}

/// Takes a record down and releases it. Returns `false` if another thread has done so.
fn retire(record: &'static ThreadRecord) -> bool {
    take_down(record) && {
        release(record);
        true
    }
}

/// Takes down the record of a thread that has ended, or is about to, when its CPU clock showed `ended_at_ns`.
/// The CPU time that its samples do not stand for is added to the balance of ended threads.
pub(super) fn retire_ended(record: &'static ThreadRecord, ended_at_ns: i64) {
    ENDS.note(|| {
        if !take_down(record) {
            return 0;
        }
        let account = &record.account;
        let used = ended_at_ns - account.base_ns.load(Ordering::Relaxed);
        let credited = account.credited.load(Ordering::Relaxed) - account.postponed.load(Ordering::Relaxed);
        let credited = credited.saturating_mul(SESSION.interval_ns());
        SESSION.ended_balance_ns.fetch_add(used.saturating_sub(credited), Ordering::Relaxed);
        release(record);
        ended_at_ns
    });
}

/// Disarms the thread and waits until no handler uses its record. The caller then releases the record.
fn take_down(record: &'static ThreadRecord) -> bool {
    // Arming waits for nothing that is held here, so it finishes.
    while record.state() == RecordState::Arming {
        thread::yield_now();
    }
    if !record.move_state(RecordState::Armed, RecordState::Retiring) {
        return false;
    }
    clock::disarm(record);
    thread_event::disarm(record);
    let is_busy = || record.busy.load(Ordering::SeqCst) || record.event.busy.load(Ordering::SeqCst);
    if !HandlerWait::new().for_handler(is_busy) {
        // The record is never reused: the handler may still continue.
        add(&COUNTERS.stop_timeouts, 1);
        return false;
    }
    kernel_rings::take(&record.clock.ring);
    kernel_rings::take(&record.event.ring);
    true
}

/// The value of the pthread key in threads that report their own end.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
enum Mark {
    /// A sampled thread, before the first round of destructors.
    Sampled = 1,
    /// A sampled thread, after the first round of destructors.
    SampledUntilNow = 2,
    /// A thread of the profiler.
    Excluded = 3,
}

/// The key, which is made at the first session's start and kept for the life of the process, since threads
/// keep their values.
static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();

/// Makes the key, unless it exists. Returns `false` if the process has no key left; ends of threads are then
/// found by polling.
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
        // SAFETY: the key exists; the value is a number, which no code uses as a pointer.
        unsafe { libc::pthread_setspecific(*key, ptr::without_provenance(mark as usize)) };
    }
}

/// The key's destructor. Destructors run in rounds (POSIX: at least 4) as long as values are set. Setting the
/// value once more means that the destructors of other keys are still sampled.
extern "C" fn thread_ends(mark: *mut libc::c_void) {
    if FORKED.load(Ordering::Relaxed) {
        return;
    }
    // A panic here must not end the process; the poller notices that the thread has ended.
    let _ = catch_unwind(|| current_thread_ends(mark as usize));
}

fn current_thread_ends(mark: usize) {
    let tid = current_os_tid();
    match mark {
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

/// Whether the current thread is one of the profiler's own, or belongs to a forked child. Async-signal-safe.
pub(super) fn is_own_or_forked() -> bool {
    FORKED.load(Ordering::Relaxed) || is_excluded()
}

/// Declares the current thread the profiler's own: neither this thread nor any thread that it creates is ever
/// sampled.
pub fn exclude_current_thread() {
    make_key();
    let tid = current_os_tid();
    EXCLUDED.lock().get_or_insert_default().insert(tid);
    set_mark(Mark::Excluded);
    if let Some(record) = record_of_tid(tid) {
        retire(record);
    }
}

/// Arms the current thread, which has just started, from its first nanosecond on.
pub(super) fn current_thread_born() {
    if !SESSION.is_open() || FORKED.load(Ordering::Relaxed) {
        return;
    }
    let tid = current_os_tid();
    // Either a thread with the same id ended unnoticed, or the poller has armed this thread with less
    // information.
    if let Some(record) = record_of_tid(tid) {
        retire(record);
    }
    UNSAMPLED.lock().remove(&tid);
    arm(tid, 0, describe_current_thread);
    set_mark(Mark::Sampled);
}

/// Returns the record of the current thread, and arms the thread if necessary.
fn current_record() -> Option<&'static ThreadRecord> {
    if FORKED.load(Ordering::Relaxed) || is_excluded() {
        return None;
    }
    let tid = current_os_tid();
    if let Some(record) = record_of_tid(tid) {
        describe_current_thread(record);
    } else {
        arm(tid, thread_cpu_ns(), describe_current_thread);
    }
    set_mark(Mark::Sampled);
    record_of_tid(tid)
}

/// Stores the properties that only the thread itself can determine cheaply.
fn describe_current_thread(record: &ThreadRecord) {
    // SAFETY: pthread_self takes nothing and cannot fail.
    let current = unsafe { libc::pthread_self() };
    record.thread_pointer.store(current as u64, Ordering::Relaxed);
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut lowest, mut size) = (ptr::null_mut(), 0);
    // SAFETY: the attributes are initialised if the first call succeeds, and destroyed once.
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

/// The number of incarnations assigned over the life of the process; 0 means "none".
static INCARNATIONS: AtomicU32 = AtomicU32::new(0);

/// Returns the number of a new incarnation of a Java thread.
pub fn next_incarnation() -> u32 {
    INCARNATIONS.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1)
}

fn becomes_java_thread(record: &ThreadRecord, java_thread: u64) {
    // The VM's event and the VM's list may both report a thread, which is the same incarnation then.
    if record.java_thread.load(Ordering::Relaxed) != java_thread {
        record.java_incarnation.store(next_incarnation(), Ordering::Relaxed);
        record.java_thread.store(java_thread, Ordering::Release);
    }
}

/// Returns the profiler's relation to the current thread.
pub fn current() -> CurrentThread {
    if is_excluded() {
        return CurrentThread::Own;
    }
    let os_tid = current_os_tid();
    record_of_tid(os_tid).map_or(CurrentThread::Unknown { os_tid }, CurrentThread::Known)
}

/// The profiler's relation to the current thread.
#[derive(Clone, Copy, Debug)]
pub enum CurrentThread {
    /// One of the profiler's own threads.
    Own,
    /// A thread with a record.
    Known(&'static ThreadRecord),
    /// A thread for which no clock or no record was available.
    Unknown {
        /// The kernel's id.
        os_tid: i32,
    },
}

/// Notes that the current thread is a Java thread from now on, with this `JavaThread*`. For JVMTI's
/// ThreadStart.
pub fn java_thread_started(java_thread: u64) {
    if let Some(record) = current_record() {
        becomes_java_thread(record, java_thread);
    }
}

/// Notes that the current thread is no longer a Java thread; it is still sampled. For JVMTI's ThreadEnd.
/// Returns the incarnation that has ended, if the thread is sampled.
pub fn java_thread_ended() -> Option<u32> {
    let record = record_of_tid(current_os_tid())?;
    record.java_thread.store(0, Ordering::Release);
    Some(record.java_incarnation.load(Ordering::Relaxed))
}

/// Notes the `JavaThread*` of another thread, which was a Java thread before the session began. The caller
/// keeps that thread from ending meanwhile. Returns `false` if the thread is not sampled.
pub fn note_java_thread(os_tid: i32, java_thread: u64) -> bool {
    record_of_tid(os_tid).map(|record| becomes_java_thread(record, java_thread)).is_some()
}

/// Returns the ids of the profiler's own threads.
pub(super) fn excluded_tids() -> HashSet<i32> {
    EXCLUDED.lock().clone().unwrap_or_default()
}

/// Arms every existing thread. Threads that start meanwhile arm themselves.
pub(super) fn arm_all(tasks: &mut Tasks) -> io::Result<()> {
    for tid in tasks.ids()? {
        arm_other(tid);
    }
    Ok(())
}

/// Whether the thread with this kernel id is the profiler's own.
pub fn is_own_thread(tid: i32) -> bool {
    is_excluded_tid(tid)
}

pub(super) fn is_excluded_tid(tid: i32) -> bool {
    EXCLUDED.lock().as_ref().is_some_and(|excluded| excluded.contains(&tid))
}

pub(super) fn arm_other(tid: i32) -> Option<&'static ThreadRecord> {
    if is_excluded_tid(tid) || record_of_tid(tid).is_some() {
        return None;
    }
    arm(tid, clock::cpu_time_of(tid)?, |_| {})
}

/// Takes down every record. The session must be closed.
pub(super) fn retire_all() {
    for record in all_records() {
        if record.state() != RecordState::Free {
            retire(record);
        }
    }
}

/// Closes the descriptors of events in a forked child, which inherited them from its parent.
/// Async-signal-safe.
pub(super) fn close_inherited_events() {
    let mut index = 0;
    while let Some(record) = record(index) {
        if record.clock.kind() == Some(ClockKind::Perf) && record.clock.handle() >= 0 {
            // SAFETY: the descriptor belongs to an event that the parent opened.
            unsafe { libc::close(record.clock.handle()) };
        }
        if let Some(descriptor) = record.event.descriptor() {
            // SAFETY: the descriptor belongs to an event that the parent opened.
            unsafe { libc::close(descriptor) };
        }
        index += 1;
    }
}

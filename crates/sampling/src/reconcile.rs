//! Reconciles the records with the threads that exist and the CPU time that they have used.
//!
//! For the poller. Threads that report themselves, and signals, take precedence.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::Ordering;

use otlpprof_core::thread::{ClockKind, ThreadRecord};
use otlpprof_signal::cpu::SESSION;
use otlpprof_signal::cpu_account::owed_periods;
use otlpprof_signal::cpu_counters::{COUNTERS, add};
use otlpprof_signal::thread_table::record_of_tid;

use super::clock;
use super::tasks::Tasks;
use super::thread_records::for_each_thread;
use super::threads::{self, arm_other, is_excluded_tid, retire_ended};

/// The number of sightings before a thread without a record is armed. Such a thread may be in the middle of
/// arming itself, or of ending, so it is left alone at the first sighting, and longer while it uses no CPU
/// time, but not for ever.
const SIGHTINGS_IF_BUSY: u32 = 2;
const SIGHTINGS_IF_IDLE: u32 = 10;
const BUSY_NS: i64 = 1_000_000;

/// Reconciles the records with the existing threads. `unarmed` counts the sightings of each thread without a
/// record.
pub(super) fn reconcile_with_tasks(tasks: &mut Tasks, unarmed: &mut HashMap<i32, u32>) -> io::Result<()> {
    let tasks: HashSet<i32> = tasks.ids()?.into_iter().collect();
    for_each_thread(|record| {
        // The list may be older than the record, so the thread's CPU clock decides.
        let tid = record.os_tid.load(Ordering::Relaxed);
        if !tasks.contains(&tid) && clock::cpu_time_of(tid).is_none() {
            retire_dead(record);
        }
    });
    unarmed.retain(|tid, _| tasks.contains(tid));
    threads::forget_unsampled_but(|tid| tasks.contains(&tid));
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
    Ok(())
}

/// Arms a thread that started unnoticed during the session. The thread is owed its CPU time so far.
fn arm_late(tid: i32) {
    let Some(record) = arm_other(tid) else { return };
    add(&COUNTERS.threads_found_by_poll, 1);
    let account = &record.account;
    let unseen_ns = account.base_ns.load(Ordering::Relaxed) + account.phase_ns.load(Ordering::Relaxed);
    let unseen = unseen_ns / SESSION.interval_ns().max(1);
    account.credited.fetch_sub(unseen, Ordering::Relaxed);
    account.owed.fetch_add(unseen, Ordering::Relaxed);
}

/// Retires the record of a thread that has ended.
fn retire_dead(record: &'static ThreadRecord) {
    retire_ended(record, record.account.last_seen_ns.load(Ordering::Relaxed));
}

/// Reads a thread's CPU clock. Notes the periods that its signals did not report, and retires a thread that
/// has ended.
pub(super) fn reconcile_account(record: &'static ThreadRecord) {
    let account = &record.account;
    let credited_before = account.credited.load(Ordering::Relaxed);
    let now_ns = clock::cpu_time_of(record.os_tid.load(Ordering::Relaxed));
    let last_ns = account.last_seen_ns.load(Ordering::Relaxed);
    let Some(now_ns) = now_ns.filter(|now_ns| *now_ns >= last_ns) else {
        // The thread has ended, or another thread with the same id has begun.
        return retire_dead(record);
    };
    account.last_seen_ns.store(now_ns, Ordering::Relaxed);
    let interval_ns = SESSION.interval_ns();
    // The signal of a recent period may still be on its way: for a period, since the bounds of an event's
    // periods drift against the thread's clock, and for one tick until it is sent and another until it is
    // handled.
    let slack_ns = interval_ns + 2 * SESSION.tick_ns();
    if !account.started.load(Ordering::Relaxed) {
        match record.clock.kind() {
            // The first signal reads the clock and makes up for everything.
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

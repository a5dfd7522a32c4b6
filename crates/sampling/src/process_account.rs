//! Compares the process's CPU time with the CPU time of its threads, and adds the difference to the balance
//! of ended threads.
//!
//! A thread still runs for some 20 µs after the last moment in which it can report its CPU time, and threads
//! made by a raw clone may start and end between two scans of the poller. The process's CPU clock includes
//! both.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use otlpprof_signal::cpu::SESSION;
use otlpprof_signal::cpu_counters::{COUNTERS, add};

use super::ended_threads::ENDS;
use super::tasks::Tasks;
use super::{clock, thread_records, threads};

/// The error, in ns, of readings of several clocks that are not taken at one moment.
const NOISE_NS: i64 = 5_000_000;

/// CPU time of the process that is in no thread's account.
struct Unaccounted {
    ns: i64,
    /// The CPU time, in ns, that the process used while the clocks were read one after the other. It is large
    /// if the reader was preempted meanwhile.
    blur_ns: i64,
}

/// A session's account of the process's CPU time.
pub(super) struct ProcessAccount {
    /// The part, in ns, of the CPU time in no thread's account that is not this session's, or has been added
    /// to the balance of ended threads.
    settled_ns: Option<i64>,
    /// The number of threads that could not be sampled before the session.
    unsampled_before: u64,
}

impl ProcessAccount {
    /// Begins an account. CPU time that is missing at this moment is not the session's.
    pub(super) fn begin(tasks: &Tasks) -> Self {
        Self {
            settled_ns: (0..100)
                .find_map(|_| unaccounted(tasks, []).filter(|it| it.blur_ns <= NOISE_NS))
                .map(|it| it.ns),
            unsampled_before: COUNTERS.threads_unsampled.load(Ordering::Relaxed),
        }
    }

    /// Adds the CPU time that is in no thread's account to the balance of ended threads. Returns `false` if
    /// that time could not be measured, because a thread was ending at that moment, or because a thread
    /// exists that is not known yet, whose time does not belong to the balance of ended threads.
    ///
    /// `unarmed` are known threads that have no record yet. Their CPU time is owed to them when they get a
    /// record.
    pub(super) fn settle(&mut self, tasks: &Tasks, unarmed: impl IntoIterator<Item = i32>) -> bool {
        let Some(Unaccounted { ns: unaccounted_ns, blur_ns }) = unaccounted(tasks, unarmed) else {
            return false;
        };
        if self.settled_ns.is_none() && blur_ns > NOISE_NS {
            return false;
        }
        // The time of a thread that could not be sampled must not be inherited, and cannot be told apart.
        let all_are_sampled = COUNTERS.threads_unsampled.load(Ordering::Relaxed) == self.unsampled_before;
        let settled_ns = self.settled_ns.filter(|_| all_are_sampled).unwrap_or(unaccounted_ns);
        let missing_ns = unaccounted_ns - settled_ns;
        if missing_ns.abs() < NOISE_NS.max(SESSION.interval_ns()).max(blur_ns) {
            self.settled_ns = Some(settled_ns);
            return true;
        }
        SESSION.ended_balance_ns.fetch_add(missing_ns, Ordering::Relaxed);
        add(&COUNTERS.unwitnessed_ns, missing_ns.max(0).cast_unsigned());
        self.settled_ns = Some(unaccounted_ns);
        true
    }
}

/// Returns the process's CPU time minus the CPU time of all threads, including ended ones, since the process
/// began. `None` if a thread ended meanwhile, or if threads exist that are not known.
fn unaccounted(tasks: &Tasks, unarmed: impl IntoIterator<Item = i32>) -> Option<Unaccounted> {
    let begun = ENDS.begun.load(Ordering::SeqCst);
    if ENDS.finished.load(Ordering::SeqCst) != begun {
        return None;
    }
    let before_ns = clock::process_cpu_ns();
    let mut tids: HashSet<i32> = threads::excluded_tids();
    tids.extend(unarmed);
    thread_records::for_each_thread(|record| {
        tids.insert(record.os_tid.load(Ordering::Relaxed));
    });
    let known = tids.len();
    let alive_ns: i64 = tids.into_iter().filter_map(clock::cpu_time_of).sum();
    let after_ns = clock::process_cpu_ns();
    let ended_ns = ENDS.used_ns.load(Ordering::SeqCst);
    // The CPU times read above belong to the threads that exist now, except for threads that started later.
    let at_rest = ENDS.begun.load(Ordering::SeqCst) == begun && tasks.count().ok() == Some(known);
    at_rest.then_some(Unaccounted {
        ns: (before_ns + after_ns) / 2 - alive_ns - ended_ns,
        blur_ns: after_ns - before_ns,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_time_of_an_unknown_thread_is_not_added_to_the_balance() {
        let (end, ended) = mpsc::channel::<()>();
        let unknown = std::thread::spawn(move || ended.recv());
        let tasks = Tasks::open().unwrap();
        let mut account = ProcessAccount { settled_ns: Some(i64::MIN / 2), unsampled_before: 0 };
        let before_ns = SESSION.ended_balance_ns.load(Ordering::Relaxed);
        assert!(!account.settle(&tasks, []));
        assert_eq!(SESSION.ended_balance_ns.load(Ordering::Relaxed), before_ns);
        drop(end);
        let _ = unknown.join().unwrap();
    }
}

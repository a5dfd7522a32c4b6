//! The CPU engine's only thread: a safety net for events that are not noticed otherwise.
//!
//! Every [`POLL_PERIOD`] the poller compares the numbers of threads and of loaded objects with the known ones
//! (two system calls if nothing has changed). Every [`SETTLE_PERIOD`] it reads each thread's CPU clock and
//! checks the engines' handlers.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use super::process_account::ProcessAccount;
use super::stoppable_thread::{Stop, StoppableThread};
use super::tasks::Tasks;
use super::{exec, handler_watch, reconcile, thread_records, thread_start, threads};

/// Half of the longest time that a thread created in an unusual way stays unnoticed.
const POLL_PERIOD: Duration = Duration::from_millis(100);
/// The longest time for which a period that no signal reported stays missing.
const SETTLE_PERIOD: Duration = Duration::from_secs(1);

/// Starts the poller. Without an account no thread has a clock, and no CPU clocks are read.
pub(super) fn start(account: Option<ProcessAccount>, tasks: Tasks) -> io::Result<StoppableThread> {
    StoppableThread::start("otlpprof-cpu", move |stop| run(stop, tasks, account))
}

fn run(stop: &Stop, mut tasks: Tasks, mut account: Option<ProcessAccount>) {
    let mut unarmed = HashMap::new();
    let mut settled_at = Instant::now();
    let mut is_settled = true;
    let mut all_were_sampled = true;
    while !stop.is_stopped_within(POLL_PERIOD) {
        thread_start::install();
        exec::install();
        let known = thread_records::thread_count() + threads::excluded_tids().len();
        if (!unarmed.is_empty() || tasks.count().is_ok_and(|count| count != known))
            && let Err(error) = reconcile::reconcile_with_tasks(&mut tasks, &mut unarmed)
        {
            log::debug!("the list of threads cannot be read: {error}");
        }
        let unsampled = threads::unsampled_count();
        if all_were_sampled && unsampled > 0 {
            log::warn!(
                "{unsampled} threads are not sampled: no perf event, POSIX timer or process timer is left \
                 for them (RLIMIT_NOFILE, RLIMIT_SIGPENDING); they are retried"
            );
            all_were_sampled = false;
        }
        let is_due = settled_at.elapsed() >= SETTLE_PERIOD;
        if is_due {
            settled_at = Instant::now();
            handler_watch::check();
        }
        let Some(account) = &mut account else { continue };
        if is_due {
            thread_records::for_each_thread(reconcile::reconcile_account);
            is_settled = false;
        }
        is_settled = is_settled || account.settle(&tasks, unarmed.keys().copied());
    }
}

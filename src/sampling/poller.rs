//! The sampling engine's one thread: a safety net for what nothing else notices.
//!
//! Every [`LOOK`] it compares the number of threads and of loaded objects with what is known (two system calls
//! where nothing has changed). Every [`RECKON`] it looks at each thread's CPU clock and at the engines' handlers.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use super::process_account::ProcessAccount;
use super::stoppable_thread::{Stop, StoppableThread};
use super::tasks::Tasks;
use super::{exec, handler_watch, reconcile, thread_records, thread_start, threads};

/// How long a thread made in an unusual way may go unnoticed: twice this.
const LOOK: Duration = Duration::from_millis(100);
/// How long a period that no signal told of may be missing.
const RECKON: Duration = Duration::from_secs(1);

/// Starts it. Without an account no thread has a clock: there is nothing to reckon.
pub(super) fn start(account: Option<ProcessAccount>, tasks: Tasks) -> io::Result<StoppableThread> {
    StoppableThread::start("otlpprof-cpu", move |stop| run(stop, tasks, account))
}

fn run(stop: &Stop, mut tasks: Tasks, mut account: Option<ProcessAccount>) {
    let mut unarmed = HashMap::new();
    let mut reckoned = Instant::now();
    let mut is_settled = true;
    let mut all_were_sampled = true;
    while !stop.comes_within(LOOK) {
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
                "{unsampled} threads are not sampled: no perf event, POSIX timer or process timer is left for them \
                 (RLIMIT_NOFILE, RLIMIT_SIGPENDING); they are tried again"
            );
            all_were_sampled = false;
        }
        let is_due = reckoned.elapsed() >= RECKON;
        if is_due {
            reckoned = Instant::now();
            handler_watch::look();
        }
        let Some(account) = &mut account else { continue };
        if is_due {
            thread_records::for_each_thread(reconcile::reconcile_account);
            is_settled = false;
        }
        is_settled = is_settled || account.settle(&tasks, unarmed.keys().copied());
    }
}

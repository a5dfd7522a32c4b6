//! The sampling engine's one thread: a safety net for what nothing else notices.
//!
//! Every [`LOOK`] it compares the number of threads and of loaded objects with what is known (two system calls
//! where nothing has changed). Every [`RECKON`] it looks at each thread's CPU clock and at the handler.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::process_account::ProcessAccount;
use super::tasks::Tasks;
use super::{own_threads, reconcile, thread_records, thread_start, threads};
use crate::signal::cpu_counters::{COUNTERS, add};
use crate::signal::delivery::{handler_is_installed, install_handler};

/// How long a thread made in an unusual way may go unnoticed: twice this.
const LOOK: Duration = Duration::from_millis(100);
/// How long a period that no signal told of may be missing.
const RECKON: Duration = Duration::from_secs(1);

/// The running thread. Stops when dropped.
pub(super) struct Poller {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stopping: Mutex<bool>,
    wake: Condvar,
}

impl Poller {
    /// Without an account no thread has a clock: there is nothing to reckon.
    pub(super) fn start(signal: i32, account: Option<ProcessAccount>, tasks: Tasks) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let thread = own_threads::spawn("otlpprof-cpu", {
            let shared = Arc::clone(&shared);
            move || run(&shared, tasks, signal, account)
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Ends the thread without waiting, for a forked child, in which it does not exist.
    pub(super) fn forget(mut self) {
        std::mem::forget(self.thread.take());
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            *self.shared.stopping.lock() = true;
            self.shared.wake.notify_one();
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared, mut tasks: Tasks, signal: i32, mut account: Option<ProcessAccount>) {
    let mut unarmed = HashMap::new();
    let mut reckoned = Instant::now();
    let mut is_settled = true;
    let (mut handler_was_ours, mut was_replaced) = (true, false);
    let mut all_were_sampled = true;
    let mut stopping = shared.stopping.lock();
    while !*stopping {
        shared.wake.wait_for(&mut stopping, LOOK);
        if *stopping {
            break;
        }
        thread_start::install();
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
        let Some(account) = &mut account else { continue };
        if reckoned.elapsed() >= RECKON {
            reckoned = Instant::now();
            thread_records::for_each_thread(reconcile::reconcile_account);
            is_settled = false;
            let is_ours = handler_is_installed(signal);
            if handler_was_ours && !is_ours {
                add(&COUNTERS.handler_replaced, 1);
                // Once: who installs theirs again and again is not to be outdone.
                let is_back = !std::mem::replace(&mut was_replaced, true) && install_handler(signal).is_ok();
                handler_was_ours = is_back;
                if is_back {
                    log::warn!(
                        "another handler was installed for signal {signal}: ours is before it again, and passes on \
                         what is not ours"
                    );
                } else {
                    log::warn!(
                        "another handler was installed for signal {signal}: CPU samples depend on it now \
                         (`signal` chooses another signal)"
                    );
                }
            } else {
                handler_was_ours = is_ours;
            }
        }
        is_settled = is_settled || account.settle(&tasks, unarmed.keys().copied());
    }
}

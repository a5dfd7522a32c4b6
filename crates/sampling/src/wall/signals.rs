//! Sends the signal that asks a thread for a wall-clock sample.
//!
//! The signal carries the token of the thread's record, which identifies it as ours. A sandbox may refuse the
//! system call (`rt_tgsigqueueinfo`). Then the signal is sent by `tgkill`, which carries no token, and the
//! handler takes the signal for ours if the thread owes a sample.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use otlpprof_core::engine::Engine;
use otlpprof_core::thread::ThreadRecord;
use otlpprof_signal::thread_table::SignalToken;
use otlpprof_signal::wall::SESSION;

use super::counts::{COUNTS, count};
use crate::refusals;

/// The sender of wall-clock signals.
#[derive(Clone, Copy)]
pub(super) struct Sender {
    signal: i32,
    pid: i32,
    uid: u32,
}

/// The part of a `siginfo_t` that a queued signal uses (include/uapi/asm-generic/siginfo.h, `_rt`).
#[repr(C)]
struct QueuedInfo {
    signo: i32,
    errno: i32,
    code: i32,
    _pad: i32,
    pid: i32,
    uid: u32,
    value: u64,
}

/// Whether a message about each of the two refusals has been logged.
static HAS_LOGGED_REFUSED: AtomicBool = AtomicBool::new(false);
static HAS_LOGGED_UNREACHABLE: AtomicBool = AtomicBool::new(false);

impl Sender {
    pub(super) fn new(signal: i32) -> Self {
        // SAFETY: getpid and getuid take nothing and cannot fail.
        unsafe { Self { signal, pid: libc::getpid(), uid: libc::getuid() } }
    }

    /// Asks the thread of `record` for a sample.
    pub(super) fn ask(&self, record: &ThreadRecord) {
        let tid = record.os_tid.load(Ordering::Relaxed);
        // The thread has ended, and its record was released after it was visited.
        if tid == 0 {
            return;
        }
        if SESSION.signals_by_tgkill() {
            return self.kill(tid);
        }
        match self.queue(record, tid) {
            Ok(()) => {}
            Err(error) if is_of_thread(&error) => note_unsent(&error),
            Err(error) => {
                if !HAS_LOGGED_REFUSED.swap(true, Ordering::Relaxed) {
                    log::warn!(
                        "wall: the system refuses rt_tgsigqueueinfo ({error}): threads are signalled by \
                         tgkill, and a signal {} that the program sends one of them may be taken for the \
                         profiler's",
                        self.signal
                    );
                }
                SESSION.use_tgkill();
                self.kill(tid);
            }
        }
    }

    fn queue(&self, record: &ThreadRecord, tid: i32) -> io::Result<()> {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let Self { signal, pid, uid } = *self;
        let value = SignalToken::of(record).0;
        let queued = QueuedInfo { signo: signal, errno: 0, code: libc::SI_QUEUE, _pad: 0, pid, uid, value };
        // SAFETY: a siginfo_t begins with this part, is larger, and is aligned for it.
        unsafe { info.as_mut_ptr().cast::<QueuedInfo>().write(queued) };
        // SAFETY: the kernel reads one siginfo_t.
        let result =
            unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid, signal, info.as_mut_ptr()) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn kill(&self, tid: i32) {
        // SAFETY: the call takes only numbers.
        let result = unsafe { libc::syscall(libc::SYS_tgkill, self.pid, tid, self.signal) };
        if result == 0 {
            return;
        }
        let error = io::Error::last_os_error();
        if is_of_thread(&error) {
            return note_unsent(&error);
        }
        refusals::note(Engine::Wall, || format!("the system refuses tgkill ({error})"));
        if !HAS_LOGGED_UNREACHABLE.swap(true, Ordering::Relaxed) {
            log::warn!("wall: the system refuses tgkill as well ({error}): there are no wall-clock samples");
        }
    }
}

/// Whether the error concerns only one thread or moment: the thread has ended, or too many signals are
/// queued.
fn is_of_thread(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ESRCH | libc::EAGAIN))
}

/// Notes that one thread has not been signalled, by an error of [`is_of_thread`].
fn note_unsent(error: &io::Error) {
    log::debug!("a thread cannot be signalled: {error}");
    if error.raw_os_error() == Some(libc::EAGAIN) {
        count(&COUNTS.signals_refused);
        refusals::note(Engine::Wall, || {
            "the system has no room for the signals that ask threads for samples; `ulimit -i` raises the \
             limit"
                .to_owned()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a signal to thread 0 failed with EINVAL, which was taken for a refusal. A warning was
    /// logged, and no samples were taken from then on.
    #[test]
    fn a_thread_that_ends_before_its_signal_is_no_refusal() {
        let record = ThreadRecord::default();
        assert_eq!(record.os_tid.load(Ordering::Relaxed), 0);
        Sender::new(libc::SIGRTMIN()).ask(&record);
        assert!(
            !HAS_LOGGED_REFUSED.load(Ordering::Relaxed) && !HAS_LOGGED_UNREACHABLE.load(Ordering::Relaxed)
        );
    }
}

//! The profiler's own threads, which are never sampled and handle no signal of the application.

use std::cell::Cell;
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::thread::{Builder, JoinHandle};
use std::{io, ptr};

use otlpprof_core::thread::current_os_tid;
use otlpprof_signal::chain::FAULTS;
use parking_lot::Mutex;

use super::clock;
use super::threads::{exclude_current_thread, excluded_tids};

/// All running threads that were started here, with the kernel's ids.
static NAMES: Mutex<Vec<(i32, String)>> = Mutex::new(Vec::new());

thread_local! {
    /// Whether this thread is in the middle of `spawn`. Not read in handlers.
    static CREATING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the thread that the current thread is creating is the profiler's own.
pub(super) fn is_creating() -> bool {
    CREATING.get()
}

/// Starts a thread of the profiler, which is excluded from sampling and has all signals blocked. Threads that
/// it creates inherit both.
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let (mut all, mut before) = (MaybeUninit::<libc::sigset_t>::uninit(), MaybeUninit::uninit());
    // The mask is inherited, so the new thread has it from its first instruction on.
    // SAFETY: the sets are initialised before they are read.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        for fault in FAULTS {
            libc::sigdelset(all.as_mut_ptr(), fault);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    CREATING.set(true);
    let own_name = name.to_owned();
    let thread = Builder::new().name(name.to_owned()).spawn(|| {
        exclude_current_thread();
        let _named = NameRegistration::new(own_name);
        body()
    });
    CREATING.set(false);
    // SAFETY: the call above has filled `before`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    thread
}

/// Registers the current thread by its name until the value is dropped.
struct NameRegistration(i32);

impl NameRegistration {
    fn new(name: String) -> Self {
        let tid = current_os_tid();
        NAMES.lock().push((tid, name));
        Self(tid)
    }
}

impl Drop for NameRegistration {
    fn drop(&mut self) {
        NAMES.lock().retain(|(tid, _)| *tid != self.0);
    }
}

/// Returns the kernel's ids of the running threads that were started with this name.
pub fn tids_of(name: &str) -> Vec<i32> {
    NAMES.lock().iter().filter(|(_, own)| own == name).map(|(tid, _)| *tid).collect()
}

/// Returns the CPU time, in ns, of each running thread of the profiler, by the kernel's id.
pub fn cpu_times_ns() -> HashMap<i32, u64> {
    let time = |tid| clock::cpu_time_of(tid).map(|ns| (tid, ns.max(0).cast_unsigned()));
    excluded_tids().into_iter().filter_map(time).collect()
}

/// Returns the CPU time of the process, in ns.
pub fn process_cpu_ns() -> u64 {
    clock::process_cpu_ns().max(0).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::super::threads::is_excluded;
    use super::*;

    /// Returns the signals that the current thread has blocked.
    fn blocked() -> Vec<libc::c_int> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: without a new set the mask is unchanged; the call fills the old one.
        let set = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), set.as_mut_ptr());
            set.assume_init()
        };
        // SAFETY: the set is initialised.
        let is_member = |signal: &libc::c_int| unsafe { libc::sigismember(&raw const set, *signal) == 1 };
        signals().filter(is_member).collect()
    }

    /// Returns all signals that applications may use: glibc reserves two for itself.
    fn signals() -> impl Iterator<Item = libc::c_int> {
        (1..32).chain(libc::SIGRTMIN()..=libc::SIGRTMAX())
    }

    /// Regression: async-profiler puts breakpoints into the VM where the VM refuses its events of
    /// allocations. The first breakpoint that one of these threads met ended the process.
    #[test]
    fn a_breakpoint_is_no_blocked_signal() {
        let is_blocked = spawn("test", || blocked().contains(&libc::SIGTRAP)).unwrap().join().unwrap();
        assert!(!is_blocked);
    }

    #[test]
    fn all_signals_but_those_of_faults_are_blocked_in_it_and_in_its_own_threads() {
        // SIGKILL and SIGSTOP cannot be blocked (signal(7)).
        let open = [&FAULTS[..], &[libc::SIGKILL, libc::SIGSTOP]].concat();
        let expected: Vec<_> = signals().filter(|signal| !open.contains(signal)).collect();
        let before = blocked();
        let thread = spawn("test", || (blocked(), std::thread::spawn(blocked).join().unwrap())).unwrap();
        assert_eq!(thread.join().unwrap(), (expected.clone(), expected));
        assert_eq!(blocked(), before, "of the thread that creates it");
    }

    #[test]
    fn an_own_thread_is_excluded_and_its_creator_is_not() {
        assert!(spawn("test", is_excluded).unwrap().join().unwrap());
        assert!(!is_excluded() && !is_creating());
    }
}

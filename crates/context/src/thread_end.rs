//! The end of kernel threads that the VM does not report: a thread that attached itself and never detaches
//! ends without ThreadEnd, and the next thread may get its kernel id.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::OnceLock;

/// The round in which our destructor acts. Destructors of keys run in rounds for as long as values are set
/// again, up to `PTHREAD_DESTRUCTOR_ITERATIONS` of Linux's C libraries. Another destructor may detach the
/// thread, and so run Java code: so ours acts in the last round.
const LAST_ROUND: usize = 4;

struct EndKey {
    key: libc::pthread_key_t,
    process: libc::pid_t,
    at_end: fn(),
}

static KEY: OnceLock<Option<EndKey>> = OnceLock::new();

/// Makes `at_end`, which is the same for all threads, run at the very end of the current thread. Returns
/// `false`, and runs nothing, if the process has no key left. It does not run in a child of the process
/// either: threads that the child does not have may hold locks there.
pub(super) fn run_at_end(at_end: fn()) -> bool {
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the call writes the key; the destructor lives as long as the library, which is never
        // unloaded.
        let made = unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ends)) } == 0;
        // SAFETY: getpid takes nothing and cannot fail.
        made.then(|| EndKey { key, process: unsafe { libc::getpid() }, at_end })
    });
    key.as_ref().is_some_and(|key| set_round(key, 1))
}

fn set_round(key: &EndKey, round: usize) -> bool {
    // SAFETY: the key exists; the value is only used as a number, and never dereferenced.
    unsafe { libc::pthread_setspecific(key.key, ptr::without_provenance(round)) == 0 }
}

extern "C" fn thread_ends(round: *mut libc::c_void) {
    // SAFETY: getpid takes nothing and cannot fail.
    let process = unsafe { libc::getpid() };
    let Some(Some(key)) = KEY.get() else { return };
    match round.addr() {
        _ if key.process != process => {}
        round if round < LAST_ROUND => {
            set_round(key, round.wrapping_add(1));
        }
        // A panic of ours must not end the process.
        _ => drop(catch_unwind(AssertUnwindSafe(key.at_end))),
    }
}

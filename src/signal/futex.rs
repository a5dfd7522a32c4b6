//! Waking a thread of the agent from a handler.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Wakes the one thread that waits on `word`. Async-signal-safe: one system call. `word` lives for ever.
pub fn wake(word: &AtomicU32) {
    // SAFETY: FUTEX_WAKE only uses the address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) };
}

/// Waits while `word` is `value`, until it is woken or `timeout` has passed. Ordinary zone.
pub fn wait(word: &AtomicU32, value: u32, timeout: Duration) {
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
    };
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the futex word lives for ever, the timeout for the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, &raw const timeout) };
}

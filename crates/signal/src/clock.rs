//! The clocks of all code of this library: the kernel's clocks, even if the process has replaced
//! `clock_gettime`.
//!
//! A library that is preloaded to change the time for a program, such as libfaketime, puts its own
//! `clock_gettime` before the C library's. With a clock that jumps, samples would stand for time that has not
//! passed. So this library defines a function of that name too. The symbol is hidden: only references of this
//! library are bound to it, including those of Rust's standard library and of other crates, and no other
//! object sees it.
//!
//! The function calls the vDSO; without a vDSO it makes the system call.

use core::arch::global_asm;
use std::mem::transmute;
use std::sync::atomic::{AtomicU64, Ordering};

use super::safe_load::ProcessMemory;
use super::vdso;

/// The name of the vDSO's function (vdso(7)).
#[cfg(target_arch = "x86_64")]
pub(super) const VDSO_FUNCTION: &[u8] = b"__vdso_clock_gettime";
/// The name of the vDSO's function (vdso(7)).
#[cfg(target_arch = "aarch64")]
pub(super) const VDSO_FUNCTION: &[u8] = b"__kernel_clock_gettime";

type ClockGettime = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int;

#[cfg(target_arch = "x86_64")]
global_asm!(
    ".hidden clock_gettime",
    ".globl clock_gettime",
    ".type clock_gettime, @function",
    "clock_gettime:",
    "jmp {function}",
    ".size clock_gettime, . - clock_gettime",
    function = sym kernel_clock_gettime,
);
#[cfg(target_arch = "aarch64")]
global_asm!(
    ".hidden clock_gettime",
    ".globl clock_gettime",
    ".type clock_gettime, %function",
    "clock_gettime:",
    "b {function}",
    ".size clock_gettime, . - clock_gettime",
    function = sym kernel_clock_gettime,
);

/// The vDSO has not been searched yet.
const UNKNOWN: u64 = 0;
/// The vDSO has no such function.
const NONE: u64 = 1;

/// The address of the vDSO's function, or [`UNKNOWN`], or [`NONE`].
static IN_VDSO: AtomicU64 = AtomicU64::new(UNKNOWN);

/// Behaves as `clock_gettime` (clock_gettime(2)): returns 0, or -1 with `errno` set.
unsafe extern "C" fn kernel_clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> libc::c_int {
    let function = match IN_VDSO.load(Ordering::Relaxed) {
        UNKNOWN => find(),
        known => known,
    };
    if function == NONE {
        // SAFETY: `time` is null or can be written, as clock_gettime(2) requires of the caller.
        return unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) } as libc::c_int;
    }
    // SAFETY: the address leads to the vDSO's function, which has this type and stays mapped. `time` can be
    // written, as clock_gettime(2) requires of the caller.
    let result = unsafe { transmute::<*const (), ClockGettime>(function as *const ())(clock, time) };
    if result >= 0 {
        return result;
    }
    // SAFETY: the C library's location of this thread's `errno`, always valid.
    unsafe { *libc::__errno_location() = result.wrapping_neg() };
    -1
}

/// Searches the vDSO for its function. Several threads may do so at once, with the same result.
#[cold]
fn find() -> u64 {
    // SAFETY: getauxval has no preconditions, and reads the auxiliary vector of the process.
    let image = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    let found = if image == 0 { None } else { vdso::function(&ProcessMemory, image, VDSO_FUNCTION) };
    let function = found.unwrap_or(NONE);
    IN_VDSO.store(function, Ordering::Relaxed);
    function
}

/// Reads CLOCK_MONOTONIC, in ns.
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid timespec; clock_gettime is async-signal-safe.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

/// Reads the current thread's CPU clock, in ns.
pub fn thread_cpu_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a preloaded `clock_gettime` was the agent's clock.
    #[test]
    fn the_clock_of_this_binary_is_not_the_one_that_others_have() {
        // SAFETY: the name is a C string; nothing is loaded.
        let others = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"clock_gettime".as_ptr()) };
        assert!(!others.is_null());
        assert_ne!(libc::clock_gettime as *const () as usize, others as usize);
    }

    #[test]
    fn the_clock_agrees_with_the_kernel_and_fails_like_the_system_call() {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes one timespec.
        assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) }, 0);
        let mut later = time;
        // SAFETY: the kernel writes one timespec.
        let result = unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut later) };
        assert_eq!(result, 0);
        assert!((time.tv_sec, time.tv_nsec) <= (later.tv_sec, later.tv_nsec));
        assert!(IN_VDSO.load(Ordering::Relaxed) > NONE, "there is a vDSO");
        // SAFETY: the kernel refuses a clock that it does not have.
        assert_eq!(unsafe { libc::clock_gettime(12_345, &raw mut time) }, -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINVAL));
    }
}

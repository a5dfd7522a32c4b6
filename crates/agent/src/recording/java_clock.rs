//! The clock by which Java notes changes of contexts: `System.nanoTime`.
//!
//! libjvm calls the process's `clock_gettime` for it (`os::javaTimeNanos`, os/linux/os_linux.cpp in 11,
//! os/posix/os_posix.cpp in 17-25). If a library is preloaded to change the time, that differs from the
//! kernel's clock, which this library uses everywhere else.

use std::mem::transmute;
use std::sync::OnceLock;

type ClockGettime = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int;

/// Returns the value of `System.nanoTime()`.
pub(super) fn nano_time() -> i64 {
    static FUNCTION: OnceLock<Option<ClockGettime>> = OnceLock::new();
    let function = FUNCTION.get_or_init(|| {
        // SAFETY: the name is a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"clock_gettime".as_ptr()) };
        // SAFETY: the function of this name has this type (clock_gettime(2)).
        (!found.is_null()).then(|| unsafe { transmute::<*mut libc::c_void, ClockGettime>(found) })
    });
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let function = function.unwrap_or(libc::clock_gettime);
    // SAFETY: `now` is a valid timespec.
    unsafe { function(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

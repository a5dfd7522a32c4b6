//! Unpredictable numbers.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use otlpprof_core::byte_sampling::mix;
use otlpprof_signal::clock::thread_cpu_ns;

/// Returns an unpredictable number, cheaply: splitmix64 (Steele, Lea, Flood 2014) over a shared counter.
pub(super) fn random() -> u64 {
    static STATE: AtomicU64 = AtomicU64::new(0);
    static SEED: OnceLock<u64> = OnceLock::new();
    let seed = *SEED.get_or_init(system_random);
    mix(STATE.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed).wrapping_add(seed))
}

/// Returns a number from the kernel's generator, or one made from the clock if the generator is not
/// available.
pub(super) fn system_random() -> u64 {
    let mut number = 0_u64;
    // The system call, since the function getrandom is missing from the C library before glibc 2.25.
    // SAFETY: the kernel writes at most eight bytes.
    let got = unsafe { libc::syscall(libc::SYS_getrandom, &raw mut number, 8_usize, libc::GRND_NONBLOCK) };
    if got == 8 { number } else { thread_cpu_ns().cast_unsigned() ^ u64::from(std::process::id()) << 32 }
}

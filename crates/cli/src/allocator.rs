//! Settings of the C library's allocator, for commands whose memory must stay close to what they use.

use std::ffi::c_int;

/// Makes the allocator return blocks of at least `least_bytes` to the kernel when they are freed, whichever
/// thread allocated them. Call this before the command starts a thread.
///
/// By default glibc raises the size above which a block is mapped separately to the size of the largest freed
/// block (mallopt(3)). Later blocks would then leave holes in the heap that are too small for other blocks,
/// and each thread's arena would keep some.
pub(super) fn return_freed_blocks(least_bytes: c_int) {
    #[cfg(target_env = "gnu")]
    for (parameter, value) in [(libc::M_ARENA_MAX, 2), (libc::M_MMAP_THRESHOLD, least_bytes)] {
        // SAFETY: mallopt stores a number for the allocator, and malloc.h defines the parameters. The call
        // must not run beside another thread (mallopt(3), "ATTRIBUTES"); the callers have started none.
        unsafe { libc::mallopt(parameter, value) };
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = least_bytes;
}

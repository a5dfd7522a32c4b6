//! Return addresses on x86_64.

/// Whether a call leaves its return address on the stack, so that a caller's stack pointer always lies above.
pub(in crate::signal::walk) const IS_PUSHED: bool = true;

/// The address alone.
pub(in crate::signal::walk) const fn strip(saved: u64) -> u64 {
    saved
}

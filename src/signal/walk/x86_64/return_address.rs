//! Return addresses on x86_64.

/// Whether a call pushes its return address onto the stack, so that a caller's stack pointer always lies
/// above.
pub(in crate::signal::walk) const IS_PUSHED: bool = true;

/// The address as it was saved; x86_64 does not sign addresses.
pub(in crate::signal::walk) const fn strip(saved: u64) -> u64 {
    saved
}

//! Room for a signal frame, on aarch64.

/// Returns `false`: the kernel raises no signal for lack of room (arch/arm64/kernel/signal.c,
/// `get_sigframe`).
pub(super) const fn has_no_room_for_frame(_: &libc::ucontext_t) -> bool {
    false
}

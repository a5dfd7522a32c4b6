//! The end of an interpreter frame (cpu/x86/frame_x86.hpp, JDK 11-25).

/// The stack pointer of the sender's frame. `saved` is the sender's SP that the interpreter frame at `_fp`
/// has saved.
pub(in crate::signal::walk) const fn sender_sp(_fp: u64, saved: u64) -> u64 {
    saved
}

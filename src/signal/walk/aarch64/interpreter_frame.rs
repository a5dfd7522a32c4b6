//! The end of an interpreter frame (cpu/aarch64/frame_aarch64.hpp, JDK 11-25).

/// The stack pointer of the sender's frame. `saved` is the sender's SP that the interpreter frame at `fp` has
/// saved. While a method is interpreted, its SP lies below the whole room of its expression stack, but the
/// frames of its callees begin above that SP. In that case the sender's frame is taken to end where this
/// frame begins (cpu/aarch64/interp_masm_aarch64.cpp, jump_from_interpreted).
pub(in crate::signal::walk) const fn sender_sp(fp: u64, saved: u64) -> u64 {
    let begins = fp.wrapping_add(16);
    if saved < begins { begins } else { saved }
}

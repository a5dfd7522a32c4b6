//! Where an interpreter frame keeps what lies below its `Method*`, in words from its frame pointer
//! (cpu/x86/frame_x86.hpp, JDK 11-25).

/// Where the first local variable is.
pub(in crate::signal::walk) const LOCALS: i64 = -7;
/// The bytecode pointer.
pub(in crate::signal::walk) const BCP: i64 = -8;

/// The stack pointer of the sender's frame, where the interpreter frame at `fp` has saved `saved` as such.
pub(in crate::signal::walk) const fn sender_sp(_fp: u64, saved: u64) -> u64 {
    saved
}

//! The class `frame` (`runtime/frame.hpp`, `cpu/x86/frame_x86.hpp`, 11-25). libjvm exports only its size.

/// The offsets of the fields, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VmFrame {
    pub(crate) pc: u32,
    pub(crate) fp: u32,
    pub(crate) unextended_sp: u32,
}

/// The offsets in a `frame` of `size` bytes; `None` for an unknown size. The class begins with `_sp` and
/// `_pc`, and ends with `_fp` and `_unextended_sp`: 48 bytes in 11 and 17, 56 with an oop map in 21 and 25.
pub(crate) fn offsets(size: u32) -> Option<VmFrame> {
    matches!(size, 48 | 56).then_some(VmFrame { pc: 8, fp: size - 16, unextended_sp: size - 8 })
}

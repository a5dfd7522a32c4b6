//! The class `frame` (`runtime/frame.hpp`, `cpu/aarch64/frame_aarch64.hpp`, 11-25). libjvm exports only its
//! size.

/// The offsets of the fields, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VmFrame {
    pub(crate) pc: u32,
    pub(crate) fp: u32,
    pub(crate) unextended_sp: u32,
}

/// The offsets in a `frame` of `size` bytes; `None` for an unknown size. The class begins with `_sp` and
/// `_pc`. It ends with `_fp` and `_unextended_sp` in 11 and 17, where it has 48 bytes. In 21 and 25 an oop
/// map stands in between and `_sp_is_trusted` comes last: 64 bytes.
pub(crate) fn offsets(size: u32) -> Option<VmFrame> {
    let after = match size {
        48 => 0,
        64 => 8,
        _ => return None,
    };
    Some(VmFrame { pc: 8, fp: size - 16 - after, unextended_sp: size - 8 - after })
}

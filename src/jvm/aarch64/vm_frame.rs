//! The class `frame` (`runtime/frame.hpp`, `cpu/aarch64/frame_aarch64.hpp`, 11-25), of which libjvm tells the size alone.

/// The slot of an entry frame's JavaCallWrapper, in words from its frame pointer: libjvm does not describe it
/// (`entry_frame_call_wrapper_offset`, 11-25).
pub(in crate::jvm) const ENTRY_CALL_WRAPPER: Option<i64> = Some(-8);

/// Offsets in bytes.
#[derive(Clone, Copy, Debug)]
pub(in crate::jvm) struct VmFrame {
    pub(in crate::jvm) pc: u32,
    pub(in crate::jvm) fp: u32,
    pub(in crate::jvm) unextended_sp: u32,
}

/// It begins with `_sp` and `_pc`, and ends with `_fp` and `_unextended_sp`: 48 bytes in 11 and 17. In 21 and 25, where an
/// oop map comes in between, `_sp_is_trusted` follows.
pub(in crate::jvm) fn offsets(size: u32) -> Option<VmFrame> {
    let behind = match size {
        48 => 0,
        64 => 8,
        _ => return None,
    };
    Some(VmFrame { pc: 8, fp: size - 16 - behind, unextended_sp: size - 8 - behind })
}

//! Frames that are being deoptimised (`runtime/vframeArray.hpp`, `runtime/frame.hpp`, `cpu/x86/frame_x86.hpp`).

use super::LayoutError;
use crate::core::vm_layout::VframeArrayLayout;
use crate::jvm::vm_structs::VmStructs;

/// A `frame` begins with `_sp` and `_pc`, and ends with `_fp` and `_unextended_sp` (x86_64, 11-25). libjvm tells
/// its size alone.
const FRAME_PC: u32 = 8;
const FRAME_FP_FROM_END: u32 = 16;
const FRAME_UNEXTENDED_SP_FROM_END: u32 = 8;
/// 11 and 17: 48 bytes; with an oop map (21 and 25) 56.
const FRAME_SIZES: [u32; 2] = [48, 56];

/// The structure that a thread's `_vframe_array_head` points to. None can be had at start to be checked, so what
/// libjvm tells of it must fit together, and the walker checks the owner of each that it meets.
pub(super) fn vframe_array(structs: &VmStructs) -> Result<VframeArrayLayout, LayoutError> {
    let frame = structs.size_of("frame")?;
    let original = structs.offset("vframeArray", "_original")?;
    let caller = structs.offset("vframeArray", "_caller")?;
    let frames = structs.offset("vframeArray", "_frames")?;
    let size = structs.size_of("vframeArray")?;
    let element_size = structs.size_of("vframeArrayElement")?;
    let element_bci = structs.offset("vframeArrayElement", "_bci")?;
    let element_method = structs.offset("vframeArrayElement", "_method")?;
    // `_owner_thread` comes first, then (until 17) `_next`, `_original` and `_caller`; the one element that is
    // declared comes last.
    let fits = FRAME_SIZES.contains(&frame)
        && (8..=16).contains(&original)
        && caller == original + frame
        && frames > caller + 2 * frame
        && element_bci == frame
        && element_method > element_bci
        && element_size > element_method
        && size > frames + element_size;
    if !fits {
        let reason = format!(
            "{size} bytes, with frames of {frame} at {original} and {caller}, {frames}, elements of {element_size} with \
             {element_bci} and {element_method}"
        );
        return Err(LayoutError::implausible("vframeArray", "_caller", reason));
    }
    Ok(VframeArrayLayout {
        owner_thread: 0,
        caller_pc: caller + FRAME_PC,
        caller_fp: caller + frame - FRAME_FP_FROM_END,
        caller_unextended_sp: caller + frame - FRAME_UNEXTENDED_SP_FROM_END,
        frames,
        elements: size - element_size,
        element_size,
        element_bci,
        element_method,
    })
}

//! Frames that are being deoptimised (`runtime/vframeArray.hpp`, `runtime/frame.hpp`).

use super::LayoutError;
use crate::core::vm_layout::VframeArrayLayout;
use crate::jvm::arch::vm_frame;
use crate::jvm::vm_structs::VmStructs;

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
    let vm_frame = vm_frame::offsets(frame);
    let fits = (8..=16).contains(&original)
        && caller == original + frame
        && frames > caller + 2 * frame
        && element_bci == frame
        && element_method > element_bci
        && element_size > element_method
        && size > frames + element_size;
    let Some(vm_frame) = vm_frame.filter(|_| fits) else {
        let reason = format!(
            "{size} bytes, with frames of {frame} at {original} and {caller}, {frames}, elements of {element_size} with \
             {element_bci} and {element_method}"
        );
        return Err(LayoutError::implausible("vframeArray", "_caller", reason));
    };
    Ok(VframeArrayLayout {
        owner_thread: 0,
        caller_pc: caller + vm_frame.pc,
        caller_fp: caller + vm_frame.fp,
        caller_unextended_sp: caller + vm_frame.unextended_sp,
        frames,
        elements: size - element_size,
        element_size,
        element_bci,
        element_method,
    })
}

//! Frames during deoptimisation (`runtime/vframeArray.hpp`, `runtime/frame.hpp`).

use otlpprof_core::vm_layout::VframeArrayLayout;

use super::error::LayoutError;
use crate::arch::vm_frame;
use crate::vm_structs::VmStructs;

/// The structure that a thread's `_vframe_array_head` points to. At start-up no instance exists that could be
/// checked, and no generated code reads the structure. The sizes and offsets from libjvm must therefore fit
/// together, and the walker checks the owner, the methods and the caller of each instance. A wrong
/// `_vframe_array_head` leads to memory without such an owner, and the walk gets a mark.
pub(super) fn vframe_array(structs: &VmStructs) -> Result<VframeArrayLayout, LayoutError> {
    let frame = structs.size_of("frame")?;
    let original = structs.offset("vframeArray", "_original")?;
    let caller = structs.offset("vframeArray", "_caller")?;
    let frames = structs.offset("vframeArray", "_frames")?;
    let size = structs.size_of("vframeArray")?;
    let element_size = structs.size_of("vframeArrayElement")?;
    let element_bci = structs.offset("vframeArrayElement", "_bci")?;
    let element_method = structs.offset("vframeArrayElement", "_method")?;
    let registers =
        u32::try_from(structs.constant("ConcreteRegisterImpl::number_of_registers")?).unwrap_or(0);
    // The order of fields: `_owner_thread`, until 17 `_next`, `_original`, `_caller`, `_sender`, a pointer,
    // an int, `_frames`. After `_frames` come a word for each register, until 17 also a byte for each
    // register, and the one declared element. After its method, an element has three more pointers.
    let elements = size.saturating_sub(element_size);
    let vm_frame = vm_frame::offsets(frame);
    let fits = (8..=16).contains(&original)
        && caller == original + frame
        && frames == caller + 2 * frame + 12
        && [8, 9].iter().any(|bytes| elements == (frames + 4 + bytes * registers).next_multiple_of(8))
        && element_bci == frame
        && element_method == element_bci + 8
        && element_size == element_method + 32;
    let Some(vm_frame) = vm_frame.filter(|_| fits) else {
        let reason = format!(
            "{size} bytes, with frames of {frame} at {original} and {caller}, {frames}, {registers} \
             registers, elements of {element_size} with {element_bci} and {element_method}"
        );
        return Err(LayoutError::implausible("vframeArray", "_caller", reason));
    };
    Ok(VframeArrayLayout {
        head: structs.offset("JavaThread", "_vframe_array_head")?,
        owner_thread: 0,
        caller_pc: caller + vm_frame.pc,
        caller_fp: caller + vm_frame.fp,
        caller_unextended_sp: caller + vm_frame.unextended_sp,
        frames,
        elements,
        element_size,
        element_bci,
        element_method,
    })
}

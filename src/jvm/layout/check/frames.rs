//! Checks the frames that the VM's generated code builds: the slots of interpreter frames and of entry
//! frames. There may be no interpreted frame when the layout is checked, but the code that uses the slots
//! always exists.

use super::super::LayoutError;
use crate::core::memory::Memory;
use crate::core::vm_layout::VmLayout;
use crate::jvm::interpreter_slots;

pub(super) fn check(layout: &VmLayout, memory: &dyn Memory) -> Result<(), LayoutError> {
    let to_constant_pool = [layout.method.const_method, layout.method.constants];
    let used = interpreter_slots::of_interpreter(memory, layout.stubs.codelets, to_constant_pool);
    let frame = &layout.interpreter_frame;
    agrees("interpreter_frame_sender_sp_offset", frame.sender_sp, &used.sender_sp)?;
    agrees("interpreter_frame_last_sp_offset", frame.last_sp, &used.last_sp)?;
    agrees("interpreter_frame_method_offset", frame.method, &used.method)?;
    agrees("interpreter_frame_locals_offset", frame.locals, &used.locals)?;
    agrees("interpreter_frame_bcp_offset", frame.bcp, &used.bcp)?;
    let wrapper = interpreter_slots::of_call_wrapper(memory, layout.stubs.call_stub);
    agrees("entry_frame_call_wrapper_offset", i64::from(layout.thread.entry_frame_call_wrapper), &wrapper)
}

/// Refuses `slot` if no code uses it, or if some code uses another slot for the same purpose.
fn agrees(field: &'static str, slot: i64, used: &[i64]) -> Result<(), LayoutError> {
    let reason = match used.iter().find(|&&other| other != slot) {
        Some(other) => format!("taken for {slot}, while the VM's code uses {other}"),
        None if used.is_empty() => "no code of the VM was found that uses it".to_owned(),
        None => return Ok(()),
    };
    Err(LayoutError::implausible("frame", field, reason))
}

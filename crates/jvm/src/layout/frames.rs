//! The frames that the VM's generated code builds: the slots of interpreter frames and of entry frames.
//! libjvm exports few of them, and there may be no interpreted frame when the layout is learnt. The code that
//! uses the slots always exists.

use std::cell::Cell;

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{InterpreterFrameLayout, MethodLayout, StubLayout};

use super::error::LayoutError;
use crate::interpreter_slots;

/// The VM's code, and the slots of interpreter frames that it was read for last. A search asks for them at
/// each place of a field, and to read all code again takes most of its time.
pub(super) struct InterpreterFrames<'a> {
    memory: &'a dyn Memory,
    pub(super) stubs: StubLayout,
    /// The fields on the way to the constant pool, and the slots.
    last: Cell<Option<([u32; 2], InterpreterFrameLayout)>>,
}

impl<'a> InterpreterFrames<'a> {
    pub(super) const fn new(memory: &'a dyn Memory, stubs: StubLayout) -> Self {
        Self { memory, stubs, last: Cell::new(None) }
    }

    /// The slots of an interpreter frame, from the interpreter's code.
    pub(super) fn of(&self, method: &MethodLayout) -> Result<InterpreterFrameLayout, LayoutError> {
        let fields = [method.const_method, method.constants];
        if let Some((_, slots)) = self.last.get().filter(|(of, _)| *of == fields) {
            return Ok(slots);
        }
        let slots = interpreter_frame(self.memory, &self.stubs, fields)?;
        self.last.set(Some((fields, slots)));
        Ok(slots)
    }
}

fn interpreter_frame(
    memory: &dyn Memory,
    stubs: &StubLayout,
    to_constant_pool: [u32; 2],
) -> Result<InterpreterFrameLayout, LayoutError> {
    let used = interpreter_slots::of_interpreter(memory, stubs.codelets, to_constant_pool);
    Ok(InterpreterFrameLayout {
        sender_sp: only("interpreter_frame_sender_sp_offset", &used.sender_sp)?,
        last_sp: only("interpreter_frame_last_sp_offset", &used.last_sp)?,
        method: only("interpreter_frame_method_offset", &used.method)?,
        locals: only("interpreter_frame_locals_offset", &used.locals)?,
        bcp: only("interpreter_frame_bcp_offset", &used.bcp)?,
    })
}

/// The slot of the JavaCallWrapper in an entry frame, from the call stub's code.
pub(super) fn call_wrapper(memory: &dyn Memory, stubs: &StubLayout) -> Result<i64, LayoutError> {
    only("entry_frame_call_wrapper_offset", &interpreter_slots::of_call_wrapper(memory, stubs.call_stub))
}

/// The slot that all the code uses.
fn only(field: &'static str, used: &[i64]) -> Result<i64, LayoutError> {
    let reason = match used {
        [] => "no code of the VM was found that uses it".to_owned(),
        &[slot, ref others @ ..] => match others.iter().find(|&&other| other != slot) {
            None => return Ok(slot),
            Some(other) => format!("the VM's code uses {slot} and {other}"),
        },
    };
    Err(LayoutError::implausible("frame", field, reason))
}

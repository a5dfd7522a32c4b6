//! What slots of its frames the interpreter's own code uses, and the call stub's of its own. The architecture's folder
//! knows the instructions.

use super::arch::interpreter_slots as arch;
use crate::core::memory::Memory;
use crate::core::vm_layout::{CodeRange, Codelet};

/// No call stub is longer (HotSpot 11-25: less than 800 bytes).
const MAX_CALL_STUB_BYTES: u64 = 4096;

/// Slots in words from the frame pointer, as often as instructions were found that use them.
#[derive(Debug, Default)]
pub(in crate::jvm) struct UsedSlots {
    /// Where the stack pointer comes from that an exit goes back to.
    pub(in crate::jvm) sender_sp: Vec<i64>,
    /// What is cleared where a call has returned.
    pub(in crate::jvm) last_sp: Vec<i64>,
    /// What leads to a ConstMethod and on to its constant pool.
    pub(in crate::jvm) method: Vec<i64>,
    /// Where the register of the locals is restored from where a call has returned.
    pub(in crate::jvm) locals: Vec<i64>,
    /// The same of the bytecode pointer.
    pub(in crate::jvm) bcp: Vec<i64>,
}

/// The slots that the instructions of all `codelets` use. A method is known by what is loaded behind it: at the first of
/// these offsets a ConstMethod, and at the second of that its constant pool.
pub(in crate::jvm) fn of_interpreter(
    memory: &dyn Memory,
    codelets: &[Codelet],
    to_constant_pool: [u32; 2],
) -> UsedSlots {
    let mut used = UsedSlots::default();
    let mut bytes = Vec::new();
    for codelet in codelets {
        bytes.resize(codelet.code.end.saturating_sub(codelet.code.start) as usize, 0);
        if memory.read_bytes(codelet.code.start, &mut bytes) {
            arch::find(&bytes, to_constant_pool, &mut used);
        }
    }
    used
}

/// The slots of an entry frame in which the call stub at `code` saves its first argument, the JavaCallWrapper.
pub(in crate::jvm) fn of_call_wrapper(memory: &dyn Memory, code: CodeRange) -> Vec<i64> {
    let mut bytes = vec![0; code.end.saturating_sub(code.start).min(MAX_CALL_STUB_BYTES) as usize];
    match memory.read_bytes(code.start, &mut bytes) {
        true => arch::first_argument(&bytes),
        false => Vec::new(),
    }
}

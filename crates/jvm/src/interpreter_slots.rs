//! The frame slots that the interpreter's code and the call stub use. The architecture's folder decodes the
//! instructions.

use otlpprof_core::address::CodeRange;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::Codelet;

use super::arch::interpreter_slots as arch;
use super::used_slots::UsedSlots;

/// An upper bound of the call stub's length (HotSpot 11-25: less than 800 bytes).
const MAX_CALL_STUB_BYTES: u64 = 4096;

/// The slots that the instructions of all `codelets` use. A Method is recognised by the loads that follow:
/// `to_constant_pool` has the offset of the ConstMethod in a Method, then of the constant pool in a
/// ConstMethod.
pub(crate) fn of_interpreter(
    memory: &dyn Memory,
    codelets: &[Codelet],
    to_constant_pool: [u32; 2],
) -> UsedSlots {
    let mut used = UsedSlots::default();
    let mut bytes = Vec::new();
    for codelet in codelets {
        bytes.resize(codelet.code.end.saturating_sub(codelet.code.start) as usize, 0);
        if memory.read_bytes(codelet.code.start, &mut bytes) {
            arch::find_slots(&bytes, to_constant_pool, &mut used);
        }
    }
    used
}

/// The slots of an entry frame in which the call stub at `code` saves its first argument, the
/// JavaCallWrapper.
pub(crate) fn of_call_wrapper(memory: &dyn Memory, code: CodeRange) -> Vec<i64> {
    let mut bytes = vec![0; code.end.saturating_sub(code.start).min(MAX_CALL_STUB_BYTES) as usize];
    match memory.read_bytes(code.start, &mut bytes) {
        true => arch::first_argument(&bytes),
        false => Vec::new(),
    }
}

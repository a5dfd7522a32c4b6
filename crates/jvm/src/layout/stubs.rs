//! The VM's own generated code: interpreter, call stub, entry barrier, continuations.

use otlpprof_core::address::CodeRange;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::StubLayout;

use super::error::LayoutError;
use super::interpreter;
use crate::arch::continuation_entry;
use crate::interpreter_code;
use crate::stubs::StubTable;
use crate::vm_structs::VmStructs;

/// Names of stubs, newer names included. The names changed in 25 (`runtime/stubDeclarations.hpp`); until then
/// they differed between architectures (`cpu/*/stubGenerator_*.cpp`).
const METHOD_ENTRY_BARRIER: [&str; 2] = ["method_entry_barrier", "nmethod_entry_barrier"];
const CATCH_EXCEPTION: [&str; 1] = ["catch_exception"];
const FORWARD_EXCEPTION: [&str; 2] = ["forward exception", "forward_exception"];
pub(super) const CONT_THAW: [&str; 2] = ["cont_thaw", "Cont thaw"];
const CONT_RETURN_BARRIER: [&str; 3] =
    ["cont_returnBarrier", "Cont thaw return barrier", "cont return barrier"];
const CONT_RETURN_BARRIER_EXCEPTION: [&str; 3] =
    ["cont_returnBarrierExc", "Cont thaw return barrier exception", "cont return barrier exception handler"];
/// The stub exists from 24 on.
pub(super) const CONT_PREEMPT: [&str; 2] = ["cont_preempt", "Continuation preempt stub"];

/// The layout of the VM's generated code. The list of codelets is leaked: handlers read it for the rest of
/// the process's life.
pub(super) fn stubs(
    structs: &VmStructs,
    memory: &dyn Memory,
    table: &'static StubTable,
) -> Result<StubLayout, LayoutError> {
    let (range, named) = interpreter::codelets(structs, memory)?;
    let codelets = interpreter::classify(&named)?;
    let interpreter_code = interpreter_code::learn(memory, &codelets);
    let call_stub_return = structs.static_pointer(memory, "StubRoutines", "_call_stub_return_address")?;
    Ok(StubLayout {
        interpreter: range,
        call_stub_return,
        call_stub: table.range_at(call_stub_return).unwrap_or_default(),
        catch_exception: range_of(table, CATCH_EXCEPTION),
        forward_exception: range_of(table, FORWARD_EXCEPTION),
        codelets: codelets.leak(),
        interpreter_code,
        framed: Some(table.frames()),
        method_entry_barrier: range_of(table, METHOD_ENTRY_BARRIER),
        cont_thaw: range_of(table, CONT_THAW),
        cont_return_barrier: range_of(table, CONT_RETURN_BARRIER),
        cont_return_barrier_exception: range_of(table, CONT_RETURN_BARRIER_EXCEPTION),
    })
}

/// The range of the first stub with one of these names, or of the only stub with one of the names between
/// other words; 0..0 if there is none.
pub(super) fn range_of<const N: usize>(table: &StubTable, names: [&str; N]) -> CodeRange {
    let exact = names.iter().find_map(|name| table.range_of(name));
    exact.or_else(|| names.iter().find_map(|name| table.range_with(name))).unwrap_or_default()
}

/// The offset of `JavaThread::_cont_entry`, from the first instructions of cont_returnBarrier, which make the
/// entry frame the current one (`generate_cont_thaw` in `cpu/*/stubGenerator_*.cpp`, 21 and 25).
pub(super) fn cont_entry_offset(table: &StubTable, memory: &dyn Memory) -> Option<u32> {
    let barrier = range_of(table, CONT_RETURN_BARRIER);
    let mut code = [0; 8];
    (barrier.start != 0 && memory.read_bytes(barrier.start, &mut code)).then_some(())?;
    continuation_entry::offset_in(code)
}

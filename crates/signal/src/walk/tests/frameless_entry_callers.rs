//! Callers of an interpreter's entry without a frame, and C functions that such an entry has called.

use otlpprof_core::record::FrameKind::{self, Compiled, Interpreted, Native};

use super::described_code::{FUNCTION_BYTES, Function, NATIVE, load_functions, saved};
use super::vm_world::*;

/// The place where a compiled method calls.
pub(super) struct Caller {
    pub(super) pc: u64,
    pub(super) sp: u64,
    pub(super) fp: u64,
}

/// A compiled method that an interpreted one has called, and whose frame pointer it keeps. Returns the place
/// where it calls, the method itself, and its callers.
pub(super) fn called_by_compiled(world: &mut World) -> (Caller, u64, [(FrameKind, u64, i32); 2]) {
    let (root, root_pc) = compiled_caller(world);
    let (method, bytecodes) = world.method();
    let fp = CALLER_SP - 0x20;
    interpreted_frame(world, fp, method, bytecodes + 3, root_pc, (CALLER_SP, ENTRY_FP));
    let (caller, code) = world.compiled();
    let sp = fp - 0x80;
    world.set(sp + 0x20, fp).set(sp + 0x28, DISPATCH);
    (Caller { pc: code + 0x80, sp, fp }, caller, [(Interpreted, method, 3), (Compiled, root, 7)])
}

const FRAME_BYTES: u64 = 0x20;
const OUTER_PC: u64 = NATIVE + FUNCTION_BYTES + 0x10;

/// The descriptions of two functions, the outer of which has called the inner, with all combinations of
/// instructions about the register. The last element is the place of the register's value: 0 is the register,
/// 1 the inner frame, 2 the outer frame; `None` if the value is lost.
pub(super) fn each_way_to_keep(register: usize) -> [([u8; 2], [u8; 2], Option<usize>); 7] {
    let (saved_here, other, lost) = (saved(register as u8, 2), saved(3, 3), [0x07, register as u8]);
    // DW_CFA_nop.
    let plain = [0, 0];
    [
        (plain, plain, Some(0)),
        (other, other, Some(0)),
        (saved_here, plain, Some(1)),
        (saved_here, saved_here, Some(2)),
        (plain, saved_here, Some(2)),
        (plain, lost, None),
        (lost, saved_here, Some(2)),
    ]
}

/// Loads the two functions, the outer of which was called with `sp` and returns to `return_pc`, and stores
/// the register's value in its place. Returns SP in the inner function, and the content of the register.
pub(super) fn call_functions(
    world: &mut World,
    (inner, outer, place): ([u8; 2], [u8; 2], Option<usize>),
    (sp, return_pc): (u64, u64),
    value: u64,
) -> (u64, u64) {
    let function = |program| Function { frame_bytes: FRAME_BYTES as u8, program };
    load_functions(world, &[function(&inner), function(&outer)]);
    let outer_sp = sp - FRAME_BYTES;
    let inner_sp = outer_sp - FRAME_BYTES;
    let at = |number| if place == Some(number) { value } else { 0x4242 };
    world.set(outer_sp + 0x18, return_pc).set(outer_sp + 0x10, at(2));
    world.set(inner_sp + 0x18, OUTER_PC).set(inner_sp + 0x10, at(1));
    (inner_sp, at(0))
}

/// The interrupted instruction in the inner function, and the frames of both functions.
pub(super) const INNER_PC: u64 = NATIVE + 4;
pub(super) const NATIVE_FRAMES: [(FrameKind, u64, i32); 2] =
    [(Native, INNER_PC, 5), (Native, OUTER_PC - 1, 5)];

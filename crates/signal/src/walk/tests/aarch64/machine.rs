//! The little VM's code on aarch64, and the indices of registers.

use libc::{mcontext_t, siginfo_t, ucontext_t};

use crate::walk::tests::barrier_stubs::{BarrierStub, C1BarrierStub};
use crate::walk::tests::leaving::ContinuationExit;
use crate::walk::tests::vm_world::{BARRIER_CONTINUATION, BARRIER_SAVES, CALL_STUB_RETURN, STUBS};

/// Indices of registers.
pub(in crate::walk::tests) const SP: usize = 31;
pub(in crate::walk::tests) const FP: usize = 29;
pub(in crate::walk::tests) const LR: usize = 30;
pub(in crate::walk::tests) const SENDER_SP_REGISTER: u8 = 19;
/// The first argument of a static Java method.
pub(in crate::walk::tests) const JAVA_ARGUMENT: usize = 1;
pub(in crate::walk::tests) const CALL_WRAPPER: i32 = -8;

/// The bytes that a call pushes, and the registers that it sets if the call stub makes it.
pub(in crate::walk::tests) const PUSHED_BY_CALL: u64 = 0;
pub(in crate::walk::tests) const CALLED_BY_CALL_STUB: &[(usize, u64)] = &[(LR, CALL_STUB_RETURN)];

const MCONTEXT: u64 = (size_of::<siginfo_t>() + std::mem::offset_of!(ucontext_t, uc_mcontext)) as u64;
/// Offsets from a signal frame's start.
pub(in crate::walk::tests) const SIGNAL_FRAME_PC: u64 =
    MCONTEXT + std::mem::offset_of!(mcontext_t, pc) as u64;
pub(in crate::walk::tests) const SIGNAL_FRAME_SP: u64 =
    MCONTEXT + std::mem::offset_of!(mcontext_t, sp) as u64;
pub(in crate::walk::tests) const SIGNAL_FRAME_FP: u64 =
    MCONTEXT + std::mem::offset_of!(mcontext_t, regs) as u64 + 8 * FP as u64;

/// The signal trampoline: `mov x8, 139; svc 0`.
pub(in crate::walk::tests) const SIGNAL_TRAMPOLINE: &[u8] = &[0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];

pub(in crate::walk::tests) const FRAME_COMPLETE: i32 = 8;
pub(in crate::walk::tests) const NOP: u32 = 0xd503_201f;
pub(in crate::walk::tests) const BL: u32 = 0x9400_0000;
pub(in crate::walk::tests) const RET: u32 = 0xd65f_03c0;

/// The bytes of instructions in memory.
pub(in crate::walk::tests) fn bytes(code: &[u32]) -> Vec<u8> {
    code.iter().flat_map(|code| code.to_le_bytes()).collect()
}

/// Code of a method: `sub sp, sp, 0x30; stp x29, x30, [sp, 0x20]; …`, a call whose return address is at 0x80,
/// and the exit at 0x100: `ldp x29, x30, [sp, 0x20]; add sp, sp, 0x30; ldr x8, [x28, 0x448]; cmp sp, x8;
/// b.hi; ret`.
pub(in crate::walk::tests) fn compiled_code() -> Vec<u8> {
    let mut code = vec![NOP; 0x80];
    code[..2].copy_from_slice(&[0xd100_c3ff, 0xa902_7bfd]);
    code[0x7c / 4] = BL;
    let exit = [0xa942_7bfd, 0x9100_c3ff, 0xf942_2788, 0xeb28_63ff, 0x5400_0048, RET];
    code[0x100 / 4..][..exit.len()].copy_from_slice(&exit);
    bytes(&code)
}

/// `stp x0, x1, [sp, -n]!; stp x2, x3, [sp, 16]; bl slow_path; ldp x2, x3, [sp, 16]; ldp x0, x1, [sp], n;
/// b continuation`, followed by `ldp x0, x1, [sp], n; b`. And the first of two barriers in one stub, where
/// `ldrb w8, [x28, 61]; cbz x8, continuation` is in place of the jump, followed by the second one's `stp`.
pub(in crate::walk::tests) fn barrier_stubs() -> Vec<BarrierStub> {
    const B: u32 = 0x1400_0000;
    const CBZ_X8: u32 = 0xb400_0008;
    let words = BARRIER_SAVES as u32 / 8;
    let push = 0xa980_07e0 | (words.wrapping_neg() & 0x7f) << 15;
    let pop = 0xa8c0_07e0 | words << 15;
    let saving = [push, 0xa901_0fe2, 0x9400_0000, 0xa941_0fe2, pop];
    let is_saved = [false, true, true, true, true, false];
    let stub = |exits: [&[u32]; 2]| {
        let mut code = bytes(&saving);
        let mut jumps = vec![];
        for exit in exits {
            code.extend(bytes(exit));
            let at = code.len() - 4;
            move_jump(&mut code[at..], BARRIER_CONTINUATION as i32 - (STUBS + at) as i32);
            jumps.push(at);
        }
        let stages = is_saved.iter().enumerate().map(|(number, &is_saved)| (number * 4, is_saved)).collect();
        BarrierStub { code, stages, return_to: 12, jumps }
    };
    vec![stub([&[B], &[pop, B]]), stub([&[0x3940_f788, CBZ_X8], &[push, pop, B]])]
}

/// `sub sp, sp, 32; str x0, [sp, 16]; str x1, [sp, 8]; str x2, [sp]; bl slow_path; mov x2, x0;
/// ldr x0, [sp, 16]; add sp, sp, 32; b continuation`, and with 16 bytes where x0 is not live.
pub(in crate::walk::tests) fn c1_barrier_stubs() -> [C1BarrierStub; 2] {
    let stub = |instructions: &[u32], room: u64| {
        let jump = 4 * instructions.len();
        let distance = (BARRIER_CONTINUATION as i32 - (STUBS + jump) as i32) as u32 >> 2 & 0x03ff_ffff;
        let code = [instructions, &[0x1400_0000 | distance]].concat();
        let stages = (0..code.len()).map(|at| (4 * at, if at == 0 || 4 * at == jump { 0 } else { room }));
        C1BarrierStub { stages: stages.collect(), code: bytes(&code), jump }
    };
    let [store_address, store_reference, moved] = [0xf900_07e1, 0xf900_03e2, 0xaa00_03e2];
    let (sub, store, load, add) = (0xd100_83ff, 0xf900_0be0, 0xf940_0be0, 0x9100_83ff);
    let saving = [sub, store, store_address, store_reference, BL, moved, load, add];
    let short = [0xd100_43ff, store_address, store_reference, BL, moved, 0x9100_43ff];
    [stub(&saving, 32), stub(&short, 16)]
}

/// `ldr x8, [x28, 72]; mov sp, x8; nop; add x29, sp, 64; mov sp, x29; ldp x29, x30, [sp], 16; ret; nop`
pub(in crate::walk::tests) const CONTINUATION_EXIT: ContinuationExit = ContinuationExit {
    code: &[
        0x88, 0x27, 0x40, 0xf9, 0x1f, 0x01, 0x00, 0x91, 0x1f, 0x20, 0x03, 0xd5, 0xfd, 0x03, 0x01, 0x91, 0xbf,
        0x03, 0x00, 0x91, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6, 0x1f, 0x20, 0x03, 0xd5,
    ],
    after_taking: 8,
    at_pop: 20,
    at_return: 24,
    sp_at_return: 80,
    return_address: Some(LR),
};

/// Moves the target of the jump at the beginning of `code`, `b` or `cbz`, by `bytes`.
pub(in crate::walk::tests) fn move_jump(code: &mut [u8], bytes: i32) {
    let jump: &mut [u8; 4] = code.first_chunk_mut().unwrap();
    let instruction = u32::from_le_bytes(*jump);
    let mask = if instruction & 0x7f00_0000 == 0x3400_0000 { 0x00ff_ffe0 } else { 0x03ff_ffff };
    let unit = 1 << u32::trailing_zeros(mask);
    let words = instruction.wrapping_add((bytes / 4).wrapping_mul(unit) as u32) & mask;
    *jump = (instruction & !mask | words).to_le_bytes();
}

/// `bl`, and an instruction that is not a call.
pub(in crate::walk::tests) const CALL: &[u8] = &0x9400_0040_u32.to_le_bytes();
pub(in crate::walk::tests) const NO_CALL: &[u8] = &0xd503_201f_u32.to_le_bytes();

/// A coloured pointer of ZGC with one of the four remappings.
pub(in crate::walk::tests) fn coloured(address: u64, remapping: u32) -> u64 {
    address << 16 | (0xf000 ^ 0x1000 << remapping)
}

/// The bits that pointers with this remapping do not have.
pub(in crate::walk::tests) fn bad_mask(remapping: u32) -> u64 {
    0x1000 << remapping
}

//! The little VM's code on x86_64, and the indices of registers.

use libc::ucontext_t;

use crate::walk::tests::barrier_stubs::{BarrierStub, C1BarrierStub};
use crate::walk::tests::leaving::ContinuationExit;
use crate::walk::tests::vm_world::{BARRIER_CONTINUATION, BARRIER_SAVES, STUBS};

/// Indices of registers.
pub(in crate::walk::tests) const SP: usize = 7;
pub(in crate::walk::tests) const FP: usize = 6;
pub(in crate::walk::tests) const SENDER_SP_REGISTER: u8 = 13;
/// The first argument of a static Java method.
pub(in crate::walk::tests) const JAVA_ARGUMENT: usize = 4;
pub(in crate::walk::tests) const CALL_WRAPPER: i32 = -6;

/// The bytes that a call pushes, and the registers that it sets if the call stub makes it.
pub(in crate::walk::tests) const PUSHED_BY_CALL: u64 = 8;
pub(in crate::walk::tests) const CALLED_BY_CALL_STUB: &[(usize, u64)] = &[];

const GREGS: u64 = std::mem::offset_of!(ucontext_t, uc_mcontext) as u64;
/// Offsets from a signal frame's start.
pub(in crate::walk::tests) const SIGNAL_FRAME_PC: u64 = GREGS + 8 * libc::REG_RIP as u64;
pub(in crate::walk::tests) const SIGNAL_FRAME_SP: u64 = GREGS + 8 * libc::REG_RSP as u64;
pub(in crate::walk::tests) const SIGNAL_FRAME_FP: u64 = GREGS + 8 * libc::REG_RBP as u64;

/// The signal trampoline: `mov $15, %rax; syscall`.
pub(in crate::walk::tests) const SIGNAL_TRAMPOLINE: &[u8] = &[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05];

pub(in crate::walk::tests) const FRAME_COMPLETE: i32 = 5;

/// Code of a method: `push rbp; sub rsp, 0x20; …`, a call whose return address is at 0x80, and the exit at
/// 0x100: `add rsp, 0x20; pop rbp; cmp rsp, [r15 + 0x448]; ja; ret`.
pub(in crate::walk::tests) fn compiled_code() -> Vec<u8> {
    let mut code = vec![0x55, 0x48, 0x83, 0xec, 0x20];
    code.resize(0x200, 0x90);
    code[0x7b] = 0xe8;
    code[0x100..0x115].copy_from_slice(&[
        0x48, 0x83, 0xc4, 0x20, 0x5d, 0x49, 0x3b, 0xa7, 0x48, 0x04, 0, 0, 0x0f, 0x87, 0, 1, 0, 0, 0xc3, 0x90,
        0x90,
    ]);
    code
}

/// `sub rsp, n; mov [rsp], rax; call slow_path; mov rax, [rsp]; add rsp, n; jmp continuation`, with both
/// sizes of immediates, followed by `add rsp, 8; jmp`. And the first of two barriers in one stub, where
/// `cmpb [r15 + 61], 0; je continuation` is in place of the jump, followed by the second one's `sub`.
pub(in crate::walk::tests) fn barrier_stubs() -> Vec<BarrierStub> {
    let size = BARRIER_SAVES as u8;
    let short = (vec![0x48, 0x83, 0xec, size], vec![0x48, 0x83, 0xc4, size]);
    let long = (vec![0x48, 0x81, 0xec, size, 0, 0, 0], vec![0x48, 0x81, 0xc4, size, 0, 0, 0]);
    let jump: &[u8] = &[0xe9];
    let test = &[0x41, 0x80, 0x7f, 61, 0, 0x0f, 0x84][..];
    let next: &[u8] = &[0x48, 0x83, 0xc4, 8, 0xe9];
    let next_barrier = &[&short.0[..], next].concat()[..];
    let stub = |(sub, add): &(Vec<u8>, Vec<u8>), exits: [&[u8]; 2]| {
        let parts: [(&[u8], bool); 5] = [
            (sub, false),
            (&[0x48, 0x89, 0x04, 0x24], true),
            (&[0xe8, 0, 0, 0, 0], true),
            (&[0x48, 0x8b, 0x04, 0x24], true),
            (add, true),
        ];
        let (mut code, mut stages) = (vec![], vec![]);
        for (instruction, is_saved) in parts {
            stages.push((code.len(), is_saved));
            code.extend(instruction);
        }
        stages.push((code.len(), false));
        let return_to = stages[3].0;
        let mut jumps = vec![];
        for instruction in exits {
            code.extend(instruction);
            jumps.push(code.len());
            let distance = BARRIER_CONTINUATION as i32 - (STUBS + code.len() + 4) as i32;
            code.extend(distance.to_le_bytes());
        }
        BarrierStub { code, stages, return_to, jumps }
    };
    vec![stub(&short, [jump, next]), stub(&long, [jump, next]), stub(&short, [test, next_barrier])]
}

/// `push rax; sub rsp, 16; mov [rsp + 8], rsi; mov [rsp], rcx; call slow_path; add rsp, 16; mov rcx, rax;
/// pop rax; jmp continuation`, and the same where rax is not live.
pub(in crate::walk::tests) fn c1_barrier_stubs() -> [C1BarrierStub; 2] {
    let stub = |parts: &[(&[u8], u64)]| {
        let (mut code, mut stages) = (vec![], vec![]);
        for &(instruction, bytes) in parts {
            stages.push((code.len(), bytes));
            code.extend(instruction);
        }
        stages.push((code.len(), 0));
        code.push(0xe9);
        let jump = code.len();
        code.extend((BARRIER_CONTINUATION as i32 - (STUBS + jump + 4) as i32).to_le_bytes());
        C1BarrierStub { code, stages, jump }
    };
    let call = |saved: u64| -> [(&[u8], u64); 4] {
        let room = saved + 16;
        [
            (&[0x48, 0x83, 0xec, 0x10], saved),
            (&[0x48, 0x89, 0x74, 0x24, 0x08], room),
            (&[0x48, 0x89, 0x0c, 0x24], room),
            (&[0xe8, 0, 0, 0, 0], room),
        ]
    };
    let add: &[u8] = &[0x48, 0x83, 0xc4, 0x10];
    let saving: Vec<_> = [(&[0x50][..], 0)].into_iter().chain(call(8)).collect();
    let saving = [&saving[..], &[(add, 24), (&[0x48, 0x8b, 0xc8], 8), (&[0x58], 8)]].concat();
    [stub(&saving), stub(&[&call(0)[..], &[(add, 16)]].concat())]
}

/// `mov rsp, [r15 + 72]; nop; add rsp, 64; pop rbp; ret; nop…`
pub(in crate::walk::tests) const CONTINUATION_EXIT: ContinuationExit = ContinuationExit {
    code: &[0x49, 0x8b, 0xa7, 72, 0, 0, 0, 0x90, 0x48, 0x83, 0xc4, 64, 0x5d, 0xc3, 0x90, 0x90],
    after_taking: 7,
    at_pop: 12,
    at_return: 13,
    sp_at_return: 72,
    return_address: None,
};

/// Moves the target of the jump whose distance is at the beginning of `code` by `bytes`.
pub(in crate::walk::tests) fn move_jump(code: &mut [u8], bytes: i32) {
    let distance: &mut [u8; 4] = code.first_chunk_mut().unwrap();
    *distance = (i32::from_le_bytes(*distance) + bytes).to_le_bytes();
}

/// `call rel32`, and instructions that are not calls.
pub(in crate::walk::tests) const CALL: &[u8] = &[0xe8, 0, 1, 0, 0];
pub(in crate::walk::tests) const NO_CALL: &[u8] = &[0x90; 5];

/// A coloured pointer of ZGC with one of the four remappings.
pub(in crate::walk::tests) fn coloured(address: u64, remapping: u32) -> u64 {
    address << (13 + remapping) | 0x1000 << remapping
}

/// The bits that pointers with this remapping do not have.
pub(in crate::walk::tests) fn bad_mask(remapping: u32) -> u64 {
    0xf000 ^ 0x1000 << remapping
}

/// A collector's barrier in code without a frame: push rax; push rcx; sub rsp, 0x20; movsd [rsp], xmm0;
/// test spl, 15; jz; sub rsp, 8; call; add rsp, 8; jmp; call; movsd xmm0, [rsp]; add rsp, 0x20;
/// pop rcx; pop rax.
pub(in crate::walk::tests) const BARRIER: [&[u8]; 15] = [
    &[0x50],
    &[0x51],
    &[0x48, 0x83, 0xec, 0x20],
    &[0xf2, 0x0f, 0x11, 0x04, 0x24],
    &[0x40, 0xf6, 0xc4, 0x0f],
    &[0x0f, 0x84, 0x12, 0, 0, 0],
    &[0x48, 0x83, 0xec, 0x08],
    &[0xe8, 0, 0, 0, 0x10],
    &[0x48, 0x83, 0xc4, 0x08],
    &[0xe9, 5, 0, 0, 0],
    &[0xe8, 0, 0, 0, 0x10],
    &[0xf2, 0x0f, 0x10, 0x04, 0x24],
    &[0x48, 0x83, 0xc4, 0x20],
    &[0x59],
    &[0x58],
];
/// The offset after the second call.
pub(in crate::walk::tests) const BARRIER_RETURNED: u64 = 44;

/// The offset of each instruction of the barrier, and the bytes that the barrier has on the stack there.
pub(in crate::walk::tests) fn barrier_stages() -> Vec<(u64, u64)> {
    let saved = [0, 8, 16, 0x30, 0x30, 0x30, 0x30, 0x38, 0x38, 0x30, 0x30, 0x30, 0x30, 16, 8];
    let lengths = BARRIER.map(|code| code.len() as u64);
    let start = |number: usize| lengths[..number].iter().sum();
    saved.into_iter().enumerate().map(|(number, saved)| (start(number), saved)).collect()
}

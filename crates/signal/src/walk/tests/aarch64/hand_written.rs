//! Hand-written code without call frame information, on aarch64, interrupted at each of its instructions.

use otlpprof_core::object::ObjectMap;
use otlpprof_core::record::FrameKind::{self, Native, Unwalkable};
use otlpprof_core::unwind_rule::{CfaRule, FpRule};

use super::machine::{BL, LR, NOP, RET, bytes};
use crate::walk::tests::native::{BASE, object_with_gap, rule};
use crate::walk::tests::vm_world::*;

/// The code that no rule covers, after the code of the functions that have called it.
const CODE_START: u64 = BASE + GAP;
const GAP: u64 = 0x300;
/// Return addresses into the code's caller, to whose frame x29 points, and into the thread's entry.
const CALLER_PC: u64 = BASE + 0x80;
const ROOT_PC: u64 = BASE + 0x180;
/// A return address into a function that cannot be walked.
const LOST_PC: u64 = BASE + 0x280;

/// The stack pointer at the caller's call, and its frame pointer.
const CALLER_STACK: u64 = STACK + 0x2000;
const CALLER_FP: u64 = CALLER_STACK + 0x100;
const OTHER: u64 = 0x4242;

/// A world with the code's callers; `code` is at `CODE_START`.
fn world(code: &[u32]) -> World {
    let mut world = World::new();
    world.java_thread = 0;
    let rules = [
        rule(CfaRule::FpPlus(16), FpRule::AtCfaPlus(-16)),
        rule(CfaRule::EndOfStack, FpRule::Same),
        rule(CfaRule::Unsupported, FpRule::Same),
    ];
    world.objects = object_with_gap(&rules, 42);
    let mut text = bytes(&[0; 0x400]);
    for pc in [CALLER_PC, ROOT_PC, LOST_PC] {
        text[(pc - BASE - 4) as usize..][..4].copy_from_slice(&BL.to_le_bytes());
    }
    let code = bytes(code);
    text[GAP as usize..][..code.len()].copy_from_slice(&code);
    world.memory.put_u64(0x100, 42).put(BASE, text);
    world.set(CALLER_FP, OTHER).set(CALLER_FP + 8, ROOT_PC);
    world
}

fn named(frames: Vec<(FrameKind, u64, i32)>) -> Vec<(FrameKind, u64)> {
    frames.into_iter().map(|(kind, value, _)| (kind, value)).collect()
}

/// The frames of a walk that has found the caller.
fn whole(offset: u64) -> Vec<(FrameKind, u64)> {
    vec![(Native, CODE_START + offset), (Native, CALLER_PC - 1), (Native, ROOT_PC - 1)]
}

/// An instruction, the bytes that the code has on the stack before it, and the bytes from the caller's stack
/// pointer down to the saved x29 and x30; `None` if these are in the registers.
type Stage = (u32, u64, Option<u64>);

fn assert_each_stage_leads_to_the_caller(stages: &[Stage]) {
    let code: Vec<u32> = stages.iter().map(|stage| stage.0).collect();
    for (index, &(_, pushed, saved)) in stages.iter().enumerate() {
        let mut world = world(&code);
        let mut more = vec![(LR, OTHER)];
        let fp = match saved {
            Some(below) => {
                world.set(CALLER_STACK - below, CALLER_FP).set(CALLER_STACK - below + 8, CALLER_PC);
                OTHER
            }
            None => {
                more = vec![(LR, CALLER_PC)];
                CALLER_FP
            }
        };
        let offset = index as u64 * 4;
        let frames = world.walk(CODE_START + offset, CALLER_STACK - pushed, fp, &more);
        assert_eq!(named(frames), whole(offset), "at {offset:#x}");
    }
}

#[test]
fn room_and_pushes_are_undone_on_the_way_to_the_return() {
    assert_each_stage_leads_to_the_caller(&[
        (0xd101_43ff, 0, None),      // sub sp, sp, #80
        (0xa904_7bfd, 80, None),     // stp x29, x30, [sp, #64]
        (0xf900_1bf3, 80, Some(16)), // str x19, [sp, #48]
        (0xaa1f_03fd, 80, Some(16)), // mov x29, xzr
        (0xf100_0400, 80, Some(16)), // subs x0, x0, #1
        (0x5400_0080, 80, Some(16)), // b.eq, out of the loop
        (0x54ff_ffc1, 80, Some(16)), // b.ne, back to the subs
        (0x17ff_fffd, 80, Some(16)), // b, back to the subs
        (NOP, 80, Some(16)),
        (0xf940_1bf3, 80, Some(16)), // ldr x19, [sp, #48]
        (0xa944_7bfd, 80, Some(16)), // ldp x29, x30, [sp, #64]
        (0x9101_43ff, 80, None),     // add sp, sp, #80
        (RET, 0, None),
    ]);
}

#[test]
fn a_pushed_record_and_vectors_are_popped_on_the_way_to_the_return() {
    assert_each_stage_leads_to_the_caller(&[
        (0xa9be_7bfd, 0, None),      // stp x29, x30, [sp, #-32]!
        (0x6dbf_27e8, 32, Some(32)), // stp d8, d9, [sp, #-16]!
        (0xf81f_0ff3, 48, Some(32)), // str x19, [sp, #-16]!
        (NOP, 64, Some(32)),
        (0xf841_07f3, 64, Some(32)), // ldr x19, [sp], #16
        (0x6cc1_27e8, 48, Some(32)), // ldp d8, d9, [sp], #16
        (0xa8c2_7bfd, 32, Some(32)), // ldp x29, x30, [sp], #32
        (RET, 0, None),
    ]);
}

#[test]
fn a_function_without_a_frame_returns_to_the_address_in_x30() {
    assert_each_stage_leads_to_the_caller(&[(NOP, 0, None), (RET, 0, None)]);
}

/// `b` to described code: the callee returns to the caller.
#[test]
fn a_jump_to_described_code_is_a_call_in_the_last_place() {
    assert_each_stage_leads_to_the_caller(&[(NOP, 0, None), (0x17ff_ff3f, 0, None)]);
}

/// Regression: libjvm's copying loops end in a jump into a table of code, which was not followed
/// (os_cpu/linux_aarch64/copy_linux_aarch64.S, JDK 17-27). Their callers were passed over by the frame
/// pointer, and the rest of the stack was lost.
#[test]
fn a_jump_into_a_table_of_code_is_followed() {
    assert_each_stage_leads_to_the_caller(&[
        (0xf100_2042, 0, None), // subs x2, x2, #8
        (0x54ff_ffe2, 0, None), // b.hs, back to the subs
        (0x1000_00a3, 0, None), // adr x3, the end of the table
        (0x8b02_1463, 0, None), // add x3, x3, x2, lsl #5
        (0xd61f_0060, 0, None), // br x3
        (NOP, 0, None),
        (RET, 0, None),
        (NOP, 0, None),
        (RET, 0, None),
    ]);
}

#[test]
fn an_aligned_frame_is_left_by_the_register_that_keeps_the_stack_pointer() {
    const X19: usize = 19;
    // mov x19, sp; sub x9, x19, #1024; and sp, x9, #-256; nop; mov sp, x19; ret
    let code = [0x9100_03f3, 0xd110_0269, 0x9278_dd3f, NOP, 0x9100_027f, RET];
    for (index, sp) in
        [(0, CALLER_STACK), (3, CALLER_STACK - 0x400), (4, CALLER_STACK - 0x400), (5, CALLER_STACK)]
    {
        let mut world = world(&code);
        let offset = index * 4;
        let frames = world.walk(CODE_START + offset, sp, CALLER_FP, &[(LR, CALLER_PC), (X19, CALLER_STACK)]);
        // The path from the first instruction on aligns SP, which is not followed.
        if index != 0 {
            assert_eq!(named(frames), whole(offset), "at {offset}");
        }
    }
}

#[test]
fn a_way_out_is_not_believed_if_nothing_leads_on_from_there() {
    for (return_pc, label) in [
        (LOST_PC, "a frame that cannot be walked"),
        (BASE + 0x10, "no call is before it"),
        (CODE_START + 8, "the code itself, which has called"),
        (OTHER, "no code"),
    ] {
        let mut world = world(&[NOP, BL, RET]);
        let frames = named(world.walk(CODE_START, CALLER_STACK, OTHER, &[(LR, return_pc)]));
        assert_eq!(frames, [(Native, CODE_START), (Unwalkable, CODE_START)], "{label}");
    }
}

/// The work is bounded for code without an end, a jump to a register, and a trap.
#[test]
fn code_that_never_returns_is_given_up() {
    for instruction in [0x1400_0000, 0xd61f_0120, 0xd420_0000] {
        let mut world = world(&[instruction]);
        let frames = named(world.walk(CODE_START, CALLER_STACK, OTHER, &[(LR, CALLER_PC)]));
        assert_eq!(frames, [(Native, CODE_START), (Unwalkable, CODE_START)], "{instruction:x}");
    }
}

/// Regression: in a library that was being loaded, a walk followed tens of thousands of instructions.
#[test]
fn code_of_no_known_object_is_followed_for_few_instructions() {
    let mut world = world(&[NOP; 0x200]);
    world.objects = ObjectMap::default();
    let (reads, _) = world.reads_of_walk(CODE_START, CALLER_STACK, OTHER);
    assert!(reads < 512, "{reads}");
}

/// Regression: where musl is compiled with stack protectors, a walk went on after the call of
/// `__stack_chk_fail`, in the next function, and was lost.
#[test]
fn code_after_a_call_that_never_returns_is_not_followed() {
    // mov x0, 0; strb wzr, [x0]; brk 1000; with and without bti c before it
    let trap = [0xd280_0000, 0x3900_001f, 0xd420_7d00];
    let protected = [&[0xd503_245f][..], &trap].concat();
    for trap in [&trap[..], &protected] {
        // stp x29, x30, [sp, -32]!; b.ne, to the call; ldp x29, x30, [sp], 32; ret; bl trap; then the next
        // function: ldp x29, x30, [sp], 16; ret
        let function = [0xa9be_7bfd, 0x5400_0061, 0xa8c2_7bfd, RET, BL | 3, 0xa8c1_7bfd, RET];
        let mut world = world(&[&function[..], trap].concat());
        world.set(CALLER_STACK - 32, CALLER_FP).set(CALLER_STACK - 24, CALLER_PC);
        let frames = world.walk(CODE_START + 4, CALLER_STACK - 32, OTHER, &[(LR, OTHER)]);
        assert_eq!(named(frames), whole(4), "{trap:x?}");
    }
}

//! Hand-written code without call frame information, on x86_64, interrupted at each of its instructions.

use otlpprof_core::object::ObjectMap;
use otlpprof_core::record::FrameKind::{self, Native, Unwalkable};
use otlpprof_core::unwind_rule::{CfaRule, FpRule};

use crate::walk::WalkError;
use crate::walk::stack_walk::MAX_FOLLOWED_INSTRUCTIONS;
use crate::walk::tests::native::{BASE, object_with_gap, rule};
use crate::walk::tests::vm_world::*;

/// The code that no rule covers, after the code of the functions that have called it.
const CODE_START: u64 = BASE + GAP;
const GAP: u64 = 0x300;
/// Return addresses into the code's caller, whose frame has a frame pointer, and into the thread's entry.
const CALLER_PC: u64 = BASE + 0x80;
const ROOT_PC: u64 = BASE + 0x180;
/// A return address after a direct call of the code, and one into a function that cannot be walked.
const DIRECT_CALLER_PC: u64 = BASE + 0xc0;
const LOST_PC: u64 = BASE + 0x280;

/// The stack pointer before the caller's call, and its frame pointer.
const CALLER_STACK: u64 = STACK + 0x2000;
const CALLER_FP: u64 = CALLER_STACK + 0x100;
const OTHER: u64 = 0x4242;

/// A world with the code's callers; `code` is at `CODE_START`.
fn world(code: &[u8]) -> World {
    let mut world = World::new();
    world.java_thread = 0;
    let rules = [
        rule(CfaRule::FpPlus(16), FpRule::AtCfaPlus(-16)),
        rule(CfaRule::EndOfStack, FpRule::Same),
        rule(CfaRule::Unsupported, FpRule::Same),
    ];
    world.objects = object_with_gap(&rules, 42);
    let mut text = vec![0xcc; 0x1000];
    // call rax; call rel32
    for pc in [CALLER_PC, ROOT_PC, LOST_PC] {
        text[(pc - BASE - 2) as usize..][..2].copy_from_slice(&[0xff, 0xd0]);
    }
    let distance = (CODE_START - DIRECT_CALLER_PC) as u32;
    text[(DIRECT_CALLER_PC - BASE - 5) as usize..][..5]
        .copy_from_slice(&[&[0xe8][..], &distance.to_le_bytes()].concat());
    text[GAP as usize..][..code.len()].copy_from_slice(code);
    world.memory.put_u64(0x100, 42).put(BASE, text);
    world.set(CALLER_STACK - 8, CALLER_PC);
    world.set(CALLER_FP, OTHER).set(CALLER_FP + 8, ROOT_PC);
    world
}

fn named(frames: Vec<(FrameKind, u64, i32)>) -> Vec<(FrameKind, u64)> {
    frames.into_iter().map(|(kind, value, _)| (kind, value)).collect()
}

/// The frames of a walk that has found the caller `caller`.
fn whole(offset: u64, caller: u64) -> Vec<(FrameKind, u64)> {
    vec![(Native, CODE_START + offset), (Native, caller - 1), (Native, ROOT_PC - 1)]
}

/// Regression: zstd's Huffman decoder pushes all registers, leaves its loop in the middle, and uses RBP.
#[test]
fn pushes_and_room_are_undone_on_the_way_to_the_return() {
    // Each instruction, the bytes on the stack before it, and whether RBP is saved by then, in the third
    // word.
    let instructions: [(&[u8], u64, bool); 19] = [
        (&[0x50], 0, false),                         // push rax
        (&[0x41, 0x54], 8, false),                   // push r12
        (&[0x55], 16, false),                        // push rbp
        (&[0xff, 0x70, 0x68], 24, true),             // push [rax + 0x68]
        (&[0x48, 0x83, 0xec, 0x18], 32, true),       // sub rsp, 0x18
        (&[0x48, 0x89, 0x1c, 0x24], 56, true),       // mov [rsp], rbx
        (&[0x48, 0x39, 0xc1], 56, true),             // cmp rcx, rax
        (&[0x74, 0x0d], 56, true),                   // je, out of the loop
        (&[0xc4, 0x62, 0x83, 0xf7, 0xfd], 56, true), // shrx r15, rbp, r15
        (&[0x48, 0xff, 0xcd], 56, true),             // dec rbp
        (&[0x75, 0xf4], 56, true),                   // jne, back to the je
        (&[0xeb, 0xef], 56, true),                   // jmp, back to the cmp
        (&[0x90], 56, true),                         // nop
        (&[0x48, 0x83, 0xc4, 0x18], 56, true),       // add rsp, 0x18
        (&[0x8f, 0x40, 0x68], 32, true),             // pop [rax + 0x68]
        (&[0x5d], 24, true),                         // pop rbp
        (&[0x41, 0x5c], 16, false),                  // pop r12
        (&[0x58], 8, false),                         // pop rax
        (&[0xc3], 0, false),                         // ret
    ];
    let code: Vec<u8> = instructions.iter().flat_map(|(bytes, ..)| bytes.iter().copied()).collect();
    let mut offset = 0;
    for (bytes, pushed, is_saved) in instructions {
        let mut world = world(&code);
        world.set(CALLER_STACK - 32, CALLER_FP);
        // A return address of an earlier call, in room to which the code has not written yet.
        world.set(CALLER_STACK - 56, CALLER_PC);
        let fp = if is_saved { OTHER } else { CALLER_FP };
        let frames = world.walk(CODE_START + offset, CALLER_STACK - 8 - pushed, fp, &[]);
        assert_eq!(named(frames), whole(offset, CALLER_PC), "at {offset:#x}");
        offset += bytes.len() as u64;
    }
}

/// OpenBLAS's kernels for triangular matrices have such a frame.
#[test]
fn an_aligned_frame_is_left_by_the_register_that_keeps_the_stack_pointer() {
    const RBX: usize = 3;
    let instructions: [(&[u8], bool); 7] = [
        (&[0x48, 0x89, 0xe3], false),             // mov rbx, rsp
        (&[0x48, 0x81, 0xec, 0, 4, 0, 0], false), // sub rsp, 0x400
        (&[0x48, 0x83, 0xe4, 0xc0], false),       // and rsp, -64
        (&[0xc5, 0xf9, 0x70, 0xc0, 0x4e], true),  // vpshufd xmm0, xmm0, 0x4e
        (&[0x48, 0x89, 0xdc], true),              // mov rsp, rbx
        (&[0x66, 0x66, 0x90], false),             // nop
        (&[0xc3], false),                         // ret
    ];
    let code: Vec<u8> = instructions.iter().flat_map(|(bytes, _)| bytes.iter().copied()).collect();
    let mut offset = 0;
    for (index, (bytes, is_aligned)) in instructions.into_iter().enumerate() {
        let mut world = world(&code);
        let sp = CALLER_STACK - 8;
        let (at, kept) = match index {
            2 => (sp - 0x400, sp),
            _ if is_aligned => ((sp - 0x400) & !63, sp),
            0 => (sp, OTHER),
            _ => (sp, sp),
        };
        let frames = world.walk(CODE_START + offset, at, CALLER_FP, &[(RBX, kept)]);
        assert_eq!(named(frames), whole(offset, CALLER_PC), "at {offset:#x}");
        offset += bytes.len() as u64;
    }
}

/// Code that does not lead to a return: `nop; pop rcx; jmp rcx`.
const WITHOUT_RETURN: [u8; 4] = [0x90, 0x59, 0xff, 0xe1];

/// Walks from the middle of a frame of eight words, in code that cannot be followed, with these words on top.
fn searched(words: &[(u64, u64)]) -> Vec<(FrameKind, u64)> {
    let mut world = world(&WITHOUT_RETURN);
    let sp = CALLER_STACK - 0x48;
    for &(word, value) in words {
        world.set(sp + word * 8, value);
    }
    named(world.walk(CODE_START, sp, CALLER_FP, &[]))
}

#[test]
fn a_return_address_after_a_call_of_the_code_is_found_on_the_stack() {
    let words = [(0, BASE + 0x10), (1, CODE_START), (3, LOST_PC), (8, DIRECT_CALLER_PC)];
    assert_eq!(searched(&words), whole(0, DIRECT_CALLER_PC));
}

#[test]
fn an_ambiguous_return_address_on_the_stack_is_not_used() {
    let lost = [(Native, CODE_START), (Unwalkable, CODE_START)];
    for (words, label) in [
        (&[(8, CALLER_PC)][..], "a call by a register may have been of anything"),
        (&[(2, CALLER_PC), (8, DIRECT_CALLER_PC)], "an earlier call's return address may hide a caller"),
        (&[(2, DIRECT_CALLER_PC), (8, DIRECT_CALLER_PC)], "one of two calls of the code"),
        (&[(8, LOST_PC)], "nothing leads on from there"),
        (&[(8, BASE + 0x10)], "no call is before it"),
    ] {
        // The frame pointer would lead to the caller's caller.
        let mut world = world(&WITHOUT_RETURN);
        let sp = CALLER_STACK - 0x48;
        for &(word, value) in words {
            world.set(sp + word * 8, value);
        }
        assert_eq!(named(world.walk(CODE_START, sp, OTHER, &[])), lost, "{label}");
    }
}

#[test]
fn a_way_out_is_not_believed_if_nothing_leads_on_from_there() {
    for (return_pc, label) in [
        (LOST_PC, "a frame that cannot be walked"),
        (BASE + 0x10, "no call is before it"),
        (OTHER, "no code"),
    ] {
        // add rsp, 0x10; ret
        let mut world = world(&[0x48, 0x83, 0xc4, 0x10, 0xc3]);
        world.set(CALLER_STACK - 8, return_pc);
        let frames = named(world.walk(CODE_START, CALLER_STACK - 0x18, OTHER, &[]));
        assert_eq!(frames, [(Native, CODE_START), (Unwalkable, CODE_START)], "{label}");
    }
    assert!(WalkError::ALL.contains(&WalkError::NoUnwindRule));
}

/// Regression: initializers of a library that the agent does not know yet ended the native frames.
#[test]
fn undescribed_code_that_undescribed_code_has_called_leads_to_the_caller() {
    // add rsp, 0x10; ret; call; pop rbx; ret
    const RETURN_TO: u64 = 10;
    let mut world = world(&[0x48, 0x83, 0xc4, 0x10, 0xc3, 0xe8, 0xf6, 0xff, 0xff, 0xff, 0x5b, 0xc3]);
    world.set(CALLER_STACK - 24, CODE_START + RETURN_TO);
    let frames = named(world.walk(CODE_START, CALLER_STACK - 40, CALLER_FP, &[]));
    let mut expected = whole(0, CALLER_PC);
    expected.insert(1, (Native, CODE_START + RETURN_TO - 1));
    assert_eq!(frames, expected);
}

/// Regression: where musl is compiled with stack protectors, a walk went on after the call of
/// `__stack_chk_fail`, in the next function, and was lost.
#[test]
fn code_after_a_call_that_never_returns_is_not_followed() {
    // hlt; endbr64 and hlt; endbr64 and ud2
    for trap in [&[0xf4][..], &[0xf3, 0x0f, 0x1e, 0xfa, 0xf4], &[0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x0b]] {
        // sub rsp, 0x18; jne, to the call; add rsp, 0x18; ret; call trap; the next function: sub rsp, 8; ret
        let mut code = vec![0x48, 0x83, 0xec, 0x18, 0x75, 0x05, 0x48, 0x83, 0xc4, 0x18, 0xc3];
        code.extend([0xe8, 5, 0, 0, 0, 0x48, 0x83, 0xec, 8, 0xc3]);
        code.extend(trap);
        let mut world = world(&code);
        let frames = named(world.walk(CODE_START + 4, CALLER_STACK - 0x20, CALLER_FP, &[]));
        assert_eq!(frames, whole(4, CALLER_PC), "{trap:x?}");
    }
}

/// `jmp rel32` out of the code, and `jmp [rip + distance]`: the callee returns to the caller.
#[test]
fn a_jump_to_described_code_is_a_call_in_the_last_place() {
    let to_described = (BASE as i64 - (CODE_START as i64 + 6)) as i32;
    let direct = [&[0x58, 0xe9][..], &to_described.to_le_bytes()].concat();
    for code in [&direct[..], &[0x58, 0xff, 0x25, 0, 0, 0, 0]] {
        let mut world = world(code);
        let frames = named(world.walk(CODE_START, CALLER_STACK - 16, CALLER_FP, &[]));
        assert_eq!(frames, whole(0, CALLER_PC));
    }
}

/// The work is bounded for code without an end, in which each branch leads back.
#[test]
fn code_that_never_returns_is_given_up() {
    // jne; jmp, both back to the beginning.
    let mut world = world(&[0x75, 0xfe, 0xeb, 0xfc]);
    let frames = named(world.walk(CODE_START, CALLER_STACK - 8, OTHER, &[]));
    assert_eq!(frames, [(Native, CODE_START), (Unwalkable, CODE_START)]);
}

/// Regression: up to a thousand instructions were read from memory that is not mapped, each with a fault. At
/// an interval of 1 ms the thread made no progress.
#[test]
fn memory_that_is_not_mapped_is_not_followed() {
    for code in [&[][..], &[0; 0x800], &[0x90; 0x200]] {
        let mut world = world(code);
        let (_, failed) = world.reads_of_walk(CODE_START + 0x4000, CALLER_STACK - 8, OTHER);
        assert!(failed < 16, "{failed}");
    }
    let (reads, _) = world(&[0; 0x800]).reads_of_walk(CODE_START, CALLER_STACK - 8, OTHER);
    assert!(reads < 1024, "{reads}");
}

/// The work is bounded when every second caller has a thousand instructions up to its return.
#[test]
fn a_walk_follows_a_limited_number_of_instructions() {
    const LEVELS: u64 = 31;
    // call; nop..; ret
    let mut code = vec![0x90; 1000];
    code[..5].copy_from_slice(&[0xe8, 0, 0, 0, 0]);
    code.push(0xc3);
    let mut world = world(&code);
    // For each level the return address into the caller, the caller's frame pointer, and the caller's return
    // address.
    let sp = |level: u64| STACK + 0x400 + 24 * level;
    for level in 0..LEVELS {
        world
            .set(sp(level), CALLER_PC)
            .set(sp(level) + 8, sp(level + 1) + 8)
            .set(sp(level) + 16, CODE_START + 5);
    }
    world.set(sp(LEVELS), ROOT_PC);
    let (reads, _) = world.reads_of_walk(CODE_START + 5, sp(0), sp(0) + 8);
    let most = MAX_FOLLOWED_INSTRUCTIONS as usize;
    assert!(reads > most && reads < 4 * most, "{reads}");
}

/// Regression: in a library that was being loaded, a walk followed tens of thousands of instructions. The
/// sample stood for the time that the walk had taken, 35 ms, and the stack was lost after all.
#[test]
fn code_of_no_known_object_is_followed_for_few_instructions() {
    let mut world = world(&[0x90; 0x800]);
    world.objects = ObjectMap::default();
    let (reads, _) = world.reads_of_walk(CODE_START, CALLER_STACK - 8, OTHER);
    assert!(reads < 1024, "{reads}");
}

/// Regression: a walk that had gone wrong followed the instructions at an address to which no call returns.
/// The handler took longer than an interval of 100 µs, and the thread made no progress.
#[test]
fn code_that_no_call_returns_to_is_not_followed() {
    let mut world = world(&[]);
    world.memory.put(BASE + 0x10_0000, vec![0x90; 0x1000]);
    world.set(CALLER_FP + 8, BASE + 0x10_0100);
    let (reads, _) = world.reads_of_walk(CALLER_PC, CALLER_STACK, CALLER_FP);
    assert!(reads < 64, "{reads}");
}

//! Compiled methods: the stages of entering and leaving them, and their own stubs.

use otlpprof_core::record::FrameKind::{self, Compiled, Unwalkable};

use super::machine::{BARRIER, BARRIER_RETURNED, FRAME_COMPLETE, barrier_stages};
use crate::walk::tests::vm_world::*;

/// Asserts that a method with these bytes at these offsets, interrupted at `offset`, has no frame: its return
/// address is on top of the stack.
#[track_caller]
fn assert_has_no_frame(patches: &[(usize, &[u8])], offset: u64, stage: &str) {
    let mut world = World::new();
    let (caller, return_pc) = compiled_caller(&mut world);
    let (method, code) = world.compiled_with(patches);
    world.set(CALLER_SP - 8, return_pc);
    let frames = world.walk(code + offset, CALLER_SP - 8, 0x1234, &[]);
    let bci = bci_beside_scopes(offset, FRAME_COMPLETE, offset..offset + 1);
    assert_eq!(frames, [(Compiled, method, bci), (Compiled, caller, 7)], "{stage}");
}

#[test]
fn each_instruction_of_a_compiled_entry_and_exit_leads_to_the_caller() {
    // The label, the offset in the code, the bytes below the return address, and whether RBP is saved there.
    let stages = [
        ("at push rbp", 0x00, 0, false),
        ("at sub rsp", 0x01, 8, true),
        ("after sub rsp", 0x05, 0x28, true),
        ("at add rsp", 0x100, 0x28, true),
        ("at pop rbp", 0x104, 8, true),
        ("at cmp rsp", 0x105, 0, false),
        ("at ja", 0x10c, 0, false),
        ("at ret", 0x112, 0, false),
    ];
    for (stage, offset, above, saved) in stages {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (callee, code) = world.compiled();
        let sp = CALLER_SP - 8 - above;
        world.set(CALLER_SP - 8, return_pc);
        if saved {
            world.set(CALLER_SP - 16, 0x1234);
        }
        let frames = world.walk(code + offset, sp, 0x1234, &[]);
        let bci = bci_beside_scopes(offset, FRAME_COMPLETE, 0x100..0x113);
        assert_eq!(frames, [(Compiled, callee, bci), (Compiled, caller, 7)], "{stage}");
    }
}

/// Regression: the time in the entry and the exit was given to the method that was inlined next to them.
#[test]
fn frame_setup_and_removal_belong_to_no_inlined_method() {
    for (stage, offset, above, bci) in [
        ("at push rbp", 0, 0, 0),
        ("in the first scope", 0x40, 0x28, 3),
        ("at add rsp", 0x100, 0x28, -1),
        ("at ret", 0x112, 0, -1),
        ("after it", 0x113, 0x28, 3),
        ("in the second scope", 0x121, 0x28, 7),
    ] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        world.first_scope_ends_at = Some(0x120);
        let (method, code) = world.compiled();
        world.set(CALLER_SP - 8, return_pc);
        let frames = world.walk(code + offset, CALLER_SP - 8 - above, 0x1234, &[]);
        assert_eq!(frames, [(Compiled, method, bci), (Compiled, caller, 7)], "{stage}");
    }
}

/// Regression: a frame of RBP and return address alone was taken for absent at the entry barrier after its
/// push (JDK 21 and 25).
#[test]
fn an_entry_barrier_after_a_lone_push_keeps_the_frame() {
    // push rbp; cmp dword ptr [r15+0x20], 1; jne; nop…
    let mut code = vec![0x55, 0x41, 0x81, 0x7f, 0x20, 1, 0, 0, 0, 0x0f, 0x85, 0x55, 0x55, 0, 0];
    let frame_complete = code.len() as i32;
    code.resize(0x100, 0x90);
    for (stage, offset, is_pushed) in
        [("at push", 0, false), ("at cmp", 1, true), ("at jne", 9, true), ("after", 15, true)]
    {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, _) = world.method();
        let spec = BlobSpec { name: "nmethod", code: &code, frame_bytes: 16, frame_complete, method };
        let start = world.blob(&spec);
        world.set(CALLER_SP - 8, return_pc).set(CALLER_SP - 16, 0x1234);
        let sp = CALLER_SP - if is_pushed { 16 } else { 8 };
        let frames = world.walk(start + offset, sp, 0x1234, &[]);
        let bci = bci_beside_scopes(offset, frame_complete, 0..0);
        assert_eq!(frames, [(Compiled, method, bci), (Compiled, caller, 7)], "{stage}");
    }
}

/// Regression: JDK 25 polls with an 8-bit displacement, and from JDK 17 on the poll's stub loads the poll's
/// address as an immediate. Both were taken for the method's body, and the walk read garbage for its frame.
#[test]
fn the_return_poll_and_its_stub_have_no_frame() {
    // add rsp, 0x20; pop rbp; cmp rsp, [r15+0x28]; ja; ret
    let exit: [u8; 16] = [0x48, 0x83, 0xc4, 0x20, 0x5d, 0x49, 0x3b, 0x67, 0x28, 0x0f, 0x87, 0, 1, 0, 0, 0xc3];
    // mov r10, imm64; mov [r15+0x538], r10; jmp
    let stub: [u8; 22] =
        [0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8, 0x4d, 0x89, 0x97, 0x38, 0x05, 0, 0, 0xe9, 0, 0, 0, 0x10];
    let stages = [
        ("at cmp rsp", 0x105),
        ("at ja", 0x109),
        ("at ret", 0x10f),
        ("at the stub's mov r10", 0x180),
        ("at its mov to the thread", 0x18a),
        ("at its jmp", 0x191),
    ];
    for (stage, offset) in stages {
        assert_has_no_frame(&[(0x100, &exit), (0x180, &stub)], offset, stage);
    }
}

/// A method that may touch the stack's reserved zone compares RSP before it polls.
/// Regression: at the jump after that comparison the frame was treated as still present (`ReentrantLock`,
/// JDK 21).
#[test]
fn the_check_of_the_reserved_zone_before_the_return_poll_has_no_frame() {
    // add rsp, 0x20; pop rbp; cmp rsp, [r15+0x4d0]; jb; …; cmp rsp, [r15+0x28]; ja; ret
    let check = [0x48, 0x83, 0xc4, 0x20, 0x5d, 0x49, 0x3b, 0xa7, 0xd0, 4, 0, 0, 0x0f, 0x82, 0x3d, 0, 0, 0];
    let exit = [0x49, 0x3b, 0x67, 0x28, 0x0f, 0x87, 0, 1, 0, 0, 0xc3];
    for (stage, offset) in [
        ("at cmp", 0x105),
        ("at jb", 0x10c),
        ("at the poll's cmp", 0x14f),
        ("at ja", 0x153),
        ("at ret", 0x159),
    ] {
        assert_has_no_frame(&[(0x100, &check), (0x14f, &exit)], offset, stage);
    }
}

/// Regression: the jump to the code that unwinds an exception was taken for the method's body, though the
/// frame is removed (all versions).
#[test]
fn a_jump_that_unwinds_has_no_frame_and_one_within_the_method_has() {
    // add rsp, 0x20; pop rbp; jmp
    let leaving =
        |distance: i32| [&[0x48, 0x83, 0xc4, 0x20, 0x5d, 0xe9][..], &distance.to_le_bytes()].concat();
    for (distance, is_gone) in [(0x10_0000, true), (-0x10_0000, true), (0x20, false), (-0x20, false)] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, code) = world.compiled_with(&[(0x100, &leaving(distance))]);
        world.set(CALLER_SP - 8, return_pc);
        let sp = CALLER_SP - if is_gone { 8 } else { 0x30 };
        let frames = world.walk(code + 0x105, sp, 0x1234, &[]);
        let bci = if is_gone { -1 } else { 7 };
        assert_eq!(frames, [(Compiled, method, bci), (Compiled, caller, 7)], "{distance:#x}");
    }
    // The removal of a frame of another size is not this method's exit.
    let mut world = World::new();
    let (caller, return_pc) = compiled_caller(&mut world);
    let other = [0x48, 0x83, 0xc4, 0x30, 0x5d, 0xe9, 0, 0, 0x10, 0];
    let (method, code) = world.compiled_with(&[(0x100, &other)]);
    world.set(CALLER_SP - 8, return_pc);
    let frames = world.walk(code + 0x105, CALLER_SP - 0x30, 0x1234, &[]);
    assert_eq!(frames, [(Compiled, method, 7), (Compiled, caller, 7)]);
}

/// Regression: after `leave` a native method's wrapper checks for a pending exception, and in JDK 25 polls.
/// Its frame was treated as still present.
#[test]
fn a_native_wrapper_after_its_leave_has_no_frame() {
    // leave; test byte ptr [r15+0x28], 1; jz; mov r10, imm64; mov [r15+0x538], r10; jmp;
    // cmp [r15+8], 0; jne; ret; jmp
    let exit: [u8; 47] = [
        0xc9, 0x41, 0xf6, 0x47, 0x28, 1, 0x74, 22, 0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8, 0x4d, 0x89, 0x97,
        0x38, 5, 0, 0, 0xe9, 0, 0, 0, 0x10, 0x49, 0x83, 0x7f, 8, 0, 0x0f, 0x85, 1, 0, 0, 0, 0xc3, 0xe9, 0, 0,
        0, 0x10,
    ];
    for (stage, offset) in [
        ("at test", 1),
        ("at jz", 6),
        ("at the poll's mov r10", 8),
        ("at its mov to the thread", 18),
        ("at its jmp", 25),
        ("at cmp", 30),
        ("at jne", 35),
        ("at ret", 41),
        ("at jmp", 42),
    ] {
        assert_has_no_frame(&[(0x100, &exit)], 0x100 + offset, stage);
    }
    // JDK 17: leave; cmp qword ptr [r15+8], imm32; jne; ret
    let exit = [0xc9, 0x49, 0x81, 0x7f, 8, 0, 0, 0, 0, 0x0f, 0x85, 1, 0, 0, 0, 0xc3];
    for (stage, offset) in [("at cmp", 1), ("at jne", 9), ("at ret", 15)] {
        assert_has_no_frame(&[(0x100, &exit)], 0x100 + offset, &format!("17, {stage}"));
    }
}

/// Regression: a method's own stub for a static call was taken for its body, but the stack has one more word
/// there.
#[test]
fn a_static_calls_stub_belongs_to_the_call() {
    // mov rbx, imm64; jmp
    let stub: [u8; 15] = [0x48, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8, 0xe9, 0, 0, 0, 0x10];
    for (stage, offset) in [("at mov", 0x180), ("at jmp", 0x18a)] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, code) = world.compiled_with(&[(0x180, &stub)]);
        let sp = CALLER_SP - 0x30;
        world.set(CALLER_SP - 8, return_pc).set(sp - 8, code + 0x80);
        let frames = world.walk(code + offset, sp - 8, 0x1234, &[]);
        assert_eq!(frames, [(Compiled, method, 7), (Compiled, caller, 7)], "{stage}");
    }
}

/// Regression: the second entry of a method that is compiled for on-stack replacement was taken for its body.
#[test]
fn the_entry_for_on_stack_replacement_has_no_frame_yet() {
    // mov [rsp-0x14000], eax; push rbp; sub rsp, 0x20
    let entry = [0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x20];
    for (stage, offset, depth) in
        [("at mov", 0, 8), ("at push", 7, 8), ("at sub", 8, 16), ("after", 12, 0x30)]
    {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, code) = world.compiled_with(&[(0x180, &entry)]);
        world.set(CALLER_SP - 8, return_pc).set(CALLER_SP - 16, 0x1234);
        let frames = world.walk(code + 0x180 + offset, CALLER_SP - depth, 0x1234, &[]);
        let bci = bci_beside_scopes(0x180 + offset, FRAME_COMPLETE, 0x180..0x18c);
        assert_eq!(frames, [(Compiled, method, bci), (Compiled, caller, 7)], "{stage}");
    }
}

/// `Continuation.enterSpecial` has one entry for interpreted callers and, after it, one for compiled ones.
/// Regression: a thread in the second entry's prologue was taken for one after the first entry's prologue.
#[test]
fn the_second_entry_of_enter_special_has_no_frame_yet() {
    // push rbp; mov rbp, rsp; sub rsp, 0x20
    let entry = [0x55, 0x48, 0x8b, 0xec, 0x48, 0x83, 0xec, 0x20];
    // nop word ptr [rax + rax]
    let nop = [0x66, 0x0f, 0x1f, 0x44, 0, 0];
    let second = 0x40;
    let mut code = vec![0x90; 0x100];
    code[..entry.len()].copy_from_slice(&entry);
    code[second - nop.len()..second].copy_from_slice(&nop);
    code[second..second + entry.len()].copy_from_slice(&entry);
    for (stage, offset, depth) in [
        ("at the first push", 0, 8),
        ("at the first mov", 1, 16),
        ("at the first sub", 4, 16),
        ("after the first entry", 8, 0x30),
        ("at the nop before the second entry", second - nop.len(), 8),
        ("at the second push", second, 8),
        ("at the second mov", second + 1, 16),
        ("at the second sub", second + 4, 16),
        ("after the second entry", second + 8, 0x30),
    ] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, _) = world.method();
        let frame_complete = (second + entry.len()) as i32;
        let spec =
            BlobSpec { name: "native nmethod", code: &code, frame_bytes: 0x30, frame_complete, method };
        let start = world.blob(&spec);
        world.set(CALLER_SP - 8, return_pc).set(CALLER_SP - 16, 0x1234);
        let frames = world.walk(start + offset as u64, CALLER_SP - depth, 0x1234, &[]);
        let methods: Vec<_> = frames.iter().map(|&(_, method, _)| method).collect();
        assert_eq!(methods, [method, caller], "{stage}: {frames:?}");
    }
}

/// JDK 11 polls by reading a page that is protected when threads are to stop: a page whose address the thread
/// has, or with Shenandoah the VM's own page, near or far.
/// Regression: at a poll of the VM's own page the frame was treated as still present. This broke half a
/// percent of the samples of a program that allocates.
#[test]
fn the_return_poll_of_11_has_no_frame() {
    type Stages = &'static [(&'static str, u64)];
    // add rsp, 0x20; pop rbp; followed by one of these polls
    let exits: [(&[u8], Stages); 4] = [
        // mov r10, [r15+0x108]; test [r10], eax; ret
        (
            &[0x4d, 0x8b, 0x97, 0x08, 1, 0, 0, 0x41, 0x85, 0x02, 0xc3],
            &[("at mov", 5), ("at test", 12), ("at ret", 15)],
        ),
        // test [rip+0x1234], eax; ret
        (&[0x85, 0x05, 0x34, 0x12, 0, 0, 0xc3], &[("at the near test", 5), ("at its ret", 11)]),
        // test [rip+0x1234], eax; ret 8
        (
            &[0x85, 0x05, 0x34, 0x12, 0, 0, 0xc2, 8, 0],
            &[("at the near test", 5), ("at its ret with a number", 11)],
        ),
        // mov r10, imm64; test [r10], eax; ret
        (
            &[0x49, 0xba, 0, 0x10, 0x34, 0x12, 0, 0x7f, 0, 0, 0x41, 0x85, 0x02, 0xc3],
            &[("at the far mov", 5), ("at its test", 15), ("at its ret", 18)],
        ),
    ];
    for (poll, stages) in exits {
        let exit = [&[0x48, 0x83, 0xc4, 0x20, 0x5d], poll].concat();
        for (stage, offset) in stages {
            assert_has_no_frame(&[(0x100, &exit)], 0x100 + offset, stage);
        }
    }
}

/// Regression: while strings are compared or searched, there are more words on the stack than in the frame's
/// size.
#[test]
fn compiled_code_that_is_at_strings_has_more_on_the_stack() {
    // mov eax, ecx; sub ecx, edx; push rcx; cmovle edx, eax
    let compare = [0x8b, 0xc1, 0x2b, 0xca, 0x51, 0x0f, 0x4e, 0xd0];
    let frame_sp = CALLER_SP - 0x30;
    // The label, the offset, the words on top of the frame, whether the top word keeps the frame's own SP,
    // and RCX.
    for (stage, offset, words, is_on_top, rcx) in [
        ("at cmovle", 0x45, 1, false, 0),
        ("comparing", 0x60, 1, false, 0),
        ("searching for a constant", 0x20, 1, true, 0),
        ("searching", 0x20, 4, true, 0),
        ("searching in a string on the stack", 0x20, 8, true, 0),
        ("copying", 0x20, 3, false, frame_sp),
    ] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, code) = world.compiled_with(&[(0x40, &compare)]);
        let sp = frame_sp - 8 * words;
        world.set(sp, if is_on_top { frame_sp } else { 0x42 }).set(CALLER_SP - 8, return_pc);
        // The word that would be taken for the return address by the frame size alone.
        world.set(CALLER_SP - 8 - 8 * words, 0x99);
        let frames = world.walk(code + offset, sp, 0x1234, &[(2, rcx)]);
        assert_eq!(frames, [(Compiled, method, 7), (Compiled, caller, 7)], "{stage}");
    }
    // Elsewhere in the code an additional word is not taken for the word of a string operation.
    let mut world = World::new();
    let (_, return_pc) = compiled_caller(&mut world);
    let (method, code) = world.compiled_with(&[(0x40, &compare)]);
    world.set(CALLER_SP - 8, return_pc);
    let frames = world.walk(code + 0x38, frame_sp - 8, 0x1234, &[]);
    assert_eq!(frames[0], (Compiled, method, 7));
    assert_eq!(frames[1].0, Unwalkable);
}

/// Regression: the frame's size led from a search in a string to a return address that an earlier call had
/// left in the frame (JDK 27, one stack of 130).
#[test]
fn a_stale_return_address_below_a_searched_string_is_not_the_callers() {
    // mov rcx, rsp
    let keep = [0x48, 0x8b, 0xcc];
    let frame_sp = CALLER_SP - 0x30;
    for (stage, words, is_on_top, rcx) in [("searching", 4, true, 0), ("copying", 3, false, frame_sp)] {
        for (is_search, place) in [(true, 0x10), (false, 0x30)] {
            let mut world = World::new();
            let (caller, return_pc) = compiled_caller(&mut world);
            let (earlier, stale_pc) = compiled_caller(&mut world);
            let (method, code) = world.compiled_with(&[(place, &keep)]);
            let sp = frame_sp - 8 * words;
            world.set(sp, if is_on_top { frame_sp } else { 0x42 }).set(CALLER_SP - 8, return_pc);
            world.set(CALLER_SP - 8 - 8 * words, stale_pc);
            let frames = world.walk(code + 0x20, sp, 0x1234, &[(2, rcx)]);
            // Only code that has kept the stack pointer has such words on top of its frame.
            let expected = if is_search { caller } else { earlier };
            assert_eq!(frames[..2], [(Compiled, method, 7), (Compiled, expected, 7)], "{stage}");
        }
    }
}

/// Regression: `String.<init>` over `StringUTF16.compress` was marked on JDK 11 to 21, whose intrinsic pushes
/// the length, and removes it by one of two instructions.
#[test]
fn compiled_code_that_compresses_strings_has_the_length_on_the_stack() {
    // push rdx; nop…; je zero; nop; pop rax; jmp done; zero: xor eax, eax; add rsp, 8; done: nop…
    let compress = [0x52, 0x90, 0x90, 0x74, 4, 0x90, 0x58, 0xeb, 6, 0x31, 0xc0, 0x48, 0x83, 0xc4, 8, 0x90];
    // The target of the return poll's branch: jmp, out of the method.
    let poll_stub = [0xe9, 0, 0, 0x10, 0];
    let frame_sp = CALLER_SP - 0x30;
    for (offset, words) in [(0, 0), (1, 1), (2, 1), (3, 1), (5, 1), (6, 1), (7, 0), (9, 1), (11, 1), (15, 0)]
    {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, code) = world.compiled_with(&[(0x40, &compress), (0x212, &poll_stub)]);
        let sp = frame_sp - 8 * words;
        world.set(sp, 0x42).set(CALLER_SP - 8, return_pc);
        if words != 0 {
            // The word that would be taken for the return address by the frame size alone.
            world.set(CALLER_SP - 16, 0x99);
        }
        let frames = world.walk(code + 0x40 + offset, sp, 0x1234, &[]);
        assert_eq!(frames, [(Compiled, method, 7), (Compiled, caller, 7)], "at {offset}");
    }
}

/// C2's entries: RBP is either pushed, or stored into the frame once that exists (small frames that need no
/// stack check).
#[test]
fn each_instruction_of_c2s_entries_leads_to_the_caller() {
    type Stage = (&'static str, u64, u64);
    let entries: [(&[u8], i32, &[Stage]); 3] = [
        // sub rsp, 0x18; mov [rsp+0x10], rbp
        (
            &[0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 0x10],
            0x20,
            &[("at sub", 0, 0), ("at mov", 4, 0x18), ("after", 9, 0x18)],
        ),
        // sub rsp, 0x98; mov [rsp+0x90], rbp
        (
            &[0x48, 0x81, 0xec, 0x98, 0, 0, 0, 0x48, 0x89, 0xac, 0x24, 0x90, 0, 0, 0],
            0xa0,
            &[("at sub", 0, 0), ("at mov", 7, 0x98), ("after", 15, 0x98)],
        ),
        // mov [rsp-0x14000], eax; push rbp; sub rsp, 0x90
        (
            &[0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x81, 0xec, 0x90, 0, 0, 0],
            0xa0,
            &[("at the stack check", 0, 0), ("at push", 7, 0), ("at sub", 8, 8), ("after", 15, 0x98)],
        ),
    ];
    for (entry, frame_bytes, stages) in entries {
        for &(stage, offset, above) in stages {
            let mut world = World::new();
            let (caller, return_pc) = compiled_caller(&mut world);
            let (method, _) = world.method();
            let code = [entry, &[0x90; 0x100]].concat();
            let frame_complete = entry.len() as i32;
            let spec = BlobSpec { name: "nmethod", code: &code, frame_bytes, frame_complete, method };
            let start = world.blob(&spec);
            world.set(CALLER_SP - 8, return_pc).set(CALLER_SP - 16, 0x1234);
            let frames = world.walk(start + offset, CALLER_SP - 8 - above, 0x1234, &[]);
            let label = format!("{stage} of {frame_bytes:#x} bytes");
            let bci = bci_beside_scopes(offset, frame_complete, 0..0);
            assert_eq!(frames, [(Compiled, method, bci), (Compiled, caller, 7)], "{label}");
        }
    }
}

/// Regression: a wrapper of a method handle intrinsic has no frame, and its barrier saves registers. The word
/// on top of the stack was taken for the return address (all versions).
#[test]
fn a_method_handles_wrapper_is_left_over_the_registers_that_its_barrier_saved() {
    // jmp [rbx + 0x40]
    let code = [&BARRIER.concat()[..], &[0xff, 0x63, 0x40]].concat();
    let jump = (code.len() as u64 - 3, 0);
    for (offset, saved) in barrier_stages().into_iter().chain([jump]) {
        for is_called in [false, true] {
            let mut world = World::new();
            let (caller, return_pc) = compiled_caller(&mut world);
            let (vm_method, vm_code) = world.compiled();
            let (method, _) = world.method();
            let frame_complete = code.len() as i32;
            let name = "native nmethod";
            let start = world.blob(&BlobSpec { name, code: &code, frame_bytes: 0, frame_complete, method });
            let sp = CALLER_SP - 8 - saved;
            world.set(CALLER_SP - 8, return_pc);
            let methods = |frames: Vec<(FrameKind, u64, i32)>| -> Vec<u64> {
                frames.into_iter().map(|frame| frame.1).collect()
            };
            if !is_called {
                let frames = world.walk(start + offset, sp, 0x1234, &[]);
                assert_eq!(methods(frames), [method, caller], "at {offset}");
            } else if offset == BARRIER_RETURNED {
                world.set(sp - 8, start + offset).set(sp - 16, 0x1234);
                let frames = world.walk(vm_code + 0x80, sp - 0x30, 0x1234, &[]);
                assert_eq!(methods(frames), [vm_method, method, caller]);
            }
        }
    }
}

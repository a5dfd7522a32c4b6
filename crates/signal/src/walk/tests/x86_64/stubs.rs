//! Interrupted stubs and adapters on x86_64.

use std::sync::{Arc, OnceLock};

use otlpprof_core::address::{CodeRange, ElfVaddr, LoadBias, RuntimeAddr};
use otlpprof_core::object::{IdentityWord, LoadedObject, ObjectIndex, ObjectMap, TextRange};
use otlpprof_core::record::FrameKind::{Compiled, Interpreted, Native, Stub, Unwalkable};
use otlpprof_core::stub_frames::StubFrames;

use super::machine::{BARRIER, BARRIER_RETURNED, barrier_stages};
use crate::walk::WalkError;
use crate::walk::tests::frameless_entry_callers::*;
use crate::walk::tests::vm_world::*;

/// `_thread_in_native` (utilities/globalDefinitions.hpp, JavaThreadState).
const IN_NATIVE: u32 = 4;

#[test]
fn a_stub_with_a_frame_of_its_own_or_without_leads_to_the_caller() {
    // push rbp; mov rbp, rsp; nop…; leave; ret
    let mut code = vec![0x55, 0x48, 0x8b, 0xec];
    code.resize(0x40, 0x90);
    code.extend([0xc9, 0xc3]);
    for (stage, offset, above, has_fp) in [
        ("at push", 0, 0, false),
        ("at mov", 1, 8, false),
        ("inside", 8, 0x48, true),
        ("at ret", 0x41, 0, false),
    ] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let stub = world.frameless_blob("StubRoutines (1)", &code);
        world.set(CALLER_SP - 8, return_pc).set(CALLER_SP - 16, 0x1234);
        let fp = if has_fp { CALLER_SP - 16 } else { 0x1234 };
        let frames = world.walk(stub + offset, CALLER_SP - 8 - above, fp, &[]);
        assert_eq!(frames, [(Stub, stub + offset, 0), (Compiled, caller, 7)], "{stage}");
    }
}

/// Regression: with -Xcheck:jni, the wrapper of a native method checks SSE's control register by a stub after
/// each call. The stub's copy of that register was taken for the return address.
#[test]
fn a_leaf_stub_called_by_native_code_is_left_over_the_words_that_it_pushed() {
    // The control register in the lower half of a word, whose upper half has its old content.
    const COPIED: u64 = 0x7f90_0000_1fa0;
    // Each instruction, and the bytes on the stack before it (cpu/x86/stubGenerator_x86_64.cpp,
    // generate_verify_mxcsr).
    let instructions: [(&[u8], u64); 10] = [
        (&[0x50], 0),                          // push rax
        (&[0x48, 0x83, 0xec, 0x08], 8),        // sub rsp, 8
        (&[0x0f, 0xae, 0x1c, 0x24], 16),       // stmxcsr [rsp]
        (&[0x8b, 0x04, 0x24], 16),             // mov eax, [rsp]
        (&[0x25, 0xc0, 0xff, 0, 0], 16),       // and eax, 0xffc0
        (&[0x3b, 0x05, 0, 1, 0, 0], 16),       // cmp eax, [rip + 0x100]
        (&[0x74, 0x07], 16),                   // je, to the add
        (&[0x0f, 0xae, 0x15, 0, 1, 0, 0], 16), // ldmxcsr [rip + 0x100]
        (&[0x48, 0x83, 0xc4, 0x08], 16),       // add rsp, 8
        (&[0x58, 0xc3], 8),                    // pop rax; ret
    ];
    let code: Vec<u8> = instructions.iter().flat_map(|(bytes, _)| bytes.iter().copied()).collect();
    let mut offset = 0;
    for (bytes, pushed) in instructions {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        world.memory.put(THREAD + 24, IN_NATIVE.to_le_bytes());
        let stub = world.frameless_blob("StubRoutines (1)", &code);
        world.set(CALLER_SP - 8, return_pc).set(CALLER_SP - 16, 1).set(CALLER_SP - 24, COPIED);
        let frames = world.walk(stub + offset, CALLER_SP - 8 - pushed, 0x1234, &[]);
        assert_eq!(frames, [(Stub, stub + offset, 0), (Compiled, caller, 7)], "at {offset:#x}");
        offset += bytes.len() as u64;
    }
}

/// Regression: a method that had polled into the VM was on the stack twice, or not at all, when a return
/// address of a removed frame was among the registers that the blob had saved (all versions).
#[test]
fn a_poll_is_followed_through_the_blob_that_it_leads_to() {
    const SAVED_PC: u64 = 0x60;
    // push rbp; mov rbp, rsp; pushf; sub rsp, 0x80; …; call; …; add rsp, 0x80; popf; pop rbp; ret
    let enter = [0x55, 0x48, 0x8b, 0xec, 0x9c, 0x48, 0x81, 0xec, 0x80, 0, 0, 0];
    let leave = [0x48, 0x81, 0xc4, 0x80, 0, 0, 0, 0x9d, 0x5d, 0xc3];
    // mov rbx, [r15 + _saved_exception_pc]; mov [rbp + 8], rbx
    let writes_pc = [0x49, 0x8b, 0x9f, SAVED_PC as u8, 0, 0, 0, 0x48, 0x89, 0x5d, 8];
    let mut at_return = enter.to_vec();
    at_return.resize(0x40, 0x90);
    at_return.extend(leave);
    at_return.resize(0x800, 0x90);
    let mut elsewhere = [&[0x53][..], &enter].concat();
    elsewhere.resize(0x20, 0x90);
    elsewhere.extend(writes_pc);
    elsewhere.resize(0x40, 0x90);
    elsewhere.extend(leave);
    elsewhere.resize(0x800, 0x90);
    // The offset in the blob, the bytes between SP and the caller's SP, whether the blob has set RBP, and
    // whether the return address is still in the thread.
    let stages_at_return =
        [(0, 8, false), (1, 16, false), (4, 16, true), (12, 0x98, true), (0x3f, 0x98, true)];
    let stages_elsewhere =
        [(0, 0, false), (1, 8, false), (2, 16, false), (5, 16, true), (13, 0x98, true), (0x27, 0x98, true)];
    let left = [(0x48, 16, true, false), (0x49, 8, false, false)];
    let at_return_stages = stages_at_return.map(|(at, depth, is_own)| (at, depth, is_own, false));
    let first_stages = stages_elsewhere.map(|(at, depth, is_own)| (at, depth, is_own, true));
    let written = [(0x2b, 0x98, true, false), (0x40, 0x98, true, false)];
    let cases =
        [(&at_return, at_return_stages.to_vec()), (&elsewhere, [&first_stages[..], &written].concat())];
    let cases = cases.into_iter().zip(["SafepointBlob", SAFEPOINT_BY_KIND]);
    for ((code, stages), name) in cases {
        for (at, depth, is_own, in_thread) in stages.into_iter().chain(left) {
            let mut world = World::new();
            let (caller, return_pc) = compiled_caller(&mut world);
            let (_, gone) = world.compiled();
            let spec = BlobSpec { name, code, frame_bytes: 0xb0, frame_complete: -1, method: 0 };
            let blob = world.blob(&spec);
            // The saved words, and the old content of the slot, are return addresses of a removed frame.
            for below in 3..0x20 {
                world.set(CALLER_SP - 8 * below, gone + 0x80);
            }
            let slot = if in_thread { gone + 0x80 } else { return_pc };
            world.set(CALLER_SP - 8, slot).set(CALLER_SP - 16, 0x1234);
            world.memory.put_u64(THREAD + SAVED_PC, if in_thread { return_pc } else { 0 });
            let fp = if is_own { CALLER_SP - 16 } else { 0x1234 };
            let frames = world.walk(blob + at, CALLER_SP - depth, fp, &[]);
            assert_eq!(frames, [(Stub, blob + at, 0), (Compiled, caller, 7)], "{at:#x}, {in_thread}");
        }
    }
}

/// Regression: an address that an earlier call had left on top of the frame of `dsin` was taken for its
/// return address.
#[test]
fn a_stub_that_is_known_to_have_a_frame_leads_by_it() {
    static FRAMES: StubFrames = StubFrames::new();
    // push rbp; mov rbp, rsp; nop…
    let code = [&[0x55, 0x48, 0x8b, 0xec][..], &[0x90; 0x40]].concat();
    let mut world = World::new();
    let (caller, return_pc) = compiled_caller(&mut world);
    let stub = world.frameless_blob("StubRoutines (1)", &code);
    FRAMES.add(CodeRange { start: stub, end: stub + code.len() as u64 });
    world.layout.stubs.framed = Some(&FRAMES);
    world.set(CALLER_SP - 8, return_pc).set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 0x30, DISPATCH);
    let frames = world.walk(stub + 8, CALLER_SP - 0x30, CALLER_SP - 16, &[]);
    assert_eq!(frames, [(Stub, stub + 8, 0), (Compiled, caller, 7)]);
}

/// Regression: C1's slow_subtype_check pushes eight words in JDK 25, and RBP leads past its caller.
#[test]
fn a_stub_without_a_frame_size_is_left_over_the_words_that_it_pushed() {
    let mut world = World::new();
    let (root, root_pc) = compiled_caller(&mut world);
    let (method, code) = world.compiled();
    let sp = CALLER_SP - 0x30;
    // The two arguments that C1 has pushed are below the frame.
    world.set(CALLER_SP - 8, root_pc).set(sp - 24, code + 0x80);
    for name in ["C1 Runtime slow_subtype_check_blob", "slow_subtype_check Runtime1 stub"] {
        let stub = world.blob(&BlobSpec {
            name,
            code: &[0x90; 0x40],
            frame_bytes: -8,
            frame_complete: -1,
            method: 0,
        });
        for words in [0, 1, 8] {
            // RBP has the caller's value, which happens to point below a return address.
            let frames = world.walk(stub + 0x20, sp - 24 - 8 * words, CALLER_SP - 16, &[]);
            let expected = [(Stub, stub + 0x20, 0), (Compiled, method, 7), (Compiled, root, 7)];
            assert_eq!(frames, expected, "{name}, {words} words");
        }
    }
}

/// Regression: for C1's stub of a load barrier the walk took a saved register for the return address, and
/// took the arguments of the calling method for the method's own frame (ZGC).
#[test]
fn the_stub_of_a_load_barrier_is_left_by_its_record() {
    const CALLS: usize = 0x300;
    // `add rsp, 16; mov rcx, rax; pop rax; jmp` to 0x80 of the code, and variants without the optional
    // instructions.
    let jump = |at: usize| [&[0xe9][..], &(0x80 - (CALLS + at + 5) as i32).to_le_bytes()].concat();
    let add = [0x48, 0x83, 0xc4, 0x10];
    for (pushed, after) in [
        (24, [&add[..], &[0x48, 0x8b, 0xc8, 0x58], &jump(8)].concat()),
        (16, [&add[..], &[0x48, 0x8b, 0xc8], &jump(7)].concat()),
        (16, [&add[..], &jump(4)].concat()),
    ] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, code) = world.compiled_with(&[(CALLS, &after)]);
        let (vm_method, vm_code) = world.compiled();
        let stub = world.blob(&BlobSpec {
            name: "load_barrier_on_oop_field_preloaded_runtime_stub",
            code: &[0x90; 0x40],
            frame_bytes: -8,
            frame_complete: -1,
            method: 0,
        });
        let method_sp = CALLER_SP - 0x30;
        world.set(CALLER_SP - 8, return_pc).set(CALLER_SP - 16, 0x1234);
        let record = method_sp - pushed - 16;
        world.set(record, 0x1234).set(record + 8, code + CALLS as u64);
        // A return address of an earlier call is among the registers that the stub has saved.
        let sp = record - 0x80;
        world.set(sp + 0x28, return_pc).set(sp + 0x18, return_pc);
        world.set(sp - 8, stub + 0x20).set(sp - 16, record);
        let frames = world.walk(vm_code + 0x80, sp - 0x30, 0, &[]);
        let expected =
            [(Compiled, vm_method, 7), (Stub, stub + 0x1f, 0), (Compiled, method, 7), (Compiled, caller, 7)];
        assert_eq!(frames, expected, "{after:x?}");
    }
}

/// Regression: bytes after a call that look like the end of C1's barrier stub were taken for the end of such
/// a stub.
#[test]
fn a_call_of_the_methods_own_code_has_nothing_on_the_frame() {
    let mut world = World::new();
    let (caller, return_pc) = compiled_caller(&mut world);
    // mov rbx, [rax]; jmp back
    let (method, code) = world.compiled_with(&[(0x90, &[0x48, 0x8b, 0x58, 0xeb, 0xe0])]);
    let (vm_method, vm_code) = world.compiled();
    let stub = world.blob(&BlobSpec {
        name: "RuntimeStub - something",
        code: &[0x90; 0x40],
        frame_bytes: 0x20,
        frame_complete: -1,
        method: 0,
    });
    let sp = CALLER_SP - 0x30;
    world.set(CALLER_SP - 8, return_pc).set(CALLER_SP - 16, 0x1234);
    world.set(sp - 8, code + 0x80).set(sp - 0x28, stub + 0x20);
    let frames = world.walk(vm_code + 0x80, sp - 0x50, 0, &[]);
    let methods: Vec<_> = frames.iter().map(|frame| (frame.0, frame.1)).collect();
    let expected = [(Compiled, vm_method), (Stub, stub + 0x1f), (Compiled, method), (Compiled, caller)];
    assert_eq!(methods, expected);
}

/// Regression: the stack of a thread that the agent does not know yet was lost in the leaf stubs for JNI's
/// fast functions.
#[test]
fn a_leaf_stub_below_native_code_returns_by_the_top_of_the_stack() {
    const NATIVE: u64 = 0x40_0000;
    let identity = IdentityWord { address: RuntimeAddr(NATIVE), value: 42 };
    let object = LoadedObject {
        index: ObjectIndex(7),
        load_bias: LoadBias(NATIVE),
        build_id: None,
        identity,
        unwind: OnceLock::new(),
        frame_header: None,
        text: ElfVaddr(0)..ElfVaddr(0x1000),
    };
    let (start, end) = (RuntimeAddr(NATIVE), RuntimeAddr(NATIVE + 0x1000));
    let mut world = World::new();
    world.java_thread = 0;
    world.objects = ObjectMap::new(vec![TextRange { start, end, object: Arc::new(object) }], 0);
    // call rax, in front of the return address.
    world.memory.put_u64(NATIVE, 42).put(NATIVE + 0x80, [0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0]);
    let stub = world.frameless_blob("jni_fast_GetLongField", &[0x90; 0x40]);
    world.set(STACK + 0x100, NATIVE + 0x87);
    let frames = world.walk(stub + 8, STACK + 0x100, 0, &[]);
    assert_eq!(frames[..2], [(Stub, stub + 8, 0), (Native, NATIVE + 0x86, 7)]);
    // A word that is no return address is not followed.
    world.set(STACK + 0x100, NATIVE + 0x20);
    let frames = world.walk(stub + 8, STACK + 0x100, 0, &[]);
    assert_eq!(frames, [(Stub, stub + 8, 0), (Unwalkable, stub + 8, WalkError::UnknownCode as i32)]);
}

/// Regression: while the return address was in a register, the walk went on at the caller's caller, by RBP.
#[test]
fn a_method_handles_entry_keeps_the_caller_while_the_return_address_is_in_a_register() {
    for (stage, on_stack, in_register, is_caller_found) in [
        ("at the start", DISPATCH, 0, true),
        ("return address popped", 0x99, DISPATCH, true),
        ("neither", 0x99, 0x99, false),
    ] {
        let mut world = World::new();
        let (root, return_pc) = compiled_caller(&mut world);
        let (method, bytecodes) = world.method();
        let entry = world.frameless_blob("MethodHandles adapters", &[0x90; 0x40]);
        let fp = CALLER_SP - 0x20;
        interpreted_frame(&mut world, fp, method, bytecodes + 3, return_pc, (CALLER_SP, 0x1234));
        let sp = fp - 0x60;
        world.set(sp, on_stack);
        let frames = world.walk(entry + 8, sp, fp, &[(0, in_register)]);
        let expected = if is_caller_found {
            vec![(Stub, entry + 8, 0), (Interpreted, method, 3), (Compiled, root, 7)]
        } else {
            vec![(Stub, entry + 8, 0), (Unwalkable, entry + 8, WalkError::NoFrameSize as i32)]
        };
        assert_eq!(frames, expected, "{stage}");
    }
}

/// Regression: when an adapter had made room for arguments, the walk looked for the caller's frame below its
/// place.
#[test]
fn a_method_handles_entry_that_compiled_code_has_called_takes_the_senders_sp_from_r13() {
    for (stage, above, in_register) in
        [("at the start", 0x28, false), ("return address popped", 0x20, true), ("put back", 0x20, false)]
    {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let entry = world.frameless_blob("MethodHandles adapters", &[0x90; 0x40]);
        let sp = CALLER_SP - above;
        world.set(sp, if in_register { 0x99 } else { return_pc });
        let rax = if in_register { return_pc } else { 0 };
        let frames = world.walk(entry + 8, sp, 0x1234, &[(0, rax), (13, CALLER_SP)]);
        assert_eq!(frames, [(Stub, entry + 8, 0), (Compiled, caller, 7)], "{stage}");
    }
}

/// Regression: when the entry's barrier had saved registers, the word on top of the stack was taken for the
/// return address (all versions).
#[test]
fn a_method_handles_entry_is_left_over_the_registers_that_its_barrier_saved() {
    // pop rax; pop rbx; push rax; …; jmp [rbx + 0x40]
    let before = [0x58, 0x5b, 0x50];
    let code = [&before[..], &BARRIER.concat(), &[0xff, 0x63, 0x40]].concat();
    for (offset, saved) in barrier_stages() {
        let mut world = World::new();
        let (caller, method, callers) = called_by_compiled(&mut world);
        let entry = world.frameless_blob("MethodHandles adapters", &code);
        let pc = entry + before.len() as u64 + offset;
        let slot = caller.sp - 0x18;
        world.set(slot, caller.pc);
        let frames = world.walk(pc, slot - saved, caller.fp, &[(0, 0x4242), (13, caller.sp)]);
        assert_eq!(frames, [&[(Stub, pc, 0), (Compiled, method, 7)][..], &callers].concat(), "at {offset}");
    }
}

/// Regression: the walk left the entry by RBP, which is the caller's own (all versions).
#[test]
fn a_c_function_that_a_method_handles_entry_has_called_leads_to_the_entrys_caller() {
    const R13: usize = 13;
    let code = [&BARRIER.concat()[..], &[0xff, 0x63, 0x40]].concat();
    let (_, saved) = barrier_stages().into_iter().find(|stage| stage.0 == BARRIER_RETURNED).unwrap();
    for way in each_way_to_keep(R13) {
        let mut world = World::new();
        let (caller, method, callers) = called_by_compiled(&mut world);
        let pc = world.frameless_blob("MethodHandles adapters", &code) + BARRIER_RETURNED;
        let slot = caller.sp - 0x18;
        let (sp, r13) = call_functions(&mut world, way, (slot - saved, pc), caller.sp);
        world.set(slot, caller.pc);
        let entry = [&NATIVE_FRAMES[..], &[(Stub, pc - 1, 0)]].concat();
        let expected = match way.2 {
            None => vec![(Unwalkable, pc, WalkError::NoFrameSize as i32)],
            Some(_) => [&[(Compiled, method, 7)][..], &callers].concat(),
        };
        let frames = world.walk(INNER_PC, sp, caller.fp, &[(R13, r13)]);
        assert_eq!(frames, [&entry[..], &expected].concat(), "{way:02x?}");
        // An interpreted caller is found without the register.
        world.set(slot, DISPATCH);
        assert_eq!(world.walk(INNER_PC, sp, caller.fp, &[]), [&entry[..], &callers].concat());
    }
}

/// Regression: the stub of JDK 11's load reference barrier has fourteen registers between its frame and its
/// return address. When it had called the collector it had no caller, and when it was interrupted RBP led
/// past its caller.
#[test]
fn a_collectors_stub_is_left_over_the_registers_that_it_has_pushed() {
    // push rdi; push r8; mov rdi, rax; test r8, r8; jnz; pop r8; pop rdi; ret; push rcx; push rdx; push rdi;
    // push r8 … r15; push rbp; mov rbp, rsp; and rsp, -16; sub rsp, 0x200; fxsave [rsp]; call; fxrstor [rsp];
    // add rsp, 0x200; mov rsp, rbp; pop rbp; pop r15 … r8; pop rdi; pop rdx; pop rcx; pop r8; pop rdi; ret
    let slow: [(&[u8], u64); 15] = [
        (&[0x51, 0x52, 0x57], 3),
        (
            &[0x41, 0x50, 0x41, 0x51, 0x41, 0x52, 0x41, 0x53, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57],
            8,
        ),
        (&[0x55], 1),
        (&[0x48, 0x8b, 0xec], 0),
        (&[0x48, 0x83, 0xe4, 0xf0], 0),
        (&[0x48, 0x81, 0xec, 0, 2, 0, 0], 64),
        (&[0x0f, 0xae, 0x04, 0x24], 0),
        (&[0xe8, 0, 0, 0, 0x10], 0),
        (&[0x0f, 0xae, 0x0c, 0x24], 0),
        (&[0x48, 0x81, 0xc4, 0, 2, 0, 0], 0),
        (&[0x48, 0x8b, 0xe5], 0),
        (&[0x5d], 0),
        (
            &[0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x41, 0x5b, 0x41, 0x5a, 0x41, 0x59, 0x41, 0x58],
            0,
        ),
        (&[0x5f, 0x5a, 0x59, 0x41, 0x58, 0x5f], 0),
        (&[0xc3], 0),
    ];
    let fast = [0x57, 0x41, 0x50, 0x48, 0x8b, 0xf8, 0x4d, 0x85, 0xc0, 0x75, 4, 0x41, 0x58, 0x5f, 0xc3];
    let code = [&fast[..], &slow.map(|(code, _)| code).concat()].concat();
    let offset_of = |number: usize| {
        fast.len() as u64 + slow[..number].iter().map(|(code, _)| code.len() as u64).sum::<u64>()
    };
    // The offset of an instruction, the words that are pushed there, and whether RBP points to the stub's
    // frame there.
    let stages = [
        (0, 0, false),
        (1, 1, false),
        (3, 2, false),
        (13, 1, false),
        (14, 0, false),
        (offset_of(0), 2, false),
        (offset_of(1), 5, false),
        (offset_of(2), 13, false),
        (offset_of(3), 14, false),
        (offset_of(5), 14, true),
        (offset_of(7), 14 + 64, true),
        (offset_of(8), 14 + 64, true),
        (offset_of(10), 14, true),
        (offset_of(11), 14, true),
        (offset_of(12), 13, false),
        (offset_of(13), 5, false),
        (offset_of(14), 0, false),
    ];
    for (offset, pushed, has_frame) in stages {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (vm_method, vm_code) = world.compiled();
        let stub = world.frameless_blob("shenandoah_barrier_stubs", &code);
        // The caller's RBP points to a frame, too, but not to the next one.
        let callers_fp = CALLER_SP + 0x40;
        world.set(callers_fp, CALLER_SP + 0x80).set(callers_fp + 8, return_pc);
        let frame = CALLER_SP - 8 - 14 * 8;
        world.set(CALLER_SP - 8, return_pc).set(frame, callers_fp);
        let (sp, fp) = (CALLER_SP - 8 - 8 * pushed, if has_frame { frame } else { callers_fp });
        let frames = world.walk(stub + offset, sp, fp, &[]);
        assert_eq!(frames, [(Stub, stub + offset, 0), (Compiled, caller, 7)], "at {offset}");
        if offset == offset_of(8) {
            world.set(sp - 8, stub + offset).set(sp - 16, frame);
            let frames = world.walk(vm_code + 0x80, sp - 0x30, 0x1234, &[]);
            assert_eq!(
                frames,
                [(Compiled, vm_method, 7), (Stub, stub + offset - 1, 0), (Compiled, caller, 7)]
            );
        }
    }
}

/// Regression: ZGC's stub of JDK 11, which has no frame, was left in the same wrong way.
#[test]
fn a_collectors_stub_without_a_frame_is_left_over_the_registers_that_it_has_pushed() {
    // push rax, rcx, rdx, rdi, r8; mov rsi, r11; mov rdi, [r11]; call; mov r11, rax;
    // pop r8, rdi, rdx, rcx, rax; ret
    let code = [
        &[0x50, 0x51, 0x52, 0x57, 0x41, 0x50, 0x49, 0x8b, 0xf3, 0x49, 0x8b, 0x3b, 0xe8, 0, 0, 0, 0x10][..],
        &[0x4c, 0x8b, 0xd8, 0x41, 0x58, 0x5f, 0x5a, 0x59, 0x58, 0xc3],
    ]
    .concat();
    const RETURNED: u64 = 17;
    for (offset, pushed) in
        [(0, 0), (1, 1), (4, 4), (6, 5), (12, 5), (RETURNED, 5), (20, 5), (22, 4), (25, 1), (26, 0)]
    {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (vm_method, vm_code) = world.compiled();
        let stub = world.frameless_blob("zgc_load_barrier_stubs", &code);
        let callers_fp = CALLER_SP + 0x40;
        world.set(callers_fp, CALLER_SP + 0x80).set(callers_fp + 8, return_pc).set(CALLER_SP - 8, return_pc);
        let sp = CALLER_SP - 8 - 8 * pushed;
        let frames = world.walk(stub + offset, sp, callers_fp, &[]);
        assert_eq!(frames, [(Stub, stub + offset, 0), (Compiled, caller, 7)], "at {offset}");
        if offset == RETURNED {
            world.set(sp - 8, stub + offset).set(sp - 16, callers_fp);
            let frames = world.walk(vm_code + 0x80, sp - 0x30, 0x1234, &[]);
            let expected = [(Compiled, vm_method, 7), (Stub, stub + offset - 1, 0), (Compiled, caller, 7)];
            assert_eq!(frames, expected);
        }
    }
}

#[test]
fn vtable_and_itable_stubs_have_the_return_address_on_top() {
    // mov r10d, [rsi+8]; nop…; jmp [rbx+0x40]
    let code = [&[0x44, 0x8b, 0x56, 0x08][..], &[0x90; 0x40], &[0xff, 0x63, 0x40]].concat();
    for (stage, offset) in [("first", 0), ("inside", 0x20), ("at jmp", 0x44)] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (_, gone) = world.compiled();
        let stub = world.frameless_blob("vtable chunks", &code);
        // RBP has the caller's value, and points to an older frame. The call is through an inline cache whose
        // instruction has been replaced meanwhile, so the return address is not after a call.
        world
            .set(CALLER_SP - 8, return_pc + 1)
            .set(CALLER_SP + 0x40, 0x1234)
            .set(CALLER_SP + 0x48, gone + 0x80);
        let frames = world.walk(stub + offset, CALLER_SP - 8, CALLER_SP + 0x40, &[]);
        assert_eq!(frames, [(Stub, stub + offset, 0), (Compiled, caller, 7)], "{stage}");
    }
}

/// push -1; push rbp; mov rbp, rsp; nop…; leave; add rsp, 8; ret; nop…;
/// leave; test rsp, [rsp]; mov rsp, [rsp]; jmp [rsp - 8]
fn entry_barrier(world: &mut World) -> u64 {
    let mut code = vec![0x6a, 0xff, 0x55, 0x48, 0x8b, 0xec];
    code.resize(0x40, 0x90);
    code.extend([0xc9, 0x48, 0x83, 0xc4, 0x08, 0xc3]);
    code.resize(0x60, 0x90);
    code.extend([0xc9, 0x48, 0x85, 0x24, 0x24, 0x48, 0x8b, 0x24, 0x24, 0xff, 0x64, 0x24, 0xf8]);
    let stub = world.frameless_blob("StubRoutines (2)", &code);
    world.layout.stubs.method_entry_barrier = CodeRange { start: stub, end: stub + code.len() as u64 };
    stub
}

/// The method's RBP may also point to an older frame, little above the stub's SP.
#[test]
fn the_entry_barriers_stub_leads_to_the_method_that_has_called_it() {
    for (stage, offset, above, is_own) in [
        ("at push -1", 0, 0, false),
        ("at push rbp", 2, 8, false),
        ("at mov", 3, 16, false),
        ("inside", 0x20, 0x90, true),
        ("at leave", 0x40, 0x90, true),
        ("at add", 0x41, 8, false),
        ("at ret", 0x45, 0, false),
    ] {
        for methods_fp in [0x1234, CALLER_SP + 0x40] {
            let mut world = World::new();
            let (caller, return_pc) = compiled_caller(&mut world);
            let (_, gone) = world.compiled();
            let stub = entry_barrier(&mut world);
            // Return addresses of older calls lie below the saved RBP.
            for word in 4..0x14 {
                world.set(CALLER_SP - 8 * word, gone + 0x80);
            }
            world.set(CALLER_SP - 8, return_pc).set(CALLER_SP - 16, u64::MAX).set(CALLER_SP - 24, methods_fp);
            let fp = if is_own { CALLER_SP - 24 } else { methods_fp };
            let frames = world.walk(stub + offset, CALLER_SP - 8 - above, fp, &[]);
            assert_eq!(
                frames,
                [(Stub, stub + offset, 0), (Compiled, caller, 7)],
                "{stage}, RBP {methods_fp:#x}"
            );
        }
    }
}

/// A method that is no longer to be entered is resolved again by its caller, and the stub removes the
/// method's frame with its own.
#[test]
fn the_entry_barriers_stub_leads_past_a_method_that_is_resolved_again() {
    for (stage, offset, is_own) in [
        ("inside", 0x50, true),
        ("at leave", 0x60, true),
        ("at test", 0x61, false),
        ("at mov", 0x65, false),
        ("at jmp", 0x69, false),
    ] {
        for methods_fp in [0x1234, CALLER_SP + 0x40] {
            let mut world = World::new();
            let (caller, return_pc) = compiled_caller(&mut world);
            let (_, gone) = world.compiled();
            let stub = entry_barrier(&mut world);
            let callers_sp = CALLER_SP - 8;
            let return_slot = callers_sp - 0x30;
            world.set(callers_sp, return_pc).set(callers_sp - 8, stub).set(return_slot, gone + 0x80);
            world.set(return_slot - 8, callers_sp).set(return_slot - 16, methods_fp);
            let (sp, fp) = match stage {
                "at jmp" => (callers_sp, methods_fp),
                _ if is_own => (return_slot - 0x80, return_slot - 16),
                _ => (return_slot - 8, methods_fp),
            };
            let frames = world.walk(stub + offset, sp, fp, &[]);
            assert_eq!(
                frames,
                [(Stub, stub + offset, 0), (Compiled, caller, 7)],
                "{stage}, RBP {methods_fp:#x}"
            );
        }
    }
}

//! Compiled code that searches through the supertypes of a class, interrupted with words of its own on the
//! stack.

use otlpprof_core::record::FrameKind::{Compiled, Stub};

use crate::walk::tests::vm_world::*;

/// `push`, `pop` of rsi and r8.
const PUSH_RSI: &[u8] = &[0x56];
const POP_RSI: &[u8] = &[0x5e];
const PUSH_R8: &[u8] = &[0x41, 0x50];
const POP_R8: &[u8] = &[0x41, 0x58];

/// Checks a method with a complete frame and with `code` in it at each of the `stages`: the offset in `code`,
/// and the bytes on top of the frame. C1's stub is the first blob of the code cache.
fn assert_walked(name: &str, code: &dyn Fn(i32) -> Vec<u8>, stages: &[(usize, u64)]) {
    const AT: usize = 0x40;
    for &(offset, pushed) in stages {
        let mut world = World::new();
        let stub = slow_subtype_check(&mut world);
        let (caller, return_pc) = compiled_caller(&mut world);
        // This blob is the third of the code cache, after the stub and the caller.
        let own_code = stub + 2 * 0x1000;
        let distance = |call: usize| (stub as i64 - (own_code as i64 + (AT + call + 5) as i64)) as i32;
        // The call is at the first call opcode of the code.
        let call = code(0).iter().position(|&byte| byte == 0xe8).unwrap_or(0);
        let (callee, callee_code) = world.compiled_with(&[(AT, &code(distance(call)))]);
        assert_eq!(callee_code, own_code);
        let sp = CALLER_SP - 0x30;
        world.set(sp + 0x20, 0x1234).set(sp + 0x28, return_pc);
        // The words that would be read for the caller if the pushed words were not counted.
        world.set(sp + 0x18, 0x4242).set(sp + 0x20 - 8, 0x4242);
        let frames = world.walk(callee_code + (AT + offset) as u64, sp - pushed, 0, &[]);
        assert_eq!(frames, [(Compiled, callee, 7), (Compiled, caller, 7)], "{name} at {offset}");
    }
}

fn slow_subtype_check(world: &mut World) -> u64 {
    let spec = BlobSpec {
        name: "slow_subtype_check Runtime1 stub",
        code: &[0x57, 0x56, 0x90, 0x5e, 0x5f, 0xc3],
        frame_bytes: 0,
        frame_complete: -1,
        method: 0,
    };
    world.blob(&spec)
}

fn call(distance: i32) -> Vec<u8> {
    [&[0xe8][..], &distance.to_le_bytes()].concat()
}

/// Regression: under C1, 2 % of the samples of a program that checks for interfaces were broken.
#[test]
fn the_classes_that_c1_pushes_for_a_subtype_check_are_not_the_frames() {
    // push rsi; push r8; call; pop rsi; pop rsi: the word popped last is the answer.
    let check = |distance| [PUSH_RSI, PUSH_R8, &call(distance), POP_RSI, POP_RSI, &[0x85, 0xf6]].concat();
    assert_walked("check", &check, &[(0, 0), (1, 8), (3, 16), (8, 16), (9, 8), (10, 0)]);
    // The check with the registers exchanged, each popped once, as for a store into an array.
    let store = |distance| [PUSH_R8, PUSH_RSI, &call(distance), POP_R8, POP_RSI, &[0x85, 0xf6]].concat();
    assert_walked("store", &store, &[(0, 0), (2, 8), (3, 16), (8, 16), (10, 8), (11, 0)]);
}

#[test]
fn the_arrays_below_the_classes_are_counted_too() {
    let copy = |distance| [PUSH_RSI, PUSH_R8, &call(distance), POP_R8, POP_RSI, &[0x85, 0xf6]].concat();
    assert_walked("copy", &copy, &[(1, 24), (3, 32), (8, 32), (10, 24)]);
}

/// Regression: under JDK 11's C2, 60 % of the samples of such a program were broken, some with a wrong
/// caller.
#[test]
fn the_register_that_c2_saves_while_it_scans_is_not_the_frames() {
    // push rax; mov rdi, [rsi+0x20]; mov ecx, [rdi]; add rdi, 8; test rax, rax; repne scasq; pop rax; jne
    let scan = [
        &[0x50][..],
        &[0x48, 0x8b, 0x7e, 0x20],
        &[0x8b, 0x0f],
        &[0x48, 0x83, 0xc7, 0x08],
        &[0x48, 0x85, 0xc0],
        &[0xf2, 0x48, 0xaf],
        &[0x58],
        &[0x75, 0x10],
    ]
    .concat();
    let stages = [(0, 0), (1, 8), (5, 8), (7, 8), (11, 8), (14, 8), (17, 8), (18, 0)];
    assert_walked("scan", &|_| scan.clone(), &stages);
    // A thread may be interrupted between one search and the next.
    let two = [&scan[..], &[0x90], &scan[..]].concat();
    assert_walked("between", &|_| two.clone(), &[(18, 0), (20, 0), (21, 0), (22, 8)]);
}

#[test]
fn c1s_stub_leads_over_the_words_that_its_caller_has_pushed() {
    for (name, pops, pushed) in
        [("classes", [POP_RSI, POP_RSI].concat(), 16), ("arrays", [POP_R8, POP_RSI].concat(), 32)]
    {
        let mut world = World::new();
        let stub = slow_subtype_check(&mut world);
        let (caller, return_pc) = compiled_caller(&mut world);
        let code = [PUSH_RSI, PUSH_R8, &call(0), &pops].concat();
        let (callee, callee_code) = world.compiled_with(&[(0x40, &code)]);
        let sp = CALLER_SP - 0x30;
        world.set(sp + 0x20, 0x1234).set(sp + 0x28, return_pc);
        world.set(sp - pushed - 8, callee_code + 0x48);
        let frames = world.walk(stub + 5, sp - pushed - 8, 0, &[]);
        assert_eq!(frames, [(Stub, stub + 5, 0), (Compiled, callee, 7), (Compiled, caller, 7)], "{name}");
    }
}

//! Described functions that have called others and whose frame is found by a register other than SP and FP.
//! The register's value is recovered from the frames of the functions that were called since.

use otlpprof_core::frame_rules::native;
use otlpprof_core::record::FrameKind::{Native, Unwalkable};

use super::described_code::{FUNCTION_BYTES, Function, NATIVE, load_functions, saved};
use super::vm_world::*;
use crate::walk::WalkError;

const LEAF_SP: u64 = STACK + 0x100;
const LEAF_BYTES: u8 = 0x20;
const MIDDLE_SP: u64 = LEAF_SP + LEAF_BYTES as u64;
/// The CFA, after the memory that the function has aligned and allocated.
const MIDDLE_CFA: u64 = MIDDLE_SP + 0x400;
const REGISTER: u8 = 3;

/// The interrupted instruction in the leaf, and return addresses into the two functions after it.
const LEAF_PC: u64 = NATIVE + 0x10;
const MIDDLE_PC: u64 = NATIVE + FUNCTION_BYTES + 0x10;
const ROOT_PC: u64 = NATIVE + 2 * FUNCTION_BYTES + 0x10;

/// A leaf, its caller with the instructions `middle`, and the thread's entry. `leaf` are the instructions of
/// the leaf's description about the register.
fn world(leaf: &[u8], middle: &[u8]) -> World {
    let mut world = World::new();
    world.java_thread = 0;
    let undefined_return = [0x07, native::ARCHITECTURE.return_address as u8];
    load_functions(
        &mut world,
        &[
            Function { frame_bytes: LEAF_BYTES, program: leaf },
            Function { frame_bytes: 8, program: middle },
            Function { frame_bytes: 8, program: &undefined_return },
        ],
    );
    world.set(LEAF_SP + 0x18, MIDDLE_PC).set(MIDDLE_CFA - 8, ROOT_PC);
    world
}

/// `DW_CFA_def_cfa`: the register plus 16, as `_dl_runtime_resolve_xsavec` has it for rbx after aligning the
/// stack.
const BY_REGISTER: [u8; 3] = [0x0c, REGISTER, 16];

#[test]
fn a_frame_found_by_a_register_is_left_by_its_value_that_callees_saved() {
    let value = MIDDLE_CFA - 16;
    let lost = [0x07, REGISTER];
    for (leaf, in_register, in_frame, is_known) in [
        (&[][..], value, 0, true),
        (&saved(REGISTER, 2), 0x4242, value, true),
        (&saved(5, 2), value, 0x4242, true),
        (&lost, value, value, false),
    ] {
        let mut world = world(leaf, &BY_REGISTER);
        world.set(LEAF_SP + 0x10, in_frame);
        let frames = world.walk(LEAF_PC, LEAF_SP, 0, &[(REGISTER.into(), in_register)]);
        let label = format!("{leaf:02x?}: {frames:x?}");
        assert_eq!(frames[..2], [(Native, LEAF_PC, 5), (Native, MIDDLE_PC - 1, 5)], "{label}");
        match is_known {
            true => assert_eq!(frames[2..], [(Native, ROOT_PC - 1, 5)], "{label}"),
            false => {
                assert_eq!(
                    frames[2..],
                    [(Unwalkable, MIDDLE_PC, WalkError::UnsupportedRule as i32)],
                    "{label}"
                );
            }
        }
    }
}

/// Recovering one frame's register would need the caller of another such frame, and the other way round.
#[test]
fn a_register_is_not_looked_for_through_frames_that_registers_lead_to() {
    let mut world = world(&BY_REGISTER, &BY_REGISTER);
    let register = LEAF_SP + u64::from(LEAF_BYTES) - 16;
    let frames = world.walk(LEAF_PC, LEAF_SP, 0, &[(REGISTER.into(), register)]);
    // The leaf's register is known. The middle frame's register has the same value, which does not lead on.
    assert_eq!(frames[..2], [(Native, LEAF_PC, 5), (Native, MIDDLE_PC - 1, 5)]);
    assert_eq!(frames.last().unwrap().0, Unwalkable);
}

/// bn_mul_mont of OpenSSL and BoringSSL keeps the caller's SP after an array of `r9` words and one more.
#[test]
fn a_frame_above_an_array_is_left_by_the_stack_pointer_stored_after_the_array() {
    const LENGTH: u64 = 32;
    let register = 9_u8;
    let base = 0x70 + otlpprof_core::frame_rules::native::ARCHITECTURE.sp as u8;
    // DW_OP_breg(SP) 8; DW_OP_breg(index) 0; DW_OP_lit8; DW_OP_mul; DW_OP_plus; DW_OP_deref;
    // DW_OP_plus_uconst 8.
    let operations: Vec<u8> = match base {
        0x70..=0x8f => vec![base, 8, 0x70 + register, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8],
        _ => unreachable!("32 registers have an operation of their own"),
    };
    // DW_CFA_def_cfa_expression
    let middle = [&[0x0f, operations.len() as u8], &operations[..]].concat();
    for (leaf, in_register, in_frame) in [(&[][..], LENGTH, 0), (&saved(register, 2), 0x4242, LENGTH)] {
        let mut world = world(leaf, &middle);
        world.set(MIDDLE_SP + LENGTH * 8 + 8, MIDDLE_CFA - 8).set(LEAF_SP + 0x10, in_frame);
        let frames = world.walk(LEAF_PC, LEAF_SP, 0, &[(register.into(), in_register)]);
        assert_eq!(
            frames,
            [(Native, LEAF_PC, 5), (Native, MIDDLE_PC - 1, 5), (Native, ROOT_PC - 1, 5)],
            "{leaf:02x?}"
        );
    }
}

//! The walkers over recorded states: a small VM built of bytes, in which tests make each kind of frame.
//!
//! | The little VM | Duty |
//! |---|---|
//! | `little_vm` | the structures of a VM that tests build of bytes |
//! | `vm_world` | that VM with a code cache, an interpreter, methods, and a stack |
//! | `described_code` | native code with call frame information in memory |
//! | `counted_memory` | memory that counts its loads |
//! | `every_rule` | unwind rules of each kind |
//!
//! | Tests | Duty |
//! |---|---|
//! | `walks` | whole walks: roots, ends, marks |
//! | `modes` | the results of each walker for one mixed stack |
//! | `native` | native frames by unwind table |
//! | `cfa_registers` | native frames that are found by a register other than SP and FP |
//! | `frameless_entry_callers` | callers of an interpreter's entry without a frame |
//! | `barrier_stubs` | stubs of compiled code that call a collector's slow path |
//! | `deoptimized` | frames that are being turned from compiled into interpreted ones |
//! | `continuation` | frozen frames, and the stubs that thaw them |
//! | `leaving` | a virtual thread that is leaving its stack |
//! | `thawing` | threads whose frames are in the chunk, or already on the stack |
//! | `relocated` | references that ZGC has yet to update |
//! | `corrupted` | states that no VM has |
//!
//! | In the architecture's folder | Duty |
//! |---|---|
//! | `machine` | the little VM's code, and the indices of registers |
//! | `compiled` | compiled methods, at each stage of their frames |
//! | `interpreted` | interpreter frames, at each stage |
//! | `adapters` | interrupted adapters |
//! | `stubs` | interrupted stubs |
//! | `call_stub` | the call stub, at each stage |
//! | `exceptions` | stubs that pass an exception on, at each stage |
//! | `deoptimization_handlers` | code at a method's end that starts its deoptimisation |
//! | `thaw_stages` | the stubs that thaw, once the frame is on the stack again |
//! | `subtype_checks` | compiled code that searches supertypes (x86_64) |
//! | `frame_records` | frame records, which are at the bottom of their frames (aarch64) |
//! | `hand_written` | hand-written code without call frame information, at each instruction |
//! | `undescribed_code` | PLTs and signal trampolines, at each instruction |

mod barrier_stubs;
mod cfa_registers;
mod continuation;
mod corrupted;
mod counted_memory;
mod deoptimized;
mod described_code;
mod every_rule;
mod frameless_entry_callers;
mod leaving;
mod little_vm;
mod modes;
mod native;
mod relocated;
mod thawing;
mod vm_world;
mod walks;

#[cfg(target_arch = "aarch64")]
#[path = "aarch64"]
mod arch {
    mod adapters;
    mod call_stub;
    mod compiled;
    mod deoptimization_handlers;
    mod exceptions;
    mod frame_records;
    mod hand_written;
    mod interpreted;
    pub(super) mod machine;
    mod stubs;
    mod thaw_stages;
    mod undescribed_code;
}

#[cfg(target_arch = "x86_64")]
#[path = "x86_64"]
mod arch {
    mod adapters;
    mod call_stub;
    mod compiled;
    mod deoptimization_handlers;
    mod exceptions;
    mod hand_written;
    mod interpreted;
    pub(super) mod machine;
    mod stubs;
    mod subtype_checks;
    mod thaw_stages;
    mod undescribed_code;
}

use arch::machine;

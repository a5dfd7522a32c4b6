//! The walkers over recorded states: a small VM built of bytes, in which tests make each kind of frame.

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

//! Stops panics before they reach the VM: a panic that reaches a C frame ends the process.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::vm::{Vm, vm};

/// Calls `body` with the VM, once the agent knows the VM. A panic in `body` is caught and logged.
pub(super) fn guarded(what: &str, body: impl FnOnce(&'static Vm)) {
    let Some(vm) = vm() else { return };
    if catch_unwind(AssertUnwindSafe(|| body(vm))).is_err() {
        log::error!("internal error in {what}; profiling continues without it");
    }
}

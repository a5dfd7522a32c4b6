//! Monitors and who waits for them (`runtime/objectMonitor.hpp`, `runtime/vmStructs.cpp`, 11-25).

use super::LayoutError;
use crate::core::vm_layout::{MonitorLayout, MonitorOwnerWord};
use crate::jvm::vm_structs::VmStructs;

/// Monitors, as libjvm describes them.
pub(super) fn monitor(structs: &VmStructs) -> Result<MonitorLayout, LayoutError> {
    // The id that a thread puts into the monitors that it enters came with them (24).
    let owner_is = match structs.offset("JavaThread", "_monitor_owner_id") {
        Ok(_) => MonitorOwnerWord::ThreadId,
        Err(_) => MonitorOwnerWord::ThreadOrStack,
    };
    Ok(MonitorLayout {
        pending: structs.offset_in_any(&["JavaThread", "Thread"], "_current_pending_monitor")?,
        owner: structs.offset("ObjectMonitor", "_owner")?,
        owner_is,
    })
}

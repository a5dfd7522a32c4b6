//! Monitors and the threads that wait for them (`runtime/objectMonitor.hpp`, `runtime/vmStructs.cpp`, 11-25).

use super::LayoutError;
use crate::core::vm_layout::{MonitorLayout, MonitorOwnerWord};
use crate::jvm::vm_structs::VmStructs;

/// The layout of monitors, from libjvm's tables.
pub(super) fn monitor(structs: &VmStructs) -> Result<MonitorLayout, LayoutError> {
    // From 24 on monitors store the owner's thread id; `_monitor_owner_id` was added in that version.
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

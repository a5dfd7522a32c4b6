//! Monitors and the threads that wait for them (`runtime/objectMonitor.hpp`, `runtime/vmStructs.cpp`, 11-25).

use super::{LayoutError, Release};
use crate::core::vm_layout::{MonitorLayout, MonitorOwnerWord};
use crate::jvm::vm_structs::VmStructs;

/// The layout of monitors, from libjvm's tables.
pub(super) fn monitor(structs: &VmStructs, release: Release) -> Result<MonitorLayout, LayoutError> {
    let owner_is = match release.has_monitor_owner_id() {
        true => MonitorOwnerWord::ThreadId,
        false => MonitorOwnerWord::ThreadOrStack,
    };
    Ok(MonitorLayout {
        pending: structs.offset_in_any(&["JavaThread", "Thread"], "_current_pending_monitor")?,
        owner: structs.offset("ObjectMonitor", "_owner")?,
        owner_is,
    })
}

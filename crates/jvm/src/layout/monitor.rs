//! Monitors and the threads that wait for them (`runtime/objectMonitor.hpp`, `runtime/vmStructs.cpp`, 11-25).

use otlpprof_core::vm_layout::{MonitorLayout, MonitorOwnerWord};

use super::error::LayoutError;
use crate::vm_structs::VmStructs;

/// The field of a JavaThread with the id of its current thread, virtual or not. With it, from 24 on
/// (JDK-8338383), a monitor has the id of its owner. JDK-8343957 gave the field this name; no other release
/// than 24 had another.
pub(super) const MONITOR_OWNER_ID: &str = "_monitor_owner_id";

/// The layout of monitors, from libjvm's tables.
pub(super) fn monitor(structs: &VmStructs) -> Result<MonitorLayout, LayoutError> {
    let owner_is = match structs.offset("JavaThread", MONITOR_OWNER_ID) {
        Ok(_) => MonitorOwnerWord::ThreadId,
        Err(_) => MonitorOwnerWord::ThreadOrStack,
    };
    Ok(MonitorLayout {
        pending: structs.offset_in_any(&["JavaThread", "Thread"], "_current_pending_monitor")?,
        owner: structs.offset("ObjectMonitor", "_owner")?,
        owner_is,
    })
}

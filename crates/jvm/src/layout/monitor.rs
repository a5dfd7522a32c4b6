//! Monitors and the threads that wait for them (`runtime/objectMonitor.hpp`, `runtime/vmStructs.cpp`, 11-25).

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{MonitorLayout, MonitorOwnerWord, StackBounds};

use super::error::LayoutError;
use super::learnt::Found;
use super::own_stack::OwnStack;
use crate::vm_structs::VmStructs;

/// The field of a JavaThread with the id of its current thread, virtual or not. With it, from 24 on
/// (JDK-8338383), a monitor has the id of its owner. JDK-8343957 gave the field this name; no other release
/// than 24 had another.
pub(super) const MONITOR_OWNER_ID: &str = "_monitor_owner_id";

/// The fields with the bounds of a thread's stack. A Thread has them, and with it a JavaThread.
pub(super) const STACK_BASE: &str = "_stack_base";
const STACK_SIZE: &str = "_stack_size";
const STRUCTURES: [&str; 2] = ["JavaThread", "Thread"];
const WORD_BYTES: u32 = 8;

/// The layout of monitors, from libjvm's tables.
pub(super) fn monitor(structs: &VmStructs) -> Result<MonitorLayout, LayoutError> {
    let owner_is = match structs.offset("JavaThread", MONITOR_OWNER_ID) {
        Ok(_) => MonitorOwnerWord::ThreadId,
        Err(_) => MonitorOwnerWord::ThreadOrStack(StackBounds {
            base: structs.offset_in_any(&STRUCTURES, STACK_BASE)?,
            size: structs.offset_in_any(&STRUCTURES, STACK_SIZE)?,
        }),
    };
    Ok(MonitorLayout {
        pending: structs.offset_in_any(&["JavaThread", "Thread"], "_current_pending_monitor")?,
        owner: structs.offset("ObjectMonitor", "_owner")?,
        owner_is,
    })
}

/// The places of the bounds of a thread's stack, if libjvm does not describe one of them and the owners of
/// monitors are known by stacks: the only two neighbouring words of the current thread's JavaThread that are
/// the end and the size of its stack.
pub(super) fn stack_bounds(
    structs: &VmStructs,
    memory: &dyn Memory,
    java_thread: u64,
    own: Option<&OwnStack>,
) -> Vec<Found> {
    let is_described = |field| structs.offset_in_any(&STRUCTURES, field).is_ok();
    let is_needed = structs.offset("JavaThread", MONITOR_OWNER_ID).is_err();
    let (Some(own), Ok(size)) = (own, structs.size_of("JavaThread")) else { return Vec::new() };
    if java_thread == 0 || !is_needed || is_described(STACK_BASE) && is_described(STACK_SIZE) {
        return Vec::new();
    }
    let word = |offset: u32| memory.load_u64(java_thread.wrapping_add(u64::from(offset)));
    let is_own = |&offset: &u32| {
        word(offset).zip(word(offset + WORD_BYTES)).is_some_and(|(base, size)| own.is(base, size))
    };
    let mut places = (0..size.saturating_sub(2 * WORD_BYTES)).step_by(WORD_BYTES as usize).filter(is_own);
    match (places.next(), places.next()) {
        (Some(offset), None) => [(STACK_BASE, offset), (STACK_SIZE, offset + WORD_BYTES)]
            .map(|(field, offset)| Found { structure: "JavaThread", field, offset })
            .into_iter()
            .filter(|found| !is_described(found.field))
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_core::memory::RecordedMemory;

    use super::*;

    const THREAD: u64 = 0x1000;

    fn found(words: &[u64]) -> Vec<u32> {
        let mut memory = RecordedMemory::default();
        memory.put(THREAD, words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>());
        let mut structs = VmStructs::default();
        structs.set_size("JavaThread", 8 * words.len() as u64);
        let own = OwnStack { stack: 0x7000_0000..0x7010_0000, address: 0x700f_0000 };
        let found = stack_bounds(&structs, &memory, THREAD, Some(&own));
        found.iter().map(|found| found.offset).collect()
    }

    #[test]
    fn the_bounds_are_the_only_words_with_their_values() {
        // The size may leave out the guard pages. A copy of the end has another neighbour.
        assert_eq!(found(&[7, 0x7010_0000, 0x10_0000, 0x7010_0000, 0x7000_0000, 0]), [8, 16]);
        assert_eq!(found(&[7, 0x7010_0000, 0xf_f000, 0, 0]), [8, 16]);
        assert_eq!(found(&[7, 0x7010_0000, 0x10_0008, 0, 0]), []);
        assert_eq!(found(&[7, 0x7010_0008, 0x10_0000, 0, 0]), []);
        assert_eq!(found(&[0x7010_0000, 0x10_0000, 0x7010_0000, 0x10_0000, 0, 0]), []);
    }
}

//! ZGC's forwarding tables (`gc/z/zForwarding*.hpp`, `gc/z/zGeneration.hpp`, 21 and 25; `gc/x`, 21).
//!
//! The serviceability agent's tables describe all of it except the places of the two generations in a ZHeap.

use otlpprof_core::continuation::ForwardingLayout;
use otlpprof_core::memory::Memory;

use super::error::LayoutError;
use crate::vm_structs::VmStructs;

/// An upper bound of the size of a ZHeap.
const MAX_HEAP_BYTES: u64 = 1 << 20;
/// The distance from `_page_allocator` to `_forwarding_table` in a ZGeneration, in bytes; `_page_table` is in
/// between.
const PAGE_ALLOCATOR_TO_FORWARDING_TABLE: u64 = 16;
/// The distance from `_id`, a byte, to `_page_allocator` in a ZGeneration, in bytes.
const ID_TO_PAGE_ALLOCATOR: u64 = 8;
/// The distance from `_entries` to `_ref_lock` in a ZForwarding, in bytes: `_page`, the ages and the mark of
/// a claimed page are in between.
const ENTRIES_TO_REF_LOCK: u32 = 24;
/// The size of a ZConditionLock, in bytes (`gc/z/zLock.hpp`). `_ref_count` follows the lock.
const LOCK_BYTES: u32 = (size_of::<libc::pthread_mutex_t>() + size_of::<libc::pthread_cond_t>()) as u32;

/// The layout of generational ZGC's forwarding tables.
pub(super) fn coloured(structs: &VmStructs, memory: &dyn Memory) -> Result<ForwardingLayout, LayoutError> {
    let heap = collected_heap(structs, memory)? + u64::from(structs.offset("ZCollectedHeap", "_heap")?);
    let allocator = heap + u64::from(structs.offset("ZHeap", "_page_allocator")?);
    let pages = heap + u64::from(structs.offset("ZHeap", "_page_table")?);
    let size = u64::from(structs.size_of("ZHeap")?).min(MAX_HEAP_BYTES);
    // The addresses of the generations' `_page_allocator` fields, by the generations' ids.
    let mut generations = [None; 2];
    for at in (heap..heap + size).step_by(8) {
        let id = memory.load_u8(at.wrapping_sub(ID_TO_PAGE_ALLOCATOR));
        let is_generation = memory.load_u64(at) == Some(allocator) && memory.load_u64(at + 8) == Some(pages);
        if let (true, Some(id)) = (is_generation, id)
            && generations.get_mut(usize::from(id)).is_none_or(|known| known.replace(at).is_some())
        {
            return Err(LayoutError::implausible("ZHeap", "_young", "there are more than two generations"));
        }
    }
    let [Some(young), Some(old)] = generations else {
        return Err(LayoutError::implausible("ZHeap", "_young", "its generations were not found"));
    };
    let map =
        structs.offset("ZForwardingTable", "_map")? + structs.offset("ZGranuleMapForForwarding", "_map")?;
    let table = |generation: u64| {
        pointer(memory, generation + PAGE_ALLOCATOR_TO_FORWARDING_TABLE + u64::from(map), "ZForwardingTable")
    };
    let entries = structs.offset("ZForwarding", "_entries")?;
    Ok(ForwardingLayout {
        tables: [table(young)?, table(old)?],
        granule_shift: granule_shift(structs, "ZGranuleSizeShift")?,
        offset_mask: global(structs, memory, "ZGlobalsForVMStructs", "_ZAddressOffsetMask")?,
        remapped_bit: 0,
        start: structs.offset("ZForwarding", "_virtual")? + structs.offset("ZVirtualMemory", "_start")?,
        alignment_shift: structs.offset("ZForwarding", "_object_alignment_shift")?,
        ref_count: ref_count(structs)?,
        length: entries + structs.offset("ZAttachedArrayForForwarding", "_length")?,
        entries: structs.size_of("ZForwarding")?.next_multiple_of(8),
    })
}

/// The offset of `ZForwarding::_ref_count`. If the offset is not exported, it is calculated from the fields
/// that come before the count; the rest of the structure must have room for the fields after the count.
fn ref_count(structs: &VmStructs) -> Result<u32, LayoutError> {
    structs.offset("ZForwarding", "_ref_count").or_else(|missing| {
        let offset = structs.offset("ZForwarding", "_entries")? + ENTRIES_TO_REF_LOCK + LOCK_BYTES;
        if offset + 4 < structs.size_of("ZForwarding")? { Ok(offset) } else { Err(missing) }
    })
}

/// The layout of single-generation ZGC's forwarding tables. 21 calls that collector X.
pub(super) fn mapped(structs: &VmStructs, memory: &dyn Memory) -> Result<ForwardingLayout, LayoutError> {
    let heap = collected_heap(structs, memory)? + u64::from(structs.offset("XCollectedHeap", "_heap")?);
    let map = structs.offset("XHeap", "_forwarding_table")?
        + structs.offset("XForwardingTable", "_map")?
        + structs.offset("XGranuleMapForForwarding", "_map")?;
    let table = pointer(memory, heap + u64::from(map), "XForwardingTable")?;
    let entries = structs.offset("XForwarding", "_entries")?;
    Ok(ForwardingLayout {
        tables: [table; 2],
        granule_shift: granule_shift(structs, "XGranuleSizeShift")?,
        offset_mask: global(structs, memory, "XGlobalsForVMStructs", "_XAddressOffsetMask")?,
        // The bits, ascending, are Marked0, Marked1, Remapped, Finalizable (gc/x/xGlobals.hpp).
        remapped_bit: global(structs, memory, "XGlobalsForVMStructs", "_XAddressMetadataFinalizable")? >> 1,
        start: structs.offset("XForwarding", "_virtual")? + structs.offset("XVirtualMemory", "_start")?,
        alignment_shift: structs.offset("XForwarding", "_object_alignment_shift")?,
        ref_count: structs.offset("XForwarding", "_ref_count")?,
        length: entries + structs.offset("XAttachedArrayForForwarding", "_length")?,
        entries: structs.size_of("XForwarding")?.next_multiple_of(8),
    })
}

fn collected_heap(structs: &VmStructs, memory: &dyn Memory) -> Result<u64, LayoutError> {
    structs.static_pointer(memory, "Universe", "_collectedHeap")
}

fn granule_shift(structs: &VmStructs, name: &'static str) -> Result<u32, LayoutError> {
    let shift = structs.constant(name)?;
    u32::try_from(shift)
        .ok()
        .filter(|&shift| shift < 64)
        .ok_or_else(|| LayoutError::implausible("ZGlobals", name, format!("it is {shift}")))
}

/// The value of one of ZGC's globals. `structure` has a pointer to the global in `field`.
fn global(
    structs: &VmStructs,
    memory: &dyn Memory,
    structure: &'static str,
    field: &'static str,
) -> Result<u64, LayoutError> {
    let instance = structs.static_pointer(memory, structure, "_instance_p")?;
    let offset = structs.offset(structure, field)?;
    pointer(memory, pointer(memory, instance + u64::from(offset), structure)?, structure)
}

fn pointer(memory: &dyn Memory, at: u64, structure: &'static str) -> Result<u64, LayoutError> {
    let value = memory.load_u64(at).filter(|&value| value != 0);
    value.ok_or_else(|| LayoutError::implausible(structure, "_map", "it cannot be read"))
}

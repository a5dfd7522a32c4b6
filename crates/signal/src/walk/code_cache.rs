//! The code cache as one walk sees it: bounds, heaps, and the block around an address.
//!
//! Bounds and heaps are read once for a walk, not for each frame. If a heap grows meanwhile, the new part
//! holds only code that this thread has not called yet.

use otlpprof_core::address::CodeRange;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{CodeCacheLayout, MAX_CODE_HEAPS, VmLayout};

use super::{Walk, WalkError};

/// The bounds and the heaps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CodeCache {
    bounds: CodeRange,
    heaps: [CodeHeap; MAX_CODE_HEAPS],
}

#[derive(Clone, Copy, Debug, Default)]
struct CodeHeap {
    code: CodeRange,
    segment_map: u64,
    segment_shift: u32,
}

/// The longest chain of segment map hops: each hop is at most 254 segments, and blobs are below 16 MiB.
const MAX_SEGMENT_HOPS: usize = 1024;

impl CodeCache {
    /// Reads the bounds, and the heaps if the thread can have Java frames. Whatever cannot be read stays
    /// empty.
    pub(super) fn read(memory: &impl Memory, layout: &CodeCacheLayout, with_heaps: bool) -> Self {
        let load = |address| memory.load_u64(address);
        let range = |start, end| Some(CodeRange { start: load(start)?, end: load(end)? });
        let bounds = range(layout.low_bound, layout.high_bound).unwrap_or_default();
        let mut heaps = [CodeHeap::default(); MAX_CODE_HEAPS];
        let addresses = layout.heaps.into_iter().take_while(|&heap| heap != 0 && with_heaps);
        for (slot, heap) in heaps.iter_mut().zip(addresses) {
            let field = |field: u32| heap.wrapping_add(u64::from(field));
            let read = || {
                Some(CodeHeap {
                    code: range(field(layout.heap_memory_low), field(layout.heap_memory_high))?,
                    segment_map: load(field(layout.heap_segmap_low))?,
                    segment_shift: memory.load_u32(field(layout.heap_log2_segment_size))?,
                })
            };
            *slot = read().unwrap_or_default();
        }
        Self { bounds, heaps }
    }
}

impl<M: Memory> Walk<'_, M> {
    /// Whether `pc` is in the code cache.
    pub(super) fn in_code_cache(&self, pc: u64) -> bool {
        self.code_cache.bounds.contains(pc)
    }

    /// The CodeBlob in the allocated block around `pc`, found by code heap, segment map and block
    /// (`CodeHeap::find_block_for`, memory/heap.cpp).
    pub(super) fn blob_address(&self, vm: &VmLayout, pc: u64) -> Result<u64, WalkError> {
        let heap = self.code_cache.heaps.iter().find(|heap| heap.code.contains(pc));
        let heap = heap.ok_or(WalkError::NoCodeBlob)?;
        let (low, shift) = (heap.code.start, heap.segment_shift);
        let mut segment = pc.wrapping_sub(low).checked_shr(shift).ok_or(WalkError::Unreadable)?;
        for _ in 0..MAX_SEGMENT_HOPS {
            let hop = self.memory.load_u8(heap.segment_map.wrapping_add(segment));
            match hop.ok_or(WalkError::Unreadable)? {
                0 => {
                    let block = low.wrapping_add(segment.wrapping_shl(shift));
                    let used = block.wrapping_add(u64::from(vm.code_cache.block_used));
                    if self.memory.load_u8(used) != Some(1) {
                        return Err(WalkError::NoCodeBlob);
                    }
                    return Ok(block.wrapping_add(u64::from(vm.code_cache.block_size)));
                }
                u8::MAX => return Err(WalkError::NoCodeBlob),
                hop => segment = segment.checked_sub(u64::from(hop)).ok_or(WalkError::NoCodeBlob)?,
            }
        }
        Err(WalkError::NoCodeBlob)
    }
}

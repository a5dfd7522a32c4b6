//! The code cache as one walk sees it: bounds and heaps.
//!
//! Bounds and heaps are read once for a walk, not for each frame. If a heap grows meanwhile, the new part
//! holds only code that this thread has not called yet.

use otlpprof_core::address::CodeRange;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{CodeCacheLayout, MAX_CODE_HEAPS};

/// The bounds and the heaps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CodeCache {
    pub(super) bounds: CodeRange,
    pub(super) heaps: [CodeHeap; MAX_CODE_HEAPS],
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CodeHeap {
    pub(super) code: CodeRange,
    pub(super) segment_map: u64,
    pub(super) segment_shift: u32,
}

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

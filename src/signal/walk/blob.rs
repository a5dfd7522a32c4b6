//! Code blobs: everything in HotSpot's code cache begins with a header of this kind.

use super::{Walk, WalkError};
use crate::core::memory::Memory;
use crate::core::vm_layout::{BlobPart, VmLayout};

/// What kinds of blobs a walker treats differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlobKind {
    /// A compiled method or a native method's wrapper.
    Nmethod,
    /// "I2C/C2I adapters".
    Adapter,
    /// "vtable chunks": vtable and itable stubs.
    Vtable,
    /// Any other: runtime stubs, StubRoutines, the deoptimisation and safepoint blobs.
    Other,
}

/// One allocated blob.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blob {
    /// The CodeBlob's address.
    pub address: u64,
    pub kind: BlobKind,
    pub code_begin: u64,
    /// In bytes, return address included; 0 or less if the blob has none.
    pub frame_bytes: i64,
}

/// First eight bytes of a blob's name, as they are compared.
const fn name_word(name: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*name)
}

const NMETHOD: u64 = name_word(b"nmethod\0");
const NATIVE_NMETHOD: u64 = name_word(b"native n");
const ADAPTER: u64 = name_word(b"I2C/C2I ");
const VTABLE: u64 = name_word(b"vtable c");

/// The longest chain of segment map hops: each hop is at most 254 segments, and blobs are below 16 MiB.
const MAX_SEGMENT_HOPS: usize = 1024;

impl<M: Memory> Walk<'_, M> {
    /// Whether `pc` is in the code cache.
    pub(super) fn in_code_cache(&self, pc: u64) -> bool {
        let Some(vm) = self.vm else { return false };
        let bound = |address| self.memory.load_u64(address);
        match (bound(vm.code_cache.low_bound), bound(vm.code_cache.high_bound)) {
            (Some(low), Some(high)) => low <= pc && pc < high,
            _ => false,
        }
    }

    /// The blob around `pc`: code heap, segment map, block (`CodeHeap::find_block_for`, memory/heap.cpp).
    pub(super) fn blob_at(&self, vm: &VmLayout, pc: u64) -> Result<Blob, WalkError> {
        let layout = &vm.code_cache;
        for heap in layout.heaps.into_iter().take_while(|&heap| heap != 0) {
            let low = self.load(heap.wrapping_add(u64::from(layout.heap_memory_low)))?;
            let high = self.load(heap.wrapping_add(u64::from(layout.heap_memory_high)))?;
            if pc < low || pc >= high {
                continue;
            }
            let segmap = self.load(heap.wrapping_add(u64::from(layout.heap_segmap_low)))?;
            let shift = self.load_i32(heap.wrapping_add(u64::from(layout.heap_log2_segment_size)))? as u32;
            let mut segment = pc.wrapping_sub(low).checked_shr(shift).ok_or(WalkError::Unreadable)?;
            for _ in 0..MAX_SEGMENT_HOPS {
                let hop = self.memory.load_u8(segmap.wrapping_add(segment)).ok_or(WalkError::Unreadable)?;
                match hop {
                    0 => {
                        let block = low.wrapping_add(segment.wrapping_shl(shift));
                        let used = self.memory.load_u8(block.wrapping_add(u64::from(layout.block_used)));
                        if used != Some(1) {
                            return Err(WalkError::NoCodeBlob);
                        }
                        return self.read_blob(vm, block.wrapping_add(u64::from(layout.block_size)));
                    }
                    u8::MAX => return Err(WalkError::NoCodeBlob),
                    hop => segment = segment.checked_sub(u64::from(hop)).ok_or(WalkError::NoCodeBlob)?,
                }
            }
        }
        Err(WalkError::NoCodeBlob)
    }

    fn read_blob(&self, vm: &VmLayout, address: u64) -> Result<Blob, WalkError> {
        let layout = &vm.code_blob;
        let name = self.load(address.wrapping_add(u64::from(layout.name)))?;
        let kind = match self.load(name)? {
            NMETHOD | NATIVE_NMETHOD => BlobKind::Nmethod,
            ADAPTER => BlobKind::Adapter,
            VTABLE => BlobKind::Vtable,
            _ => BlobKind::Other,
        };
        let code_begin = self.blob_part(address, layout.code_begin)?;
        let frame_words = self.load_i32(address.wrapping_add(u64::from(layout.frame_size)))?;
        let frame_bytes = i64::from(frame_words).wrapping_mul(8);
        Ok(Blob { address, kind, code_begin, frame_bytes })
    }

    /// The address of a part of the blob at `blob`.
    pub(super) fn blob_part(&self, blob: u64, part: BlobPart) -> Result<u64, WalkError> {
        let int = |field: u32| self.load_i32(blob.wrapping_add(u64::from(field))).map(i64::from);
        let pointer = |field: u32| self.load(blob.wrapping_add(u64::from(field)));
        Ok(match part {
            BlobPart::Pointer(field) => pointer(field)?,
            BlobPart::FromBlob(field) => blob.wrapping_add_signed(int(field)?),
            BlobPart::FromPointer { base, offset } => pointer(base)?.wrapping_add_signed(int(offset)?),
        })
    }

    /// `_frame_complete_offset`: where, from the code's start, the frame is said to be complete.
    pub(super) fn frame_complete(&self, vm: &VmLayout, blob: &Blob) -> Result<i64, WalkError> {
        let address = blob.address.wrapping_add(u64::from(vm.code_blob.frame_complete));
        if vm.code_blob.frame_complete_width == 2 {
            let value = self.memory.load_u16(address).ok_or(WalkError::Unreadable)?;
            Ok(i64::from(value as i16))
        } else {
            self.load_i32(address).map(i64::from)
        }
    }
}

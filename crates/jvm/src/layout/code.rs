//! The code cache and its blobs (`code/codeCache.hpp`, `memory/heap.hpp`, `code/codeBlob.hpp`).

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{BlobKinds, BlobPart, CodeBlobLayout, CodeCacheLayout, MAX_CODE_HEAPS};

use super::check::KIND;
use super::error::LayoutError;
use crate::vm_structs::VmStructs;

/// The code cache's bounds and heaps.
pub(super) fn code_cache(structs: &VmStructs, memory: &dyn Memory) -> Result<CodeCacheLayout, LayoutError> {
    let memory_field = structs.offset("CodeHeap", "_memory")?;
    let segmap_field = structs.offset("CodeHeap", "_segmap")?;
    let (low, high) = (structs.offset("VirtualSpace", "_low")?, structs.offset("VirtualSpace", "_high")?);
    let header = structs.offset("HeapBlock", "_header")?;
    Ok(CodeCacheLayout {
        low_bound: structs.static_address("CodeCache", "_low_bound")?,
        high_bound: structs.static_address("CodeCache", "_high_bound")?,
        heaps: heaps(structs, memory)?,
        heap_memory_low: memory_field + low,
        heap_memory_high: memory_field + high,
        heap_segmap_low: segmap_field + low,
        heap_log2_segment_size: structs.offset("CodeHeap", "_log2_segment_size")?,
        block_used: header + structs.offset("HeapBlock::Header", "_used")?,
        block_size: structs.size_of("HeapBlock")?,
    })
}

/// `CodeCache::_heaps` is a `GrowableArray<CodeHeap*>*`, filled only when the VM starts.
fn heaps(structs: &VmStructs, memory: &dyn Memory) -> Result<[u64; MAX_CODE_HEAPS], LayoutError> {
    let refuse = |reason: String| LayoutError::implausible("CodeCache", "_heaps", reason);
    let array = structs.static_pointer(memory, "CodeCache", "_heaps")?;
    let length_offset = structs.offset_in_any(&["GrowableArrayBase", "GenericGrowableArray"], "_len")?;
    let data_offset = structs.offset("GrowableArray<int>", "_data")?;
    let length = memory.load_u32(array + u64::from(length_offset));
    let data = memory.load_u64(array + u64::from(data_offset));
    let (Some(length), Some(data)) = (length, data) else {
        return Err(refuse("the array cannot be read".to_owned()));
    };
    if length == 0 || length as usize > MAX_CODE_HEAPS {
        return Err(refuse(format!("it has {length} heaps")));
    }
    let mut heaps = [0; MAX_CODE_HEAPS];
    for (heap, index) in heaps.iter_mut().zip(0..u64::from(length)) {
        *heap = match memory.load_u64(data + 8 * index) {
            Some(pointer) if pointer != 0 => pointer,
            _ => return Err(refuse(format!("heap {index} is missing"))),
        };
    }
    Ok(heaps)
}

/// Code blobs.
pub(super) fn code_blob(structs: &VmStructs, memory: &dyn Memory) -> Result<CodeBlobLayout, LayoutError> {
    let field = |name| structs.offset("CodeBlob", name);
    // From 23 on (JDK-8329332, JDK-8329433) a blob locates its code by distances from itself.
    let (code_begin, code_end) = match field("_code_offset") {
        Ok(begin) => {
            let end = field("_data_offset")?;
            (BlobPart::FromBlob(begin), BlobPart::FromBlob(end))
        }
        Err(_) => (BlobPart::Pointer(field("_code_begin")?), BlobPart::Pointer(field("_code_end")?)),
    };
    Ok(CodeBlobLayout {
        name: field("_name")?,
        size: field("_size")?,
        frame_size: field("_frame_size")?,
        frame_complete: field("_frame_complete_offset")?,
        frame_complete_width: structs.width_of(memory, "CodeBlob", "_frame_complete_offset")?,
        code_begin,
        code_end,
        kinds: None,
    })
}

/// The kinds of blobs. `None` until 22.
pub(super) fn blob_kinds(structs: &VmStructs) -> Result<Option<BlobKinds>, LayoutError> {
    let Some(kinds) = blob_kinds_at(structs, 0)? else { return Ok(None) };
    Ok(Some(BlobKinds { field: structs.offset("CodeBlob", KIND)?, ..kinds }))
}

/// The kinds of blobs, whose numbers libjvm exports as constants, with `_kind` at this place. `None` until
/// 22.
pub(super) fn blob_kinds_at(structs: &VmStructs, field: u32) -> Result<Option<BlobKinds>, LayoutError> {
    // From 23 on (JDK-8329332) a blob has no pointers to its code, and has a kind.
    if structs.offset("CodeBlob", "_code_begin").is_ok() {
        return Ok(None);
    }
    let number = |name| {
        let number = structs.constant(name)?;
        let unexpected = || LayoutError::implausible("CodeBlob", KIND, format!("{name} is {number}"));
        u8::try_from(number).map_err(|_| unexpected())
    };
    Ok(Some(BlobKinds {
        field,
        nmethod: number("CodeBlobKind::Nmethod")?,
        adapter: number("CodeBlobKind::Adapter")?,
        safepoint: number("CodeBlobKind::Safepoint")?,
    }))
}

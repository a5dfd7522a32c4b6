//! Checks all code blobs that exist now, found through the layout.
//!
//! Compilers run meanwhile, so a single blob may be half initialised. The layout is wrong if most blobs are
//! implausible.

use otlpprof_core::address::CodeRange;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{CodeCacheLayout, VmLayout};

use super::super::error::LayoutError;
use super::blob_reader::{BlobReader, Refusal};
use super::nmethod;

/// The largest code cache (CODE_CACHE_SIZE_LIMIT, `utilities/globalDefinitions.hpp`).
const MAX_CACHE_BYTES: u64 = 2 << 30;
/// The most segments to scan in each heap; enough to contain every kind of blob.
const MAX_SEGMENTS: u64 = 1 << 18;
/// The most compiled methods to check; enough to judge the layout.
const MAX_NMETHODS: usize = 256;
/// From this number of compiled methods on, at least one must have a scope: some of them call other methods.
const MIN_NMETHODS_WITH_SCOPE: usize = 16;
/// The blob name of every compiled method (`code/nmethod.cpp`).
pub(in crate::layout) const NMETHOD: &str = "nmethod";
/// The blob name of every wrapper of a native method.
pub(in crate::layout) const NATIVE_NMETHOD: &str = "native nmethod";

/// A code blob with its name and its range.
pub(in crate::layout) type NamedBlob = (u64, String, CodeRange);

/// The stub sections of compiled methods, by the addresses of their blobs. `layout` has passed its checks.
/// Each method is complete: the VM writes its scopes last, and they are checked.
pub(in crate::layout) fn stub_sections(layout: &VmLayout, memory: &dyn Memory) -> Vec<(u64, CodeRange)> {
    let reader = BlobReader { blobs: &layout.code_blob, memory };
    let blobs = plausible_blobs(&layout.code_cache, reader).unwrap_or_default().into_iter();
    let complete = blobs.filter(|&(blob, ref name, range)| {
        name == NMETHOD && nmethod::check(reader, layout, blob, range).is_ok()
    });
    let sections = complete.filter_map(|(blob, ..)| {
        let start = reader.part(blob, layout.nmethod.stub_begin)?;
        Some((blob, CodeRange { start, end: reader.part(blob, layout.code_blob.code_end)? }))
    });
    sections.take(MAX_NMETHODS).collect()
}

/// The blobs that exist now, without implausible ones.
///
/// # Errors
/// If most blobs are implausible.
pub(in crate::layout) fn plausible_blobs(
    cache: &CodeCacheLayout,
    reader: BlobReader<'_>,
) -> Result<Vec<NamedBlob>, LayoutError> {
    let blobs = all_blobs(cache, reader.memory)?;
    judge(blobs.iter().map(|&blob| reader.name_and_range(blob)))
}

fn all_blobs(cache: &CodeCacheLayout, memory: &dyn Memory) -> Result<Vec<u64>, LayoutError> {
    let mut blobs = Vec::new();
    for heap in cache.heaps.into_iter().take_while(|&heap| heap != 0) {
        blobs.extend(blobs_of(cache, memory, heap)?);
    }
    Ok(blobs)
}

pub(in crate::layout) fn check(layout: &VmLayout, memory: &dyn Memory) -> Result<(), LayoutError> {
    let reader = BlobReader { blobs: &layout.code_blob, memory };
    let named = plausible_blobs(&layout.code_cache, reader)?;
    judge(named.iter().filter(|(_, name, _)| name == NMETHOD).map(|&(blob, ..)| reader.check_kind(blob)))?;
    for (what, address) in [
        ("the interpreter", layout.stubs.interpreter.start),
        ("the call stub", layout.stubs.call_stub_return),
    ] {
        if !named.iter().any(|(_, _, range)| range.contains(address)) {
            let reason = format!("no code blob of {} holds {what} at {address:#x}", named.len());
            return Err(LayoutError::implausible("CodeCache", "_heaps", reason));
        }
    }
    let wrappers = named.iter().filter(|(_, name, _)| name == NATIVE_NMETHOD);
    judge(wrappers.map(|&(blob, ..)| nmethod::check_wrapper(reader, &layout.nmethod, blob)))?;
    let nmethods = named.iter().filter(|(_, name, _)| name == NMETHOD).take(MAX_NMETHODS);
    let checked: Vec<_> =
        nmethods.map(|&(blob, _, range)| nmethod::check(reader, layout, blob, range)).collect();
    // A method without scopes proves nothing. A single method may be half initialised.
    let has_scopes = checked.iter().any(|scopes| scopes.as_ref().is_ok_and(|&scopes| scopes > 0));
    let refused = checked.iter().filter(|scopes| scopes.is_err()).count();
    let proves = |scopes: &Result<usize, _>| has_scopes || refused < 2 || *scopes != Ok(0);
    let scopes = judge(checked.into_iter().filter(proves))?;
    if scopes.len() >= MIN_NMETHODS_WITH_SCOPE && scopes.iter().all(|&scopes| scopes == 0) {
        let reason = format!("none of {} compiled methods has a scope", scopes.len());
        return Err(LayoutError::implausible("nmethod", nmethod::SCOPES_DATA_OFFSET, reason));
    }
    Ok(())
}

/// The plausible results; an error if most results are refusals.
fn judge<T>(results: impl Iterator<Item = Result<T, Refusal>>) -> Result<Vec<T>, LayoutError> {
    let mut plausible = Vec::new();
    let mut refusals = Vec::new();
    for result in results {
        match result {
            Ok(value) => plausible.push(value),
            Err(refusal) => refusals.push(refusal),
        }
    }
    if refusals.len() > plausible.len() {
        let (structure, field, reason) = refusals.swap_remove(0);
        return Err(LayoutError::implausible(structure, field, reason));
    }
    Ok(plausible)
}

/// The used blocks of a heap. A 0 in the heap's segment map begins a block (`memory/heap.cpp`).
fn blobs_of(layout: &CodeCacheLayout, memory: &dyn Memory, heap: u64) -> Result<Vec<u64>, LayoutError> {
    let refuse = |field, reason: String| LayoutError::implausible("CodeHeap", field, reason);
    let word = |offset: u32| memory.load_u64(heap.wrapping_add(u64::from(offset)));
    let (low, high) = (word(layout.heap_memory_low).unwrap_or(0), word(layout.heap_memory_high).unwrap_or(0));
    let bound = |address| memory.load_u64(address).unwrap_or(0);
    let cache = CodeRange { start: bound(layout.low_bound), end: bound(layout.high_bound) };
    if low < cache.start || high < low || high > cache.end || cache.end - cache.start > MAX_CACHE_BYTES {
        let reason = format!("{low:#x} to {high:#x} in a cache of {:#x} to {:#x}", cache.start, cache.end);
        return Err(refuse("_memory", reason));
    }
    let shift = memory.load_u32(heap.wrapping_add(u64::from(layout.heap_log2_segment_size))).unwrap_or(0);
    if !(4..16).contains(&shift) {
        return Err(refuse("_log2_segment_size", format!("it is {shift}")));
    }
    let mut segment_map = vec![0; ((high - low) >> shift).min(MAX_SEGMENTS) as usize];
    let segment_map_start = word(layout.heap_segmap_low).unwrap_or(0);
    if !memory.read_bytes(segment_map_start, &mut segment_map) {
        return Err(refuse("_segmap", format!("{segment_map_start:#x} cannot be read")));
    }
    let begins = segment_map.iter().zip(0u64..).filter(|&(&hop, _)| hop == 0);
    let blocks = begins.map(|(_, segment)| low + (segment << shift));
    let used = blocks.filter(|block| memory.load_u8(block + u64::from(layout.block_used)) == Some(1));
    Ok(used.map(|block| block + u64::from(layout.block_size)).collect())
}

//! The stand-in of each function. It calls the function, and records the memory that was allocated or freed.
//!
//! Memory that is freed is forgotten *before* the call: after the call another thread may already own the
//! same block.

use super::blocks::BLOCKS;
use super::entry::entry;
use super::functions::{AllocationFunction, Native};
use super::mappings::MAPPINGS;
use super::sampler::{CallerFrame, SAMPLER};

entry!(malloc => on_malloc);
entry!(calloc => on_calloc);
entry!(realloc => on_realloc);
entry!(reallocarray => on_reallocarray);
entry!(posix_memalign => on_posix_memalign);
entry!(aligned_alloc => on_aligned_alloc);
entry!(memalign => on_memalign);
entry!(free => on_free);
entry!(mmap => on_mmap);
entry!(mmap64 => on_mmap64);
entry!(munmap => on_munmap);
entry!(mremap => on_mremap);

/// Returns the stand-in of a function.
fn of(function: AllocationFunction) -> *const () {
    let entry: extern "C" fn() = match function {
        AllocationFunction::Malloc => malloc,
        AllocationFunction::Calloc => calloc,
        AllocationFunction::Realloc => realloc,
        AllocationFunction::Reallocarray => reallocarray,
        AllocationFunction::PosixMemalign => posix_memalign,
        AllocationFunction::AlignedAlloc => aligned_alloc,
        AllocationFunction::Memalign => memalign,
        AllocationFunction::Free => free,
        AllocationFunction::Mmap => mmap,
        AllocationFunction::Mmap64 => mmap64,
        AllocationFunction::Munmap => munmap,
        AllocationFunction::Mremap => mremap,
    };
    entry as *const ()
}

impl AllocationFunction {
    /// The address of the function's stand-in.
    pub fn stand_in(self) -> u64 {
        of(self) as u64
    }
}

/// Calls the function with the caller's arguments.
#[inline]
fn call(function: AllocationFunction, [a, b, c, d, e, f]: [usize; 6]) -> usize {
    let native: Option<Native> = function.native();
    match native {
        // SAFETY: the caller's own call, with the caller's arguments.
        Some(native) => unsafe { native(a, b, c, d, e, f) },
        None => 0,
    }
}

/// Defines a stand-in as its entry calls it: six arguments, of which the function's own are the first ones.
macro_rules! stand_in {
    ($name:ident($arguments:ident, $caller:ident) $body:block) => {
        extern "C" fn $name(
            a: usize,
            b: usize,
            c: usize,
            d: usize,
            e: usize,
            f: usize,
            $caller: *const CallerFrame,
        ) -> usize {
            let $arguments = [a, b, c, d, e, f];
            $body
        }
    };
}

stand_in!(on_malloc(arguments, caller) {
    let [size, ..] = arguments;
    let block = call(AllocationFunction::Malloc, arguments);
    SAMPLER.block_allocated(block, size, caller);
    block
});

stand_in!(on_calloc(arguments, caller) {
    let [count, size, ..] = arguments;
    let block = call(AllocationFunction::Calloc, arguments);
    SAMPLER.block_allocated(block, count.saturating_mul(size), caller);
    block
});

stand_in!(on_realloc(arguments, caller) {
    let [_, size, ..] = arguments;
    reallocated(AllocationFunction::Realloc, arguments, size, caller)
});

stand_in!(on_reallocarray(arguments, caller) {
    let [_, count, size, ..] = arguments;
    reallocated(AllocationFunction::Reallocarray, arguments, count.saturating_mul(size), caller)
});

/// Replaces one block by another: the old block is freed, the new one allocated.
#[inline]
fn reallocated(
    function: AllocationFunction,
    arguments: [usize; 6],
    size: usize,
    caller: *const CallerFrame,
) -> usize {
    let [old, ..] = arguments;
    let remembered = if SAMPLER.remembers() { BLOCKS.remove(old) } else { None };
    let block = call(function, arguments);
    if block == 0
        && size != 0
        && let Some(number) = remembered
    {
        // The call failed, so the old block is still allocated.
        BLOCKS.insert(old, number);
    }
    SAMPLER.block_allocated(block, size, caller);
    block
}

stand_in!(on_posix_memalign(arguments, caller) {
    let [place, _, size, ..] = arguments;
    let result = call(AllocationFunction::PosixMemalign, arguments);
    // The result is an `int`: the register's upper half is undefined.
    if result as i32 == 0 && place != 0 {
        // SAFETY: the function succeeded, and has stored a pointer there.
        let block = unsafe { *(place as *const usize) };
        SAMPLER.block_allocated(block, size, caller);
    }
    result
});

stand_in!(on_aligned_alloc(arguments, caller) {
    let [_, size, ..] = arguments;
    let block = call(AllocationFunction::AlignedAlloc, arguments);
    SAMPLER.block_allocated(block, size, caller);
    block
});

stand_in!(on_memalign(arguments, caller) {
    let [_, size, ..] = arguments;
    let block = call(AllocationFunction::Memalign, arguments);
    SAMPLER.block_allocated(block, size, caller);
    block
});

stand_in!(on_free(arguments, _caller) {
    let [block, ..] = arguments;
    if SAMPLER.remembers() {
        BLOCKS.remove(block);
    }
    call(AllocationFunction::Free, arguments)
});

stand_in!(on_mmap(arguments, caller) {
    mapped(AllocationFunction::Mmap, arguments, caller)
});

stand_in!(on_mmap64(arguments, caller) {
    mapped(AllocationFunction::Mmap64, arguments, caller)
});

/// `MAP_FAILED`.
const FAILED: usize = usize::MAX;

/// Maps memory. Only anonymous and accessible mappings are sampled: a file's pages belong to the file, and
/// memory that is only reserved is not used yet.
#[inline]
fn mapped(function: AllocationFunction, arguments: [usize; 6], caller: *const CallerFrame) -> usize {
    let [address, length, protection, flags, ..] = arguments;
    let has = |flag: i32| flags as i32 & flag != 0;
    if has(libc::MAP_FIXED) && SAMPLER.remembers() {
        MAPPINGS.unmap(address, length);
    }
    let mapping = call(function, arguments);
    if mapping != FAILED && has(libc::MAP_ANONYMOUS) && protection as i32 != libc::PROT_NONE {
        SAMPLER.mapping_allocated(mapping, length, caller);
    }
    mapping
}

stand_in!(on_munmap(arguments, _caller) {
    let [address, length, ..] = arguments;
    if SAMPLER.remembers() {
        MAPPINGS.unmap(address, length);
    }
    call(AllocationFunction::Munmap, arguments)
});

stand_in!(on_mremap(arguments, caller) {
    let [old, old_length, length, ..] = arguments;
    let remembered = if SAMPLER.remembers() { MAPPINGS.unmap(old, old_length) } else { None };
    let mapping = call(AllocationFunction::Mremap, arguments);
    if mapping != FAILED {
        SAMPLER.mapping_allocated(mapping, length, caller);
    } else if let Some(mapping) = remembered {
        // The call failed, so the old mapping still exists.
        MAPPINGS.put_back(&mapping);
    }
    mapping
});

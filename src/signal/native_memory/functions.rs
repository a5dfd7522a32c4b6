//! The functions that are stood in for: their names, where they are, and what stands in for them.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::stand_ins;

/// A function of the C library's that gives out memory, or takes it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Function {
    /// `malloc`.
    Malloc,
    /// `calloc`.
    Calloc,
    /// `realloc`.
    Realloc,
    /// `reallocarray`.
    Reallocarray,
    /// `posix_memalign`.
    PosixMemalign,
    /// `aligned_alloc`.
    AlignedAlloc,
    /// `memalign`.
    Memalign,
    /// `free`.
    Free,
    /// `mmap`.
    Mmap,
    /// `mmap64`, by which programs with large files call `mmap`.
    Mmap64,
    /// `munmap`.
    Munmap,
    /// `mremap`.
    Mremap,
}

/// As the stand-ins call them: the arguments that a function does not have are of no account to it.
pub(super) type Native = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> usize;

/// Where the functions are; 0 for those that are not there.
static ADDRESSES: [AtomicUsize; Function::COUNT] = [const { AtomicUsize::new(0) }; Function::COUNT];

impl Function {
    /// The number of functions.
    pub const COUNT: usize = 12;

    /// All functions.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Malloc,
        Self::Calloc,
        Self::Realloc,
        Self::Reallocarray,
        Self::PosixMemalign,
        Self::AlignedAlloc,
        Self::Memalign,
        Self::Free,
        Self::Mmap,
        Self::Mmap64,
        Self::Munmap,
        Self::Mremap,
    ];

    /// What the dynamic linker calls it.
    pub const fn name(self) -> &'static CStr {
        match self {
            Self::Malloc => c"malloc",
            Self::Calloc => c"calloc",
            Self::Realloc => c"realloc",
            Self::Reallocarray => c"reallocarray",
            Self::PosixMemalign => c"posix_memalign",
            Self::AlignedAlloc => c"aligned_alloc",
            Self::Memalign => c"memalign",
            Self::Free => c"free",
            Self::Mmap => c"mmap",
            Self::Mmap64 => c"mmap64",
            Self::Munmap => c"munmap",
            Self::Mremap => c"mremap",
        }
    }

    /// Whether it only takes memory back: of no interest where nobody asks what was not freed.
    pub const fn only_frees(self) -> bool {
        matches!(self, Self::Free | Self::Munmap)
    }

    /// Whether it only gives memory out: what takes some back, too, does not.
    pub const fn only_allocates(self) -> bool {
        !matches!(self, Self::Free | Self::Munmap | Self::Realloc | Self::Reallocarray | Self::Mremap)
    }

    /// The address of what stands in for it.
    pub fn stand_in(self) -> u64 {
        stand_ins::of(self) as u64
    }

    /// Says where the function is, before anything is led to its stand-in.
    pub fn set_address(self, address: usize) {
        if let Some(place) = ADDRESSES.get(self as usize) {
            place.store(address, Ordering::Release);
        }
    }

    /// The function. Nothing is led to the stand-in of one that is not there.
    #[inline]
    pub(super) fn native(self) -> Option<Native> {
        let address = ADDRESSES.get(self as usize)?.load(Ordering::Relaxed);
        // SAFETY: null, or a function of the C library's by its name, which takes integers and pointers alone, six at most:
        // those that it does not take are in registers that it does not read.
        unsafe { std::mem::transmute::<usize, Option<Native>>(address) }
    }
}

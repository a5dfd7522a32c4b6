//! The functions that are replaced: their names, their addresses, and their stand-ins.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A function of the C library that allocates or frees memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum AllocationFunction {
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
    /// `mmap64`, the name by which programs built for large files call `mmap`.
    Mmap64,
    /// `munmap`.
    Munmap,
    /// `mremap`.
    Mremap,
}

/// The type by which stand-ins call a function. A function ignores the arguments that it does not have.
pub(super) type Native = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> usize;

/// The addresses of the functions; 0 for a function that does not exist.
static ADDRESSES: [AtomicUsize; AllocationFunction::COUNT] =
    [const { AtomicUsize::new(0) }; AllocationFunction::COUNT];

impl AllocationFunction {
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

    /// The symbol's name.
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

    /// Whether the function only frees memory. Such a function is of interest only if unfreed memory is
    /// reported.
    pub const fn only_frees(self) -> bool {
        matches!(self, Self::Free | Self::Munmap)
    }

    /// Whether the function only allocates memory, and frees none.
    pub const fn only_allocates(self) -> bool {
        !matches!(self, Self::Free | Self::Munmap | Self::Realloc | Self::Reallocarray | Self::Mremap)
    }

    /// Stores the address of the function, before any import is redirected to its stand-in.
    pub fn set_address(self, address: usize) {
        if let Some(place) = ADDRESSES.get(self as usize) {
            place.store(address, Ordering::Release);
        }
    }

    /// Returns the function. No import is redirected to the stand-in of a function that does not exist.
    #[inline]
    pub(super) fn native(self) -> Option<Native> {
        let address = ADDRESSES.get(self as usize)?.load(Ordering::Relaxed);
        // SAFETY: the pointer is null, or leads to a function of the C library by its name. Such a function
        // takes only integers and pointers, at most six of them; further arguments are in registers that the
        // function does not read.
        unsafe { std::mem::transmute::<usize, Option<Native>>(address) }
    }
}

//! Loads that survive a bad address.
//!
//! Each load is one instruction, inlined at its use. For each load the assembler writes an entry to the
//! section `otlpprof_loads`: the addresses of the load and of the code after it. When a load faults,
//! [`super::fault`] continues after the load and clears the register that reports success. A good load costs
//! the instruction itself and a test of that register.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use otlpprof_core::memory::Memory;

use super::walk::registers::Registers;

/// Defines a load by `$instruction`. The register `$is_loaded` is cleared if the load fails.
macro_rules! fault_tolerant_load {
    ($is_loaded:tt, $name:ident, $instruction:literal) => {
        /// Loads from `address`. Returns the value, and whether it was loaded.
        #[inline(always)]
        pub(super) unsafe fn $name(address: u64) -> (u64, u64) {
            let value: u64;
            let mut is_loaded: u64 = 1;
            // SAFETY: a faulting load is handled by `fault`, whose installation is the caller's duty. Nothing
            // is written at run time: the assembler puts the entry of this load into its own section.
            unsafe {
                std::arch::asm!(
                    concat!("2: ", $instruction),
                    "3:",
                    ".pushsection otlpprof_loads, \"aR\", %progbits",
                    ".balign 4",
                    ".long 2b - .",
                    ".long 3b - .",
                    ".popsection",
                    address = in(reg) address,
                    value = lateout(reg) value,
                    inlateout($is_loaded) is_loaded,
                    options(nostack, preserves_flags, readonly),
                );
            }
            (value, is_loaded)
        }
    };
}

#[cfg(target_arch = "aarch64")]
#[path = "aarch64/safe_load.rs"]
mod arch;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64/safe_load.rs"]
mod arch;

/// The memory of this process, read by fault-tolerant loads.
///
/// Unless the handler of [`super::fault`] is installed, a bad address crashes the process, as it does for an
/// ordinary load.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessMemory;

/// The place of one load, and of the code after it. Each field is an offset from its own address, so that the
/// table needs no relocation.
#[repr(C)]
struct LoadPlace {
    load: i32,
    after: i32,
}

const PLACE_BYTES: usize = size_of::<LoadPlace>();

// Linkers define these symbols for a section whose name is a C identifier.
unsafe extern "C" {
    #[link_name = "__start_otlpprof_loads"]
    static FIRST_PLACE: LoadPlace;
    #[link_name = "__stop_otlpprof_loads"]
    static PAST_PLACES: LoadPlace;
}

fn places() -> &'static [LoadPlace] {
    let (first, past) = (&raw const FIRST_PLACE, &raw const PAST_PLACES);
    let count = past.addr().wrapping_sub(first.addr()) / PLACE_BYTES;
    // SAFETY: the linker has put all entries of the section between the two symbols, and nothing else.
    unsafe { std::slice::from_raw_parts(first, count) }
}

/// Returns the address that `field` of a place refers to.
fn meant_by(field: &i32) -> u64 {
    (std::ptr::from_ref(field).addr() as u64).wrapping_add_signed(i64::from(*field))
}

/// The lowest and the highest address of a load. Both are 0 until [`learn_bounds`] is called.
static LOWEST: AtomicU64 = AtomicU64::new(0);
static HIGHEST: AtomicU64 = AtomicU64::new(0);

/// Computes the range of addresses of all loads, so that a fault elsewhere, of which the JVM has many, is
/// recognised at once.
pub(super) fn learn_bounds() {
    let addresses = || places().iter().map(|place| meant_by(&place.load));
    LOWEST.store(addresses().min().unwrap_or(0), Ordering::Relaxed);
    HIGHEST.store(addresses().max().unwrap_or(0), Ordering::Relaxed);
}

/// If the thread of `context` has faulted in one of the loads, lets it continue after the load with the
/// result "not loaded", and returns `true`.
///
/// # Safety
/// Called in a handler of a fault; `context` is the `ucontext_t` that the kernel passed to it.
pub(super) unsafe fn fail_if_load(context: *mut c_void) -> bool {
    // SAFETY: by this function's contract `context` is the `ucontext_t` that the kernel passed to the
    // handler.
    let pc = unsafe { Registers::program_counter(context) };
    if !(LOWEST.load(Ordering::Relaxed)..=HIGHEST.load(Ordering::Relaxed)).contains(&pc) {
        return false;
    }
    let Some(place) = places().iter().find(|place| meant_by(&place.load) == pc) else { return false };
    // SAFETY: the context is the kernel's by this function's contract; the thread is at a load, and `after`
    // is the code after that load.
    unsafe { Registers::fail_load(context, meant_by(&place.after)) };
    true
}

/// Whether `address` can be mapped. No mapping exists below 0x1000 (`vm.mmap_min_addr`). Addresses with the
/// upper bits set belong to the kernel or are non-canonical; a non-canonical access raises a general
/// protection fault, which carries no address. Such loads are not tried.
const fn may_be_mapped(address: u64) -> bool {
    address >= 0x1000 && address < 0x0080_0000_0000_0000
}

macro_rules! load {
    ($name:ident, $type:ty, $arch:path) => {
        #[inline(always)]
        fn $name(&self, address: u64) -> Option<$type> {
            if !may_be_mapped(address) {
                return None;
            }
            // SAFETY: a load from `address` and nothing else; after a fault the thread continues after the
            // load.
            let (value, is_loaded) = unsafe { $arch(address) };
            (is_loaded != 0).then_some(value as $type)
        }
    };
}

impl Memory for ProcessMemory {
    load!(load_u64, u64, arch::load_u64);
    load!(load_u32, u32, arch::load_u32);
    load!(load_u16, u16, arch::load_u16);
    load!(load_u8, u8, arch::load_u8);

    fn read_bytes(&self, address: u64, bytes: &mut [u8]) -> bool {
        let mut at = address;
        let (words, rest) = bytes.as_chunks_mut::<8>();
        for bytes in words {
            let Some(word) = self.load_u64(at) else { return false };
            *bytes = word.to_ne_bytes();
            at = at.wrapping_add(8);
        }
        for byte in rest {
            let Some(value) = self.load_u8(at) else { return false };
            *byte = value;
            at = at.wrapping_add(1);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault;

    #[test]
    fn loads_good_memory_and_survives_bad() {
        fault::install().unwrap();
        let words = [0x1122_3344_5566_7788_u64, 0x99aa_bbcc_ddee_ff00];
        let address = words.as_ptr() as u64;
        assert_eq!(ProcessMemory.load_u64(address), Some(words[0]));
        assert_eq!(ProcessMemory.load_u32(address), Some(0x5566_7788));
        assert_eq!(ProcessMemory.load_u16(address + 1), Some(0x6677));
        assert_eq!(ProcessMemory.load_u8(address + 15), Some(0x99));
        let mut bytes = [0; 11];
        assert!(ProcessMemory.read_bytes(address + 3, &mut bytes));
        for bad in [0, 8, 0xdead_beef_0000, 0x8000_0000_0000_0000, u64::MAX, u64::MAX - 3] {
            assert_eq!(ProcessMemory.load_u64(bad), None, "{bad:#x}");
            assert_eq!(ProcessMemory.load_u8(bad), None, "{bad:#x}");
            assert!(!ProcessMemory.read_bytes(bad, &mut bytes), "{bad:#x}");
        }
    }

    #[test]
    fn a_load_that_runs_off_a_mapping_fails() {
        fault::install().unwrap();
        // SAFETY: a fresh mapping of two pages, of which the second is then unmapped.
        let page = unsafe {
            let page = libc::mmap(
                std::ptr::null_mut(),
                8192,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(page, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(page.cast::<u8>().add(4096).cast(), 4096, libc::PROT_NONE), 0);
            page as u64
        };
        assert_eq!(ProcessMemory.load_u64(page + 4088), Some(0));
        assert_eq!(ProcessMemory.load_u64(page + 4089), None);
        assert_eq!(ProcessMemory.load_u8(page + 4096), None);
        let mut bytes = [1; 16];
        assert!(!ProcessMemory.read_bytes(page + 4088, &mut bytes));
        // SAFETY: the mapping that was made above.
        unsafe { libc::munmap(page as *mut _, 8192) };
    }
}

//! The rings into which the kernel writes its own frames: requests, maps and unmaps them.
//!
//! Each ring has two pages, which count as locked memory of the user (perf_event_open(2), "MMAP layout":
//! `perf_event_mlock_kb` for each processor, and beyond that RLIMIT_MEMLOCK, unless the process has
//! CAP_IPC_LOCK). Threads beyond these limits, and beyond [`MOST_RINGS`], are sampled without kernel frames,
//! and counted.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use otlpprof_core::event_ring::{EventRing, RingPlace};
use otlpprof_elf::image::page_size;
use otlpprof_elf::kernel::{self, KernelSymbolsError};
use otlpprof_signal::kernel_stack::COUNTS;
use perf_event_open_sys::bindings::{
    PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_REGS_USER, perf_event_attr, perf_event_sample_format,
};
use thiserror::Error;

/// The largest number of rings at a time: 16 MB with pages of 4 KB.
const MOST_RINGS: usize = 2048;

/// `1 << PERF_REG_X86_SP | 1 << PERF_REG_X86_IP` (arch/x86/include/uapi/asm/perf_regs.h).
#[cfg(target_arch = "x86_64")]
const SP_AND_PC: u64 = 1 << 7 | 1 << 8;
/// `1 << PERF_REG_ARM64_SP | 1 << PERF_REG_ARM64_PC` (arch/arm64/include/uapi/asm/perf_regs.h).
#[cfg(target_arch = "aarch64")]
const SP_AND_PC: u64 = 1 << 31 | 1 << 32;

/// Whether stacks have the kernel's frames on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelFrames {
    /// If the process is permitted to read them. If it is not, no message is logged.
    Auto,
    /// Yes. If the process is not permitted to read them, the reason is logged.
    On,
    /// No.
    Off,
}

/// The reason why kernel frames are not available.
#[derive(Debug, Error)]
pub(super) enum KernelFramesRefusal {
    #[error(transparent)]
    Symbols(#[from] KernelSymbolsError),
    /// Kernel frames need a permission of their own, or the kernel does not support them.
    #[error("the kernel refuses events with kernel frames ({0})")]
    Event(io::Error),
    #[error(
        "there is no memory for the kernel's frames ({0}); allow it by CAP_IPC_LOCK, a higher ulimit -l, or \
         sysctl kernel.perf_event_mlock_kb"
    )]
    Memory(io::Error),
}

/// The number of mapped rings.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// Requests that the kernel writes its own frames, and the thread's place in the program, each time the event
/// has counted a period.
pub(super) fn ask_for(attributes: &mut perf_event_attr) {
    let asked: perf_event_sample_format = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER;
    attributes.sample_type = u64::from(asked);
    attributes.sample_regs_user = SP_AND_PC;
    attributes.set_exclude_callchain_user(1);
}

/// Checks whether the process may read kernel frames with the event that `open` opens. Closes the event.
///
/// # Errors
/// The missing permission or feature, and how to allow it.
pub(super) fn check(open: impl FnOnce() -> io::Result<i32>) -> Result<(), KernelFramesRefusal> {
    kernel::check_symbols()?;
    let descriptor = open().map_err(KernelFramesRefusal::Event)?;
    let ring = map(descriptor).map_err(KernelFramesRefusal::Memory);
    let ring = ring.inspect(|ring| unmap(*ring));
    // SAFETY: the descriptor was opened by this function.
    unsafe { libc::close(descriptor) };
    ring.map(drop)
}

/// Maps the ring of the event `descriptor`, and publishes it in `ring`. A thread for which no ring can be
/// mapped is counted.
pub(super) fn give(descriptor: i32, ring: &EventRing) {
    match map(descriptor) {
        Ok(place) => ring.set(place),
        Err(_) => {
            COUNTS.threads_without.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Unmaps the ring, if there is one. No handler may be using it.
pub(super) fn take(ring: &EventRing) {
    if let Some(place) = ring.take() {
        unmap(place);
    }
}

fn map(descriptor: i32) -> io::Result<RingPlace> {
    if MAPPED.fetch_add(1, Ordering::Relaxed) >= MOST_RINGS {
        MAPPED.fetch_sub(1, Ordering::Relaxed);
        return Err(io::Error::other("the limit of rings is reached"));
    }
    let page_bytes = page_size() as usize;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let address =
        unsafe { libc::mmap(ptr::null_mut(), 2 * page_bytes, access, libc::MAP_SHARED, descriptor, 0) };
    if address == libc::MAP_FAILED {
        MAPPED.fetch_sub(1, Ordering::Relaxed);
        return Err(io::Error::last_os_error());
    }
    Ok(RingPlace { address: address as u64, page_bytes: page_bytes as u64 })
}

fn unmap(place: RingPlace) {
    // SAFETY: `map` has mapped the ring, and the callers ensure that no code uses it any more.
    unsafe { libc::munmap(place.address as *mut libc::c_void, 2 * place.page_bytes as usize) };
    MAPPED.fetch_sub(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use otlpprof_signal::kernel_stack::{DATA_HEAD, DATA_TAIL};
    use perf_event_open_sys::bindings::perf_event_mmap_page;

    use super::*;

    #[test]
    fn the_handler_finds_the_ring_where_the_kernel_has_it() {
        assert_eq!(offset_of!(perf_event_mmap_page, data_head) as u64, DATA_HEAD);
        assert_eq!(offset_of!(perf_event_mmap_page, data_tail) as u64, DATA_TAIL);
        let mut attributes = perf_event_attr::default();
        ask_for(&mut attributes);
        // PERF_SAMPLE_CALLCHAIN and PERF_SAMPLE_REGS_USER as numbers.
        assert_eq!(attributes.sample_type, 1 << 5 | 1 << 12);
        assert_eq!((attributes.exclude_callchain_user(), attributes.exclude_callchain_kernel()), (1, 0));
        assert_eq!(attributes.sample_regs_user.count_ones(), 2);
    }

    #[test]
    fn a_thread_without_a_ring_is_counted_and_leaves_nothing() {
        let (ring, before) = (EventRing::default(), COUNTS.threads_without.load(Ordering::Relaxed));
        give(-1, &ring);
        assert_eq!(ring.place(), None);
        assert!(COUNTS.threads_without.load(Ordering::Relaxed) > before);
        take(&ring);
    }

    #[test]
    fn a_refusal_names_the_permission_that_is_missing() {
        let error = || io::Error::from_raw_os_error(libc::EPERM);
        let memory = KernelFramesRefusal::Memory(error()).to_string();
        assert!(memory.contains("kernel.perf_event_mlock_kb") && memory.contains("CAP_IPC_LOCK"), "{memory}");
        let event = KernelFramesRefusal::Event(error()).to_string();
        assert!(event.contains("Operation not permitted"), "{event}");
    }
}

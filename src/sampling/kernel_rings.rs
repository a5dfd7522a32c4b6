//! The rings into which the kernel writes its own frames: asked for, mapped, unmapped.
//!
//! Each has two pages, which the kernel takes from what the user may lock (perf_event_open(2), "MMAP layout":
//! `perf_event_mlock_kb` for each processor, and beyond that RLIMIT_MEMLOCK, unless the process has CAP_IPC_LOCK). Threads
//! beyond that, and beyond [`MOST_RINGS`], are sampled without the kernel's frames, and counted.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use perf_event_open_sys::bindings::{
    PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_REGS_USER, perf_event_attr, perf_event_sample_format,
};
use thiserror::Error;

use super::own_threads;
use crate::core::event_ring::{EventRing, RingPlace};
use crate::elf::image::page_size;
use crate::elf::kernel::{self, Kernel, KernelSymbolsError};
use crate::signal::kernel_stack::COUNTS;

/// The most rings at a time: 16 MB with pages of 4 KB.
const MOST_RINGS: usize = 2048;

/// `1 << PERF_REG_X86_SP | 1 << PERF_REG_X86_IP` (arch/x86/include/uapi/asm/perf_regs.h).
#[cfg(target_arch = "x86_64")]
const SP_AND_PC: u64 = 1 << 7 | 1 << 8;
/// `1 << PERF_REG_ARM64_SP | 1 << PERF_REG_ARM64_PC` (arch/arm64/include/uapi/asm/perf_regs.h).
#[cfg(target_arch = "aarch64")]
const SP_AND_PC: u64 = 1 << 31 | 1 << 32;

/// Whether the kernel's own frames are on top of stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelFrames {
    /// If the process may have them; if it may not, nothing is said.
    Auto,
    /// They are, and if the process may not have them the user is told why.
    On,
    /// They are not.
    Off,
}

/// Why the kernel's frames cannot be had.
#[derive(Debug, Error)]
pub(super) enum KernelFramesRefusal {
    #[error(transparent)]
    Symbols(#[from] KernelSymbolsError),
    /// They need a right of their own, or the kernel cannot tell of itself.
    #[error("the kernel refuses events that tell of it ({0})")]
    Event(io::Error),
    #[error(
        "there is no memory for what the kernel tells ({0}); allow it by CAP_IPC_LOCK, a higher ulimit -l, or sysctl \
         kernel.perf_event_mlock_kb"
    )]
    Memory(io::Error),
}

/// The rings that there are.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// Has the kernel write its own frames when the event has counted a period, and where in the program the thread was.
pub(super) fn ask_for(attributes: &mut perf_event_attr) {
    let asked: perf_event_sample_format = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER;
    attributes.sample_type = u64::from(asked);
    attributes.sample_regs_user = SP_AND_PC;
    attributes.set_exclude_callchain_user(1);
}

/// Whether the process may have kernel frames by the event that `open` opens, if that tells of them. Closes it.
///
/// # Errors
/// What it lacks, and how it can be allowed.
pub(super) fn check(open: impl FnOnce() -> io::Result<i32>) -> Result<(), KernelFramesRefusal> {
    kernel::check_symbols()?;
    let descriptor = open().map_err(KernelFramesRefusal::Event)?;
    let ring = map(descriptor).map_err(KernelFramesRefusal::Memory);
    let ring = ring.inspect(|ring| unmap(*ring));
    // SAFETY: it was opened here.
    unsafe { libc::close(descriptor) };
    ring.map(drop)
}

/// The threads that read the kernel's names, one for each engine that asks for them.
static READERS: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Reads the kernel's names in a thread of its own, so that nobody has to wait for them.
pub(super) fn read_names_ahead() {
    let read = own_threads::spawn("otlpprof-kernel", || {
        Kernel::running();
    });
    match read {
        Ok(thread) => READERS.lock().push(thread),
        Err(error) => log::debug!("the kernel's names are read when they are needed: {error}"),
    }
}

/// Waits until no thread reads the kernel's names any more.
pub fn join_readers() {
    let readers = std::mem::take(&mut *READERS.lock());
    for thread in readers {
        // It catches nothing: a panic in it has been reported already.
        let _ = thread.join();
    }
}

/// Maps the ring of the event `descriptor`, and says in `ring` where it is. A thread that none can be had for is counted.
pub(super) fn give(descriptor: i32, ring: &EventRing) {
    match map(descriptor) {
        Ok(place) => ring.set(place),
        Err(_) => {
            COUNTS.threads_without.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Unmaps it, if there is one. No handler may be at work with it.
pub(super) fn take(ring: &EventRing) {
    if let Some(place) = ring.take() {
        unmap(place);
    }
}

fn map(descriptor: i32) -> io::Result<RingPlace> {
    if MAPPED.fetch_add(1, Ordering::Relaxed) >= MOST_RINGS {
        MAPPED.fetch_sub(1, Ordering::Relaxed);
        return Err(io::Error::other("there are as many rings as there may be"));
    }
    let page_bytes = page_size() as usize;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, where the kernel finds room for it.
    let address =
        unsafe { libc::mmap(ptr::null_mut(), 2 * page_bytes, access, libc::MAP_SHARED, descriptor, 0) };
    if address == libc::MAP_FAILED {
        MAPPED.fetch_sub(1, Ordering::Relaxed);
        return Err(io::Error::last_os_error());
    }
    Ok(RingPlace { address: address as u64, page_bytes: page_bytes as u64 })
}

fn unmap(place: RingPlace) {
    // SAFETY: `map` mapped it, and the callers see to it that nobody uses it any more.
    unsafe { libc::munmap(place.address as *mut libc::c_void, 2 * place.page_bytes as usize) };
    MAPPED.fetch_sub(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use perf_event_open_sys::bindings::perf_event_mmap_page;

    use super::*;
    use crate::signal::kernel_stack::{DATA_HEAD, DATA_TAIL};

    #[test]
    fn the_handler_finds_the_ring_where_the_kernel_has_it() {
        assert_eq!(offset_of!(perf_event_mmap_page, data_head) as u64, DATA_HEAD);
        assert_eq!(offset_of!(perf_event_mmap_page, data_tail) as u64, DATA_TAIL);
        let mut attributes = perf_event_attr::default();
        ask_for(&mut attributes);
        // PERF_SAMPLE_CALLCHAIN and PERF_SAMPLE_REGS_USER, written out.
        assert_eq!(attributes.sample_type, 1 << 5 | 1 << 12);
        assert_eq!((attributes.exclude_callchain_user(), attributes.exclude_callchain_kernel()), (1, 0));
        assert_eq!(attributes.sample_regs_user.count_ones(), 2);
    }

    #[test]
    fn what_has_no_ring_is_counted_and_leaves_nothing() {
        let (ring, before) = (EventRing::default(), COUNTS.threads_without.load(Ordering::Relaxed));
        give(-1, &ring);
        assert_eq!(ring.place(), None);
        assert!(COUNTS.threads_without.load(Ordering::Relaxed) > before);
        take(&ring);
    }

    #[test]
    fn a_refusal_says_how_it_can_be_allowed() {
        let error = || io::Error::from_raw_os_error(libc::EPERM);
        let memory = KernelFramesRefusal::Memory(error()).to_string();
        assert!(memory.contains("kernel.perf_event_mlock_kb") && memory.contains("CAP_IPC_LOCK"), "{memory}");
        let event = KernelFramesRefusal::Event(error()).to_string();
        assert!(event.contains("Operation not permitted"), "{event}");
    }
}

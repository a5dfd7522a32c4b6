//! Samples an allocation. The allocating thread takes the sample, after the call of the allocation function.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use otlpprof_core::byte_sampling::estimate;
use otlpprof_core::counts::counts;
use otlpprof_core::engine::Engine;
use otlpprof_core::thread::{ThreadRecord, current_os_tid};

use super::blocks::BLOCKS;
use super::countdown::ByteCountdown;
use super::mappings::MAPPINGS;
use crate::counters::add;
use crate::sample::{Sample, take_of_native_caller};
use crate::stretch::thin;
use crate::thread_table::record_of_tid;
use crate::walk::Cursor;

/// The frame record of a stand-in's entry: the caller's registers. The caller's stack begins after it.
#[repr(C)]
pub(super) struct CallerFrame {
    fp: u64,
    return_address: u64,
}

counts! {
    /// Counts of the stand-ins.
    NativeMemoryCounts {
        /// Allocations that a point has met, but whose thread was in the middle of another such sample.
        nested,
        /// Sampled allocations that were not remembered, for lack of room.
        not_remembered,
    }
}

/// The sampler of native allocations.
pub struct AllocationSampler {
    /// The mean distance of samples, in bytes; 0 while no samples are taken.
    interval_bytes: AtomicU64,
    countdown: ByteCountdown,
    remembers: AtomicBool,
    /// A function without arguments that says whether the current thread is the profiler's own or belongs to
    /// a forked child.
    is_excluded: AtomicPtr<()>,
    /// The number of threads that are taking a sample.
    inside: AtomicU32,
    /// The number of the last sample.
    number: AtomicU32,
}

/// The sampler of this process.
pub static SAMPLER: AllocationSampler = AllocationSampler {
    interval_bytes: AtomicU64::new(0),
    countdown: ByteCountdown::new(),
    remembers: AtomicBool::new(false),
    is_excluded: AtomicPtr::new(std::ptr::null_mut()),
    inside: AtomicU32::new(0),
    number: AtomicU32::new(0),
};

/// An allocation, by its address.
#[derive(Clone, Copy)]
enum Allocated {
    Block(usize),
    Mapping(usize),
}

impl AllocationSampler {
    /// Starts sampling: one in about `interval_bytes` bytes is sampled, and remembered until it is freed if
    /// `remembers` is set. `is_excluded` is async-signal-safe, and says whether the current thread is not to
    /// be sampled. Ordinary zone; no sampling is under way.
    pub fn start(&self, interval_bytes: u64, remembers: bool, is_excluded: fn() -> bool, seed: u64) {
        BLOCKS.clear();
        MAPPINGS.clear();
        self.is_excluded.store(is_excluded as *mut (), Ordering::Relaxed);
        self.countdown.start(seed, interval_bytes);
        self.remembers.store(remembers, Ordering::Relaxed);
        self.interval_bytes.store(interval_bytes.max(1), Ordering::SeqCst);
    }

    /// Stops sampling. Samples that were begun may still be under way: [`AllocationSampler::is_idle`].
    /// Remembered allocations stay remembered.
    pub fn stop(&self) {
        self.interval_bytes.store(0, Ordering::SeqCst);
        self.remembers.store(false, Ordering::SeqCst);
    }

    /// Whether no thread is taking a sample.
    pub fn is_idle(&self) -> bool {
        self.inside.load(Ordering::SeqCst) == 0
    }

    #[inline]
    pub(super) fn remembers(&self) -> bool {
        self.remembers.load(Ordering::Relaxed)
    }

    /// Handles the allocation of a block, unless its address is null.
    #[inline]
    pub(super) fn block_allocated(&self, block: usize, bytes: usize, caller: *const CallerFrame) {
        if block != 0 {
            self.allocated(Allocated::Block(block), bytes, caller);
        }
    }

    /// Handles the creation of a mapping.
    #[inline]
    pub(super) fn mapping_allocated(&self, mapping: usize, bytes: usize, caller: *const CallerFrame) {
        self.allocated(Allocated::Mapping(mapping), bytes, caller);
    }

    #[inline]
    fn allocated(&self, allocated: Allocated, bytes: usize, caller: *const CallerFrame) {
        let interval = self.interval_bytes.load(Ordering::Relaxed);
        // An allocation of 0 bytes is an allocation all the same, and counts as one byte.
        let bytes = (bytes as u64).max(1);
        if interval != 0 && self.countdown.is_sample_due(bytes, interval) {
            self.sample(allocated, bytes, caller);
        }
    }

    #[cold]
    #[inline(never)]
    fn sample(&self, allocated: Allocated, bytes: u64, caller: *const CallerFrame) {
        self.inside.fetch_add(1, Ordering::SeqCst);
        let interval = self.interval_bytes.load(Ordering::SeqCst);
        if interval != 0 && !self.is_excluded() {
            // The C standard lets callers read `errno` only after a failure, but some set it before the call
            // and read it afterwards.
            let errno = errno();
            self.take(allocated, bytes, interval, caller);
            set_errno(errno);
        }
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    fn is_excluded(&self) -> bool {
        let function = self.is_excluded.load(Ordering::Relaxed);
        // SAFETY: the pointer is null, or leads to a function of this type, which `start` stores before it
        // stores the interval.
        let function = unsafe { std::mem::transmute::<*mut (), Option<fn() -> bool>>(function) };
        function.is_none_or(|is_excluded| is_excluded())
    }

    fn take(&self, allocated: Allocated, bytes: u64, interval: u64, caller: *const CallerFrame) {
        let os_tid = current_os_tid();
        let unknown = ThreadRecord::default();
        let thread = record_of_tid(os_tid).unwrap_or_else(|| {
            unknown.os_tid.store(os_tid, Ordering::Relaxed);
            &unknown
        });
        // Of all functions that a sample calls, only AsyncGetCallTrace could allocate.
        if thread.is_sampling_memory.swap(true, Ordering::Relaxed) {
            return add(&COUNTS.nested, 1);
        }
        let Some(values) = thin(Engine::NativeMemory, estimate(bytes, interval)) else {
            thread.is_sampling_memory.store(false, Ordering::Relaxed);
            return;
        };
        let mask = FaultMask::open();
        // Remembered before the sample is recorded, so that any thread that finds the sample in the buffer
        // also finds its allocation.
        let number = if self.remembers() { self.remember(allocated, bytes) } else { 0 };
        let sample = Sample { values, number, ..Sample::of(Engine::NativeMemory) };
        // SAFETY: the entry's frame record, which exists until the stand-in returns.
        let CallerFrame { fp, return_address } = unsafe { std::ptr::read(caller) };
        let sp = (caller as u64).wrapping_add(size_of::<CallerFrame>() as u64);
        let caller = Cursor { pc: return_address, sp, fp, interrupted: false };
        // SAFETY: the record belongs to the current thread, and the frame is the one of its stand-in's
        // caller.
        let is_recorded = unsafe { take_of_native_caller(&sample, thread, caller) };
        if number != 0 && !is_recorded {
            match allocated {
                Allocated::Block(block) => drop(BLOCKS.remove(block)),
                Allocated::Mapping(mapping) => drop(MAPPINGS.unmap(mapping, bytes as usize)),
            }
        }
        mask.close();
        thread.is_sampling_memory.store(false, Ordering::Relaxed);
    }

    /// Remembers an allocation under a new number, and returns the number; 0 if there is no room.
    fn remember(&self, allocated: Allocated, bytes: u64) -> u32 {
        // The number 0 means "none".
        let number = self.number.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
        let is_remembered = match allocated {
            Allocated::Block(block) => BLOCKS.insert(block, number),
            Allocated::Mapping(mapping) => MAPPINGS.insert(mapping, bytes as usize, number),
        };
        if is_remembered {
            return number;
        }
        add(&COUNTS.not_remembered, 1);
        0
    }
}

fn errno() -> i32 {
    // SAFETY: the C library's location of this thread's `errno`, always valid.
    unsafe { *libc::__errno_location() }
}

fn set_errno(errno: i32) {
    // SAFETY: the C library's location of this thread's `errno`, always valid.
    unsafe { *libc::__errno_location() = errno };
}

/// Unblocks the signals of faults in our loads. Blocked, they would end the process, and threads may allocate
/// with all signals blocked.
struct FaultMask {
    before: libc::sigset_t,
}

const FAULTS: [libc::c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

impl FaultMask {
    fn open() -> Self {
        // SAFETY: a signal set is a plain structure for which all zeroes is valid; the calls initialise both
        // sets.
        unsafe {
            let mut faults: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut faults);
            for fault in FAULTS {
                libc::sigaddset(&raw mut faults, fault);
            }
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const faults, &raw mut before);
            Self { before }
        }
    }

    /// Restores the mask, if it has been changed.
    fn close(&self) {
        // SAFETY: the set is initialised.
        unsafe {
            if FAULTS.iter().any(|fault| libc::sigismember(&raw const self.before, *fault) == 1) {
                libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut());
            }
        }
    }
}

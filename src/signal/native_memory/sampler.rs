//! The sample of an allocation: taken by the thread that allocates, behind the call.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::blocks::BLOCKS;
use super::countdown::Countdown;
use super::mappings::MAPPINGS;
use crate::core::byte_sampling::estimate;
use crate::core::counts::counts;
use crate::core::record::Engine;
use crate::core::thread::{ThreadRecord, current_os_tid};
use crate::signal::counters::add;
use crate::signal::sample::{Sample, take_of_native_caller};
use crate::signal::stretch::thin;
use crate::signal::thread_table::record_of_tid;
use crate::signal::walk::Cursor;

/// The frame record of a stand-in's entry: what the caller's registers were. Its stack begins behind it.
#[repr(C)]
pub(super) struct CallerFrame {
    fp: u64,
    return_address: u64,
}

counts! {
    /// What the stand-ins count.
    NativeMemoryCounts {
        /// Allocations that a point has met, but whose thread was in the middle of such a sample.
        nested,
        /// Sampled allocations that were not remembered: there was no room.
        not_remembered,
    }
}

/// Takes the samples.
pub struct Sampler {
    /// 0: none are taken.
    interval_bytes: AtomicU64,
    countdown: Countdown,
    remembers: AtomicBool,
    /// A function without arguments, that says whether the current thread is the profiler's own or of a forked child.
    is_excluded: AtomicPtr<()>,
    /// The threads that are taking a sample.
    inside: AtomicU32,
    /// The number of the last sample.
    number: AtomicU32,
}

/// The sampler of this process.
pub static SAMPLER: Sampler = Sampler {
    interval_bytes: AtomicU64::new(0),
    countdown: Countdown::new(),
    remembers: AtomicBool::new(false),
    is_excluded: AtomicPtr::new(std::ptr::null_mut()),
    inside: AtomicU32::new(0),
    number: AtomicU32::new(0),
};

/// What was allocated.
#[derive(Clone, Copy)]
enum Allocated {
    Block(usize),
    Mapping(usize),
}

impl Sampler {
    /// Begins: one in about `interval_bytes` bytes is sampled, and remembered until it is freed if `remembers` is set.
    /// `is_excluded` is async-signal-safe, and says which threads are not sampled. Ordinary zone; none is begun.
    pub fn start(&self, interval_bytes: u64, remembers: bool, is_excluded: fn() -> bool, seed: u64) {
        BLOCKS.clear();
        MAPPINGS.clear();
        self.is_excluded.store(is_excluded as *mut (), Ordering::Relaxed);
        self.countdown.start(seed, interval_bytes);
        self.remembers.store(remembers, Ordering::Relaxed);
        self.interval_bytes.store(interval_bytes.max(1), Ordering::SeqCst);
    }

    /// Begins no more samples. Some may be under way: [`Sampler::is_idle`]. What is remembered stays so.
    pub fn stop(&self) {
        self.interval_bytes.store(0, Ordering::SeqCst);
        self.remembers.store(false, Ordering::SeqCst);
    }

    /// Whether nobody is taking a sample.
    pub fn is_idle(&self) -> bool {
        self.inside.load(Ordering::SeqCst) == 0
    }

    #[inline]
    pub(super) fn remembers(&self) -> bool {
        self.remembers.load(Ordering::Relaxed)
    }

    /// A block was allocated, unless it is null.
    #[inline]
    pub(super) fn block_allocated(&self, block: usize, bytes: usize, caller: *const CallerFrame) {
        if block != 0 {
            self.allocated(Allocated::Block(block), bytes, caller);
        }
    }

    /// A mapping was made.
    #[inline]
    pub(super) fn mapping_allocated(&self, mapping: usize, bytes: usize, caller: *const CallerFrame) {
        self.allocated(Allocated::Mapping(mapping), bytes, caller);
    }

    #[inline]
    fn allocated(&self, allocated: Allocated, bytes: usize, caller: *const CallerFrame) {
        let interval = self.interval_bytes.load(Ordering::Relaxed);
        // What has no bytes is an allocation all the same, and counts as one byte.
        let bytes = (bytes as u64).max(1);
        if interval != 0 && self.countdown.meets(bytes, interval) {
            self.sample(allocated, bytes, caller);
        }
    }

    #[cold]
    #[inline(never)]
    fn sample(&self, allocated: Allocated, bytes: u64, caller: *const CallerFrame) {
        self.inside.fetch_add(1, Ordering::SeqCst);
        let interval = self.interval_bytes.load(Ordering::SeqCst);
        if interval != 0 && !self.is_excluded() {
            // The caller may look at it only where the function fails, but some set it before and look at it behind.
            let errno = errno();
            self.take(allocated, bytes, interval, caller);
            set_errno(errno);
        }
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    fn is_excluded(&self) -> bool {
        let function = self.is_excluded.load(Ordering::Relaxed);
        // SAFETY: null, or of this type: `start` has stored it before the interval.
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
        // Of what a sample calls, AsyncGetCallTrace alone could allocate.
        if thread.is_sampling_memory.swap(true, Ordering::Relaxed) {
            return add(&COUNTS.nested, 1);
        }
        let Some(values) = thin(Engine::NativeMemory, estimate(bytes, interval)) else {
            thread.is_sampling_memory.store(false, Ordering::Relaxed);
            return;
        };
        let mask = FaultMask::open();
        // Before the sample: whoever finds that in the buffer finds what it is of.
        let number = if self.remembers() { self.remember(allocated, bytes) } else { 0 };
        let sample = Sample { values, number, ..Sample::of(Engine::NativeMemory) };
        // SAFETY: the entry's frame record, which is there until the stand-in returns.
        let CallerFrame { fp, return_address } = unsafe { std::ptr::read(caller) };
        let sp = (caller as u64).wrapping_add(size_of::<CallerFrame>() as u64);
        let caller = Cursor { pc: return_address, sp, fp, interrupted: false };
        // SAFETY: the current thread's record, and its frame.
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

    /// Remembers what was allocated by a number of its own; 0 if there is no room.
    fn remember(&self, allocated: Allocated, bytes: u64) -> u32 {
        // 0 is none.
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
    // SAFETY: the thread's own.
    unsafe { *libc::__errno_location() }
}

fn set_errno(errno: i32) {
    // SAFETY: the thread's own.
    unsafe { *libc::__errno_location() = errno };
}

/// Lets the faults of our loads come through: blocked, they would end the process, and threads allocate with all signals
/// blocked too.
struct FaultMask {
    before: libc::sigset_t,
}

const FAULTS: [libc::c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

impl FaultMask {
    fn open() -> Self {
        // SAFETY: a set of signals is a plain structure, for which zeros are a value; the calls fill the two.
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

    /// Puts the mask back, if it was another.
    fn close(&self) {
        // SAFETY: the set is initialised.
        unsafe {
            if FAULTS.iter().any(|fault| libc::sigismember(&raw const self.before, *fault) == 1) {
                libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut());
            }
        }
    }
}

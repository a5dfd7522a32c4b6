//! The state of one thread that the sampling engines and the handler share.
//!
//! `sampling` owns the records: it claims one for a thread, arms a clock, and releases the record when the
//! thread ends. The handler reads the records and updates the account. All fields are atomics, because both
//! do so at any time. No field guards another, unless its own comment says so.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

use super::event_ring::EventRing;

/// Returns the kernel's id of the current thread, by a system call that sets no `errno`. The function
/// `gettid` is missing from the C library before glibc 2.30, where a library that refers to it cannot be
/// loaded.
#[must_use]
#[inline]
pub fn current_os_tid() -> i32 {
    // SAFETY: SYS_gettid takes no argument and cannot fail.
    let os_tid = unsafe { libc::syscall(libc::SYS_gettid) };
    // The kernel's thread ids are 32-bit integers.
    os_tid as i32
}

/// One profiled thread. Records live as long as the process and are reused. The handler finds the current
/// thread's record by the value that its timer's signal carries, by its event's descriptor, or by the
/// kernel's thread id (`signal::thread_table`).
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct ThreadRecord {
    /// The kernel's thread id; 0 while the record is free.
    pub os_tid: AtomicI32,
    /// The record's index in the table of records; fixed when the record is made.
    pub index: AtomicU32,
    /// The number of times the record has been claimed. It identifies signals of a former owner.
    pub generation: AtomicU32,
    /// A [`RecordState`].
    pub state: AtomicU32,
    /// HotSpot's `JavaThread*` while the thread is a live Java thread, else 0.
    pub java_thread: AtomicU64,
    /// Identifies this life of the thread as a Java thread. A new life begins when the thread attaches again,
    /// gets another name, or is a new thread with an old kernel id. 0 if the thread has never been a Java
    /// thread.
    pub java_incarnation: AtomicU32,
    /// The incarnation in which the thread was sampled last.
    pub sampled_incarnation: AtomicU32,
    /// The lowest address of the thread's stack; 0 if not known.
    pub stack_low: AtomicU64,
    /// The address one past the highest of the thread's stack; 0 if not known.
    pub stack_high: AtomicU64,
    /// `pthread_self()` of the thread, or 0 until the thread itself has stored it. It identifies the thread
    /// in a handler without a system call.
    pub thread_pointer: AtomicU64,
    /// Whether a handler is using the record.
    pub busy: AtomicBool,
    /// The clock that samples the thread.
    pub clock: ThreadClock,
    /// The thread's CPU time, and the part of it that samples have stood for.
    pub account: CpuAccount,
    /// Whether the thread is taking a sample of a native allocation. The functions called for that sample may
    /// allocate.
    pub is_sampling_memory: AtomicBool,
    /// The thread's wall-clock time, shared by the sampler and the handler.
    pub wall: WallAccount,
    /// The thread's perf event, with its count and the part of it that samples have stood for.
    pub event: EventAccount,
}

impl ThreadRecord {
    /// The record's state.
    #[inline]
    pub fn state(&self) -> RecordState {
        RecordState::from_u32(self.state.load(Ordering::SeqCst))
    }

    /// Moves the record from one state to another. Returns `false` if the record was in another state than
    /// `from`. The caller that succeeds owns the record's clock until the next move.
    #[inline]
    pub fn move_state(&self, from: RecordState, to: RecordState) -> bool {
        self.state.compare_exchange(from as u32, to as u32, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

/// The state of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RecordState {
    /// The record belongs to no thread.
    Free = 0,
    /// A thread is setting up the record's clock.
    Arming,
    /// The thread is sampled.
    Armed,
    /// A thread is taking down the record's clock.
    Retiring,
}

impl RecordState {
    const fn from_u32(state: u32) -> Self {
        match state {
            1 => Self::Arming,
            2 => Self::Armed,
            3 => Self::Retiring,
            _ => Self::Free,
        }
    }
}

/// The kinds of clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ClockKind {
    /// A perf_event_open software clock of the thread, which includes time in the kernel.
    Perf = 1,
    /// A POSIX timer on the thread's CPU clock.
    Timer = 2,
    /// The process's only ITIMER_PROF, whose signal is delivered to a thread that is running.
    Itimer = 3,
}

impl ClockKind {
    /// The clock's name in options, logs and profiles.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Perf => "perf",
            Self::Timer => "timer",
            Self::Itimer => "itimer",
        }
    }
}

/// The kernel object that serves as a thread's clock.
#[derive(Debug, Default)]
pub struct ThreadClock {
    kind: AtomicU32,
    handle: AtomicI32,
    /// The ring of a [`ClockKind::Perf`] if kernel frames are wanted.
    pub ring: EventRing,
}

impl ThreadClock {
    /// The clock's kind; `None` if there is no clock.
    #[inline]
    pub fn kind(&self) -> Option<ClockKind> {
        match self.kind.load(Ordering::Relaxed) {
            1 => Some(ClockKind::Perf),
            2 => Some(ClockKind::Timer),
            3 => Some(ClockKind::Itimer),
            _ => None,
        }
    }

    /// The event's descriptor or the kernel's timer id; meaningless for [`ClockKind::Itimer`].
    #[inline]
    pub fn handle(&self) -> i32 {
        self.handle.load(Ordering::Acquire)
    }

    /// Sets the clock. The handle is stored first, so that a thread that sees the kind sees the handle.
    pub fn set(&self, kind: ClockKind, handle: i32) {
        self.handle.store(handle, Ordering::Release);
        self.kind.store(kind as u32, Ordering::Release);
    }

    /// Removes the clock.
    pub fn clear(&self) {
        self.kind.store(0, Ordering::Release);
        self.handle.store(-1, Ordering::Release);
    }
}

/// The state shared by the wall-clock sampler and the handler. `signal::wall` gives the order of accesses.
#[derive(Debug, Default)]
pub struct WallAccount {
    /// CLOCK_MONOTONIC, in ns, when the thread began, or began to be sampled.
    pub born_ns: AtomicU64,
    /// The nanoseconds that the next sample stands for.
    pub due_ns: AtomicU64,
    /// The number of the sample that the thread was last asked for.
    pub asked: AtomicU32,
    /// Whether that sample is to be reported as one of a thread that waits for a processor, unless the thread
    /// is found waiting for something else.
    pub is_runnable: AtomicBool,
    /// The number of the sample that the thread took last.
    pub taken: AtomicU32,
    /// The thread's CPU clock, in ns, when it had taken that sample.
    pub cpu_ns: AtomicI64,
    /// Whether the thread was waiting in a system call at that sample. A thread that was not waiting may
    /// begin to wait elsewhere at any time. If the sample was lost, the place where the thread waits is not
    /// known.
    pub was_waiting: AtomicBool,
    /// The stack pointer at that sample, and the address after the system call.
    pub waiting_at: [AtomicU64; 2],
    /// Whether the thread is not to be sampled. The time for which it continues to wait is then attributed to
    /// no thread.
    pub is_unwanted: AtomicBool,
    /// Whether the thread's last sample cannot be repeated, although the sampler believes that it can.
    pub is_forgotten: AtomicBool,
    /// Whether a handler is taking a sample.
    pub busy: AtomicBool,
}

impl WallAccount {
    /// The place where the last sample found the thread waiting: the stack pointer, and the address after the
    /// system call.
    #[inline]
    pub fn waiting_place(&self) -> Option<(u64, u64)> {
        let [sp, pc] = &self.waiting_at;
        let place = (sp.load(Ordering::Relaxed), pc.load(Ordering::Relaxed));
        self.was_waiting.load(Ordering::Relaxed).then_some(place)
    }

    /// Whether the thread has been asked for a sample that it has not taken.
    #[inline]
    pub fn owes_sample(&self) -> bool {
        self.asked.load(Ordering::Acquire) != self.taken.load(Ordering::Acquire)
    }

    /// Resets the account for a new thread that begins at `now_ns`. `is_runnable` keeps its value until the
    /// thread is asked for a sample, and `cpu_ns`, `was_waiting` and `waiting_at` until the thread has taken
    /// one. The handler and the sampler read them only afterwards.
    pub fn reset(&self, now_ns: u64) {
        self.born_ns.store(now_ns, Ordering::Relaxed);
        self.is_forgotten.store(false, Ordering::Relaxed);
        self.is_unwanted.store(false, Ordering::Relaxed);
        self.due_ns.store(0, Ordering::Relaxed);
        self.asked.store(0, Ordering::Relaxed);
        self.taken.store(0, Ordering::Relaxed);
    }
}

/// A thread's CPU time, and the part of it that samples have stood for. `signal::cpu_account` has the
/// arithmetic.
#[derive(Debug, Default)]
pub struct CpuAccount {
    /// The thread's CPU clock, in ns, when it was armed; 0 for a thread that was armed at its start.
    pub base_ns: AtomicI64,
    /// The CPU clock, in ns, at which the thread's zeroth period began: at clock `x` the thread is due
    /// `floor((x - epoch) / interval)` periods.
    pub epoch_ns: AtomicI64,
    /// The random part of an interval, in `0..interval` ns, that determines the bounds of the periods.
    pub phase_ns: AtomicI64,
    /// The thread's CPU clock, in ns, when another thread last read it.
    pub last_seen_ns: AtomicI64,
    /// The periods credited to the thread so far.
    pub credited: AtomicI64,
    /// Periods that the thread's signals did not report; negative if they reported too many. The next sample
    /// settles them.
    pub owed: AtomicI64,
    /// Periods that signals reported and no sample stands for yet: `signal::stretch`, `signal::fair_share`.
    pub postponed: AtomicI64,
    /// The least number of periods that the next sample stands for: `signal::fair_share`.
    pub least_weight: AtomicI64,
    /// Whether the last handler may have taken longer than half an interval: `signal::fair_share`.
    pub handler_may_be_long: AtomicBool,
    /// Whether the thread's first signal has been handled.
    pub started: AtomicBool,
}

/// A thread's perf event, and the part of its count that samples have stood for. `signal::event` has the
/// arithmetic.
#[derive(Debug, Default)]
pub struct EventAccount {
    /// The descriptor plus one; 0 without an event.
    descriptor: AtomicI32,
    /// The random part of a period, in `0..period`, that determines the bounds of the periods.
    pub phase: AtomicU64,
    /// The factor by which periods are longer than was asked for; 0 means 1.
    pub stretch: AtomicU32,
    /// The event's count, without `own`, at which the first period of the present length begins.
    pub base: AtomicU64,
    /// The periods of the present length that samples have stood for.
    pub credited: AtomicU64,
    /// The part of the count that the profiler itself caused.
    pub own: AtomicU64,
    /// Whether the thread's first signal has been handled.
    pub started: AtomicBool,
    /// Whether a handler is taking a sample.
    pub busy: AtomicBool,
    /// The ring of the event if kernel frames are wanted.
    pub ring: EventRing,
}

impl EventAccount {
    /// The event's descriptor, if the thread has one.
    #[inline]
    pub fn descriptor(&self) -> Option<i32> {
        match self.descriptor.load(Ordering::Acquire) {
            0 => None,
            more => Some(more.wrapping_sub(1)),
        }
    }

    /// Sets the event's descriptor; `None` if the thread has no event.
    pub fn set_descriptor(&self, descriptor: Option<i32>) {
        self.descriptor.store(descriptor.map_or(0, |fd| fd.wrapping_add(1)), Ordering::Release);
    }

    /// Resets the account for a new event, with this random part of a period.
    #[inline]
    pub fn begin(&self, phase: u64) {
        self.phase.store(phase, Ordering::Relaxed);
        self.stretch.store(1, Ordering::Relaxed);
        self.base.store(0, Ordering::Relaxed);
        self.credited.store(0, Ordering::Relaxed);
        self.own.store(0, Ordering::Relaxed);
        self.started.store(false, Ordering::Relaxed);
    }
}

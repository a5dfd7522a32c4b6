//! What the sampling engines and the handler know of one thread.
//!
//! `sampling` owns the records: it takes one for a thread, arms a clock, and gives the record back when the
//! thread ends. The handler reads them and moves the account. All fields are atomics, because both do so at
//! any time; none of them guards another, except where a field's own words say so.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

use super::event_ring::EventRing;

/// The kernel's id of the current thread, by a system call that sets no `errno`. The function `gettid` is missing from
/// the C library before glibc 2.30, where a library that refers to it cannot be loaded.
#[must_use]
pub fn current_os_tid() -> i32 {
    // SAFETY: SYS_gettid takes no argument and cannot fail.
    let os_tid = unsafe { libc::syscall(libc::SYS_gettid) };
    // Kernel ids are 32-bit integers.
    os_tid as i32
}

/// One profiled thread. Records live as long as the process and are reused; the handler finds the current
/// thread's through the value that its timer's signal carries, through its event's descriptor, or through a
/// pthread key.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct ThreadRecord {
    /// The kernel's thread id; 0 while the record is free.
    pub os_tid: AtomicI32,
    /// The record's place in the table of records; fixed when the record is made.
    pub index: AtomicU32,
    /// How often the record has been given out. What is left of a former owner is told by it.
    pub generation: AtomicU32,
    /// A [`RecordState`].
    pub state: AtomicU32,
    /// HotSpot's `JavaThread*` while the thread is a live Java thread, else 0.
    pub java_thread: AtomicU64,
    /// Names this life of the thread as a Java thread: attaching again makes it another one, and so does another
    /// name, or a new thread with an old kernel id. 0 while it is none and has been none.
    pub java_incarnation: AtomicU32,
    /// The life in which the thread was sampled last.
    pub sampled_incarnation: AtomicU32,
    /// The lowest and one past the highest address of the thread's stack; 0 if not known.
    pub stack_low: AtomicU64,
    /// See `stack_low`.
    pub stack_high: AtomicU64,
    /// `pthread_self()` of the thread, or 0 until the thread itself has said so. It tells the thread in a
    /// handler without a system call.
    pub thread_pointer: AtomicU64,
    /// Whether a handler is working with the record at this moment.
    pub busy: AtomicBool,
    /// The clock that samples the thread.
    pub clock: ThreadClock,
    /// Its CPU time, and what of it samples have stood for.
    pub account: CpuAccount,
    /// Whether the thread is taking a sample of a native allocation. What it calls for that may allocate.
    pub is_sampling_memory: AtomicBool,
    /// Its wall-clock time: what the sampler and the handler tell each other.
    pub wall: WallAccount,
    /// Its perf event: what the event has counted, and what of it samples have stood for.
    pub event: EventAccount,
}

impl ThreadRecord {
    /// The record's state.
    pub fn state(&self) -> RecordState {
        RecordState::from_u32(self.state.load(Ordering::SeqCst))
    }

    /// Moves the record from one state to the next; `false` if it was in another. Whoever succeeds owns the
    /// record's clock until the next move.
    pub fn move_state(&self, from: RecordState, to: RecordState) -> bool {
        self.state.compare_exchange(from as u32, to as u32, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

/// The life of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RecordState {
    /// Belongs to no thread.
    Free = 0,
    /// Somebody is setting the thread's clock up.
    Arming,
    /// The thread is sampled.
    Armed,
    /// Somebody is taking the thread's clock down.
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
    /// A perf_event_open software clock of the thread, the kernel's time included.
    Perf = 1,
    /// A POSIX timer on the thread's CPU clock.
    Timer = 2,
    /// The process's one ITIMER_PROF, whose signal goes to whichever thread is running.
    Itimer = 3,
}

impl ClockKind {
    /// The name by which options, logs and profiles call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Perf => "perf",
            Self::Timer => "timer",
            Self::Itimer => "itimer",
        }
    }
}

/// What of the kernel's a thread's clock is.
#[derive(Debug, Default)]
pub struct ThreadClock {
    kind: AtomicU32,
    handle: AtomicI32,
    /// Of a [`ClockKind::Perf`], where the kernel's frames are wanted.
    pub ring: EventRing,
}

impl ThreadClock {
    /// The clock's kind; `None` before there is one.
    pub fn kind(&self) -> Option<ClockKind> {
        match self.kind.load(Ordering::Relaxed) {
            1 => Some(ClockKind::Perf),
            2 => Some(ClockKind::Timer),
            3 => Some(ClockKind::Itimer),
            _ => None,
        }
    }

    /// The event's descriptor or the kernel's timer id; means nothing for [`ClockKind::Itimer`].
    pub fn handle(&self) -> i32 {
        self.handle.load(Ordering::Acquire)
    }

    /// Says which clock it is. The handle is stored first: whoever sees the kind sees its handle.
    pub fn set(&self, kind: ClockKind, handle: i32) {
        self.handle.store(handle, Ordering::Release);
        self.kind.store(kind as u32, Ordering::Release);
    }

    /// Says that there is none.
    pub fn clear(&self) {
        self.kind.store(0, Ordering::Release);
        self.handle.store(-1, Ordering::Release);
    }
}

/// What the wall-clock sampler and the handler tell each other. `signal::wall` has the order.
#[derive(Debug, Default)]
pub struct WallAccount {
    /// CLOCK_MONOTONIC when the thread began, or began to be sampled.
    pub born_ns: AtomicU64,
    /// The nanoseconds that the next sample stands for.
    pub due_ns: AtomicU64,
    /// The number of the sample that the thread was asked for last.
    pub asked: AtomicU32,
    /// Whether that sample, if it does not find the thread waiting for anything else, is told as of a thread that waits for a
    /// processor.
    pub is_runnable: AtomicBool,
    /// The number of the sample that it took last.
    pub taken: AtomicU32,
    /// The thread's CPU clock when it had taken that.
    pub cpu_ns: AtomicI64,
    /// Whether the thread was waiting in a system call then. One that was not may come to wait elsewhere at once, and of one
    /// whose sample was lost nobody knows where it waits.
    pub was_waiting: AtomicBool,
    /// The stack pointer then, and the address behind the system call.
    pub waiting_at: [AtomicU64; 2],
    /// Whether the thread was not one of those that are to be sampled: nobody's is the time that it waits on.
    pub is_unwanted: AtomicBool,
    /// Whether the thread's last sample cannot be repeated, though the sampler takes it for one that can.
    pub is_forgotten: AtomicBool,
    /// Whether a handler is taking one at this moment.
    pub busy: AtomicBool,
}

impl WallAccount {
    /// Where the last sample found the thread waiting: the stack pointer, and the address behind the system call.
    pub fn waiting_place(&self) -> Option<(u64, u64)> {
        let [sp, pc] = &self.waiting_at;
        let place = (sp.load(Ordering::Relaxed), pc.load(Ordering::Relaxed));
        self.was_waiting.load(Ordering::Relaxed).then_some(place)
    }

    /// Whether the thread has been asked for a sample that it has not taken.
    pub fn owes_sample(&self) -> bool {
        self.asked.load(Ordering::Acquire) != self.taken.load(Ordering::Acquire)
    }

    /// Forgets what is due and asked for: the thread is a new one at `now_ns`.
    pub fn reset(&self, now_ns: u64) {
        self.born_ns.store(now_ns, Ordering::Relaxed);
        self.is_forgotten.store(false, Ordering::Relaxed);
        self.is_unwanted.store(false, Ordering::Relaxed);
        self.due_ns.store(0, Ordering::Relaxed);
        self.asked.store(0, Ordering::Relaxed);
        self.taken.store(0, Ordering::Relaxed);
    }
}

/// A thread's CPU time, and what of it samples have stood for. `signal::cpu_account` has the arithmetic.
#[derive(Debug, Default)]
pub struct CpuAccount {
    /// The thread's CPU clock when it was armed; 0 for one that was armed at its birth.
    pub base_ns: AtomicI64,
    /// The CPU clock at which the thread's zeroth period began: at clock `x` it is due
    /// `floor((x - epoch) / interval)` periods.
    pub epoch_ns: AtomicI64,
    /// The random part of an interval, in `0..interval`, that decides where the periods' borders are.
    pub phase_ns: AtomicI64,
    /// The CPU clock when it was last looked at from outside.
    pub last_seen_ns: AtomicI64,
    /// The periods credited to the thread so far.
    pub credited: AtomicI64,
    /// Periods that the thread's signals did not tell of; below 0, that they told of too many. The next
    /// sample takes them.
    pub owed: AtomicI64,
    /// Periods that signals told of and no sample stands for yet: `signal::stretch`.
    pub put_off: AtomicI64,
    /// Whether the thread's first signal has been handled.
    pub started: AtomicBool,
}

/// A perf event of a thread's, and what of its count samples have stood for. `signal::event` has the arithmetic.
#[derive(Debug, Default)]
pub struct EventAccount {
    /// One more than the descriptor; 0 without an event.
    descriptor: AtomicI32,
    /// The random part of a period, in `0..period`, that decides where the periods' borders are.
    pub phase: AtomicU64,
    /// How many times as long as was asked for periods are; 0 like 1.
    pub stretch: AtomicU32,
    /// What had been counted, but for `own`, where the first of the periods of this length begins.
    pub base: AtomicU64,
    /// The periods since then that samples have stood for.
    pub credited: AtomicU64,
    /// What the profiler itself has made the event count.
    pub own: AtomicU64,
    /// Whether the thread's first signal has been handled.
    pub started: AtomicBool,
    /// Whether a handler is taking a sample at this moment.
    pub busy: AtomicBool,
    /// Where the kernel's frames are wanted.
    pub ring: EventRing,
}

impl EventAccount {
    /// The event's descriptor, if the thread has one.
    pub fn descriptor(&self) -> Option<i32> {
        match self.descriptor.load(Ordering::Acquire) {
            0 => None,
            more => Some(more.wrapping_sub(1)),
        }
    }

    /// Says which event the thread has; `None`: none.
    pub fn set_descriptor(&self, descriptor: Option<i32>) {
        self.descriptor.store(descriptor.map_or(0, |fd| fd.wrapping_add(1)), Ordering::Release);
    }

    /// Begins anew, with this random part of a period.
    pub fn begin(&self, phase: u64) {
        self.phase.store(phase, Ordering::Relaxed);
        self.stretch.store(1, Ordering::Relaxed);
        self.base.store(0, Ordering::Relaxed);
        self.credited.store(0, Ordering::Relaxed);
        self.own.store(0, Ordering::Relaxed);
        self.started.store(false, Ordering::Relaxed);
    }
}

//! The sample record: what a handler writes and the aggregator reads.
//!
//! A record is a [`SampleHeader`] followed by `frame_count` [`FrameRecord`]s, leaf first. All are plain data
//! without padding.

use super::context::ContextRecord;

/// The engines that take samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Engine {
    /// CPU time of all threads.
    Cpu = 0,
    /// Wall-clock time of all threads.
    Wall,
    /// Allocations of objects.
    Alloc,
    /// Waiting to enter monitors, and to have locks.
    Lock,
    /// Waiting for notifications.
    Wait,
    /// Exceptions.
    Exceptions,
    /// A perf event.
    Event,
    /// Native allocations.
    NativeMemory,
    /// Objects that may live on.
    Live,
    /// Calls of methods that take long.
    Trace,
}

impl Engine {
    /// The number of engines.
    pub const COUNT: usize = 10;

    /// All engines, each at the place of its number.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Cpu,
        Self::Wall,
        Self::Alloc,
        Self::Lock,
        Self::Wait,
        Self::Exceptions,
        Self::Event,
        Self::NativeMemory,
        Self::Live,
        Self::Trace,
    ];

    /// The name of the option that turns it on.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Wall => "wall",
            Self::Alloc => "alloc",
            Self::Lock => "lock",
            Self::Wait => "wait",
            Self::Exceptions => "exceptions",
            Self::Event => "event",
            Self::NativeMemory => "nativemem",
            Self::Live => "live",
            Self::Trace => "trace",
        }
    }
}

/// What a sample is about, as a number that the ordinary zone gives out: the class of an object, say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Subject(pub u32);

impl Subject {
    /// Nothing in particular, or nothing that is known.
    pub const NONE: Self = Self(0);

    /// Set beside the number of a class: a thread was parked for an object of it, and not in front of its monitor.
    const PARKED: u32 = 1 << 31;

    /// The same, of a thread that was parked.
    #[must_use]
    pub const fn parked(self) -> Self {
        Self(self.0 | Self::PARKED)
    }

    /// Whether a thread was parked, and the subject without that.
    pub const fn split_parked(self) -> (bool, Self) {
        (self.0 & Self::PARKED != 0, Self(self.0 & !Self::PARKED))
    }
}

/// The thread that had what another waited for, as it was known when the other began to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Owner(u64);

/// How an [`Owner`] is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnerThread {
    /// By `Thread.threadId()`, of a platform thread or a virtual one.
    ThreadId(i64),
    /// By which life of a thread as a Java thread it was.
    Incarnation(u32),
    /// The same, of the carrier of the virtual thread that it was.
    Carrier(u32),
}

impl Owner {
    /// Nobody, or nobody that is known.
    pub const NONE: Self = Self(0);

    const INCARNATION: u64 = 1 << 63;
    const CARRIER: u64 = 1 << 62;

    /// A thread that is known so; nobody for a number that no thread has.
    pub fn new(thread: OwnerThread) -> Self {
        match thread {
            OwnerThread::ThreadId(id) => match u64::try_from(id) {
                Ok(id) if id < Self::CARRIER => Self(id),
                _ => Self::NONE,
            },
            OwnerThread::Incarnation(0) | OwnerThread::Carrier(0) => Self::NONE,
            OwnerThread::Incarnation(incarnation) => Self(Self::INCARNATION | u64::from(incarnation)),
            OwnerThread::Carrier(incarnation) => {
                Self(Self::INCARNATION | Self::CARRIER | u64::from(incarnation))
            }
        }
    }

    /// Who it is.
    pub const fn thread(self) -> Option<OwnerThread> {
        match (self.0, self.0 & Self::INCARNATION != 0, self.0 & Self::CARRIER != 0) {
            (0, ..) => None,
            (id, false, _) => Some(OwnerThread::ThreadId(id.cast_signed())),
            (incarnation, true, false) => Some(OwnerThread::Incarnation(incarnation as u32)),
            (incarnation, true, true) => Some(OwnerThread::Carrier(incarnation as u32)),
        }
    }
}

/// The fixed part of a record. All engines share it; `subject`, `context` and `thread_state` are 0 where an
/// engine or a feature does not fill them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SampleHeader {
    /// CLOCK_MONOTONIC when the signal was handled.
    pub monotonic_ns: u64,
    /// How many periods of the engine the sample stands for.
    pub weight: u64,
    /// What the sample adds to each of the engine's profiles, in their order.
    pub values: [f64; 2],
    /// The thread's context; [`ContextRecord::NONE`] if it has none.
    pub context: ContextRecord,
    /// Who had what the thread waited for.
    pub owner: Owner,
    /// The kernel's thread id.
    pub os_tid: i32,
    /// Which life of the thread as a Java thread it was, under one name; 0 for one that never was a Java thread.
    pub java_incarnation: u32,
    /// What it is about.
    pub subject: Subject,
    /// The number by which it is repeated, or by which what was allocated is known; 0: neither.
    pub number: u32,
    /// The number of frames that follow.
    pub frame_count: u16,
    /// An [`Engine`].
    pub engine: Engine,
    /// HotSpot's `JavaThreadState`, or 0.
    pub thread_state: u8,
    /// 1 if the thread was carrying a virtual thread, else 0.
    pub is_virtual: u8,
    /// 1 if a system call of the thread's was waiting, else 0.
    pub is_waiting: u8,
    /// 1 if the thread is told to have waited for a processor, unless it was waiting for anything else; otherwise 0.
    pub is_runnable: u8,
    /// Always 0.
    pub reserved: u8,
}

/// What a [`FrameRecord`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// A Java frame in the interpreter: `aux` the bytecode index (-1 unknown), `value` the `Method*`.
    Interpreted = 1,
    /// The same, in compiled code; the physical frame.
    Compiled,
    /// The same, inlined into the next frame.
    Inlined,
    /// The same, in a native method's wrapper.
    NativeMethod,
    /// A native frame: `aux` the object index or [`NO_OBJECT`], `value` the run-time lookup address (return
    /// addresses already less one).
    Native,
    /// A native frame in the remote pool: `aux` the slot.
    Remote,
    /// A stub or code blob of the VM: `value` the run-time lookup address.
    Stub,
    /// A place where the walk could not go on: `aux` a walk error.
    Unwalkable,
    /// A virtual thread's frozen frames, which could not be read: `aux` a reason.
    Frozen,
    /// The walk reached the frame limit.
    Truncated,
    /// Stands for the stack of a thread that has no Java frames, where native ones are not wanted.
    NoJavaFrame,
    /// A Java frame of which is not known how it runs: as the others of its kind.
    Java,
    /// A Java frame by its jmethodID, in `value`.
    MethodId,
    /// A frame of the kernel's: `value` the run-time lookup address (return addresses already less one).
    Kernel,
}

impl FrameKind {
    /// Whether `value` is a `Method*`.
    pub const fn is_java(self) -> bool {
        matches!(self, Self::Interpreted | Self::Compiled | Self::Inlined | Self::NativeMethod | Self::Java)
    }
}

/// In [`FrameRecord::aux`] of a native frame: no object was known at its address.
pub const NO_OBJECT: u32 = u32::MAX;

/// One frame of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FrameRecord {
    /// By `kind`.
    pub value: u64,
    /// By `kind`.
    pub aux: u32,
    /// A [`FrameKind`].
    pub kind: FrameKind,
    /// The compilation level of a compiled frame (1-4), else 0.
    pub level: u8,
    /// Always 0.
    pub reserved: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_who_was_put_down() {
        use OwnerThread::{Carrier, Incarnation, ThreadId};
        for thread in [ThreadId(1), ThreadId(i64::from(u32::MAX) + 7), Incarnation(u32::MAX), Carrier(1)] {
            assert_eq!(Owner::new(thread).thread(), Some(thread));
        }
        for nobody in [ThreadId(0), ThreadId(-1), ThreadId(i64::MAX), Incarnation(0), Carrier(0)] {
            assert_eq!(Owner::new(nobody), Owner::NONE);
        }
        assert_eq!(Owner::NONE.thread(), None);
    }
}

//! The sample record, which a handler writes and the aggregator reads.
//!
//! A record is a [`SampleHeader`] followed by `frame_count` [`FrameRecord`]s, leaf first. Both are plain data
//! without padding.

use super::context::ContextRecord;
use super::engine::Engine;
use super::java_thread_state::JavaThreadState;

/// The subject of a sample, as a number that the ordinary zone assigns: for example an object's class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Subject(pub u32);

impl Subject {
    /// No subject, or an unknown one.
    pub const NONE: Self = Self(0);

    /// Set together with the number of a class: a thread was parked for an object of the class, rather than
    /// waiting for the object's monitor.
    const PARKED: u32 = 1 << 31;

    /// Returns the subject of a thread that was parked for it.
    #[must_use]
    pub const fn parked(self) -> Self {
        Self(self.0 | Self::PARKED)
    }

    /// Returns whether a thread was parked, and the subject without that mark.
    #[inline]
    pub const fn split_parked(self) -> (bool, Self) {
        (self.0 & Self::PARKED != 0, Self(self.0 & !Self::PARKED))
    }
}

/// The thread that owned the monitor or lock that another thread waited for, as known when the other thread
/// began to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Owner(u64);

/// The identification of an [`Owner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnerThread {
    /// `Thread.threadId()` of a platform or virtual thread.
    ThreadId(i64),
    /// The incarnation of the owner as a Java thread.
    Incarnation(u32),
    /// The incarnation of the carrier; the owner is the virtual thread mounted on it.
    Carrier(u32),
}

impl Owner {
    /// No owner, or an unknown one.
    pub const NONE: Self = Self(0);

    const INCARNATION: u64 = 1 << 63;
    const CARRIER: u64 = 1 << 62;

    /// Returns the owner with this identification; [`Owner::NONE`] for a number that no thread has.
    #[inline]
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

    /// Returns the identification of the owner.
    #[inline]
    pub const fn thread(self) -> Option<OwnerThread> {
        match (self.0, self.0 & Self::INCARNATION != 0, self.0 & Self::CARRIER != 0) {
            (0, ..) => None,
            (id, false, _) => Some(OwnerThread::ThreadId(id.cast_signed())),
            (incarnation, true, false) => Some(OwnerThread::Incarnation(incarnation as u32)),
            (incarnation, true, true) => Some(OwnerThread::Carrier(incarnation as u32)),
        }
    }
}

/// The header of a record. All engines share it; `subject` and `context` are 0, and `thread_state` is
/// unknown, if an engine or a feature does not set them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SampleHeader {
    /// CLOCK_MONOTONIC when the signal was handled.
    pub monotonic_ns: u64,
    /// The number of periods of CPU time that the sample stands for; 0 for all engines but the CPU engine.
    pub weight: u64,
    /// The values that the sample adds to the engine's profiles, in the order of the profiles.
    pub values: [f64; 2],
    /// The thread's context; [`ContextRecord::NONE`] if it has none.
    pub context: ContextRecord,
    /// The thread that owned the monitor or lock that the sampled thread waited for.
    pub owner: Owner,
    /// The kernel's thread id.
    pub os_tid: i32,
    /// The incarnation of the thread as a Java thread, under one name; 0 for a thread that never was a Java
    /// thread.
    pub java_incarnation: u32,
    /// The subject of the sample.
    pub subject: Subject,
    /// The number by which the sample is repeated, or by which the sampled allocation is identified; 0:
    /// neither.
    pub number: u32,
    /// The number of frames that follow.
    pub frame_count: u16,
    /// An [`Engine`].
    pub engine: Engine,
    /// The state of the Java thread.
    pub thread_state: JavaThreadState,
    /// 1 if the thread was carrying a virtual thread, else 0.
    pub is_virtual: u8,
    /// 1 if a system call of the thread was waiting, else 0.
    pub is_waiting: u8,
    /// 1 if the thread is reported as waiting for a processor, unless it was waiting for something else;
    /// otherwise 0.
    pub is_runnable: u8,
    /// Always 0.
    pub reserved: u8,
}

/// The kind of a [`FrameRecord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// A Java frame in the interpreter: `aux` is the bytecode index (-1 if unknown), `value` the `Method*`.
    Interpreted = 1,
    /// A physical Java frame in compiled code; `aux` and `value` as for `Interpreted`.
    Compiled,
    /// A Java frame inlined into the next frame; `aux` and `value` as for `Interpreted`.
    Inlined,
    /// A Java frame of a native method's wrapper; `aux` and `value` as for `Interpreted`.
    NativeMethod,
    /// A native frame: `aux` is the object index or [`NO_OBJECT`], `value` the run-time lookup address (one
    /// less than the return address, except for the leaf).
    Native,
    /// A native frame in the remote pool: `aux` is the slot.
    Remote,
    /// A stub or code blob of the VM: `value` is the run-time lookup address.
    Stub,
    /// A place where the walk could not continue: `aux` is a walk error.
    Unwalkable,
    /// A virtual thread's frozen frames, which could not be read: `aux` is the reason.
    Frozen,
    /// The walk reached the frame limit.
    Truncated,
    /// Stands for the stack of a thread without Java frames, if native frames are not wanted.
    NoJavaFrame,
    /// A Java frame that may be interpreted, compiled or inlined; `aux` and `value` as for `Interpreted`.
    Java,
    /// A Java frame by its jmethodID, which is in `value`.
    MethodId,
    /// A kernel frame: `value` is the run-time lookup address (one less than the return address, except for
    /// the leaf).
    Kernel,
}

impl FrameKind {
    /// Whether `value` is a `Method*`.
    pub const fn is_java(self) -> bool {
        matches!(self, Self::Interpreted | Self::Compiled | Self::Inlined | Self::NativeMethod | Self::Java)
    }
}

/// The value of [`FrameRecord::aux`] for a native frame at whose address no object was known.
pub const NO_OBJECT: u32 = u32::MAX;

/// One frame of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FrameRecord {
    /// The meaning depends on `kind`.
    pub value: u64,
    /// The meaning depends on `kind`.
    pub aux: u32,
    /// A [`FrameKind`].
    pub kind: FrameKind,
    /// The compilation level of a compiled frame (1-4), else 0.
    pub level: u8,
    /// Always 0.
    pub reserved: u16,
}

impl FrameRecord {
    /// Whether the frame has a method of Java, as a `Method*` or as a jmethodID.
    pub fn has_java_method(&self) -> bool {
        self.kind.is_java() || self.kind == FrameKind::MethodId
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_decodes_to_the_encoded_thread() {
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

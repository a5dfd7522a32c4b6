//! The keys by which samples are summed: frames as recorded, and threads.

use otlpprof_core::record::{FrameKind, FrameRecord, NO_OBJECT};

/// A frame as recorded, self-contained: a slot of the remote pool has been replaced by its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawFrame {
    /// The kind of the frame. A `Native` frame with an object is an address in that object.
    pub kind: FrameKind,
    /// As in [`FrameRecord`]: bytecode index, object index, or error. For `Remote` the object's index.
    pub aux: u32,
    /// As in [`FrameRecord`]. For `Remote` the ELF virtual address.
    pub value: u64,
}

impl RawFrame {
    /// The frame of a record that has no slot in the remote pool.
    pub fn new(frame: &FrameRecord) -> Self {
        Self { kind: frame.kind, aux: frame.aux, value: frame.value }
    }

    /// Whether nothing but an address is known of the frame. At the next sample other code may be at that
    /// address, if a library has been unloaded and another loaded in its place.
    pub(super) fn is_bare_address(&self) -> bool {
        self.kind == FrameKind::Native && self.aux == NO_OBJECT
    }
}

/// The numbers of objects loaded and unloaded in the process's life, at some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ObjectCounts {
    /// Objects loaded.
    pub loaded: u64,
    /// Objects unloaded.
    pub unloaded: u64,
}

/// A frame that is named only when the interval has ended, since finding its name may take long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnnamedFrame {
    /// The frame as recorded.
    pub frame: RawFrame,
    /// For an address in no known object, the counts from before it was sampled; zeros for all others.
    pub since: ObjectCounts,
}

/// A thread, in one of its lives as a Java thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadKey {
    /// The kernel's thread id.
    pub os_tid: i32,
    /// The life; 0 for a thread that never was a Java thread.
    pub java_incarnation: u32,
    /// Whether the thread was carrying a virtual thread.
    pub is_virtual: bool,
}

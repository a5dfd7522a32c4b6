//! The position of a walk, and the steps from frame to frame.

/// A physical frame: the position of a walk between callee and caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The program counter: where the thread was interrupted, or a return address.
    pub pc: u64,
    /// The stack pointer in this frame. For the caller of an interpreted frame this is the sender's
    /// unextended SP.
    pub sp: u64,
    /// The frame pointer register in this frame.
    pub fp: u64,
    /// Whether `pc` is where the thread was interrupted (the topmost frame, or the one below a signal frame)
    /// rather than a return address.
    pub interrupted: bool,
}

impl Cursor {
    /// The address to use for looking up symbols and rules. A return address belongs to the call before it.
    pub const fn lookup_pc(&self) -> u64 {
        if self.interrupted { self.pc } else { self.pc.wrapping_sub(1) }
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The caller's frame.
    Caller(Cursor),
    /// This frame was the outermost.
    Root,
    /// The caller is frozen on the heap, in the chunks of the mounted continuation.
    Frozen,
}

/// The most steps of one walk. Inlining makes more frames than steps, never fewer.
pub const MAX_STEPS: usize = 16 * 1024;

//! The reasons why a walk could not go on.

/// The reason why a walk could not go on. Each is counted, and written into the stack as a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WalkError {
    /// The program counter is in no object, no code blob and no stub.
    UnknownCode,
    /// No unwind rule covers the program counter, and the frame pointer does not lead on.
    NoUnwindRule,
    /// The unwind rule needs a value that is not known here (an expression, a register of an inner frame).
    UnsupportedRule,
    /// The stack pointer would not move towards the root, or would leave the stack.
    BadStackPointer,
    /// Memory that the walk needs is not readable.
    Unreadable,
    /// No code blob is allocated at a program counter in the code cache.
    NoCodeBlob,
    /// A code blob without a usable frame size.
    NoFrameSize,
    /// An interpreter frame whose method or frame pointer is not plausible.
    BadInterpreterFrame,
    /// An entry frame whose call wrapper cannot be read.
    BadEntryFrame,
    /// The walk has taken more steps than any stack has frames.
    TooManySteps,
    /// Native frames above or between Java frames could not be walked. The stack goes on at the Java frame
    /// anchor.
    NativeFramesLost,
    /// A virtual thread's frames do not lead on to the frames of its carrier.
    BadContinuationEntry,
    /// AsyncGetCallTrace does not know the Java frames, and no other source could.
    NoCallTrace,
}

impl WalkError {
    /// The number of reasons.
    pub const COUNT: usize = 13;

    /// All reasons.
    pub const ALL: [Self; Self::COUNT] = [
        Self::UnknownCode,
        Self::NoUnwindRule,
        Self::UnsupportedRule,
        Self::BadStackPointer,
        Self::Unreadable,
        Self::NoCodeBlob,
        Self::NoFrameSize,
        Self::BadInterpreterFrame,
        Self::BadEntryFrame,
        Self::TooManySteps,
        Self::NativeFramesLost,
        Self::BadContinuationEntry,
        Self::NoCallTrace,
    ];

    /// The reason as it stands in `[unwalkable: reason]` and in the counters' names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownCode => "unknown_code",
            Self::NoUnwindRule => "no_unwind_rule",
            Self::UnsupportedRule => "unsupported_rule",
            Self::BadStackPointer => "bad_stack_pointer",
            Self::Unreadable => "unreadable_memory",
            Self::NoCodeBlob => "no_code_blob",
            Self::NoFrameSize => "no_frame_size",
            Self::BadInterpreterFrame => "bad_interpreter_frame",
            Self::BadEntryFrame => "bad_entry_frame",
            Self::TooManySteps => "too_many_steps",
            Self::NativeFramesLost => "native_frames_lost",
            Self::BadContinuationEntry => "bad_continuation_entry",
            Self::NoCallTrace => "no_call_trace",
        }
    }
}

//! The reasons why the frozen frames of a virtual thread could not be read.

/// The reason why frozen frames could not be read. Each is counted, and written into the stack as a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrozenReason {
    /// This JVM's continuations were not recognised at start.
    UnknownLayout,
    /// A field on the way to a chunk is not readable.
    Unreadable,
    /// The collector has yet to update a reference.
    StaleReference,
    /// The presumed continuation or chunk has another class.
    WrongClass,
    /// The bounds of a chunk's stack do not lie within the chunk.
    BadBounds,
    /// A presumed frame in a chunk is not a frame.
    BadFrame,
    /// The oldest frame is not the continuation's entry.
    NoEntry,
    /// No chunk has a frame.
    Empty,
    /// The thread is taking frames out of the chunk, and its progress is not known.
    Thawing,
    /// The VM may be moving the chunk.
    Collecting,
}

impl FrozenReason {
    /// The number of reasons.
    pub const COUNT: usize = 10;

    /// All reasons.
    pub const ALL: [Self; Self::COUNT] = [
        Self::UnknownLayout,
        Self::Unreadable,
        Self::StaleReference,
        Self::WrongClass,
        Self::BadBounds,
        Self::BadFrame,
        Self::NoEntry,
        Self::Empty,
        Self::Thawing,
        Self::Collecting,
    ];

    /// The reason as it stands in `[frozen: reason]` and in the counters' names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownLayout => "unknown_layout",
            Self::Unreadable => "unreadable_memory",
            Self::StaleReference => "stale_reference",
            Self::WrongClass => "wrong_class",
            Self::BadBounds => "bad_bounds",
            Self::BadFrame => "bad_frame",
            Self::NoEntry => "no_entry",
            Self::Empty => "empty",
            Self::Thawing => "thawing",
            Self::Collecting => "collecting",
        }
    }
}

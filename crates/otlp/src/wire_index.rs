//! Indices into the tables of one message.

use otlpprof_model::Id;

/// An index into a table of the message. Protobuf writes it as int32. The tables of one message hold fewer
/// than 2³¹ values, since a protobuf message is at most 2 GiB long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub(super) struct WireIndex(pub(super) u32);

impl WireIndex {
    /// The zero value of every table. As a reference, this index means that there is none.
    pub(super) const ZERO: Self = Self(0);
}

impl Id for WireIndex {
    fn from_index(index: u32) -> Self {
        Self(index)
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

//! The ids of values in the tables of a batch.

use std::hash::{Hash, Hasher};

use super::intern::Id;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                state.write_u32(self.0);
            }

            // The derived function would hash element by element, which takes three times as long for a stack
            // of 60 frames.
            fn hash_slice<H: Hasher>(ids: &[Self], state: &mut H) {
                // SAFETY: an id is a transparent u32, so a slice of ids is a slice of as many u32.
                let numbers = unsafe { std::slice::from_raw_parts(ids.as_ptr().cast::<u32>(), ids.len()) };
                u32::hash_slice(numbers, state);
            }
        }

        impl Id for $name {
            fn from_index(index: u32) -> Self {
                Self(index)
            }

            fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// The id of a string in [`Tables::strings`](super::Tables::strings).
    StringId
}
id! {
    /// The id of a [`Function`](super::Function).
    FunctionId
}
id! {
    /// The id of a [`Mapping`](super::Mapping).
    MappingId
}
id! {
    /// The id of a [`Frame`](super::Frame).
    FrameId
}
id! {
    /// The id of a sequence of frames, leaf first.
    StackId
}
id! {
    /// The id of an [`Attribute`](super::Attribute).
    AttributeId
}
id! {
    /// The id of a set of attributes.
    AttributeSetId
}
id! {
    /// The id of a [`Link`](super::Link).
    LinkId
}

impl StringId {
    /// The empty string, which all tables contain.
    pub const EMPTY: Self = Self(0);
}

impl StackId {
    /// The stack without frames, which all tables contain.
    pub const EMPTY: Self = Self(0);
}

impl AttributeSetId {
    /// The empty set, which all tables contain.
    pub const EMPTY: Self = Self(0);
}

impl LinkId {
    /// No link: a link of zeros, which all tables contain.
    pub const NONE: Self = Self(0);
}

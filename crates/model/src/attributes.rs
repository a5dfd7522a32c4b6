//! Facts attached to samples and profiles, and links to spans.

use std::hash::{Hash, Hasher};

use super::ids::StringId;

/// One fact about a sample, a profile or a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attribute {
    /// The attribute's name, from the semantic conventions where they define one. No set contains an
    /// attribute with an empty key.
    pub key: StringId,
    /// The attribute's value.
    pub value: AttributeValue,
    /// The UCUM unit of the value, or the empty string.
    pub unit: StringId,
}

/// The value of an [`Attribute`]. Doubles are equal if their bits are.
#[derive(Clone, Copy, Debug)]
pub enum AttributeValue {
    /// A string.
    Str(StringId),
    /// An integer.
    Int(i64),
    /// True or false.
    Bool(bool),
    /// A floating-point number.
    Double(f64),
}

impl AttributeValue {
    /// Kind and content, for comparisons.
    fn bits(self) -> (u8, u64) {
        match self {
            Self::Str(id) => (0, u64::from(id.0)),
            Self::Int(value) => (1, value as u64),
            Self::Bool(value) => (2, u64::from(value)),
            Self::Double(value) => (3, value.to_bits()),
        }
    }
}

impl PartialEq for AttributeValue {
    fn eq(&self, other: &Self) -> bool {
        self.bits() == other.bits()
    }
}

impl Eq for AttributeValue {}

impl Hash for AttributeValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bits().hash(state);
    }
}

/// A span that was active when a sample was taken. The default, all zeros, is no link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Link {
    /// W3C trace id, big-endian.
    pub trace_id: [u8; 16],
    /// W3C span id, big-endian.
    pub span_id: [u8; 8],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_different_kinds_differ_and_nan_equals_itself() {
        assert_ne!(AttributeValue::Int(1), AttributeValue::Bool(true));
        assert_ne!(AttributeValue::Double(0.0), AttributeValue::Double(-0.0));
        assert_eq!(AttributeValue::Double(f64::NAN), AttributeValue::Double(f64::NAN));
    }
}

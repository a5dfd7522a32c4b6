//! What metadata says of types: fields, annotations, settings. Texts that are written once are kept once.

use std::sync::Arc;

use super::layout::Layout;

/// The position of a type in [`super::metadata::Metadata`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeIndex(pub(super) u32);

impl TypeIndex {
    /// The position.
    #[inline]
    pub fn position(self) -> usize {
        self.0 as usize
    }
}

/// A type of a chunk: an event's, a constant's, a struct's, an annotation's.
#[derive(Clone, Debug)]
pub struct Type {
    /// Its id, which means nothing in another chunk.
    pub id: i64,
    /// Its name: `jdk.ExecutionSample`, `java.lang.Thread`, `int`.
    pub name: Arc<str>,
    /// The name of what it is derived from: `jdk.jfr.Event` for events.
    pub super_type: Option<Arc<str>>,
    /// Whether it stands for its only field.
    pub is_simple: bool,
    /// Its fields, in the order in which they are written.
    pub fields: Vec<Field>,
    /// What is said about it.
    pub annotations: Vec<Annotation>,
    /// What can be set for an event.
    pub settings: Vec<Setting>,
    pub(super) layout: Layout,
}

/// A field of a type.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: Arc<str>,
    /// What is written for it, or for each element if it is an array.
    pub kind: FieldKind,
    /// Whether it is a count and so many elements.
    pub is_array: bool,
    /// The name of its type, empty if the metadata does not describe it.
    pub type_name: Arc<str>,
    /// What is said about it.
    pub annotations: Vec<Annotation>,
}

/// What is written for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// One byte.
    Boolean,
    /// One byte, signed.
    Byte,
    /// 16 bits, signed.
    Short,
    /// A UTF-16 unit.
    Char,
    /// 32 bits, signed.
    Int,
    /// 64 bits, signed.
    Long,
    /// 32 bits.
    Float,
    /// 64 bits.
    Double,
    /// A string in one of the encodings.
    String,
    /// A key into the constants of this type.
    Constant(TypeIndex),
    /// The fields of this type, in place.
    Struct(TypeIndex),
    /// In place, but of a type that the metadata does not describe, so nothing behind it can be read.
    Unknown(i64),
}

/// A fact about a type, a field or a setting, such as a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The name of its type: `jdk.jfr.Timespan`.
    pub type_name: Arc<str>,
    /// Names and values; the elements of an array are `value-0`, `value-1` and so on.
    pub values: Vec<(Arc<str>, Arc<str>)>,
}

/// Something that can be set for an event.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its name: `threshold`.
    pub name: Arc<str>,
    /// The name of its type.
    pub type_name: Arc<str>,
    /// Its value unless set.
    pub default_value: Option<Arc<str>>,
    /// What is said about it.
    pub annotations: Vec<Annotation>,
}

/// What a number of a field measures, by its annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A span of time in units of so many nanoseconds.
    TimespanNanos(i64),
    /// A span of time in the chunk's ticks.
    TimespanTicks,
    /// A time in units of so many nanoseconds since 1970-01-01 UTC.
    EpochNanos(i64),
    /// A time in the chunk's ticks.
    EpochTicks,
    /// Bytes.
    Bytes,
    /// Bits.
    Bits,
}

impl Annotation {
    /// The value of this name, `value` for most.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(other, _)| &**other == name).map(|(_, value)| &**value)
    }
}

impl Field {
    /// The annotation of this type.
    pub fn annotation(&self, type_name: &str) -> Option<&Annotation> {
        self.annotations.iter().find(|annotation| &*annotation.type_name == type_name)
    }

    /// Whether its bits are a number without a sign.
    pub fn is_unsigned(&self) -> bool {
        self.annotation("jdk.jfr.Unsigned").is_some()
    }

    /// What its numbers measure. JDKs differ for fields of the same name (`jdk.ThreadSleep.time` is in milliseconds
    /// on 17, in nanoseconds on 25).
    pub fn unit(&self) -> Option<Unit> {
        self.annotations.iter().find_map(|annotation| {
            let value = annotation.value("value").unwrap_or_default();
            match (&*annotation.type_name, value) {
                ("jdk.jfr.Timespan", "TICKS") => Some(Unit::TimespanTicks),
                ("jdk.jfr.Timespan", "NANOSECONDS" | "") => Some(Unit::TimespanNanos(1)),
                ("jdk.jfr.Timespan", "MICROSECONDS") => Some(Unit::TimespanNanos(1_000)),
                ("jdk.jfr.Timespan", "MILLISECONDS") => Some(Unit::TimespanNanos(1_000_000)),
                ("jdk.jfr.Timespan", "SECONDS") => Some(Unit::TimespanNanos(1_000_000_000)),
                ("jdk.jfr.Timestamp", "TICKS") => Some(Unit::EpochTicks),
                ("jdk.jfr.Timestamp", "NANOSECONDS_SINCE_EPOCH") => Some(Unit::EpochNanos(1)),
                ("jdk.jfr.Timestamp", "MILLISECONDS_SINCE_EPOCH" | "") => Some(Unit::EpochNanos(1_000_000)),
                ("jdk.jfr.DataAmount", "BITS") => Some(Unit::Bits),
                ("jdk.jfr.DataAmount", _) => Some(Unit::Bytes),
                _ => None,
            }
        })
    }
}

impl Type {
    /// The position of a field among [`Type::fields`].
    pub fn field_position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| &*field.name == name)
    }

    /// A field by its name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.field_position(name).map(|position| &self.fields[position])
    }

    /// Whether it is an event's. JDK: `jdk.jfr.Event` is what events are derived from.
    pub fn is_event(&self) -> bool {
        self.super_type.as_deref() == Some("jdk.jfr.Event")
    }
}

//! The types that metadata describes: fields, annotations, settings. A text that the metadata writes once is
//! kept once.

use std::sync::Arc;

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
    /// The id, which is valid only in this chunk.
    pub id: i64,
    /// The name: `jdk.ExecutionSample`, `java.lang.Thread`, `int`.
    pub name: Arc<str>,
    /// The name of the super type: `jdk.jfr.Event` for events.
    pub super_type: Option<Arc<str>>,
    /// Whether the type stands for its only field.
    pub is_simple: bool,
    /// The fields, in the order in which they are written.
    pub fields: Vec<Field>,
    /// The annotations of the type.
    pub annotations: Vec<Annotation>,
    /// The settings of an event.
    pub settings: Vec<Setting>,
}

/// A field of a type.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name.
    pub name: Arc<str>,
    /// The encoding of the field, or of each element if the field is an array.
    pub kind: FieldKind,
    /// Whether the field is an array: a count, followed by the elements.
    pub is_array: bool,
    /// The name of the field's type; empty if the metadata does not describe it.
    pub type_name: Arc<str>,
    /// The annotations of the field.
    pub annotations: Vec<Annotation>,
}

/// The encoding of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// One byte.
    Boolean,
    /// One byte, signed.
    Byte,
    /// 16 bits, signed.
    Short,
    /// A UTF-16 code unit.
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
    /// A key of a constant of this type.
    Constant(TypeIndex),
    /// The fields of this type, inline.
    Struct(TypeIndex),
    /// An inline value of a type that the metadata does not describe, by its id. Neither this value nor the
    /// following ones can be read.
    Unknown(i64),
}

/// A reference to a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Constant {
    /// The type of the constant.
    pub of: TypeIndex,
    /// The constant's key.
    pub key: i64,
}

/// A fact about a type, a field or a setting, such as a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The name of the annotation's type: `jdk.jfr.Timespan`.
    pub type_name: Arc<str>,
    /// Names and values; the elements of an array are `value-0`, `value-1` and so on.
    pub values: Vec<(Arc<str>, Arc<str>)>,
}

/// A setting of an event.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The name: `threshold`.
    pub name: Arc<str>,
    /// The name of the setting's type.
    pub type_name: Arc<str>,
    /// The value if nothing else is set.
    pub default_value: Option<Arc<str>>,
    /// The annotations of the setting.
    pub annotations: Vec<Annotation>,
}

/// The quantity that a numeric field measures, by its annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A span of time, in units of this many nanoseconds.
    TimespanNanos(i64),
    /// A span of time, in the chunk's ticks.
    TimespanTicks,
    /// A time since 1970-01-01 UTC, in units of this many nanoseconds.
    EpochNanos(i64),
    /// A time, in the chunk's ticks.
    EpochTicks,
    /// Bytes.
    Bytes,
    /// Bits.
    Bits,
}

impl Annotation {
    /// The value with this name; the name is `value` in most annotations.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(other, _)| &**other == name).map(|(_, value)| &**value)
    }
}

impl Field {
    /// The annotation with this type.
    pub fn annotation(&self, type_name: &str) -> Option<&Annotation> {
        self.annotations.iter().find(|annotation| &*annotation.type_name == type_name)
    }

    /// Whether the field's bits are an unsigned number.
    pub fn is_unsigned(&self) -> bool {
        self.annotation("jdk.jfr.Unsigned").is_some()
    }

    /// The unit of the field's numbers. It differs between JDKs for fields with the same name:
    /// `jdk.ThreadSleep.time` is in milliseconds on JDK 17 and in nanoseconds on JDK 25.
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

    /// The field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.field_position(name).map(|position| &self.fields[position])
    }

    /// Whether the type describes events. In the JDK all events are derived from `jdk.jfr.Event`.
    pub fn is_event(&self) -> bool {
        self.super_type.as_deref() == Some("jdk.jfr.Event")
    }
}

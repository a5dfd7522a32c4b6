//! Values of fields: primitive values, inline structs, and references to constants.

use std::borrow::Cow;

use super::chunk::Chunk;
use super::cursor::ChunkCursor;
use super::error::{JfrError, Problem};
use super::layout::{count_structs, skip_values};
use super::metadata::Metadata;
use super::strings::RawString;
use super::types::{Constant, Field, FieldKind, Type, TypeIndex};

/// The most references that are followed from one string to another. No writer chains strings.
const MOST_STRING_HOPS: usize = 4;

/// The value of a field.
#[derive(Clone, Copy, Debug)]
pub enum Value<'c> {
    /// boolean
    Boolean(bool),
    /// byte
    Byte(i8),
    /// short
    Short(i16),
    /// char
    Char(u16),
    /// int
    Int(i32),
    /// long
    Long(i64),
    /// float
    Float(f32),
    /// double
    Double(f64),
    /// A string, inline or in the pool. [`Chunk::text`] returns its text.
    String(RawString<'c>),
    /// A reference to a constant. [`Chunk::resolve`] returns its value.
    Constant(Constant),
    /// Inline fields.
    Struct(Struct<'c>),
    /// Several values.
    Array(Array<'c>),
}

/// A sequence of fields: of an event, of a constant, or of an inline struct.
#[derive(Clone, Copy, Debug)]
pub struct Struct<'c> {
    pub(super) chunk: Chunk<'c>,
    pub(super) of: TypeIndex,
    pub(super) at: usize,
    pub(super) end: usize,
}

/// Values of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Array<'c> {
    chunk: Chunk<'c>,
    kind: FieldKind,
    count: usize,
    at: usize,
    end: usize,
}

impl<'c> Value<'c> {
    /// The value of an integer or a boolean.
    pub fn as_i64(&self) -> Option<i64> {
        Some(match *self {
            Self::Boolean(value) => value.into(),
            Self::Byte(value) => value.into(),
            Self::Short(value) => value.into(),
            Self::Char(value) => value.into(),
            Self::Int(value) => value.into(),
            Self::Long(value) => value,
            _ => return None,
        })
    }

    /// The value of any number.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::Float(value) => Some(value.into()),
            Self::Double(value) => Some(value),
            _ => self.as_i64().map(|value| value as f64),
        }
    }

    /// The value of a reference.
    pub fn as_constant(&self) -> Option<Constant> {
        match *self {
            Self::Constant(constant) => Some(constant),
            _ => None,
        }
    }

    /// The fields of an inline struct, or of a constant that is one.
    pub fn as_struct(&self, chunk: Chunk<'c>) -> Option<Struct<'c>> {
        match *self {
            Self::Struct(of) => Some(of),
            Self::Constant(constant) => match chunk.resolve(constant)? {
                Self::Struct(of) => Some(of),
                _ => None,
            },
            _ => None,
        }
    }
}

impl<'c> Chunk<'c> {
    /// The value of a constant; `None` if the chunk does not have this key. JDK 17 never writes some of the
    /// constants that it refers to.
    pub fn resolve(&self, constant: Constant) -> Option<Value<'c>> {
        let at = self.index.pools.find(constant.of, constant.key)?;
        let mut cursor = self.cursor(at, self.bytes.len());
        let kind = constant_kind(self.metadata(), constant.of);
        // The checkpoint was parsed over this value, so it can be read.
        read_value(&mut cursor, kind, false, *self).ok()
    }

    /// The text of a string, whether inline or in the string pool, or of a constant that stands for a string
    /// (`jdk.types.Symbol`).
    pub fn text(&self, value: Value<'c>) -> Option<Cow<'c, str>> {
        self.string(value)?.text()
    }

    /// The beginning of the text of a string, as for [`Chunk::text`]. At most `most` bytes or UTF-16 units
    /// are decoded. In UTF-8 the last character is whole.
    pub fn text_up_to(&self, value: Value<'c>, most: usize) -> Option<Cow<'c, str>> {
        self.string(value)?.up_to(most).text()
    }

    fn string(&self, value: Value<'c>) -> Option<RawString<'c>> {
        let mut value = value;
        for _ in 0..MOST_STRING_HOPS {
            value = match value {
                Value::String(RawString::Pool(key)) => {
                    let of = self.metadata().string_type()?;
                    self.resolve(Constant { of, key })?
                }
                Value::String(string) => return Some(string),
                Value::Constant(constant) => self.resolve(constant)?,
                Value::Struct(of) if of.type_of().is_simple || of.type_of().fields.len() == 1 => {
                    of.fields().next()?.ok()?.1
                }
                _ => return None,
            };
        }
        None
    }
}

impl<'c> Struct<'c> {
    /// The type.
    #[inline]
    pub fn type_of(&self) -> &'c Type {
        self.chunk.metadata().get(self.of)
    }

    /// The position of the type.
    pub fn type_index(&self) -> TypeIndex {
        self.of
    }

    /// The chunk that contains this value.
    pub fn chunk(&self) -> Chunk<'c> {
        self.chunk
    }

    /// All fields. After an error the iterator ends.
    #[inline]
    pub fn fields(&self) -> Fields<'c> {
        let cursor = self.chunk.cursor(self.at, self.end);
        Fields { chunk: self.chunk, rest: self.type_of().fields.iter(), cursor, pending: Pending::Nothing }
    }

    /// The value of a field; `None` if there is no such field or it cannot be read. Each call searches for
    /// the field by its name. To read the same fields of many values use [`super::projection::Projection`].
    pub fn get(&self, name: &str) -> Option<Value<'c>> {
        let mut fields = self.fields().map_while(Result::ok);
        fields.find(|(field, _)| &*field.name == name).map(|(_, value)| value)
    }

    #[inline]
    pub(super) fn cursor(&self) -> ChunkCursor<'c> {
        self.chunk.cursor(self.at, self.end)
    }
}

/// Fields of a [`Struct`] with their values.
#[derive(Clone, Debug)]
pub struct Fields<'c> {
    chunk: Chunk<'c>,
    rest: std::slice::Iter<'c, Field>,
    cursor: ChunkCursor<'c>,
    pending: Pending,
}

/// The value that was returned last, if its end is unknown. The cursor is at its beginning. The value is
/// skipped only if a caller asks for the next one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pending {
    Nothing,
    Struct(TypeIndex),
    Array { kind: FieldKind, count: usize },
}

impl<'c> Iterator for Fields<'c> {
    type Item = Result<(&'c Field, Value<'c>), JfrError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let field = self.rest.next()?;
        if let Err(error) = self.pending.pass(&mut self.cursor, self.chunk.metadata()) {
            self.rest = [].iter();
            return Some(Err(error));
        }
        let (chunk, rest) = (self.chunk, &mut self.rest);
        let (pending, cursor) = (&mut self.pending, &mut self.cursor);
        read_value_to(cursor, field.kind, field.is_array, chunk, pending, |read| {
            if read.is_err() {
                *rest = [].iter();
            }
            Some(read.map(|value| (field, value)))
        })
    }
}

impl<'c> Array<'c> {
    /// The number of values.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the array has no values.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The encoding of each value.
    pub fn kind(&self) -> FieldKind {
        self.kind
    }

    /// The chunk that contains this array.
    pub fn chunk(&self) -> Chunk<'c> {
        self.chunk
    }

    /// A cursor at the first value.
    pub(super) fn cursor(&self) -> ChunkCursor<'c> {
        self.chunk.cursor(self.at, self.end)
    }

    /// The values. After an error the iterator ends.
    pub fn values(&self) -> ArrayValues<'c> {
        ArrayValues {
            chunk: self.chunk,
            kind: self.kind,
            left: self.count,
            cursor: self.chunk.cursor(self.at, self.end),
            pending: Pending::Nothing,
        }
    }
}

/// Values of an [`Array`].
#[derive(Clone, Debug)]
pub struct ArrayValues<'c> {
    chunk: Chunk<'c>,
    kind: FieldKind,
    left: usize,
    cursor: ChunkCursor<'c>,
    pending: Pending,
}

impl<'c> Iterator for ArrayValues<'c> {
    type Item = Result<Value<'c>, JfrError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        if let Err(error) = self.pending.pass(&mut self.cursor, self.chunk.metadata()) {
            self.left = 0;
            return Some(Err(error));
        }
        let (chunk, left) = (self.chunk, &mut self.left);
        read_value_to(&mut self.cursor, self.kind, false, chunk, &mut self.pending, |read| {
            if read.is_err() {
                *left = 0;
            }
            Some(read)
        })
    }
}

impl Pending {
    #[inline(always)]
    pub(super) fn pass(&mut self, cursor: &mut ChunkCursor<'_>, metadata: &Metadata) -> Result<(), JfrError> {
        match self {
            Self::Nothing => Ok(()),
            // Rare and much code, so this is not inlined.
            _ => self.pass_it(cursor, metadata),
        }
    }

    #[inline(never)]
    fn pass_it(&mut self, cursor: &mut ChunkCursor<'_>, metadata: &Metadata) -> Result<(), JfrError> {
        match std::mem::replace(self, Self::Nothing) {
            Self::Nothing => Ok(()),
            Self::Struct(of) => metadata.layouts().of(of).skip(cursor, metadata.layouts()),
            Self::Array { kind, count } => skip_values(kind, count, cursor, metadata.layouts()),
        }
    }
}

/// Reads a value. The cursor moves past the value; but for a struct to its first field, and for an array to
/// its first value.
#[inline]
pub(super) fn read_value<'c>(
    cursor: &mut ChunkCursor<'c>,
    kind: FieldKind,
    is_array: bool,
    chunk: Chunk<'c>,
) -> Result<Value<'c>, JfrError> {
    read_value_to(cursor, kind, is_array, chunk, &mut Pending::Nothing, |read| read)
}

/// Reads a value like [`read_value`], sets `pending`, and returns the result of `to`.
///
/// A value is large, and most values are a number. So each kind's arm calls `to` itself, which stores the
/// result where the caller needs it. If all arms stored to one place and the value were copied from there,
/// the processor would stall on the stores, which are narrower than the copy's loads.
#[inline(always)]
pub(super) fn read_value_to<'c, T>(
    cursor: &mut ChunkCursor<'c>,
    kind: FieldKind,
    is_array: bool,
    chunk: Chunk<'c>,
    pending: &mut Pending,
    to: impl FnOnce(Result<Value<'c>, JfrError>) -> T,
) -> T {
    macro_rules! number {
        ($variant:ident, $read:expr) => {
            match $read {
                Ok(value) => to(Ok(Value::$variant(value))),
                Err(error) => to(Err(error)),
            }
        };
    }
    if is_array {
        let count = match kind {
            FieldKind::Struct(of) => count_structs(of, cursor, chunk.metadata().layouts()),
            _ => cursor.count(),
        };
        return match count {
            Ok(count) => {
                *pending = Pending::Array { kind, count };
                to(Ok(Value::Array(Array { chunk, kind, count, at: cursor.at(), end: cursor.end() })))
            }
            Err(error) => to(Err(error)),
        };
    }
    match kind {
        FieldKind::Boolean => number!(Boolean, cursor.byte().map(|byte| byte != 0)),
        FieldKind::Byte => number!(Byte, cursor.byte().map(|byte| byte as i8)),
        FieldKind::Short => number!(Short, cursor.short().map(|short| short as i16)),
        FieldKind::Char => number!(Char, cursor.short()),
        FieldKind::Int => number!(Int, cursor.int()),
        FieldKind::Long => number!(Long, cursor.long()),
        FieldKind::Float => number!(Float, cursor.float()),
        FieldKind::Double => number!(Double, cursor.double()),
        FieldKind::String => number!(String, RawString::read(cursor)),
        FieldKind::Constant(of) => number!(Constant, cursor.long().map(|key| Constant { of, key })),
        FieldKind::Struct(of) => {
            *pending = Pending::Struct(of);
            to(Ok(Value::Struct(Struct { chunk, of, at: cursor.at(), end: cursor.end() })))
        }
        FieldKind::Unknown(id) => to(Err(cursor.error(Problem::UnknownType(id)))),
    }
}

/// The encoding of constants of a type.
pub(super) fn constant_kind(metadata: &Metadata, of: TypeIndex) -> FieldKind {
    if metadata.string_type() == Some(of) { FieldKind::String } else { FieldKind::Struct(of) }
}

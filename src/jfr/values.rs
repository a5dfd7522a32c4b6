//! Values of fields: primitive, in place, or a key into the constants.

use super::chunk::Chunk;
use super::cursor::Cursor;
use super::error::{JfrError, Problem};
use super::layout::count_structs;
use super::metadata::Metadata;
use super::strings::RawString;
use super::types::{Field, FieldKind, Type, TypeIndex};

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
    /// A string, in place or in the pool: [`Chunk::text`] gives its text.
    String(RawString<'c>),
    /// A reference: [`Chunk::resolve`] gives what it refers to.
    Constant(Constant),
    /// Fields in place.
    Struct(Struct<'c>),
    /// Several values.
    Array(Array<'c>),
}

/// A reference to a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Constant {
    /// The type of what is referred to.
    pub of: TypeIndex,
    /// Its key.
    pub key: i64,
}

/// A sequence of fields: an event's, a constant's, or one that stands in place.
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
    /// An integer or a boolean as a number.
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

    /// Any number.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::Float(value) => Some(value.into()),
            Self::Double(value) => Some(value),
            _ => self.as_i64().map(|value| value as f64),
        }
    }

    /// A reference.
    pub fn as_constant(&self) -> Option<Constant> {
        match *self {
            Self::Constant(constant) => Some(constant),
            _ => None,
        }
    }

    /// The fields of what stands in place or is referred to.
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

impl<'c> Struct<'c> {
    /// Its type.
    #[inline]
    pub fn type_of(&self) -> &'c Type {
        self.chunk.metadata().get(self.of)
    }

    /// The position of its type.
    pub fn type_index(&self) -> TypeIndex {
        self.of
    }

    /// The chunk that it is in.
    pub fn chunk(&self) -> Chunk<'c> {
        self.chunk
    }

    /// All fields; an error is the last item.
    #[inline]
    pub fn fields(&self) -> Fields<'c> {
        let cursor = self.chunk.cursor(self.at, self.end);
        Fields { chunk: self.chunk, rest: self.type_of().fields.iter(), cursor, pending: Pending::Nothing }
    }

    /// The value of a field, which is looked for by name each time; [`super::projection::Projection`] is for many.
    /// `None` if there is no such field, or it cannot be read.
    pub fn get(&self, name: &str) -> Option<Value<'c>> {
        let mut fields = self.fields().map_while(Result::ok);
        fields.find(|(field, _)| &*field.name == name).map(|(_, value)| value)
    }

    #[inline]
    pub(super) fn cursor(&self) -> Cursor<'c> {
        self.chunk.cursor(self.at, self.end)
    }
}

/// Fields of a [`Struct`] with their values.
#[derive(Clone, Debug)]
pub struct Fields<'c> {
    chunk: Chunk<'c>,
    rest: std::slice::Iter<'c, Field>,
    cursor: Cursor<'c>,
    pending: Pending,
}

/// What was given last, whose end nobody knows yet; the cursor is at its beginning. It is passed only if somebody asks for
/// what follows.
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
    /// How many values there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What each is written as.
    pub fn kind(&self) -> FieldKind {
        self.kind
    }

    /// The chunk that it is in.
    pub fn chunk(&self) -> Chunk<'c> {
        self.chunk
    }

    /// At the first value.
    pub(super) fn cursor(&self) -> Cursor<'c> {
        self.chunk.cursor(self.at, self.end)
    }

    /// The values; an error is the last item.
    pub fn values(&self) -> Values<'c> {
        Values {
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
pub struct Values<'c> {
    chunk: Chunk<'c>,
    kind: FieldKind,
    left: usize,
    cursor: Cursor<'c>,
    pending: Pending,
}

impl<'c> Iterator for Values<'c> {
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
    pub(super) fn pass(&mut self, cursor: &mut Cursor<'_>, metadata: &Metadata) -> Result<(), JfrError> {
        match self {
            Self::Nothing => Ok(()),
            // Seldom, and much code.
            _ => self.pass_it(cursor, metadata),
        }
    }

    #[inline(never)]
    fn pass_it(&mut self, cursor: &mut Cursor<'_>, metadata: &Metadata) -> Result<(), JfrError> {
        match std::mem::replace(self, Self::Nothing) {
            Self::Nothing => Ok(()),
            Self::Struct(of) => metadata.get(of).layout.skip(cursor, metadata),
            Self::Array { kind, count } => super::layout::skip_values(kind, count, cursor, metadata),
        }
    }
}

/// Reads a value. The cursor is behind it afterwards, but of a struct at the first field, of an array at the first value.
#[inline]
pub(super) fn read_value<'c>(
    cursor: &mut Cursor<'c>,
    kind: FieldKind,
    is_array: bool,
    chunk: Chunk<'c>,
) -> Result<Value<'c>, JfrError> {
    read_value_to(cursor, kind, is_array, chunk, &mut Pending::Nothing, |read| read)
}

/// Reads a value as [`read_value`] does, says what of it is pending, and gives what `to` makes of it.
///
/// A value is large, and most are a number: what each kind makes is put where the caller wants it, in that kind's arm. All
/// arms put into one place, from which it is copied, would have the processor wait for stores that the copy is wider than.
#[inline(always)]
pub(super) fn read_value_to<'c, T>(
    cursor: &mut Cursor<'c>,
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
            FieldKind::Struct(of) => count_structs(of, cursor, chunk.metadata()),
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

/// What a constant of a type is written as.
pub(super) fn constant_kind(metadata: &Metadata, of: TypeIndex) -> FieldKind {
    if metadata.string_type() == Some(of) { FieldKind::String } else { FieldKind::Struct(of) }
}

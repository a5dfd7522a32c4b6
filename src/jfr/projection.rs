//! Typed access to the fields that a consumer asks for: their places are compiled once for a chunk's type, and what lies
//! between is passed, not read.

use super::chunk::Chunk;
use super::error::JfrError;
use super::layout::Layout;
use super::types::{FieldKind, TypeIndex};
use super::values::{Struct, Value, read_value};

/// How to read some fields of a type.
#[derive(Clone, Debug)]
pub struct Projection<const N: usize> {
    of: TypeIndex,
    fields: Vec<Taken>,
}

#[derive(Clone, Debug)]
struct Taken {
    before: Layout,
    kind: FieldKind,
    is_array: bool,
    /// Which of the fields asked for it is.
    slot: usize,
    /// How to pass it, where reading it does not.
    itself: Option<Layout>,
}

impl<const N: usize> Projection<N> {
    /// Compiles the fields of these names.
    pub fn new(chunk: Chunk<'_>, of: TypeIndex, names: [&str; N]) -> Self {
        let metadata = chunk.metadata();
        let (types, compressed) = (metadata.all(), chunk.header().compressed_integers());
        let fields = &metadata.get(of).fields;
        let layout = |range: std::ops::Range<usize>| {
            let mut budget = Layout::budget(types);
            Layout::of_fields(fields[range].iter(), types, compressed, &mut budget)
        };
        let mut taken = Vec::new();
        let mut next = 0;
        for (position, field) in fields.iter().enumerate() {
            let Some(slot) = names.iter().position(|name| *name == &*field.name) else { continue };
            let is_compound = field.is_array || matches!(field.kind, FieldKind::Struct(_));
            taken.push(Taken {
                before: layout(next..position),
                kind: field.kind,
                is_array: field.is_array,
                slot,
                itself: is_compound.then(|| layout(position..position + 1)),
            });
            next = position + 1;
        }
        if let Some(last) = taken.last_mut() {
            last.itself = None;
        }
        Self { of, fields: taken }
    }

    /// The type.
    pub fn type_index(&self) -> TypeIndex {
        self.of
    }

    /// The values of the fields, in the order of the names; `None` for those that the type does not have.
    ///
    /// # Errors
    /// If the fields go on behind the end of the event.
    #[inline]
    pub fn read<'c>(&self, values: &Struct<'c>) -> Result<[Option<Value<'c>>; N], JfrError> {
        debug_assert_eq!(values.of, self.of, "a projection of another type");
        let mut read = [None; N];
        let mut cursor = values.cursor();
        let metadata = values.chunk.metadata();
        for field in &self.fields {
            field.before.skip(&mut cursor, metadata)?;
            let at = cursor;
            read[field.slot] = Some(read_value(&mut cursor, field.kind, field.is_array, values.chunk)?);
            if let Some(itself) = &field.itself {
                cursor = at;
                itself.skip(&mut cursor, metadata)?;
            }
        }
        Ok(read)
    }
}

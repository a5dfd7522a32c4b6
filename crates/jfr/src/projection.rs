//! Typed access to selected fields. Their places are compiled once for each type of a chunk; the fields
//! between them are skipped without being read.

use super::chunk::Chunk;
use super::error::JfrError;
use super::layout::Layout;
use super::types::{FieldKind, TypeIndex};
use super::values::{Pending, Struct, Value, read_value_to};

/// The compiled reading of some fields of a type.
#[derive(Clone, Debug)]
pub struct Projection<const N: usize> {
    of: TypeIndex,
    fields: Vec<ProjectedField>,
}

#[derive(Clone, Debug)]
struct ProjectedField {
    before: Layout,
    kind: FieldKind,
    is_array: bool,
    /// The position of the field's name among the selected names.
    slot: usize,
    is_last: bool,
}

impl<const N: usize> Projection<N> {
    /// Compiles the reading of the fields with these names.
    pub fn new(chunk: Chunk<'_>, of: TypeIndex, names: [&str; N]) -> Self {
        let metadata = chunk.metadata();
        let (types, compressed) = (metadata.all(), chunk.header().compressed_integers());
        let fields = &metadata.get(of).fields;
        let mut budget = metadata.layout_budget(of);
        let mut layout = |range: std::ops::Range<usize>| {
            Layout::of_fields(fields[range].iter(), types, compressed, &mut budget)
        };
        let mut taken = Vec::new();
        let mut next = 0;
        for (position, field) in fields.iter().enumerate() {
            let Some(slot) = names.iter().position(|name| *name == &*field.name) else { continue };
            taken.push(ProjectedField {
                before: layout(next..position),
                kind: field.kind,
                is_array: field.is_array,
                slot,
                is_last: false,
            });
            next = position + 1;
        }
        if let Some(last) = taken.last_mut() {
            last.is_last = true;
        }
        Self { of, fields: taken }
    }

    /// The type whose fields are read.
    pub fn type_index(&self) -> TypeIndex {
        self.of
    }

    /// The values of the fields, in the order of the names; `None` for fields that the type does not have.
    ///
    /// # Errors
    /// If the fields extend beyond the end of the event.
    #[inline]
    pub fn read<'c>(&self, values: &Struct<'c>) -> Result<[Option<Value<'c>>; N], JfrError> {
        debug_assert_eq!(values.of, self.of, "a projection of another type");
        let mut read = [None; N];
        let mut cursor = values.cursor();
        let metadata = values.chunk.metadata();
        for field in &self.fields {
            field.before.skip(&mut cursor, metadata.layouts())?;
            let mut pending = Pending::Nothing;
            let slot = &mut read[field.slot];
            read_value_to(&mut cursor, field.kind, field.is_array, values.chunk, &mut pending, |read| {
                *slot = Some(read?);
                Ok(())
            })?;
            if !field.is_last {
                pending.pass(&mut cursor, metadata)?;
            }
        }
        Ok(read)
    }
}

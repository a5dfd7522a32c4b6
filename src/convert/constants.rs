//! What constants of a chunk have become, each once.

use crate::jfr::chunk::Chunk;
use crate::jfr::types::TypeIndex;
use crate::jfr::values::Constant;

/// A value for each constant of a type, found by the constant's position: keys mean nothing in another chunk, and a vector
/// is faster than any map.
#[derive(Debug)]
pub(super) struct Made<T> {
    /// Nearly always one.
    types: Vec<(TypeIndex, Vec<Option<T>>)>,
}

impl<T> Default for Made<T> {
    fn default() -> Self {
        Self { types: Vec::new() }
    }
}

/// A constant's place among those of its type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    of: TypeIndex,
    position: usize,
}

impl<T: Copy> Made<T> {
    /// The value of a constant, or the place where to put one; `None` if the chunk has no such constant.
    #[inline]
    pub(super) fn find(&self, chunk: Chunk<'_>, constant: Constant) -> Option<Result<T, Place>> {
        let position = chunk.constant_position(constant)?;
        let values = self.types.iter().find(|(of, _)| *of == constant.of).map(|(_, values)| values);
        Some(match values.and_then(|values| values.get(position)) {
            Some(&Some(value)) => Ok(value),
            _ => Err(Place { of: constant.of, position }),
        })
    }

    /// Puts a value there, and gives it.
    #[cold]
    pub(super) fn put(&mut self, chunk: Chunk<'_>, Place { of, position }: Place, value: T) -> T {
        let known = self.types.iter().position(|(other, _)| *other == of);
        let known = known.unwrap_or_else(|| {
            self.types.push((of, Vec::new()));
            self.types.len() - 1
        });
        let values = &mut self.types[known].1;
        if values.len() <= position {
            // More constants may come while a chunk is written.
            values.resize(chunk.constant_count(of).max(position + 1), None);
        }
        values[position] = Some(value);
        value
    }
}

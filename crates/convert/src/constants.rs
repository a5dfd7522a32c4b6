//! Converted constants of a chunk: each is converted once.

use otlpprof_jfr::chunk::Chunk;
use otlpprof_jfr::types::{Constant, TypeIndex};

/// A converted value for each constant of a type. A value is found by the constant's position: keys are valid
/// in one chunk only, and a vector is faster than any map.
#[derive(Debug)]
pub(super) struct ConvertedConstants<T> {
    /// One vector for each type. There is nearly always one type.
    types: Vec<(TypeIndex, Vec<Option<T>>)>,
}

impl<T> Default for ConvertedConstants<T> {
    fn default() -> Self {
        Self { types: Vec::new() }
    }
}

/// The position of a constant among the constants of its type.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConstantSlot {
    of: TypeIndex,
    position: usize,
}

impl<T: Copy> ConvertedConstants<T> {
    /// The value of a constant, or the place to store it at; `None` if the chunk has no such constant.
    #[inline]
    pub(super) fn find(&self, chunk: Chunk<'_>, constant: Constant) -> Option<Result<T, ConstantSlot>> {
        let position = chunk.constant_position(constant)?;
        let values = self.types.iter().find(|(of, _)| *of == constant.of).map(|(_, values)| values);
        Some(match values.and_then(|values| values.get(position)) {
            Some(&Some(value)) => Ok(value),
            _ => Err(ConstantSlot { of: constant.of, position }),
        })
    }

    /// Stores a value at this place, and returns it.
    #[cold]
    pub(super) fn put(
        &mut self,
        chunk: Chunk<'_>,
        ConstantSlot { of, position }: ConstantSlot,
        value: T,
    ) -> T {
        let known = self.types.iter().position(|(other, _)| *other == of);
        let known = known.unwrap_or_else(|| {
            self.types.push((of, Vec::new()));
            self.types.len() - 1
        });
        let values = &mut self.types[known].1;
        if values.len() <= position {
            // A chunk that is still being written may get more constants.
            values.resize(chunk.constant_count(of).max(position + 1), None);
        }
        values[position] = Some(value);
        value
    }
}

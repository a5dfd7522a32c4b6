//! Whether all that an event refers to is known: constants may be written after the events that name them.

use super::chunk::Chunk;
use super::events::Event;
use super::strings::RawString;
use super::types::TypeIndex;
use super::values::{Constant, Struct, Value};

/// Constants in constants, to this level: a stack, its frames, a method, a class, its package, its module, a loader, its
/// class. What lies deeper is taken as known.
const MOST_LEVELS: usize = 32;

/// Which constants of a chunk are known with all that they refer to.
#[derive(Clone, Debug, Default)]
pub(super) struct References {
    /// By the type's position and the constant's.
    known: Vec<Vec<bool>>,
    /// Those of `known` that the event being looked at has added.
    added: Vec<(TypeIndex, usize)>,
}

impl References {
    /// Whether all that the event refers to is known. What cannot be read has no references.
    pub(super) fn are_known(&mut self, event: &Event<'_>) -> bool {
        self.added.clear();
        let values = event.values();
        let known = self.of_struct(values, values.chunk, 0);
        if !known {
            // Marked before what they refer to was looked at, since constants may refer to each other.
            for &(of, position) in &self.added {
                self.known[of.0 as usize][position] = false;
            }
        }
        known
    }

    fn of_struct(&mut self, values: Struct<'_>, chunk: Chunk<'_>, level: usize) -> bool {
        values.fields().map_while(Result::ok).all(|(_, value)| self.of_value(value, chunk, level))
    }

    fn of_value(&mut self, value: Value<'_>, chunk: Chunk<'_>, level: usize) -> bool {
        if level == MOST_LEVELS {
            return true;
        }
        match value {
            Value::Constant(constant) => self.of_constant(constant, chunk, level),
            Value::String(RawString::Pool(key)) => match chunk.metadata().string_type() {
                Some(of) => self.of_constant(Constant { of, key }, chunk, level),
                None => true,
            },
            Value::Struct(values) => self.of_struct(values, chunk, level + 1),
            Value::Array(array) => {
                array.values().map_while(Result::ok).all(|value| self.of_value(value, chunk, level + 1))
            }
            _ => true,
        }
    }

    fn of_constant(&mut self, constant: Constant, chunk: Chunk<'_>, level: usize) -> bool {
        let Some(position) = chunk.constant_position(constant) else {
            // By 0 writers mean nothing.
            return constant.key == 0;
        };
        let of = constant.of.0 as usize;
        if self.known.len() <= of {
            self.known.resize_with(of + 1, Vec::new);
        }
        let known = &mut self.known[of];
        if known.len() <= position {
            known.resize(chunk.constant_count(constant.of), false);
        }
        if std::mem::replace(&mut known[position], true) {
            return true;
        }
        self.added.push((constant.of, position));
        chunk.resolve(constant).is_none_or(|value| self.of_value(value, chunk, level + 1))
    }
}

//! Determines whether everything that an event refers to is known: constants may be written after the events
//! that refer to them.
//!
//! Each constant is checked when it is known. It is checked again only when a constant that it lacked has
//! arrived. An event is postponed until the constant that it lacks arrives.

use super::chunk::Chunk;
use super::events::Event;
use super::strings::RawString;
use super::types::{Constant, TypeIndex};
use super::values::{Struct, Value};

/// The deepest nesting of constants in constants: a stack, its frames, a method, a class, its package, its
/// module, a loader, the loader's class. Deeper constants are taken as known.
const MOST_LEVELS: usize = 32;
/// The most times that a constant may be found to lack another one. After that it is not checked again:
/// events that refer to it wait for the chunk's end.
const MOST_TIMES: u8 = 16;
/// The order of values that refer to no open constant.
const NONE: u32 = u32::MAX;

/// The state of each constant of a chunk: whether everything that it refers to is known.
#[derive(Clone, Debug, Default)]
pub(super) struct References {
    /// The states, by the position of the type and the position of the constant.
    states: Vec<Vec<State>>,
    /// The constants whose state is `Open`, in the order in which the check reached them.
    open: Vec<(TypeIndex, usize)>,
    /// The constants that other constants lack.
    lacked: Vec<Constant>,
    /// The number of values checked.
    values_checked: u64,
}

/// The state of a constant.
#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    New,
    /// The constant and everything that it refers to are known.
    Known,
    /// The constant is being checked, or its state depends on such a constant.
    Open { order: u32, times: u8 },
    /// The constant lacks another one, whose position in `lacked` is `what`. `times` counts how often it
    /// lacked one.
    Lacks { what: u32, times: u8 },
}

/// The reason why an event cannot be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingConstant {
    /// This constant is not known.
    Of(Constant),
    /// A constant that the event refers to lacked others too many times, so it is not checked again.
    TooMany,
}

impl References {
    /// The constant that the event lacks, if any. Values that cannot be read have no references.
    pub(super) fn missing_constant(&mut self, event: &Event<'_>) -> Option<MissingConstant> {
        let values = event.values();
        let lack = self.of_struct(values, values.chunk, 0).err()?;
        let what = self.lacked.len() as u32;
        if let (MissingConstant::Of(constant), false) = (lack, self.open.is_empty()) {
            self.lacked.push(constant);
        }
        for (of, position) in std::mem::take(&mut self.open) {
            let state = &mut self.states[of.0 as usize][position];
            let State::Open { times, .. } = *state else { continue };
            *state = match lack {
                MissingConstant::Of(_) => State::Lacks { what, times: times.saturating_add(1) },
                MissingConstant::TooMany => State::Lacks { what: NONE, times: u8::MAX },
            };
        }
        Some(lack)
    }

    /// Forgets the states of all constants, since new metadata has been read.
    pub(super) fn forget(&mut self) {
        *self = Self { values_checked: self.values_checked, ..Self::default() };
    }

    /// The number of values checked so far.
    pub(super) fn values_checked(&self) -> u64 {
        self.values_checked
    }

    /// The lowest order of an open constant that these values refer to, or [`NONE`].
    fn of_struct(
        &mut self,
        values: Struct<'_>,
        chunk: Chunk<'_>,
        level: usize,
    ) -> Result<u32, MissingConstant> {
        let mut fields = values.fields().map_while(Result::ok);
        fields.try_fold(NONE, |first, (_, value)| Ok(first.min(self.of_value(value, chunk, level)?)))
    }

    fn of_value(&mut self, value: Value<'_>, chunk: Chunk<'_>, level: usize) -> Result<u32, MissingConstant> {
        self.values_checked += 1;
        if level == MOST_LEVELS {
            return Ok(NONE);
        }
        match value {
            Value::Constant(constant) => self.of_constant(constant, chunk, level),
            Value::String(RawString::Pool(key)) => match chunk.metadata().string_type() {
                Some(of) => self.of_constant(Constant { of, key }, chunk, level),
                None => Ok(NONE),
            },
            Value::Struct(values) => self.of_struct(values, chunk, level + 1),
            Value::Array(array) => {
                let mut values = array.values().map_while(Result::ok);
                values.try_fold(NONE, |first, value| Ok(first.min(self.of_value(value, chunk, level + 1)?)))
            }
            _ => Ok(NONE),
        }
    }

    fn of_constant(
        &mut self,
        constant: Constant,
        chunk: Chunk<'_>,
        level: usize,
    ) -> Result<u32, MissingConstant> {
        let Some(position) = chunk.constant_position(constant) else {
            // Writers use the key 0 for no reference.
            return if constant.key == 0 { Ok(NONE) } else { Err(MissingConstant::Of(constant)) };
        };
        let of = constant.of.0 as usize;
        if self.states.len() <= of {
            self.states.resize_with(of + 1, Vec::new);
        }
        let states = &mut self.states[of];
        if states.len() <= position {
            states.resize(chunk.constant_count(constant.of), State::New);
        }
        let times = match states[position] {
            State::New => 0,
            State::Known => return Ok(NONE),
            // Constants may refer to each other in cycles.
            State::Open { order, .. } => return Ok(order),
            State::Lacks { what, times } => {
                let lacked = self.lacked.get(what as usize).copied();
                if let Some(lacked) = lacked.filter(|&lacked| chunk.constant_position(lacked).is_none()) {
                    return Err(MissingConstant::Of(lacked));
                }
                if times >= MOST_TIMES {
                    return Err(MissingConstant::TooMany);
                }
                times
            }
        };
        let order = self.open.len() as u32;
        states[position] = State::Open { order, times };
        self.open.push((constant.of, position));
        let first = match chunk.resolve(constant) {
            Some(value) => self.of_value(value, chunk, level + 1)?,
            None => NONE,
        };
        if first < order {
            return Ok(first);
        }
        // No constant reached since depends on one that was reached before, so all of them are known.
        for (of, position) in self.open.drain(order as usize..) {
            self.states[of.0 as usize][position] = State::Known;
        }
        Ok(NONE)
    }
}

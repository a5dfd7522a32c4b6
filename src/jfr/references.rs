//! Whether all that an event refers to is known: constants may be written after the events that name them.
//!
//! Each constant is gone through once it is there, and again only when the one has come that it was found to lack: by
//! what an event lacks, a reader knows when to look at it again.

use super::chunk::Chunk;
use super::events::Event;
use super::strings::RawString;
use super::types::TypeIndex;
use super::values::{Constant, Struct, Value};

/// Constants in constants, to this level: a stack, its frames, a method, a class, its package, its module, a loader, its
/// class. What lies deeper is taken as known.
const MOST_LEVELS: usize = 32;
/// A constant that has been found to lack another so often is not gone through any more: it waits for the chunk's end.
const MOST_TIMES: u8 = 16;
/// Refers to no constant that is being gone through.
const NONE: u32 = u32::MAX;

/// Which constants of a chunk are known with all that they refer to.
#[derive(Clone, Debug, Default)]
pub(super) struct References {
    /// By the type's position and the constant's.
    states: Vec<Vec<State>>,
    /// The constants whose state is `Open`, in the order in which they were met.
    open: Vec<(TypeIndex, usize)>,
    /// What others lack.
    lacked: Vec<Constant>,
    /// How many values have been looked at.
    looked_at: u64,
}

/// What is known of a constant.
#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    New,
    /// With all that it refers to.
    Known,
    /// It is being gone through, or refers to such a one, of which it depends whether it is known.
    Open { order: u32, times: u8 },
    /// The position of what it lacks, and how often it lacked something.
    Lacks { what: u32, times: u8 },
}

/// Why not all is known that an event refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// This constant is not there.
    Of(Constant),
    /// So many were not that nobody asks any more.
    TooMany,
}

impl References {
    /// What the event refers to and is not known. What cannot be read has no references.
    pub(super) fn lack_of(&mut self, event: &Event<'_>) -> Option<Lack> {
        let values = event.values();
        let lack = self.of_struct(values, values.chunk, 0).err()?;
        let what = self.lacked.len() as u32;
        if let (Lack::Of(constant), false) = (lack, self.open.is_empty()) {
            self.lacked.push(constant);
        }
        for (of, position) in std::mem::take(&mut self.open) {
            let state = &mut self.states[of.0 as usize][position];
            let State::Open { times, .. } = *state else { continue };
            *state = match lack {
                Lack::Of(_) => State::Lacks { what, times: times.saturating_add(1) },
                Lack::TooMany => State::Lacks { what: NONE, times: u8::MAX },
            };
        }
        Some(lack)
    }

    /// Forgets what is known of the constants, whose types are told anew.
    pub(super) fn forget(&mut self) {
        *self = Self { looked_at: self.looked_at, ..Self::default() };
    }

    /// How many values have been looked at so far.
    pub(super) fn looked_at(&self) -> u64 {
        self.looked_at
    }

    /// The first of the open constants that any of these refers to.
    fn of_struct(&mut self, values: Struct<'_>, chunk: Chunk<'_>, level: usize) -> Result<u32, Lack> {
        let mut fields = values.fields().map_while(Result::ok);
        fields.try_fold(NONE, |first, (_, value)| Ok(first.min(self.of_value(value, chunk, level)?)))
    }

    fn of_value(&mut self, value: Value<'_>, chunk: Chunk<'_>, level: usize) -> Result<u32, Lack> {
        self.looked_at += 1;
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

    fn of_constant(&mut self, constant: Constant, chunk: Chunk<'_>, level: usize) -> Result<u32, Lack> {
        let Some(position) = chunk.constant_position(constant) else {
            // By 0 writers mean nothing.
            return if constant.key == 0 { Ok(NONE) } else { Err(Lack::Of(constant)) };
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
            // Constants may refer to each other.
            State::Open { order, .. } => return Ok(order),
            State::Lacks { what, times } => {
                let lacked = self.lacked.get(what as usize).copied();
                if let Some(lacked) = lacked.filter(|&lacked| chunk.constant_position(lacked).is_none()) {
                    return Err(Lack::Of(lacked));
                }
                if times >= MOST_TIMES {
                    return Err(Lack::TooMany);
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
        // None of those met since depends on one that was met before.
        for (of, position) in self.open.drain(order as usize..) {
            self.states[of.0 as usize][position] = State::Known;
        }
        Ok(NONE)
    }
}

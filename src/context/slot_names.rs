//! What slots are called. A slot keeps its name for the life of the process: blocks, and samples that are not yet
//! drained, refer to it by its number.

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use thiserror::Error;

use crate::core::context::SLOTS;

/// The most bytes of a name.
pub const LONGEST_NAME: usize = 255;

/// Why a name gets no slot.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SlotNameError {
    /// It is empty, too long or not for people.
    #[error("an attribute's name has 1 to {LONGEST_NAME} bytes and no control characters")]
    Form,
    /// All slots have other names.
    #[error("a process has {SLOTS} context attributes at most, and these are taken: {0}")]
    Taken(String),
}

/// Whether a slot may have this name.
pub fn check(name: &str) -> Result<(), SlotNameError> {
    let is_one = (1..=LONGEST_NAME).contains(&name.len()) && !name.contains(char::is_control);
    if is_one { Ok(()) } else { Err(SlotNameError::Form) }
}

/// Names of slots, by their number.
#[derive(Debug)]
pub struct SlotNames(Mutex<Vec<String>>);

/// The names of this process.
pub static SLOT_NAMES: SlotNames = SlotNames::new();

impl SlotNames {
    const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// The slot of this name, which is given the next free one if it has none.
    pub fn slot_of(&self, name: &str) -> Result<u8, SlotNameError> {
        check(name)?;
        let mut names = self.0.lock();
        let slot = match names.iter().position(|taken| taken == name) {
            Some(slot) => slot,
            None if names.len() < SLOTS => {
                names.push(name.to_owned());
                names.len() - 1
            }
            None => return Err(SlotNameError::Taken(names.join(", "))),
        };
        // SANITY: below 9.
        Ok(u8::try_from(slot).expect("a slot's number"))
    }

    /// The names so far, to which none is added while they are looked at.
    pub fn list(&self) -> MappedMutexGuard<'_, [String]> {
        MutexGuard::map(self.0.lock(), Vec::as_mut_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_names_keep_their_slots_and_a_tenth_is_refused() {
        let names = SlotNames::new();
        for slot in 0..9 {
            assert_eq!(names.slot_of(&format!("name{slot}")), Ok(slot));
        }
        assert_eq!(names.slot_of("name4"), Ok(4));
        let refused = names.slot_of("name9").unwrap_err();
        assert!(refused.to_string().contains("name0, name1"), "{refused}");
        assert_eq!(names.slot_of(""), Err(SlotNameError::Form));
        assert_eq!(names.slot_of("a\nb"), Err(SlotNameError::Form));
        assert_eq!(names.slot_of(&"n".repeat(256)), Err(SlotNameError::Form));
        assert_eq!(names.list().len(), 9);
    }
}

//! The names of slots. A slot keeps its name for the life of the process, since blocks, and samples that are
//! not yet drained, refer to it by its number.

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use thiserror::Error;

use otlpprof_core::attribute_name::{self, AttributeNameError};
use otlpprof_core::context::SLOTS;

/// The reasons for which a name gets no slot.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SlotNameError {
    /// The name has not the form of an attribute's name.
    #[error(transparent)]
    Form(#[from] AttributeNameError),
    /// The slots that are not yet named are too few for these names.
    #[error("a process has {SLOTS} context attributes at most: it has {taken}, and cannot add {wanted}")]
    Taken {
        /// The names of the slots, separated by commas.
        taken: String,
        /// The requested names that have no slot.
        wanted: String,
    },
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

    /// Returns the slots of these names. Names without a slot get the next free ones: all of them, or none.
    pub fn slots_of(&self, wanted: &[impl AsRef<str>]) -> Result<Vec<u8>, SlotNameError> {
        wanted.iter().try_for_each(|name| attribute_name::check(name.as_ref()))?;
        let mut names = self.0.lock();
        let before = names.len();
        let mut slots = Vec::with_capacity(wanted.len());
        for name in wanted.iter().map(AsRef::as_ref) {
            let known = names.iter().position(|taken| taken == name);
            if known.is_none() && names.len() == SLOTS {
                names.truncate(before);
                let wanted = wanted.iter().map(AsRef::as_ref);
                let wanted = wanted.filter(|name| !names.iter().any(|taken| taken == name));
                let wanted = wanted.collect::<Vec<_>>().join(", ");
                return Err(SlotNameError::Taken { taken: names.join(", "), wanted });
            }
            let slot = known.unwrap_or_else(|| {
                names.push(name.to_owned());
                names.len() - 1
            });
            // SANITY: the number is below 9.
            slots.push(u8::try_from(slot).expect("a slot's number"));
        }
        Ok(slots)
    }

    /// The names so far, locked against additions.
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
            assert_eq!(names.slots_of(&[format!("name{slot}")]), Ok(vec![slot]));
        }
        assert_eq!(names.slots_of(&["name4", "name0"]), Ok(vec![4, 0]));
        let refused = names.slots_of(&["name9"]).unwrap_err();
        let all = (0..9).map(|slot| format!("name{slot}")).collect::<Vec<_>>().join(", ");
        let expected =
            format!("a process has 9 context attributes at most: it has {all}, and cannot add name9");
        assert_eq!(refused.to_string(), expected);
        for name in ["", "a\nb", &"n".repeat(256)] {
            assert_eq!(names.slots_of(&[name]), Err(SlotNameError::Form(AttributeNameError)));
        }
        assert_eq!(names.list().len(), 9);
    }

    #[test]
    fn refused_names_take_no_slot() {
        let names = SlotNames::new();
        assert_eq!(names.slots_of(&["good", "a\nb"]), Err(SlotNameError::Form(AttributeNameError)));
        assert!(names.list().is_empty());
        let eight: Vec<String> = (0..8).map(|number| format!("name{number}")).collect();
        names.slots_of(&eight).unwrap();
        // There would have been room for only one of them.
        let refused = names.slots_of(&["ninth", "name3", "tenth"]).unwrap_err().to_string();
        assert!(refused.ends_with(", name7, and cannot add ninth, tenth"), "{refused}");
        assert_eq!(names.slots_of(&["another"]), Ok(vec![8]));
    }
}

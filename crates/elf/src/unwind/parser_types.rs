//! The types that gimli's parsers of frame descriptions are used with.

use gimli::{EndianSlice, NativeEndian, Register, RegisterRule, UnwindContextStorage, UnwindTableRow};

/// A section's bytes.
pub type Bytes<'a> = EndianSlice<'a, NativeEndian>;

/// Storage for the rules of all registers that compilers save, and for nested remembered states.
#[derive(Debug)]
pub struct Storage;

impl UnwindContextStorage<usize> for Storage {
    type Rules = [(Register, RegisterRule<usize>); 96];
    type Stack = [UnwindTableRow<usize, Self>; 8];
}

//! The form of the name of a context's attribute.

use std::error::Error;
use std::fmt;

/// The longest name, in bytes.
pub const LONGEST_NAME: usize = 255;

/// The error of a name that is empty, is longer than [`LONGEST_NAME`], or has control characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeNameError;

impl fmt::Display for AttributeNameError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "an attribute's name must have 1 to {LONGEST_NAME} bytes and no control characters")
    }
}

impl Error for AttributeNameError {}

/// Checks whether a context's attribute may have this name.
///
/// # Errors
///
/// [`AttributeNameError`] if it may not.
pub fn check(name: &str) -> Result<(), AttributeNameError> {
    let is_valid = (1..=LONGEST_NAME).contains(&name.len()) && !name.contains(char::is_control);
    if is_valid { Ok(()) } else { Err(AttributeNameError) }
}

//! The exit codes of commands that do not succeed.

/// The checked condition does not hold.
pub(super) const EXIT_FAILED: u8 = 1;
/// The command line or an input is wrong.
pub(super) const EXIT_BAD_INPUT: u8 = 2;

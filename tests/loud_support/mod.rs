//! Says what is not tested.

use std::io::{self, Write};

/// Says loudly what is not tested here and why.
///
/// # Panics
/// If `CI` is set, where everything is to be tested.
pub(crate) fn not_tested(what: &str) {
    assert!(std::env::var_os("CI").is_none(), "not tested, and CI is set: {what}");
    // libtest keeps back what the print macros write in a test that passes, and that alone. With one write, lines of
    // tests that run side by side do not mix.
    let _ = io::stderr().write_all(format!("\n*** NOT TESTED: {what} ***\n").as_bytes());
}

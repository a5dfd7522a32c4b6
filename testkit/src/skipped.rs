//! Reports tests that cannot run on this machine.

use std::io::{self, Write};

/// Reports on standard error that something is not tested here, and the reason.
///
/// # Panics
/// If `CI` is set, where everything must be tested.
#[track_caller]
pub fn not_tested(what: &str) {
    assert!(std::env::var_os("CI").is_none(), "not tested, and CI is set: {what}");
    // libtest suppresses the output of the print macros in a test that passes, but not direct writes. A
    // single write keeps the lines of concurrent tests apart.
    let _ = io::stderr().write_all(format!("\n*** NOT TESTED: {what} ***\n").as_bytes());
}

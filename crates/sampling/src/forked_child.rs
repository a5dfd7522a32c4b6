//! Forked children of a profiled process, which are not profiled.

use std::sync::atomic::AtomicBool;

/// Whether this process is a forked child of a profiled one. The child is not profiled, and takes no lock of
/// this crate.
pub(super) static FORKED: AtomicBool = AtomicBool::new(false);

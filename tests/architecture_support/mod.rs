//! Reads the source of the crate for the tests of its architecture.

pub(crate) mod source;

//! Reads the source of the crate for the tests of its architecture.

pub(crate) mod code_paths;
pub(crate) mod duty_tables;
pub(crate) mod file_imports;
pub(crate) mod linker_lock;
pub(crate) mod source;

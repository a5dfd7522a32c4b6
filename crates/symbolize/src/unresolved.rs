//! The reason why a frame is not resolved.

use otlpprof_debug_files::NotLocated;
use otlpprof_dwarf::index::IndexError;

use super::index_cache::IndexFailure;
use super::open_files::UnreadableFile;

/// The reason why a frame is not resolved.
#[derive(Debug, thiserror::Error)]
pub enum Unresolved {
    /// There is no file of the object.
    #[error(transparent)]
    NotLocated(#[from] NotLocated),
    /// The files that were found have neither symbols nor debug information.
    #[error("its files have neither symbols nor debug information")]
    NoFile,
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] UnreadableFile),
    /// There is no index.
    #[error(transparent)]
    Index(#[from] IndexFailure),
    /// The index cannot be read, although it was made again.
    #[error("its index cannot be read: {0}")]
    Unreadable(IndexError),
    /// The address is outside the object's code.
    #[error("addresses outside its code")]
    Outside,
    /// The address is a run-time address, which a debug file cannot convert without the object.
    #[error("run-time addresses, which only the object itself can convert, and only a debug file was found")]
    RunTimeAddress,
    /// No function has the address.
    #[error("addresses outside every function that is known ({quality})")]
    NoFunction {
        /// The quality of its files.
        quality: otlpprof_debug_files::Quality,
    },
}

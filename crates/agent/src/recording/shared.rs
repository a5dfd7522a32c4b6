//! The state that the thread of a recording and the session share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use otlpprof_context::dictionary::DICTIONARY;
use otlpprof_convert::JfrToOtlp;
use parking_lot::{Condvar, Mutex};

use super::contexts::Contexts;

/// The state of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Following,
    /// It must read and convert the rest.
    Stopping,
    /// No more events will come.
    Ended,
}

/// The state that the thread and the session share.
pub(super) struct Shared {
    /// Whether the recording could not begin, or has ended by itself.
    pub(super) is_off: AtomicBool,
    pub(super) converter: Mutex<JfrToOtlp>,
    pub(super) contexts: Option<Arc<Mutex<Contexts>>>,
    pub(super) progress: Mutex<Progress>,
    pub(super) changed: Condvar,
    pub(super) converted: AtomicU64,
}

/// Ends the noting of changes of contexts.
pub(super) fn stop_noting() {
    DICTIONARY.published().note_changes(false);
}

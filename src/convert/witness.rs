//! What is known of events from elsewhere: whose they are, whether anybody wants them, and what their threads worked for, of
//! which HotSpot's own events say nothing.

use std::fmt::Debug;
use std::sync::Arc;

use crate::model::{Link, StackId, Tables};

/// Somebody who was there when the events happened: the process itself, if it converts its own recording.
pub trait Witness: Debug + Send {
    /// Whether the events of this thread are none of the recording's.
    fn leaves_out(&self, thread: EventThread) -> bool;

    /// Whether the user wants what happened in a thread of this name, if it has one, at this stack.
    fn wants(&self, thread_name: Option<&str>, stack: StackId, tables: &Tables) -> bool;

    /// What the thread worked for all the time; `None` if it did for nothing, for several things in turn, or that is not
    /// known.
    fn context(&mut self, occurrence: Occurrence) -> Option<KnownContext>;
}

/// The thread that an event is about, with ids of 0 where the recording does not say them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventThread {
    /// `Thread.threadId()`.
    pub java_id: i64,
    /// The kernel's.
    pub os_id: i64,
}

/// Where and when an event happened, in ticks of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The thread.
    pub thread: EventThread,
    /// When it began.
    pub start_ticks: i64,
    /// When it ended.
    pub end_ticks: i64,
    /// Ticks per second.
    pub ticks_per_second: i64,
    /// Whether another thread has recorded it, which may have been later than the event says.
    pub is_seen_by_another: bool,
}

/// Keys and values.
pub type Labels = Vec<(String, String)>;

/// What a thread worked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownContext {
    /// Attributes, with their keys.
    pub labels: Arc<Labels>,
    /// The span; empty for none.
    pub link: Link,
}

//! Facts about events from outside the recording: whether an event belongs to the recording, whether the user
//! wants it, and the context of its thread. HotSpot's own events contain none of these.

use std::fmt::Debug;
use std::sync::Arc;

use otlpprof_model::{Link, StackId, Tables};

/// A source of facts about events from outside their recording: the process itself, if it converts its own
/// recording.
pub trait Witness: Debug + Send {
    /// Whether the events of this thread do not belong to the recording.
    fn leaves_out(&self, thread: EventThread) -> bool;

    /// Whether the user wants an event in a thread with this name (`None` if it has no name), with this
    /// stack.
    fn wants(&self, thread_name: Option<&str>, stack: StackId, tables: &Tables) -> bool;

    /// The context that the thread had for the whole time of the event. `None` if it had no context, if the
    /// context changed, or if it is unknown.
    fn context(&mut self, occurrence: Occurrence) -> Option<KnownContext>;
}

/// The thread that an event is about. An id that the recording lacks is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventThread {
    /// The managed id, `Thread.threadId()`.
    pub java_id: i64,
    /// The kernel's id.
    pub os_id: i64,
}

/// The thread and the time of an event. Times are in ticks of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The thread.
    pub thread: EventThread,
    /// The start of the event.
    pub start_ticks: i64,
    /// The end of the event.
    pub end_ticks: i64,
    /// The number of ticks per second.
    pub ticks_per_second: i64,
    /// Whether another thread has recorded the event, possibly later than the event's time.
    pub is_seen_by_another: bool,
}

/// Pairs of a key and a value.
pub type ContextLabels = Vec<(String, String)>;

/// The context of a thread: the work that it was doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownContext {
    /// The attributes, with their keys.
    pub labels: Arc<ContextLabels>,
    /// The span; the empty link if there is none.
    pub link: Link,
}

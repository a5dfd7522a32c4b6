//! The trace that a sample's link names.

/// How a link is made of an event with a span id (`spanId`), the id of the span's local root (`localRootSpanId`) and perhaps
/// a trace id among its context attributes. Both ids of a link must be known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// To the trace, where the event has its id; else as [`Links::LocalRoot`].
    #[default]
    Auto,
    /// To the trace alone: an event without a trace id has no link.
    Trace,
    /// In the form of Datadog's own converter (dd-trace-java, `JfrToOtlpConverter.extractLinkIndex`): the trace id is the id of
    /// the local root span, in the last eight of its bytes, whatever the trace is. Datadog's traces are found by these two ids.
    LocalRoot,
}

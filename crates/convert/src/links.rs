//! The choice of the trace that a sample's link refers to.

/// The construction of a link from an event. The event has a span id (`spanId`), the id of the span's local
/// root (`localRootSpanId`), and possibly a trace id among its context attributes. A link needs a span id and
/// a trace id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// Use the trace id if the event has one; otherwise proceed like [`Links::LocalRoot`].
    #[default]
    Auto,
    /// Use the trace id only: an event without a trace id gets no link.
    Trace,
    /// Use the form of Datadog's own converter (dd-trace-java, `JfrToOtlpConverter.extractLinkIndex`): the id
    /// of the local root span, in the last eight bytes, replaces the trace id. Datadog finds traces by the
    /// local root's id and the span id.
    LocalRoot,
}

//! Converts recordings to profiles.
//!
//! In: recordings ([`otlpprof_jfr`]). Out: a [`otlpprof_model::Batch`], which `otlp` encodes. `agent` and
//! `cli` call it, and any program that uses this crate may.
//!
//! | Recordings | Duty |
//! |---|---|
//! | `feed` | recordings as a whole, from a reader, or in parts |
//! | `packed` | recordings that are compressed with gzip or zstd |
//! | `growing` | the files of a recording that a JVM is writing |
//!
//! | Events | Duty |
//! |---|---|
//! | `converter` | conversion, event by event |
//! | `event_plan` | the compiled plan of one type's events: which fields are read, and for which profiles |
//! | [`events`] | table of events: their profiles and values |
//! | `requested` | events that a user requests in addition |
//! | `settings` | the period between samples, and the clocks that triggered them |
//! | `profiles` | the profiles that events add to |
//! | `witness` | facts about events from outside the recording |
//!
//! | Samples | Duty |
//! |---|---|
//! | `identity` | the sample that an event belongs to |
//! | `event_cache` | a cache of such samples, for events that repeat |
//! | `stacks` | a chunk's stacks as the model's |
//! | `labels` | attributes and links: the thread, its state and its context |
//! | `constants` | constants of a chunk, each converted once |
//! | `subjects` | classes that events refer to |
//! | `libraries` | the objects of remote frames |
//! | `described` | resource attributes |

mod constants;
mod converter;
mod described;
mod event_cache;
mod event_plan;
pub mod events;
mod feed;
mod growing;
mod identity;
mod labels;
mod libraries;
mod packed;
mod profiles;
mod requested;
mod settings;
mod stacks;
mod subjects;
mod witness;

pub use converter::{ConvertOptions, EventCount, JfrToOtlp, RequestedTime};
pub use feed::AddError;
pub use growing::{Growing, GrowingRead};
pub use identity::Links;
pub use packed::{PackedError, Unpacked};
pub use requested::{InvalidEvent, RequestedEvent};
pub use witness::{ContextLabels, EventThread, KnownContext, Occurrence, Witness};

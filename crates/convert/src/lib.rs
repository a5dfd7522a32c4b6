//! Converts recordings to profiles.
//!
//! In: recordings ([`otlpprof_jfr`]). Out: a [`otlpprof_model::Batch`], which `otlp` encodes. `agent` and
//! `cli` call it, and any program that uses this crate may.
//!
//! | Module | Duty |
//! |---|---|
//! | `feed`, `packed` | input of recordings, compressed or not |
//! | `converter` | conversion, event by event |
//! | [`events`] | table of events: their profiles and values |
//! | `requested` | events that a user requests in addition |
//! | `reader` | reading of one type's events |
//! | `identity`, `event_cache` | the sample that an event belongs to, and a cache of results |
//! | `stacks`, `labels`, `constants` | conversion of a chunk's stacks, threads, states and contexts |
//! | `subjects` | classes that events refer to |
//! | `libraries` | the objects of remote frames |
//! | `settings`, `profiles` | periods of samples, and the profiles that events add to |
//! | `described` | resource attributes |
//! | `growing` | the files of a recording that a JVM is writing |
//! | `witness` | facts about events from outside the recording |

mod constants;
mod converter;
mod described;
mod event_cache;
pub mod events;
mod feed;
mod growing;
mod identity;
mod labels;
mod libraries;
mod packed;
mod profiles;
mod reader;
mod requested;
mod settings;
mod stacks;
mod subjects;
mod witness;

pub use converter::{ConvertOptions, EventCount, JfrToOtlp, Window};
pub use feed::AddError;
pub use growing::{Growing, GrowingRead};
pub use identity::Links;
pub use packed::{PackedError, Unpacked};
pub use requested::{InvalidEvent, RequestedEvent};
pub use witness::{EventThread, KnownContext, Labels, Occurrence, Witness};

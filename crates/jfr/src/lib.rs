//! JDK Flight Recorder's wire format.
//!
//! In: the bytes of a recording, whole or as a stream. Out: events with their fields, constants and types,
//! borrowed from the bytes. This module knows nothing of profiles; `convert`, `agent` and `cli` may import
//! it. It makes no system calls except through a reader that is passed to it. It allocates only for bytes
//! that have been read, never for a size that the recording declares. So memory is linear in the bytes, and
//! each text that the metadata writes once is kept once.
//!
//! ```text
//! recording  = chunk*
//! chunk      = header event*                    metadata and checkpoints are events too
//! metadata   = strings, tree of types           the layout of the other events
//! checkpoint = (type, (key, value)*)*           constants, to which events refer by key
//! ```
//!
//! | Module | Duty |
//! |---|---|
//! | [`recording`], [`reading`] | several chunks, from memory or from a reader |
//! | [`chunk`] | one chunk: its metadata and constants |
//! | [`push`], `references` | a recording whose bytes arrive in parts |
//! | [`extent`] | the end of a chunk whose header does not give it |
//! | `next_chunk` | the beginning of the chunk after a truncated one |
//! | [`header`], [`clock`] | a chunk's header; conversion of its ticks to times |
//! | `framing`, [`events`] | boundaries and types of events |
//! | `elements`, [`metadata`], [`types`], [`known_metadata`] | the types of a chunk, reused for the next |
//! | `layout` | skipping of values, compiled |
//! | [`projection`], [`numbers`] | reading of selected fields, compiled |
//! | [`values`], [`strings`] | values of fields |
//! | `pools`, `key_index` | constants |
//! | `cursor`, `integers` | primitive values |
//! | [`error`] | errors and their places |

pub mod chunk;
pub mod clock;
mod cursor;
mod elements;
pub mod error;
pub mod events;
pub mod extent;
mod framing;
pub mod header;
mod integers;
mod key_index;
pub mod known_metadata;
mod layout;
pub mod metadata;
mod next_chunk;
pub mod numbers;
mod pools;
pub mod projection;
pub mod push;
pub mod reading;
pub mod recording;
mod references;
pub mod strings;
pub mod types;
pub mod values;

/// The code of the README, which is compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

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
//! | Recordings | Duty |
//! |---|---|
//! | [`recording`] | a recording in memory: several chunks |
//! | [`reading`] | a recording from a reader, with one chunk at a time in memory |
//! | [`push`] | a recording whose bytes arrive in parts |
//! | `references` | whether everything that an event refers to has arrived |
//!
//! | Chunks | Duty |
//! |---|---|
//! | [`chunk`] | one chunk: its metadata and constants |
//! | [`extent`] | the end of a chunk whose header does not give it |
//! | `next_chunk` | the beginning of the chunk after a truncated one |
//! | [`header`] | a chunk's header |
//! | [`clock`] | the conversion of a chunk's ticks to times |
//!
//! | Types | Duty |
//! |---|---|
//! | `elements` | the tree of elements in which metadata is written |
//! | [`metadata`] | the types of a chunk, and the region in which it was recorded |
//! | [`types`] | types with their fields, annotations and settings |
//! | [`known_metadata`] | the metadata that was read last, for a chunk with equal bytes |
//!
//! | Events and values | Duty |
//! |---|---|
//! | `framing` | the boundaries and type ids of events |
//! | [`events`] | a chunk's events |
//! | `layout` | skipping of values, compiled |
//! | [`projection`] | reading of selected fields, compiled |
//! | [`numbers`] | reading of all integers of a type at once |
//! | [`values`] | values of fields |
//! | [`strings`] | strings, in their six encodings |
//! | `pools` | the constants of a chunk |
//! | `key_index` | the position of a key in a table that only grows |
//! | `cursor` | primitive values in a chunk's bytes |
//! | `integers` | compressed integers |
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

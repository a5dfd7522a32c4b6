//! JDK Flight Recorder's wire format.
//!
//! In: bytes of a recording, whole or as they come. Out: events with their fields, constants and types, borrowed from the
//! bytes. Knows nothing of profiles; `convert`, `agent` and `cli` may import it. It makes no system call but
//! those of a reader that it is given, and allocates for what it has read alone, never for what a size in the recording
//! declares: memory is linear in the bytes, and texts that the metadata writes once are kept once.
//!
//! ```text
//! recording  = chunk*
//! chunk      = header event*                    metadata and checkpoints are events too
//! metadata   = strings, tree of types           what the other events consist of
//! checkpoint = (type, (key, value)*)*           constants that events name by a key
//! ```
//!
//! | Module | Duty |
//! |---|---|
//! | [`recording`], [`reading`] | several chunks, in memory or of a reader |
//! | [`chunk`] | one chunk: finds its metadata and constants |
//! | [`push`], [`references`] | a recording whose bytes come bit by bit |
//! | [`extent`] | how far a chunk goes whose header does not say it |
//! | [`next_chunk`] | where the next chunk begins behind one that has been cut |
//! | [`header`], [`clock`] | a chunk's header; its ticks as times |
//! | [`framing`], [`events`] | where events begin and end; their types |
//! | [`elements`], [`metadata`], [`types`], [`known_metadata`] | the types of a chunk, and of the next one |
//! | [`layout`] | how to pass what nobody reads |
//! | [`projection`], [`numbers`] | how to read what somebody does, compiled |
//! | [`values`], [`strings`] | values of fields |
//! | [`pools`], [`key_index`] | constants |
//! | [`cursor`], [`integers`] | primitive values |
//! | [`error`] | what can be wrong, and where |

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

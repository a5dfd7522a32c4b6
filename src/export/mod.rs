//! Encoded messages to files and collectors.
//!
//! In: OTLP messages, already encoded ([`Message`]). Out: bytes in a file ([`file`]) or at a collector
//! ([`upload`]), and counters that account for every message. Nothing here reads or changes a message; one that
//! a collector finds too large goes back to whoever can split it ([`upload::Splitter`]).
//!
//! [`process_context`] is a message too, which outside readers fetch from the memory of this process.
//!
//! Imports `core` only. Called by the agent, from its own threads: never from a signal handler.

pub mod endpoint;
pub mod file;
mod http;
pub mod message;
pub mod notice;
pub mod pattern;
mod peer;
pub mod process_context;
mod queue;
mod response;
mod retry;
pub mod stats;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tls")]
mod trust;
pub mod upload;

pub use endpoint::Endpoint;
pub use file::FileExporter;
pub use message::{ContentType, Message};
pub use upload::{UploadConfig, Uploader};

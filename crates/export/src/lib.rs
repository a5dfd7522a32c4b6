//! Encoded messages to files and collectors.
//!
//! The input is OTLP messages that are already encoded ([`Message`]). The output is bytes in a file
//! ([`mod@file`]) or at a collector ([`upload`]), and counters that account for every message. No code here
//! reads or changes a message. A message that a collector finds too large goes back to the caller's splitter
//! ([`upload::Splitter`]).
//!
//! [`process_context`] publishes one more message, which outside readers fetch from the memory of this
//! process.
//!
//! [`answer`] is the form in which the agent answers a command of another process. [`stream`] sends messages
//! to such commands over the connections of their answers.
//!
//! [`download`] is the other direction: files of servers, for the command.
//!
//! Imports `core` only. The agent calls this module from its own threads, never from a signal handler.

pub mod answer;
pub mod config_error;
pub mod download;
pub mod endpoint;
pub mod file;
pub mod file_error;
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
pub mod stream;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tls")]
mod trust;
pub mod upload;

pub use endpoint::Endpoint;
pub use file::FileExporter;
pub use message::{ContentType, Message};
pub use upload::{UploadConfig, Uploader};

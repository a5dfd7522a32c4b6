//! Encoded messages to files and collectors.
//!
//! The input is OTLP messages that are already encoded ([`OutgoingMessage`]). The output is bytes in a file
//! ([`mod@file`]) or at a collector ([`upload`]), and counters that account for every message. No code here
//! reads or changes a message. A message that a collector finds too large goes back to the caller's splitter
//! ([`upload::Splitter`]).
//!
//! Imports `core` only. The agent calls this module from its own threads, never from a signal handler.
//!
//! | Messages | Duty |
//! |---|---|
//! | [`message`] | the unit of export: one encoded OTLP message |
//! | [`stats`] | counters of what became of each message |
//! | [`notice`] | log lines that appear once, however often their cause recurs |
//!
//! | Files | Duty |
//! |---|---|
//! | [`mod@file`] | messages to files |
//! | [`file_error`] | the reasons why a message cannot be written to a file |
//! | [`pattern`] | names of output files, with the process, the time and the host |
//!
//! | Collectors | Duty |
//! |---|---|
//! | [`upload`] | the thread that sends messages to a collector |
//! | `queue` | the bounded queue before that thread |
//! | `retry` | the times at which attempts are repeated |
//! | `http` | one POST of one message, and its result |
//! | `response` | collectors' answers: partial successes and texts of errors |
//! | `peer` | a peer's protocol, by the first bytes that the peer sends |
//! | [`endpoint`] | the URLs that messages are uploaded to |
//! | [`config_error`] | the settings with which messages cannot be uploaded |
//! | `tls` | connections over TLS, and advice for those that fail |
//! | `trust` | certificates of the endpoint and of the client |
//! | [`download`] | the other direction: files from servers, for the command |
//!
//! | Other processes | Duty |
//! |---|---|
//! | [`process_context`] | one message that outside readers fetch from this process's memory |
//! | [`answer`] | the form in which the agent answers a command of another process |
//! | [`stream`] | messages to such commands, over the connections of their answers |

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
pub use message::{ContentType, OutgoingMessage};
pub use upload::{UploadConfig, Uploader};

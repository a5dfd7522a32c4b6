//! Profiles in pprof's format, `profile.proto`.
//!
//! In: the decompressed bytes of a file. Out: [`Batch`](otlpprof_model::Batch)es, each with a profile for
//! every sample type. Bytes are checked while they are read: a reference to something that does not exist, a
//! negative value or a list of the wrong length is an error, as in Go's own reader (github.com/google/pprof,
//! `profile/profile.go`, `CheckValid`). Memory beyond the bytes is bounded ([`read()`]). Called by `cli`.
//!
//! | Content | Becomes |
//! |---|---|
//! | sample types with units, period | a [profile](otlpprof_model::ProfileType) for each type |
//! | inlined lines, mappings with build-ids, addresses | frames |
//! | labels with text, numbers and units | attributes; `thread` is the thread's name |
//! | time, duration, comments | of each profile |
//!
//! `drop_frames`, `keep_frames` and `doc_url` are not used.
//!
//! | Module | Duty |
//! |---|---|
//! | `detect` | distinguishes pprof from OTLP |
//! | [`messages`] | the messages of `profile.proto`, also for the writer in `report` |
//! | `parts` | the places of the parts in the bytes |
//! | `types` | sample types to types of the model |
//! | `frames` | locations to frames |
//! | `read` | samples to batches |
//! | `error` | the reason why bytes cannot be read |

mod detect;
mod error;
mod frames;
pub mod messages;
mod parts;
mod read;
mod types;

pub use detect::is_pprof;
pub use error::PprofError;
pub use read::{Remarks, read};

//! Converts drained sample records to the neutral model.
//!
//! Input: [`Record`](otlpprof_core::record)s from the sample buffer, through a [`Resolver`] that names their
//! frames. Output: an [`Interval`] for each interval, which is converted to profiles with their tables.
//! Imports `core` and `model`; `agent` drives it.
//!
//! | Module | Duty |
//! |---|---|
//! | `aggregator` | samples summed by engine, stack, thread, context and subject |
//! | `keys` | the keys by which samples are summed: frames as recorded, and threads |
//! | `recent_frames` | a cache of the ids of recently resolved frames |
//! | `thread_state` | the state of a thread when it was sampled |
//! | `interval` | the sums of an interval, and their conversion to profiles |
//! | `selection` | the selection of samples by thread name and by frames |
//! | `profile_kind` | the profiles that an engine's samples become, in whole numbers |
//! | `survivors` | samples whose memory or objects outlive their interval |

mod aggregator;
mod interval;
mod keys;
mod profile_kind;
mod recent_frames;
mod selection;
mod survivors;
mod thread_state;

pub use aggregator::{Aggregator, Resolver};
pub use interval::Interval;
pub use keys::{ObjectCounts, RawFrame, ThreadKey, UnnamedFrame};
pub use profile_kind::{EngineProfiles, ProfileKind};
pub use selection::{NamePattern, NameSelection};
pub use survivors::{Alive, NumberedSample, Remains, Survivors};
pub use thread_state::ThreadState;

//! Converts drained sample records to the neutral model.
//!
//! Input: [`Record`](otlpprof_core::record)s from the sample buffer, through a [`Resolver`] that names their
//! frames. Output: an [`Interval`] for each interval, which is converted to profiles with their tables.
//! Imports `core` and `model`; `agent` drives it.

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

//! The profiles that the samples of each engine become in an interval.

use otlpprof_aggregate::{EngineProfiles, ProfileKind};
use otlpprof_core::engine::{Engine, Pace};
use otlpprof_options::Options;

use super::engines::description;

/// The profiles of an engine's sampled memory or objects that are still allocated.
pub(super) fn profiles_of_survivors(engine: Engine, options: &Options) -> EngineProfiles {
    (description(engine).profiles_of_survivors)(options)
}

/// The profiles that an engine's samples become. `stretch` is the longest stretch of the engine in the
/// interval (`agent::budget`): each profile's period is multiplied by it. Values that are counted in periods
/// are divided by it. The period of the wall clock stays as it is: the time of a waiting thread is known to
/// the nanosecond, and would be rounded to a multiple of a stretched period.
pub(super) fn profiles_of(engine: Engine, options: &Options, stretch: u32) -> EngineProfiles {
    let stretch = if engine.pace() == Pace::Visits { 1 } else { stretch };
    let scale = if engine.counts_periods() { 1.0 / f64::from(stretch) } else { 1.0 };
    (description(engine).profiles)(options).map(|kind| {
        kind.map(|kind| ProfileKind { period: kind.period.saturating_mul(i64::from(stretch)), scale, ..kind })
    })
}

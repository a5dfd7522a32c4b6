//! The profiles that the samples of each engine become.

use super::options::Options;
use crate::aggregate::{EngineProfiles, ProfileKind};
use crate::core::engine::{Engine, Pace};
use crate::model::{ProfileType, types};

/// The profiles of an engine's sampled memory or objects that are still allocated.
pub(super) fn profiles_of_survivors(engine: Engine, options: &Options) -> EngineProfiles {
    match engine {
        Engine::NativeMemory => {
            let period = options.nativemem.unwrap_or(1);
            [kind(&types::NATIVELEAK_SPACE, period), kind(&types::NATIVELEAK_OBJECTS, period)]
        }
        Engine::Live => {
            let period = options.live.unwrap_or(1);
            [kind(&types::LIVE_SPACE, period), kind(&types::LIVE_OBJECTS, period)]
        }
        _ => [None, None],
    }
}

/// The profiles that an engine's samples become. `stretch` is the longest stretch of the engine in the
/// interval (`agent::budget`): each profile's period is multiplied by it. Values that are counted in periods
/// are divided by it. The period of the wall clock stays as it is: the time of a waiting thread is known to
/// the nanosecond, and would be rounded to a multiple of a stretched period.
pub(super) fn profiles_of(engine: Engine, options: &Options, stretch: u32) -> EngineProfiles {
    let stretch = if engine.pace() == Pace::Visits { 1 } else { stretch };
    let scale = if engine.counts_periods() { 1.0 / f64::from(stretch) } else { 1.0 };
    unstretched(engine, options).map(|kind| {
        kind.map(|kind| ProfileKind { period: kind.period.saturating_mul(i64::from(stretch)), scale, ..kind })
    })
}

fn kind(profile_type: &'static ProfileType, period: u64) -> Option<ProfileKind> {
    // A period is never 0: `max(1)` only guards against it.
    let period = i64::try_from(period).unwrap_or(i64::MAX).max(1);
    Some(ProfileKind { profile_type, period, scale: 1.0 })
}

fn unstretched(engine: Engine, options: &Options) -> EngineProfiles {
    match engine {
        Engine::Cpu => {
            let period = options.cpu.map_or(1, |interval| interval.as_nanos() as u64);
            [kind(&types::CPU, period), None]
        }
        Engine::Wall => {
            let period = options.wall.map_or(1, |interval| interval.as_nanos() as u64);
            [kind(&types::WALL, period), None]
        }
        Engine::Alloc => {
            let period = options.alloc.unwrap_or(1);
            [kind(&types::ALLOC_SPACE, period), kind(&types::ALLOC_OBJECTS, period)]
        }
        Engine::Lock => [kind(&types::LOCK_COUNT, 1), kind(&types::LOCK_TIME, 1)],
        Engine::Wait => [kind(&types::WAIT_COUNT, 1), kind(&types::WAIT_TIME, 1)],
        Engine::Event => {
            let event = options.event.as_ref();
            [event.and_then(|event| kind(ProfileType::perf_event(&event.name), event.period)), None]
        }
        // Live objects have no profile of their allocation; they are reported for as long as they live.
        Engine::Live => [None, None],
        Engine::NativeMemory => {
            let period = options.nativemem.unwrap_or(1);
            [kind(&types::NATIVEMEM_SPACE, period), kind(&types::NATIVEMEM_OBJECTS, period)]
        }
        Engine::Trace => [kind(&types::TRACE_COUNT, 1), kind(&types::TRACE_TIME, 1)],
        Engine::Exceptions => [kind(&types::EXCEPTIONS, options.exceptions.unwrap_or(1)), None],
    }
}

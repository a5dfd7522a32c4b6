//! Wall-clock time: visits all threads in turn.

use std::sync::atomic::Ordering;

use otlpprof_model::types;
use otlpprof_options::Options;
use otlpprof_sampling::wall::{self, WallConfig};
use otlpprof_signal::sample::SETUP;

use super::description::{EngineDescription, EngineSignal, EssentialParts, every, first, started};
use crate::guards::Guard;
use crate::resolve::SubjectForm;

/// The engine `wall`.
pub(super) static ENGINE: EngineDescription = EngineDescription {
    detail: |options| every(options.wall),
    subject: SubjectForm::ThreadState,
    replaces: &["jdk.NativeMethodSample"],
    signal: |options| Some(EngineSignal { number: options.wall_signal, option: "wall.signal" }),
    ..EngineDescription::of(EssentialParts {
        is_on: |options| options.wall.is_some(),
        turn_off: |options| options.wall = None,
        profiles: |options| {
            first(&types::WALL, options.wall.map_or(1, |interval| interval.as_nanos() as u64))
        },
        start: |_, options| started([start(options)]),
    })
};

/// The least number of rounds of the sampler in an interval, if there are not too many threads.
const ROUNDS_PER_INTERVAL: u32 = 4;

/// Starts to visit the threads, if requested.
fn start(options: &Options) -> Option<Guard> {
    let interval = options.wall?;
    SETUP.wall_interval_ns.store(interval.as_nanos() as u64, Ordering::Relaxed);
    let longest_round = options.interval / ROUNDS_PER_INTERVAL;
    let config = WallConfig { interval, signal: options.wall_signal, longest_round };
    let sampling = wall::start(&config);
    let sampling = sampling.inspect_err(|error| log::warn!("wall is off: {error}")).ok()?;
    Some(Guard::new(move || drop(sampling)))
}

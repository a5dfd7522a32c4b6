//! Wall-clock time: visits all threads in turn.

use std::sync::atomic::Ordering;

use otlpprof_options::Options;
use otlpprof_sampling::wall::{self, WallConfig};
use otlpprof_signal::sample::{self, SETUP};

use crate::guards::Guard;

/// The least number of rounds of the sampler in an interval, if there are not too many threads.
const ROUNDS_PER_INTERVAL: u32 = 4;

/// Starts to visit the threads, if requested.
pub(super) fn start(options: &Options) -> Option<Guard> {
    let interval = options.wall?;
    SETUP.wall_interval_ns.store(interval.as_nanos() as u64, Ordering::Relaxed);
    let longest_round = options.interval / ROUNDS_PER_INTERVAL;
    let config = WallConfig { interval, signal: options.wall_signal, longest_round };
    let sampling = wall::start(&config, sample::take_wall);
    let sampling = sampling.inspect_err(|error| log::warn!("wall is off: {error}")).ok()?;
    Some(Guard::new(move || drop(sampling)))
}

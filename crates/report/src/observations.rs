//! The values of samples, each with its time.

use otlpprof_otlp::wire::Sample;

use super::profile_context::ProfileContext;
use super::selection::Window;

/// Calls `take` with the weights of a sample's values in the window, each with its time. Values without a
/// time of their own have the start of the profile.
pub fn timed_values(
    profile: &ProfileContext<'_>,
    sample: &Sample,
    window: Window,
    mut take: impl FnMut(u64, i64),
) {
    observations(sample, profile.start_ns, |unix_ns, value| {
        if window.has(unix_ns) && value != 0 {
            take(unix_ns, profile.weigh(value));
        }
    });
}

/// The sum of the weights of a sample's values in the window.
pub fn sum_in(profile: &ProfileContext<'_>, sample: &Sample, window: Window) -> i64 {
    let mut sum = 0_i64;
    timed_values(profile, sample, window, |_, value| sum = sum.saturating_add(value));
    sum
}

/// Calls `take` with each value of a sample and its time. Values without a time of their own have the time
/// `start_ns`, in nanoseconds since 1970.
pub fn observations(sample: &Sample, start_ns: u64, mut take: impl FnMut(u64, i64)) {
    let (values, times) = (&sample.values, &sample.timestamps_unix_nano);
    if times.is_empty() {
        values.iter().for_each(|&value| take(start_ns, value));
    } else if values.len() == times.len() {
        times.iter().zip(values).for_each(|(&time, &value)| take(time, value));
    } else if values.is_empty() {
        times.iter().for_each(|&time| take(time, 1));
    } else {
        // The values are not of these times. They are taken once, at the first time.
        values.iter().for_each(|&value| take(times[0], value));
    }
}

//! The number of samples of a profile.

use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::encoded_profiles::EncodedProfile;

use super::measure::ProfileMeasure;
use super::observations::observations;

/// The number of samples that were taken, as `--count` and the profiler count them: periods where values
/// count periods; else one for each time of an entry, or one for each value of an entry without times. An
/// entry of a profile may stand for many.
pub fn sample_count(tables: EncodedTables<'_>, profile: EncodedProfile<'_>) -> u64 {
    let counts_periods = ProfileMeasure::of(tables, &profile.header()).counts_periods;
    let mut count = 0_u64;
    for sample in profile.samples() {
        observations(&sample, 0, |_, value| {
            let samples =
                if counts_periods { u64::try_from(value).unwrap_or(0) } else { u64::from(value != 0) };
            count = count.saturating_add(samples);
        });
    }
    count
}

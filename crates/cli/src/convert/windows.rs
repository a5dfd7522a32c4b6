//! Times and windows of recordings, as given on the command line.

use std::time::Duration;

use anyhow::bail;
use otlpprof_convert::RequestedTime;

use crate::duration;
use crate::time_bound::{self, TimeBound};

/// A window with bounds that may be relative to the recording's beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    start: Option<TimeBound>,
    end: Option<TimeBound>,
}

impl Bounds {
    /// Whether a bound is relative to the recording's beginning.
    pub(super) fn are_relative(&self) -> bool {
        [self.start, self.end].iter().any(|bound| matches!(bound, Some(TimeBound::AfterBegin(_))))
    }

    /// Whether no bound was given.
    pub(super) fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// The window of a recording. Relative bounds are omitted if the recording's beginning is not known.
    pub(super) fn window(&self, begins_unix_nano: Option<i64>) -> RequestedTime {
        let begins_ns = begins_unix_nano.and_then(|begins| u64::try_from(begins).ok());
        let times_ns = begins_ns.map(|begins_ns| (begins_ns, u64::MAX));
        let of = |bound: Option<TimeBound>| {
            let unix_ns = bound?.unix_ns(times_ns).ok()?;
            Some(i64::try_from(unix_ns).unwrap_or(i64::MAX))
        };
        RequestedTime { start_unix_nano: of(self.start), end_unix_nano: of(self.end) }
    }

    fn are_empty(&self) -> bool {
        match (self.start, self.end) {
            (Some(TimeBound::At(start)), Some(TimeBound::At(end)))
            | (Some(TimeBound::AfterBegin(start)), Some(TimeBound::AfterBegin(end))) => end <= start,
            _ => false,
        }
    }
}

/// Parses a time that is not relative to the end, which is not known while a recording is read.
pub(super) fn parse_bound(text: &str) -> Result<TimeBound, String> {
    match time_bound::parse(text)? {
        TimeBound::BeforeEnd(_) => Err("the end of a recording is not known while it is read; name a time \
                                        after its begin, such as +1m30s"
            .to_owned()),
        bound => Ok(bound),
    }
}

/// Parses the length of an interval, such as `10s`.
pub(super) fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = duration::parse(text)?;
    if interval.is_zero() { Err("an interval must be longer than zero".to_owned()) } else { Ok(interval) }
}

/// The window of each input. A single start or end applies to all inputs; otherwise there is one for each
/// input in turn.
pub(super) fn of_inputs(
    starts: &[TimeBound],
    ends: &[TimeBound],
    inputs: usize,
) -> anyhow::Result<Vec<Bounds>> {
    for (option, times) in [("--from", starts), ("--to", ends)] {
        if times.len() > 1 && times.len() != inputs {
            bail!("{} {option} for {inputs} recordings: give one for all, or one for each", times.len());
        }
    }
    let at = |times: &[TimeBound], input: usize| times.get(if times.len() == 1 { 0 } else { input }).copied();
    let windows: Vec<_> =
        (0..inputs).map(|input| Bounds { start: at(starts, input), end: at(ends, input) }).collect();
    if windows.iter().any(Bounds::are_empty) {
        bail!("--to must be after --from");
    }
    Ok(windows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_may_be_spans_from_the_recordings_beginning() {
        assert_eq!(parse_bound("+1m30s"), Ok(TimeBound::AfterBegin(90_000_000_000)));
        assert_eq!(parse_bound("2.5"), Ok(TimeBound::At(2_500_000_000)));
        assert!(parse_bound("-1m").unwrap_err().contains("+1m30s"));
        let bounds = Bounds { start: Some(TimeBound::AfterBegin(5)), end: Some(TimeBound::At(200)) };
        let window = |start, end| RequestedTime { start_unix_nano: start, end_unix_nano: end };
        assert_eq!(bounds.window(Some(100)), window(Some(105), Some(200)));
        assert_eq!(bounds.window(None), window(None, Some(200)));
    }

    #[test]
    fn one_bound_applies_to_all_inputs_or_each_input_has_its_own() {
        let [one, two, five] = [1, 2, 5].map(TimeBound::At);
        let window = |start, end| Bounds { start, end };
        assert_eq!(of_inputs(&[], &[], 1).unwrap(), [Bounds::default()]);
        assert_eq!(of_inputs(&[one], &[], 2).unwrap(), [window(Some(one), None); 2]);
        let each = [window(Some(one), Some(five)), window(Some(two), Some(five))];
        assert_eq!(of_inputs(&[one, two], &[five], 2).unwrap(), each);
        assert!(of_inputs(&[one, two], &[], 3).is_err());
        assert!(of_inputs(&[five], &[five], 1).is_err());
        assert!(of_inputs(&[TimeBound::AfterBegin(5)], &[TimeBound::AfterBegin(5)], 1).is_err());
    }
}

//! The profiles of the interval so far, for the readers of a stream. Nothing is taken out of the interval:
//! its end gives the same profiles as without readers.
//!
//! A message covers the time from the interval's start until now, so that each message replaces the one
//! before: messages with equal starts are about one interval. Survivors, reported events and the recording
//! are only in the message of the interval's end.

use otlpprof_signal::rate_limit::LIMITS;

use super::super::drain::{Drain, DrainedInterval};
use super::{IntervalEnd, IntervalStart, Summed, set_times};
use crate::counters::Recorded;
use crate::thread_labels::{self, IntervalLabels};

impl IntervalEnd {
    /// Sends the profiles of the interval so far to the readers that are due. Does nothing while another
    /// thread ends the interval: the readers then receive the profiles of that end.
    pub(in crate::session) fn send_so_far(&self, drain: &Drain, mut labels: IntervalLabels) {
        let Some(start) = self.start.try_lock() else { return };
        let mut drained = drain.interval_so_far();
        thread_labels::add_names_so_far(&mut labels.java);
        self.native_frames.name_so_far(&mut drained.interval);
        let left_out = self.select(&mut drained.interval, &labels);
        let recorded = drained.recorded;
        let recorded = Recorded { left_out: recorded.left_out + left_out, ..recorded };
        let mut summed = self.sum_so_far(drained, &labels, &start);
        if !self.count(&mut summed, &self.counters(recorded), &start.counters) {
            return;
        }
        drop(start);
        self.output.send_so_far(&self.batch(summed));
    }

    /// Sums the samples to profiles.
    fn sum_so_far(&self, drained: DrainedInterval, labels: &IntervalLabels, start: &IntervalStart) -> Summed {
        let (begin, end_ns) = (start.clocks, drained.end.monotonic_ns);
        let stretches = Self::combined_stretches(self.budget.lock().longest(), LIMITS.longest());
        let (tables, mut profiles) =
            self.sum_samples(drained.interval, begin.unix_offset_ns, labels, &stretches);
        set_times(&mut profiles, begin, end_ns);
        Summed { tables, profiles, stretches, left_out: 0 }
    }
}

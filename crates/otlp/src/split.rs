//! Encodes a batch as messages of bounded size.

use std::ops::Range;

use otlpprof_model::{Batch, Sample};

use super::encode::{encode_selection, select_all};
use super::encode_options::EncodeOptions;
use super::message_write::Selection;
use super::samples::{MOST_TIMES, Shape, times};

/// One encoded message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitMessage {
    /// The encoded message, which is self-contained.
    pub bytes: Vec<u8>,
    /// The number of samples in the message.
    pub samples: u64,
    /// The number of additions to the model that these samples sum up.
    pub additions: u64,
}

/// A batch, divided into messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The messages, in the order of the samples; empty if there was no sample.
    pub messages: Vec<SplitMessage>,
    /// The number of samples that were dropped because each alone exceeds the limit.
    pub dropped_samples: u64,
    /// The number of additions to the model that the dropped samples summed up.
    pub dropped_additions: u64,
    /// The sum of the dropped samples' values.
    pub dropped_value: u64,
    /// The number of samples that were written without times although times were requested: they have too
    /// many times, or none.
    pub untimed_samples: u64,
}

/// Encodes the batch as messages of at most `limit_bytes` each, before any compression. If one message does
/// not suffice, the samples are divided in their order. Each message has its own dictionary and its own
/// profile ids. The first message with samples of a profile has the profile's counts.
pub fn encode_split(batch: &Batch, options: &EncodeOptions, limit_bytes: usize) -> Split {
    let all = select_all(batch);
    let mut splitter = Splitter { batch, options, limit_bytes, all, split: Split::default() };
    let total = splitter.all.iter().map(|selection| selection.samples.len()).sum();
    splitter.encode(0..total);
    splitter.split
}

struct Splitter<'a> {
    batch: &'a Batch,
    options: &'a EncodeOptions,
    limit_bytes: usize,
    /// The whole of each profile. `with_counts` is true until a message has the profile's counts.
    all: Vec<Selection>,
    split: Split,
}

impl Splitter<'_> {
    /// Encodes the samples at these positions, counted over all profiles.
    fn encode(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let selections = self.select(&range);
        let parts_by_times = self.times(&selections).div_ceil(MOST_TIMES);
        if parts_by_times > 1 && range.len() > 1 {
            self.encode_parts(range, usize::try_from(parts_by_times).unwrap_or(usize::MAX));
            return;
        }
        let bytes = encode_selection(self.batch, &selections, self.options);
        if bytes.len() <= self.limit_bytes {
            self.push(bytes, &selections, self.options);
        } else if range.len() == 1 {
            self.encode_untimed(&selections);
        } else {
            // The dictionaries of the parts overlap, so one more part than the sizes suggest is likely to be
            // needed.
            let parts = bytes.len() / self.limit_bytes.max(1) + 2;
            drop(bytes);
            self.encode_parts(range, parts);
        }
    }

    fn encode_parts(&mut self, range: Range<usize>, parts: usize) {
        let parts = parts.min(range.len());
        let bound = |part: usize| range.start + range.len() * part / parts;
        (0..parts).for_each(|part| self.encode(bound(part)..bound(part + 1)));
    }

    /// Encodes one sample that exceeds the limit with times: without times if that fits; otherwise drops it.
    fn encode_untimed(&mut self, selections: &[Selection]) {
        let options = EncodeOptions { timestamps: false, ..*self.options };
        let bytes = encode_selection(self.batch, selections, &options);
        if bytes.len() <= self.limit_bytes {
            self.push(bytes, selections, &options);
            return;
        }
        self.split.dropped_samples += 1;
        self.split.dropped_additions += self.additions(selections);
        let value = |sample: &Sample| u64::try_from(sample.value).unwrap_or(0);
        self.split.dropped_value += self.samples(selections).map(value).sum::<u64>();
    }

    fn push(&mut self, bytes: Vec<u8>, selections: &[Selection], options: &EncodeOptions) {
        let samples = self.samples(selections).count() as u64;
        let additions = self.additions(selections);
        self.split.messages.push(SplitMessage { bytes, samples, additions });
        for selection in selections.iter().filter(|selection| !selection.samples.is_empty()) {
            self.all[selection.profile].with_counts = false;
            let profile = &self.batch.profiles[selection.profile];
            let shape = Shape::of(profile, selection.samples.clone(), options);
            if self.options.timestamps && shape == Shape::Value {
                self.split.untimed_samples += selection.samples.len() as u64;
            }
        }
    }

    fn select(&self, range: &Range<usize>) -> Vec<Selection> {
        let mut first = 0;
        let cut = |selection: &Selection| {
            let len = selection.samples.len();
            let local = |position: usize| position.saturating_sub(first).min(len);
            let samples = local(range.start)..local(range.end);
            first += len;
            Selection { samples, ..selection.clone() }
        };
        self.all.iter().map(cut).collect()
    }

    /// The number of times in the profile that has the most of them.
    fn times(&self, selections: &[Selection]) -> u64 {
        let of = |selection: &Selection| {
            let profile = &self.batch.profiles[selection.profile];
            let EncodeOptions { timestamps, values_beside_times, .. } = *self.options;
            let are_counted = profile.profile_type.is_count() && !values_beside_times;
            let counts = timestamps && profile.is_timed() && are_counted;
            if counts { times(profile, selection.samples.clone()) } else { 0 }
        };
        selections.iter().map(of).max().unwrap_or(0)
    }

    fn samples<'s>(&'s self, selections: &'s [Selection]) -> impl Iterator<Item = &'s Sample> {
        selections.iter().flat_map(|selection| {
            &self.batch.profiles[selection.profile].samples()[selection.samples.clone()]
        })
    }

    fn additions(&self, selections: &[Selection]) -> u64 {
        self.samples(selections).map(|sample| sample.additions).sum()
    }
}

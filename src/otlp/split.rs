//! A batch to messages of bounded size.

use std::ops::Range;

use crate::model::{Batch, Sample};

use super::encode::{EncodeOptions, encode_selection, select_all};
use super::message_write::Selection;
use super::samples::{MOST_TIMES, Shape, times};

/// One encoded message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The encoding; self-contained.
    pub bytes: Vec<u8>,
    /// How many samples it holds.
    pub samples: u64,
    /// How many additions to the model they are the sum of.
    pub additions: u64,
}

/// A batch, divided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The messages, in the order of the samples. None if there was no sample.
    pub messages: Vec<Message>,
    /// Samples that alone are over the limit and were left out.
    pub dropped_samples: u64,
    /// How many additions to the model those are the sum of.
    pub dropped_additions: u64,
    /// The sum of their values.
    pub dropped_value: u64,
    /// Samples that were written without their times, although times were asked for: they have too many, or none.
    pub untimed_samples: u64,
}

/// Encodes the batch so that no message has more than `limit_bytes` (before any compression). Where one message
/// does not suffice, the samples are divided, in their order, and every message has a dictionary and profile ids
/// of its own; the first that holds samples of a profile has that profile's counts.
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
    /// The whole of each profile, with its counts until a message has them.
    all: Vec<Selection>,
    split: Split,
}

impl Splitter<'_> {
    /// Encodes the samples with these positions, counted through all profiles.
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
            // The parts' dictionaries overlap, so that one part more is likely needed than sizes alone say.
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

    /// One sample that is over the limit as it is.
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
        self.split.messages.push(Message { bytes, samples, additions });
        for selection in selections.iter().filter(|selection| !selection.samples.is_empty()) {
            self.all[selection.profile].with_counts = false;
            let profile = &self.batch.profiles[selection.profile];
            let shape = Shape::of(profile, selection.samples.clone(), options.timestamps);
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

    /// The most times that one profile of a message would hold.
    fn times(&self, selections: &[Selection]) -> u64 {
        let of = |selection: &Selection| {
            let profile = &self.batch.profiles[selection.profile];
            let counts = self.options.timestamps && profile.is_timed() && profile.profile_type.is_count();
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

//! A batch to messages of bounded size.

use std::ops::Range;

use crate::model::Batch;

use super::encode::{EncodeOptions, encode_selection, select_all};
use super::message_write::Selection;

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
}

/// Encodes the batch so that no message has more than `limit_bytes` (before any compression). Where one message
/// does not suffice, the samples are divided, in their order, and every message has a dictionary and profile ids
/// of its own.
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
        let bytes = encode_selection(self.batch, &selections, self.options);
        if bytes.len() <= self.limit_bytes {
            let additions = self.additions(&selections);
            self.split.messages.push(Message { bytes, samples: range.len() as u64, additions });
        } else if range.len() == 1 {
            self.split.dropped_samples += 1;
            self.split.dropped_additions += self.additions(&selections);
        } else {
            // The parts' dictionaries overlap, so that one part more is likely needed than sizes alone say.
            let parts = (bytes.len() / self.limit_bytes.max(1) + 2).min(range.len());
            drop(bytes);
            let bound = |part: usize| range.start + range.len() * part / parts;
            (0..parts).for_each(|part| self.encode(bound(part)..bound(part + 1)));
        }
    }

    fn select(&self, range: &Range<usize>) -> Vec<Selection> {
        let mut first = 0;
        let cut = |selection: &Selection| {
            let len = selection.samples.len();
            let local = |position: usize| position.saturating_sub(first).min(len);
            let samples = local(range.start)..local(range.end);
            first += len;
            Selection { profile: selection.profile, samples }
        };
        self.all.iter().map(cut).collect()
    }

    fn additions(&self, selections: &[Selection]) -> u64 {
        let of = |selection: &Selection| -> u64 {
            let samples = &self.batch.profiles[selection.profile].samples()[selection.samples.clone()];
            samples.iter().map(|sample| sample.additions).sum()
        };
        selections.iter().map(of).sum()
    }
}

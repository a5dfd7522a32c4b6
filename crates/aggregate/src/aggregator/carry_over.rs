//! Samples that the next interval may repeat: the stacks of threads that have not moved since they were
//! sampled.
//!
//! An interval's tables leave with it, so such a sample is translated to the next interval's tables. A frame
//! that has no name yet is added there to those that are to be named.

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use otlpprof_model::{FrameId, SampleIdentity, StackId, Translation};

use super::{Aggregator, UnnamedFrame};
use crate::interval::SumKey;

impl Aggregator {
    /// Takes over the samples of these numbers from the previous interval, if it has them.
    pub(super) fn carry_over(&mut self, before: &Self, numbers: &[u32]) {
        if numbers.is_empty() {
            return;
        }
        let unnamed: HashMap<FrameId, UnnamedFrame, RandomState> =
            before.frames.unnamed.iter().map(|(frame, id)| (*id, *frame)).collect();
        let Self { tables, frames, carried_over, .. } = self;
        let mut translation = Translation::new(&before.tables, tables);
        let mut stacks: HashSet<StackId, RandomState> = HashSet::default();
        for &number in numbers {
            let Some(key) = before.repeatable_key(number) else { continue };
            let SumKey { stack, labels: attributes, link, .. } = key;
            if stacks.insert(stack) {
                for id in before.tables.stacks.get(stack) {
                    if let Some(frame) = unnamed.get(id) {
                        let translated = frames.unnamed_id(translation.to(), *frame);
                        translation.frame_is(*id, translated);
                    }
                }
            }
            let identity = translation.identity(SampleIdentity { stack, attributes, link });
            let SampleIdentity { stack, attributes: labels, link } = identity;
            carried_over.insert(number, SumKey { stack, labels, link, ..key });
        }
    }

    /// Returns the key of the sample of this number, if it may be repeated.
    fn repeatable_key(&self, number: u32) -> Option<SumKey> {
        let taken = self.repeatable.get(&number).map(|&sum| self.sums[sum as usize].key);
        taken.or_else(|| self.carried_over.get(&number).copied())
    }
}

//! Reclaiming values: which entries of the dictionary nothing refers to any longer.
//!
//! A setter writes a reference that it kept, without a lock and without a barrier, and then looks at the epoch: if that
//! is no longer the one in which it got the reference, it asks the dictionary anew and writes what that says. A pass
//! therefore
//!
//! 1. begins an epoch,
//! 2. has every thread pass a barrier: who wrote before it has written where step 3 looks, who writes after it sees the
//!    new epoch and asks anew,
//! 3. notes what all blocks refer to,
//! 4. drains the samples: what was copied out of a block before step 3 becomes text; what is copied after it is in the
//!    block at step 3 or was asked for in this epoch,
//! 5. frees what was neither noted nor asked for since step 1.
//!
//! A sample that is taken in a setter, between a stale write and the look at the epoch, may lack that label.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::blocks::BLOCKS;
use super::counts::{COUNTS, add};
use super::dictionary::{DICTIONARY, Dictionary, Indices, MAX_VALUES};
use super::process_barrier;
use crate::core::context::ContextBlock;

/// A pass that frees less than this was hardly worth it.
const WORTH_IT: usize = MAX_VALUES / 16;

/// How long nobody tries again after such a pass.
const PATIENCE: Duration = Duration::from_millis(200);

/// When it is worth to try again; `None`: at once. Held during a pass.
static NOT_BEFORE: Mutex<Option<Instant>> = Mutex::new(None);

/// Frees the values that nothing refers to; `drain` resolves all samples that are in the buffer when it is called. Does
/// nothing if the last pass of a moment ago could free little. Returns whether there is room now.
pub fn reclaim(drain: impl FnOnce()) -> bool {
    let mut not_before = NOT_BEFORE.lock();
    if DICTIONARY.used() < MAX_VALUES / 2 {
        // Somebody else's pass, that this caller has waited for.
        return true;
    }
    if not_before.is_some_and(|time| Instant::now() < time) {
        return DICTIONARY.used() < MAX_VALUES;
    }
    let freed = pass(&DICTIONARY, process_barrier::pass, || BLOCKS.all(), drain);
    *not_before = (freed < WORTH_IT).then(|| Instant::now() + PATIENCE);
    DICTIONARY.used() < MAX_VALUES
}

/// [`reclaim`], if values are many.
pub fn reclaim_if_crowded(drain: impl FnOnce()) {
    if DICTIONARY.used() > MAX_VALUES / 4 * 3 {
        reclaim(drain);
    }
}

fn pass<'a, B: Iterator<Item = &'a ContextBlock>>(
    dictionary: &Dictionary,
    barrier: impl FnOnce() -> bool,
    blocks: impl FnOnce() -> B,
    drain: impl FnOnce(),
) -> usize {
    add(&COUNTS.reclaim_passes, 1);
    dictionary.begin_epoch();
    if !barrier() {
        // A thread may be about to write what would be freed: nothing can be.
        return 0;
    }
    let mut referred_to = Indices::default();
    for reference in blocks().flat_map(ContextBlock::slots) {
        referred_to.add(reference);
    }
    drain();
    dictionary.sweep(&referred_to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::context::ValueRef;

    fn block_with(slot: usize, reference: ValueRef) -> ContextBlock {
        let block = ContextBlock::default();
        block.clear();
        // SAFETY: a slot's four bytes, of a block that is this test's own.
        unsafe { (&raw const block).cast_mut().cast::<u32>().add(7 + slot).write_volatile(reference.0) };
        block
    }

    #[test]
    fn what_blocks_hold_stays_and_samples_are_resolved_before_the_rest_goes() {
        let dictionary = Dictionary::default();
        let held = dictionary.intern("held").unwrap().reference;
        let sampled = dictionary.intern("sampled").unwrap().reference;
        let gone = dictionary.intern("gone").unwrap().reference;
        let block = block_with(8, held);
        let mut resolved = None;
        let freed = pass(
            &dictionary,
            || true,
            || [&block].into_iter(),
            || resolved = dictionary.values().get(sampled).map(str::to_owned),
        );
        assert_eq!((freed, resolved.as_deref()), (2, Some("sampled")));
        let values = dictionary.values();
        assert_eq!([held, sampled, gone].map(|reference| values.get(reference)), [Some("held"), None, None]);
    }

    /// The setter's side of the protocol, at its worst moment: the value is written just when the epoch has begun.
    #[test]
    fn a_value_that_is_set_while_a_pass_runs_is_not_lost() {
        let dictionary = Dictionary::default();
        let kept = dictionary.intern("kept").unwrap();
        let pass_meets = |meets: fn(&Dictionary)| {
            let none = || std::iter::empty();
            pass(&dictionary, || true, none, || meets(&dictionary))
        };
        // Its block was looked at before it wrote; it sees the new epoch, and asks anew.
        let freed = pass_meets(|dictionary| {
            assert_eq!(dictionary.intern("kept").unwrap().epoch, 1);
        });
        assert_eq!(freed, 0);
        assert_eq!(dictionary.values().get(kept.reference), Some("kept"));
    }

    #[test]
    fn without_a_barrier_nothing_is_freed() {
        let dictionary = Dictionary::default();
        let value = dictionary.intern("value").unwrap().reference;
        let freed = pass(&dictionary, || false, std::iter::empty, || panic!("no use to drain"));
        assert_eq!(freed, 0);
        assert_eq!(dictionary.values().get(value), Some("value"));
    }
}

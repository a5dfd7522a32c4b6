//! Reclaims values: frees the entries of the dictionary that nothing refers to any longer.
//!
//! A setter writes a reference that it has kept, without lock or barrier, and then checks the epoch. If the
//! epoch is no longer the one in which it got the reference, it interns the value again and writes the new
//! reference. A pass therefore
//!
//! 1. begins an epoch,
//! 2. makes every thread pass a barrier: a setter that wrote before the barrier has written where step 3
//!    looks; a setter that writes after it sees the new epoch and interns the value again,
//! 3. collects the references in all blocks,
//! 4. drains the samples: a reference copied from a block before step 3 is resolved to text; one copied after
//!    it was in the block at step 3 or was interned in this epoch,
//! 5. frees the values that were neither collected nor interned since step 1.
//!
//! A sample taken inside a setter, between writing a stale reference and checking the epoch, may lack that
//! label.

use std::time::{Duration, Instant};

use otlpprof_core::context::ContextBlock;
use parking_lot::Mutex;

use super::blocks::BLOCKS;
use super::counts::{COUNTS, add};
use super::dictionary::{DICTIONARY, Dictionary, Indices, MAX_VALUES};
use super::process_barrier;

/// The least number of freed values for which a pass was worthwhile.
const WORTH_IT: usize = MAX_VALUES / 16;

/// The time for which no pass is made after one that was not worthwhile.
const PATIENCE: Duration = Duration::from_millis(200);

/// The time before which no pass is made; `None`: at once. Held during a pass.
static NOT_BEFORE: Mutex<Option<Instant>> = Mutex::new(None);

/// Frees the values that nothing refers to. `drain` must resolve all samples that are in the buffer when it
/// is called. Does nothing if a recent pass could free little. Returns whether there is room now.
pub fn reclaim(drain: impl FnOnce()) -> bool {
    let mut not_before = NOT_BEFORE.lock();
    if DICTIONARY.used() < MAX_VALUES / 2 {
        // Another thread has made a pass while this caller waited for the lock.
        return true;
    }
    if not_before.is_some_and(|time| Instant::now() < time) {
        return DICTIONARY.used() < MAX_VALUES;
    }
    let freed = pass(&DICTIONARY, process_barrier::pass, || BLOCKS.all(), drain);
    *not_before = (freed < WORTH_IT).then(|| Instant::now() + PATIENCE);
    DICTIONARY.used() < MAX_VALUES
}

/// Calls [`reclaim`] if there are many values.
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
        // A thread may be about to write a reference that would be freed, so nothing can be freed.
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
    use otlpprof_core::context::ValueRef;

    use super::*;

    fn block_with(slot: usize, reference: ValueRef) -> ContextBlock {
        let block = ContextBlock::default();
        block.clear();
        // SAFETY: these are a slot's four bytes, in a block that only this test uses.
        unsafe { (&raw const block).cast_mut().cast::<u32>().add(7 + slot).write_volatile(reference.0) };
        block
    }

    #[test]
    fn values_in_blocks_stay_and_samples_are_resolved_before_others_are_freed() {
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

    /// The setter's side of the protocol, at its worst moment: the value is written just when the epoch has
    /// begun.
    #[test]
    fn a_value_that_is_set_while_a_pass_runs_is_not_lost() {
        let dictionary = Dictionary::default();
        let kept = dictionary.intern("kept").unwrap();
        let pass_meets = |meets: fn(&Dictionary)| {
            let none = || std::iter::empty();
            pass(&dictionary, || true, none, || meets(&dictionary))
        };
        // The setter's block was read before it wrote. It sees the new epoch, and interns the value again.
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

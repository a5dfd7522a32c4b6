//! Cache: a repeated event reuses the sample that the previous event with the same numbers resolved to,
//! without looking its constants up again. Most events of most recordings repeat an event that occurred
//! shortly before. A chunk's keys mean the same for all its events. Even while the chunk is still being
//! written this holds: events that refer to unknown constants have not been delivered yet.

use super::identity::EventIdentity;

/// The number of cached events, a power of two: as many as fit in the processor's inner caches.
const CACHED_EVENTS: usize = 512;

/// The cache for the events of one type in one chunk. The key is the numbers that determine the sample.
#[derive(Debug)]
pub(super) struct EventCache {
    /// The slots of the numbers that determine the sample.
    slots: Vec<usize>,
    /// The number of profiles that an event adds to.
    outcomes: usize,
    /// The numbers of all cached events, one event after another; empty before the first event.
    numbers: Vec<i64>,
    known: Vec<Option<EventIdentity>>,
    /// The position of each cached event's sample in each profile; `None` if unknown.
    samples: Vec<Option<u32>>,
}

/// The index of an event in the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheIndex(usize);

impl EventCache {
    /// An empty cache.
    pub(super) fn new(slots: Vec<usize>, outcomes: usize) -> Self {
        Self { slots, outcomes, numbers: Vec::new(), known: Vec::new(), samples: Vec::new() }
    }

    /// The index for an event with these numbers, and the cached result if an equal event is at that index.
    #[inline]
    pub(super) fn find(&mut self, read: &[i64]) -> (CacheIndex, Option<EventIdentity>) {
        if self.known.is_empty() {
            self.make_room();
        }
        // The keys differ in their low bits; the multiplication moves these to the high bits.
        let mixed = self.slots.iter().fold(0, |mixed: u64, &slot| {
            (mixed.rotate_left(29) ^ read[slot] as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        let index = (mixed >> (u64::BITS - CACHED_EVENTS.ilog2())) as usize;
        let numbers = self.numbers[index * self.slots.len()..].iter();
        let is_same = || self.slots.iter().zip(numbers).all(|(&slot, &number)| read[slot] == number);
        (CacheIndex(index), self.known[index].filter(|_| is_same()))
    }

    /// Stores the result of an event. The positions of its sample in the profiles are unknown.
    #[inline]
    pub(super) fn put(&mut self, index: CacheIndex, read: &[i64], known: EventIdentity) {
        let numbers = &mut self.numbers[index.0 * self.slots.len()..];
        for (number, &slot) in numbers.iter_mut().zip(&self.slots) {
            *number = read[slot];
        }
        self.known[index.0] = Some(known);
        self.samples(index).fill(None);
    }

    /// The position of the event's sample in each profile.
    #[inline]
    pub(super) fn samples(&mut self, index: CacheIndex) -> &mut [Option<u32>] {
        &mut self.samples[index.0 * self.outcomes..][..self.outcomes]
    }

    #[cold]
    fn make_room(&mut self) {
        self.numbers = vec![0; CACHED_EVENTS * self.slots.len()];
        self.known = vec![None; CACHED_EVENTS];
        self.samples = vec![None; CACHED_EVENTS * self.outcomes];
    }
}

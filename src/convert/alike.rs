//! Events of one type that are alike: what one of them has become, the next becomes without its constants being looked up
//! again. Most events of most recordings are like one that came shortly before. A chunk's keys mean the same for all of its
//! events: where it is still being written, those that refer to what is not known yet have not been delivered.

use super::identity::Known;

/// So many different events are at hand, a power of two: as many as the processor's nearer caches have room for.
const PLACES: usize = 512;

/// What events of one type in one chunk have become, by the numbers that decide on it.
#[derive(Debug)]
pub(super) struct Alike {
    /// The slots that have these numbers.
    slots: Vec<usize>,
    /// How many profiles an event adds to.
    outcomes: usize,
    /// The numbers of each place, one behind the other. Nothing before the first event.
    numbers: Vec<i64>,
    known: Vec<Option<Known>>,
    /// The positions of each place's sample in the profiles, as far as there is one.
    samples: Vec<Option<u32>>,
}

/// Where events that are alike are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(usize);

impl Alike {
    /// Nothing yet.
    pub(super) fn new(slots: Vec<usize>, outcomes: usize) -> Self {
        Self { slots, outcomes, numbers: Vec::new(), known: Vec::new(), samples: Vec::new() }
    }

    /// The place of an event with these numbers, and what those that are alike have become, if one came shortly before.
    #[inline]
    pub(super) fn find(&mut self, read: &[i64]) -> (Place, Option<Known>) {
        if self.known.is_empty() {
            self.make_room();
        }
        // Multiplied, the low bits of the keys, in which they differ, are in the high ones.
        let mixed = self.slots.iter().fold(0, |mixed: u64, &slot| {
            (mixed.rotate_left(29) ^ read[slot] as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        let place = (mixed >> (u64::BITS - PLACES.ilog2())) as usize;
        let numbers = self.numbers[place * self.slots.len()..].iter();
        let is_same = || self.slots.iter().zip(numbers).all(|(&slot, &number)| read[slot] == number);
        (Place(place), self.known[place].filter(|_| is_same()))
    }

    /// Keeps what an event has become, of which no profile is known to have a sample.
    #[inline]
    pub(super) fn put(&mut self, place: Place, read: &[i64], known: Known) {
        let numbers = &mut self.numbers[place.0 * self.slots.len()..];
        for (number, &slot) in numbers.iter_mut().zip(&self.slots) {
            *number = read[slot];
        }
        self.known[place.0] = Some(known);
        self.samples(place).fill(None);
    }

    /// The positions of the sample in the profiles.
    #[inline]
    pub(super) fn samples(&mut self, place: Place) -> &mut [Option<u32>] {
        &mut self.samples[place.0 * self.outcomes..][..self.outcomes]
    }

    #[cold]
    fn make_room(&mut self) {
        self.numbers = vec![0; PLACES * self.slots.len()];
        self.known = vec![None; PLACES];
        self.samples = vec![None; PLACES * self.outcomes];
    }
}

//! The sampled objects that may still live, in a bounded table. When it is full, it is thinned.
//!
//! Thinning keeps each object with a probability of one half, and doubles the weight of the kept ones. From
//! then on new objects are admitted with the reduced probability as well. So the sums stay right, and only
//! their variance grows. When most of the table has become free again, more objects are admitted.

use std::collections::HashMap;

use otlpprof_core::byte_sampling::Random;

/// The table is thinned to one object in 2^20, about a million, at most.
const MOST_HALVINGS: u32 = 20;

/// An object that may still live.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tracked<R> {
    /// The reference to the object.
    pub(super) reference: R,
    /// The number of collections that had ended when the object was allocated.
    pub(super) born: u32,
    /// The factor by which the values of the object's sample are multiplied.
    pub(super) weight: f64,
}

/// The tracked objects, by their samples' numbers.
#[derive(Debug)]
pub(super) struct LiveTable<R> {
    objects: HashMap<u32, Tracked<R>>,
    most: usize,
    /// One in 2^halvings of the new objects is admitted.
    halvings: u32,
    /// References of objects that were thinned out. The table's user has to delete them.
    discarded: Vec<R>,
    /// The number of objects that were not admitted, or were thinned out.
    thinned: u64,
    random: Random,
}

impl<R: Copy> LiveTable<R> {
    pub(super) fn new(most: usize, seed: u64) -> Self {
        Self {
            objects: HashMap::new(),
            most,
            halvings: 0,
            discarded: Vec::new(),
            thinned: 0,
            random: Random::new(seed),
        }
    }

    /// Decides whether the next object is admitted, and returns its weight if so.
    pub(super) fn admit(&mut self) -> Option<f64> {
        let is_admitted = self.random.number() & ((1 << self.halvings) - 1) == 0;
        self.thinned += u64::from(!is_admitted);
        is_admitted.then(|| f64::from(self.halvings).exp2())
    }

    /// Inserts an object that was admitted.
    pub(super) fn insert(&mut self, number: u32, object: Tracked<R>) {
        if self.objects.len() >= self.most {
            self.halve();
        }
        self.objects.insert(number, object);
    }

    fn halve(&mut self) {
        let Self { objects, discarded, thinned, random, .. } = self;
        objects.retain(|_, object| {
            let is_kept = random.number() >> 63 == 0;
            if is_kept {
                object.weight *= 2.0;
            } else {
                discarded.push(object.reference);
                *thinned += 1;
            }
            is_kept
        });
        self.halvings = (self.halvings + 1).min(MOST_HALVINGS);
    }

    /// Removes an object and returns its reference.
    pub(super) fn remove(&mut self, number: u32) -> Option<R> {
        self.objects.remove(&number).map(|object| object.reference)
    }

    /// Removes an object, and adds its reference to those that have to be deleted.
    pub(super) fn discard(&mut self, number: u32) {
        let reference = self.remove(number);
        self.discarded.extend(reference);
    }

    /// Admits more objects, if removing the dead has freed most of the table.
    pub(super) fn swept(&mut self) {
        if self.objects.len() < self.most / 4 {
            self.halvings = self.halvings.saturating_sub(1);
        }
    }

    /// The objects, with their numbers.
    pub(super) fn objects(&self) -> impl Iterator<Item = (u32, &Tracked<R>)> {
        self.objects.iter().map(|(number, object)| (*number, object))
    }

    /// Takes the references that have to be deleted.
    pub(super) fn take_discarded(&mut self) -> Vec<R> {
        std::mem::take(&mut self.discarded)
    }

    /// Discards all objects.
    pub(super) fn clear(&mut self) {
        self.discarded.extend(self.objects.drain().map(|(_, object)| object.reference));
        self.halvings = 0;
    }

    /// The number of objects that were not admitted, or were thinned out.
    pub(super) fn thinned(&self) -> u64 {
        self.thinned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(table: &mut LiveTable<u32>, numbers: std::ops::Range<u32>) {
        for number in numbers {
            if let Some(weight) = table.admit() {
                table.insert(number, Tracked { reference: number, born: 0, weight });
            }
        }
    }

    fn total(table: &LiveTable<u32>, numbers: std::ops::Range<u32>) -> f64 {
        let is_wanted = |(number, _): &(u32, &Tracked<u32>)| numbers.contains(number);
        table.objects().filter(is_wanted).map(|(_, object)| object.weight).sum()
    }

    #[test]
    fn thinned_objects_stand_for_all() {
        let mut table = LiveTable::new(10_000, 5);
        add(&mut table, 0..200_000);
        assert!(table.objects().count() <= 10_000);
        // About 5,000 objects or more are kept, so half of the numbers has at least 2,500: the relative
        // standard deviation is within 2 %.
        for (numbers, tolerance) in [(0..200_000, 0.06), (0..100_000, 0.08), (100_000..200_000, 0.08)] {
            let (found, expected) = (total(&table, numbers.clone()), numbers.len() as f64);
            assert!((found / expected - 1.0).abs() < tolerance, "{numbers:?}: {found}");
        }
        let kept = table.objects().count() as u64;
        assert_eq!(table.thinned() + kept, 200_000);
        assert!(!table.take_discarded().is_empty() && table.take_discarded().is_empty());
    }

    #[test]
    fn freed_places_are_reused() {
        let mut table = LiveTable::new(1_000, 5);
        add(&mut table, 0..20_000);
        let numbers: Vec<u32> = table.objects().map(|(number, _)| number).collect();
        assert!(numbers.iter().all(|number| table.remove(*number) == Some(*number)));
        (0..MOST_HALVINGS).for_each(|_| table.swept());
        add(&mut table, 20_000..20_500);
        assert_eq!(table.objects().count(), 500);
        assert!(table.objects().all(|(_, object)| object.weight == 1.0));
        let before = table.take_discarded().len();
        table.clear();
        assert_eq!((table.objects().count(), table.take_discarded().len()), (0, 500), "{before}");
    }
}

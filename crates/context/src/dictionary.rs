//! The values that slots refer to: at most 65,536 strings, each identified by an index and a generation.
//!
//! An entry's generation changes with every string that the entry gets, so a reference that has outlived its
//! string never refers to another. Generations recur after 65,535 strings. An entry whose index is still in a
//! block gets no other string ([`reclaim`](super::reclaim)), so no reference lasts that long.
//!
//! A setter may keep the result of [`Dictionary::intern`] for as long as [`Published::epoch`] does not
//! change.

use std::hash::BuildHasher;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use otlpprof_core::context::ValueRef;
use parking_lot::{Mutex, MutexGuard};

use super::counts::{COUNTS, add};

/// The most values at once.
pub const MAX_VALUES: usize = 1 << 16;

/// The longest value, in bytes.
pub const LONGEST_VALUE: usize = 255;

/// The result of interning a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interned {
    /// The value's reference.
    pub reference: ValueRef,
    /// The epoch in which the reference may be kept.
    pub epoch: u32,
    /// Whether the dictionary is so full that values should be reclaimed. Set only once in
    /// `VALUES_PER_WARNING` new values, so that the agent is not kept busy by values that are all in use.
    pub is_crowded: bool,
}

/// The number of new values between two notices that the dictionary is crowded.
const VALUES_PER_WARNING: usize = 1024;

/// All entries are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

#[derive(Debug)]
struct Entry {
    text: Option<Box<str>>,
    generation: u16,
    /// The epoch in which the value was last interned.
    requested_in: u32,
}

#[derive(Debug, Default)]
struct Entries {
    entries: Vec<Entry>,
    free: Vec<u16>,
    by_text: HashTable<u16>,
    epoch: u32,
}

/// Words that setters poll, in a cache line of their own.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Published {
    /// Changes when kept references must no longer be used.
    pub epoch: AtomicU32,
    /// Work that must follow a change of a context; 0: none. The lowest bit is set while changes are logged
    /// in [`changes`](super::changes). The bits above it are the number of the publication
    /// ([`published_threads`](super::published_threads)).
    pub notices: AtomicU32,
}

impl Published {
    /// Sets whether changes of contexts are logged.
    pub fn note_changes(&self, is_wanted: bool) {
        match is_wanted {
            true => self.notices.fetch_or(1, Ordering::SeqCst),
            false => self.notices.fetch_and(!1, Ordering::SeqCst),
        };
    }

    /// Sets the publication that threads join with their next change; 0: none.
    pub(super) fn set_publication(&self, number: u32) {
        let with = |notices: u32| Some(notices & 1 | number << 1);
        // SANITY: the closure always returns a value to store.
        self.notices.fetch_update(Ordering::SeqCst, Ordering::SeqCst, with).expect("a word");
    }
}

/// A dictionary of values.
#[derive(Debug, Default)]
pub struct Dictionary {
    published: Published,
    entries: Mutex<Entries>,
    hasher: RandomState,
}

/// The dictionary of this process.
pub static DICTIONARY: LazyLock<Dictionary> = LazyLock::new(Dictionary::default);

impl Entries {
    fn used(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    fn find(&self, hash: u64, text: &str) -> Option<u16> {
        let is_it = |index: &u16| self.entries[usize::from(*index)].text.as_deref() == Some(text);
        self.by_text.find(hash, is_it).copied()
    }

    /// Returns the index of an entry without a string.
    fn make_room(&mut self) -> Option<u16> {
        if let Some(free) = self.free.pop() {
            return Some(free);
        }
        let index = u16::try_from(self.entries.len()).ok()?;
        self.entries.push(Entry { text: None, generation: 1, requested_in: 0 });
        Some(index)
    }
}

impl Dictionary {
    /// The words that setters poll.
    pub fn published(&self) -> &Published {
        &self.published
    }

    /// Interns a value of at most [`LONGEST_VALUE`] bytes.
    pub fn intern(&self, text: &str) -> Result<Interned, Full> {
        let hash = self.hasher.hash_one(text);
        let mut entries = self.entries.lock();
        let epoch = entries.epoch;
        let mut is_new = false;
        let index = match entries.find(hash, text) {
            Some(index) => index,
            None => {
                let index = entries.make_room().ok_or(Full)?;
                is_new = true;
                entries.entries[usize::from(index)].text = Some(text.into());
                let Entries { entries, by_text, .. } = &mut *entries;
                by_text.insert_unique(hash, index, |&index| {
                    // SANITY: every entry in the index has a text.
                    self.hasher.hash_one(entries[usize::from(index)].text.as_deref().expect("a text"))
                });
                index
            }
        };
        let used = entries.used();
        let is_crowded = is_new && used > MAX_VALUES / 4 * 3 && used.is_multiple_of(VALUES_PER_WARNING);
        let entry = &mut entries.entries[usize::from(index)];
        entry.requested_in = epoch;
        Ok(Interned { reference: ValueRef::new(index, entry.generation), epoch, is_crowded })
    }

    /// The values, for resolving references.
    pub fn values(&self) -> LockedValues<'_> {
        LockedValues(self.entries.lock())
    }

    /// The number of values.
    pub fn used(&self) -> usize {
        self.entries.lock().used()
    }

    /// Begins another epoch.
    pub(super) fn begin_epoch(&self) {
        let mut entries = self.entries.lock();
        entries.epoch = entries.epoch.wrapping_add(1);
        self.published.epoch.store(entries.epoch, Ordering::SeqCst);
    }

    /// Frees the entries that were not interned in this epoch and whose index is not in `referred_to`.
    /// Returns their number.
    pub(super) fn sweep(&self, referred_to: &Indices) -> usize {
        let mut entries = self.entries.lock();
        let Entries { entries, free, by_text, epoch } = &mut *entries;
        let mut freed = 0;
        for (index, entry) in (0..=u16::MAX).zip(entries.iter_mut()) {
            let Some(text) = entry.text.as_deref() else { continue };
            if entry.requested_in == *epoch || referred_to.contains(index) {
                continue;
            }
            let found = by_text.find_entry(self.hasher.hash_one(text), |&other| other == index);
            if let Ok(found) = found {
                found.remove();
            }
            entry.text = None;
            entry.generation = entry.generation.checked_add(1).unwrap_or(1);
            free.push(index);
            freed += 1;
        }
        add(&COUNTS.values_reclaimed, freed as u64);
        freed
    }
}

/// The values of a dictionary, locked against changes.
pub struct LockedValues<'a>(MutexGuard<'a, Entries>);

impl LockedValues<'_> {
    /// The value of a reference; `None` if it has been reclaimed.
    pub fn get(&self, reference: ValueRef) -> Option<&str> {
        let entry = self.0.entries.get(usize::from(reference.index()))?;
        entry.text.as_deref().filter(|_| entry.generation == reference.generation())
    }
}

/// A set of entries' indices.
#[derive(Debug)]
pub struct Indices(Box<[u64; MAX_VALUES / 64]>);

impl Default for Indices {
    fn default() -> Self {
        Self(Box::new([0; MAX_VALUES / 64]))
    }
}

impl Indices {
    /// Adds the entry of a reference, of any generation.
    pub fn add(&mut self, reference: ValueRef) {
        if reference != ValueRef::NONE {
            self.0[usize::from(reference.index()) / 64] |= 1 << (reference.index() % 64);
        }
    }

    fn contains(&self, index: u16) -> bool {
        self.0[usize::from(index) / 64] >> (index % 64) & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_one_reference_and_a_reclaimed_one_means_nothing() {
        let dictionary = Dictionary::default();
        let first = dictionary.intern("/checkout").unwrap().reference;
        assert_eq!(dictionary.intern("/checkout").unwrap().reference, first);
        assert_ne!(first, ValueRef::NONE);
        assert_eq!(dictionary.values().get(first), Some("/checkout"));
        assert_eq!(dictionary.values().get(ValueRef::NONE), None);
        assert_eq!(dictionary.values().get(ValueRef::new(first.index(), 2)), None);
        dictionary.begin_epoch();
        assert_eq!(dictionary.sweep(&Indices::default()), 1);
        assert_eq!(dictionary.values().get(first), None);
        let other = dictionary.intern("/cart").unwrap().reference;
        assert_eq!(other.index(), first.index(), "the entry is used again");
        assert_eq!(dictionary.values().get(first), None, "and the old reference does not mean the new value");
    }

    #[test]
    fn values_referred_to_or_requested_in_the_epoch_stay() {
        let dictionary = Dictionary::default();
        let referred = dictionary.intern("referred").unwrap().reference;
        let asked = dictionary.intern("asked").unwrap().reference;
        let neither = dictionary.intern("neither").unwrap().reference;
        dictionary.begin_epoch();
        assert_eq!(dictionary.published().epoch.load(Ordering::Relaxed), 1);
        assert_eq!(dictionary.intern("asked").unwrap().epoch, 1);
        let mut indices = Indices::default();
        // A stale reference keeps its entry from being reused as well.
        indices.add(ValueRef::new(referred.index(), 9));
        indices.add(ValueRef::NONE);
        assert_eq!(dictionary.sweep(&indices), 1);
        let values = dictionary.values();
        assert_eq!(
            [referred, asked, neither].map(|reference| values.get(reference)),
            [Some("referred"), Some("asked"), None]
        );
    }

    #[test]
    fn the_dictionary_is_bounded_and_reports_crowding() {
        let dictionary = Dictionary::default();
        let text = |n: usize| format!("value {n}");
        for n in 0..MAX_VALUES {
            let interned = dictionary.intern(&text(n)).unwrap();
            let is_crowded = n >= MAX_VALUES / 4 * 3 && (n + 1) % VALUES_PER_WARNING == 0;
            assert_eq!(interned.is_crowded, is_crowded, "{n}");
        }
        assert_eq!(dictionary.intern("one more"), Err(Full));
        assert!(dictionary.intern(&text(17)).is_ok(), "a known value needs no room");
        assert_eq!(dictionary.used(), MAX_VALUES);
        dictionary.begin_epoch();
        dictionary.sweep(&Indices::default());
        assert!(dictionary.intern("one more").is_ok());
        assert_eq!(dictionary.used(), 1);
    }

    #[test]
    fn generations_pass_over_zero() {
        let dictionary = Dictionary::default();
        for _ in 0..70_000 {
            let reference = dictionary.intern("x").unwrap().reference;
            assert_ne!(reference.generation(), 0);
            dictionary.begin_epoch();
            dictionary.sweep(&Indices::default());
        }
    }
}

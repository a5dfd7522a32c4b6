//! Names of Java threads by their lives: noted at a thread's start and at each renaming.
//!
//! A thread that is renamed begins another life, if it has been sampled under its previous name. So each
//! sample has the name that the thread had at that time, and a pool that renames its threads for each task
//! costs no more lives than there are samples.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use otlpprof_core::thread::ThreadRecord;
use otlpprof_sampling::threads::next_incarnation;

/// The label of a Java thread in profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ThreadLabel {
    pub(super) name: String,
    /// `Thread.threadId()`.
    pub(super) id: i64,
}

/// The number of locks that guard the names, since threads rename themselves concurrently.
const SHARDS: usize = 64;
/// The most names that one of the locks guards. Further names are not stored.
const MOST_OF_SHARD: usize = 4_096;

/// Labels by incarnation.
pub(super) struct ThreadNames([Mutex<BTreeMap<u32, NamedIncarnation>>; SHARDS]);

#[derive(Clone, Debug)]
struct NamedIncarnation {
    label: ThreadLabel,
    /// Whether the life was over when an interval ended. Its samples have been drained by the end of the next
    /// interval.
    is_over: bool,
    /// A different name that the VM had for the life at an interval's end. If the VM still has it at the next
    /// interval's end, the thread was renamed unnoticed, and the difference was not just a renaming in
    /// progress.
    other_name: Option<String>,
}

/// The names of this process's threads.
pub(super) static THREAD_NAMES: ThreadNames = ThreadNames([const { Mutex::new(BTreeMap::new()) }; SHARDS]);

impl ThreadNames {
    fn shard(&self, incarnation: u32) -> &Mutex<BTreeMap<u32, NamedIncarnation>> {
        &self.0[incarnation as usize % SHARDS]
    }

    /// Sets the name of a life. Returns `false` if there is no room for it.
    pub(super) fn insert(&self, incarnation: u32, label: ThreadLabel) -> bool {
        let mut shard = self.shard(incarnation).lock();
        let has_room = shard.len() < MOST_OF_SHARD || shard.contains_key(&incarnation);
        if has_room {
            shard.insert(incarnation, NamedIncarnation { label, is_over: false, other_name: None });
        }
        has_room
    }

    /// Handles the renaming of the record's Java thread.
    pub(super) fn renamed(&self, record: &ThreadRecord, label: ThreadLabel) {
        let present = record.java_incarnation.load(Ordering::Relaxed);
        if record.sampled_incarnation.load(Ordering::Relaxed) != present {
            self.insert(present, label);
            return;
        }
        let next = next_incarnation();
        // The name is stored first, since a sample of the new life may be taken at any time.
        if self.insert(next, label) {
            record.java_incarnation.store(next, Ordering::Release);
        }
    }

    /// Compares the VM's name for a thread's current life with the stored one, when an interval ends.
    pub(super) fn compare(&self, incarnation: u32, name: &str) {
        if let Some(known) = self.shard(incarnation).lock().get_mut(&incarnation) {
            if known.label.name == name {
                known.other_name = None;
            } else if known.other_name.as_deref() == Some(name) {
                name.clone_into(&mut known.label.name);
                known.other_name = None;
            } else {
                known.other_name = Some(name.to_owned());
            }
        }
    }

    /// Adds all known labels to `labels`.
    pub(super) fn put_into(&self, labels: &mut HashMap<u32, ThreadLabel>) {
        for shard in &self.0 {
            labels
                .extend(shard.lock().iter().map(|(incarnation, known)| (*incarnation, known.label.clone())));
        }
    }

    /// Forgets the lives that were already over before this interval. `present` are the threads' current
    /// lives.
    pub(super) fn forget_all_but(&self, present: &HashSet<u32>) {
        for shard in &self.0 {
            shard.lock().retain(|incarnation, known| {
                let was_over = std::mem::replace(&mut known.is_over, !present.contains(incarnation));
                !(was_over && known.is_over)
            });
        }
    }

    /// Forgets all names.
    pub(super) fn clear(&self) {
        self.0.iter().for_each(|shard| shard.lock().clear());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> ThreadNames {
        ThreadNames([const { Mutex::new(BTreeMap::new()) }; SHARDS])
    }

    fn label(name: &str) -> ThreadLabel {
        ThreadLabel { name: name.to_owned(), id: 1 }
    }

    fn all(names: &ThreadNames) -> Vec<(u32, String)> {
        let mut labels = HashMap::new();
        names.put_into(&mut labels);
        let mut all: Vec<_> = labels.into_iter().map(|(life, label)| (life, label.name)).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_sampled_incarnation_keeps_its_name_and_a_new_one_begins() {
        let (names, record, first) = (names(), ThreadRecord::default(), next_incarnation());
        record.java_incarnation.store(first, Ordering::Relaxed);
        for name in ["a", "b"] {
            names.renamed(&record, label(name));
        }
        assert_eq!(all(&names), [(first, "b".to_owned())], "nobody has seen the first");
        record.sampled_incarnation.store(first, Ordering::Relaxed);
        names.renamed(&record, label("c"));
        let present = record.java_incarnation.load(Ordering::Relaxed);
        assert_ne!(present, first);
        let labels: HashMap<u32, String> = all(&names).into_iter().collect();
        assert_eq!((labels[&first].as_str(), labels[&present].as_str()), ("b", "c"));
    }

    #[test]
    fn an_ended_incarnation_is_forgotten_at_the_end_of_the_next_interval() {
        let names = names();
        names.insert(1, label("a"));
        names.insert(2, label("b"));
        for (end, count) in [(1, 2), (2, 1), (3, 1)] {
            names.forget_all_but(&HashSet::from([2]));
            assert_eq!(all(&names).len(), count, "{end}");
        }
    }

    #[test]
    fn a_name_that_another_thread_has_given_is_believed_at_the_second_interval_s_end() {
        let names = names();
        names.insert(1, label("a"));
        names.compare(1, "b");
        names.compare(1, "a");
        names.compare(1, "b");
        assert_eq!(all(&names), [(1, "a".to_owned())]);
        names.compare(1, "b");
        assert_eq!(all(&names), [(1, "b".to_owned())]);
    }

    #[test]
    fn names_take_no_more_than_their_room() {
        let names = names();
        let kept = (0..300_000).filter(|life| names.insert(*life, label(""))).count();
        assert_eq!(kept, SHARDS * MOST_OF_SHARD);
        assert!(names.insert(0, label("a")), "one that is known may be renamed");
    }
}

//! Values of one measure, summed by a key. States of a snapshot measure are not added up: of each process the
//! last one counts.

use std::collections::HashMap;
use std::hash::Hash;
use std::hint::black_box;

use foldhash::fast::RandomState as FastState;

use super::last_states::LastStates;
use super::profile_context::ProfileContext;

/// The number of values from which on they are prepared.
const MANY: usize = 1 << 13;

/// Values by key.
pub type Values<K> = HashMap<K, i64, FastState>;

/// Sums by key.
#[derive(Debug)]
pub struct Summed<K> {
    added: Values<K>,
    /// Of a snapshot measure: by process, the values of the last state.
    states: LastStates<u64, Values<K>>,
}

impl<K> Default for Summed<K> {
    fn default() -> Self {
        Self { added: Values::default(), states: LastStates::default() }
    }
}

impl<K: Copy + Eq + Hash> Summed<K> {
    /// Begins a profile. Returns whether its values count: those of a state do not if a later state of the
    /// process is known.
    pub fn begin(&mut self, profile: &ProfileContext<'_>) -> bool {
        !profile.is_snapshot || self.states.at(profile.process, profile.start_ns).is_some()
    }

    /// Adds a value of a profile.
    pub fn add(&mut self, profile: &ProfileContext<'_>, key: K, value: i64) {
        let values = match profile.is_snapshot {
            true => match self.states.at(profile.process, profile.start_ns) {
                Some(values) => values,
                None => return,
            },
            false => &mut self.added,
        };
        add(values, key, value);
    }

    /// Prepares a call of [`Summed::add`] with this key. Preparations for several keys overlap.
    pub fn prepare(&self, key: K) {
        prepare(&self.added, &key);
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.added.len() + self.states.contents().map(HashMap::len).sum::<usize>()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values. A key occurs once for each process if the measure is a snapshot.
    pub fn values(&self) -> impl Iterator<Item = (K, i64)> {
        let all = std::iter::once(&self.added).chain(self.states.contents()).flatten();
        all.map(|(&key, &value)| (key, value))
    }

    /// Gives each key a new name. The values of keys that get the same name are added up.
    pub fn rename(&mut self, name: impl Fn(K) -> K) {
        for values in std::iter::once(&mut self.added).chain(self.states.contents_mut()) {
            // Most keys keep their names.
            let renamed: Vec<_> = values.extract_if(|&key, _| name(key) != key).collect();
            for (key, value) in renamed {
                add(values, name(key), value);
            }
        }
    }

    /// The sum of each key, over all processes.
    pub fn into_sums(self) -> Values<K> {
        let Self { mut added, states } = self;
        for (key, value) in states.into_states().flat_map(|(.., values)| values) {
            add(&mut added, key, value);
        }
        added
    }
}

/// Loads the value of a key, if the values are so many that they are not in the processor's caches.
pub(super) fn prepare<K: Eq + Hash>(values: &Values<K>, key: &K) {
    if values.len() >= MANY {
        black_box(values.get(key));
    }
}

/// Adds a value to the sum of a key.
fn add<K: Eq + Hash>(values: &mut Values<K>, key: K, value: i64) {
    let sum = values.entry(key).or_default();
    *sum = sum.saturating_add(value);
}

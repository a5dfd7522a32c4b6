//! The last state of each of several things, such as the live heaps of processes.

use std::collections::HashMap;
use std::hash::Hash;

/// For each key, the time of the last state and its contents.
#[derive(Debug)]
pub struct LastStates<K, V>(HashMap<K, (u64, V)>);

impl<K, V> Default for LastStates<K, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash, V: Default> LastStates<K, V> {
    /// The contents of the state at this time, which replaces an earlier one; `None` if a later one is known.
    pub fn at(&mut self, key: K, unix_ns: u64) -> Option<&mut V> {
        let (known_ns, contents) = self.0.entry(key).or_default();
        if unix_ns > *known_ns {
            (*known_ns, *contents) = (unix_ns, V::default());
        }
        (unix_ns == *known_ns).then_some(contents)
    }

    /// The contents of the last states.
    pub fn contents(&self) -> impl Iterator<Item = &V> {
        self.0.values().map(|(_, contents)| contents)
    }

    /// The contents of the last states, to change.
    pub fn contents_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.values_mut().map(|(_, contents)| contents)
    }

    /// The keys, times and contents of the last states.
    pub fn into_states(self) -> impl Iterator<Item = (K, u64, V)> {
        self.0.into_iter().map(|(key, (unix_ns, contents))| (key, unix_ns, contents))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_state_replaces_an_earlier_one_and_not_the_other_way_round() {
        let mut states = LastStates::<&str, i64>::default();
        *states.at("a", 5).unwrap() += 1;
        *states.at("a", 7).unwrap() += 10;
        assert!(states.at("a", 6).is_none());
        *states.at("a", 7).unwrap() += 100;
        *states.at("b", 0).unwrap() += 1_000;
        assert_eq!(states.contents().sum::<i64>(), 1_110);
    }
}

//! The labels of a page's rows: keys, their values, and the sets that occur.

use std::collections::HashMap;

use otlpprof_otlp::encoded::EncodedTables;

use crate::selection::text_of;
use crate::thread_role::ThreadRole;

/// A set of labels, by its number. Set 0 has no labels.
pub type LabelSetId = u32;

/// The role of a thread, and labels, each by the number of its key, with the number of its value: 0 is no
/// value. The role outlasts the threads' names where they are dropped.
type Set = (ThreadRole, Box<[u32]>);

/// Labels and sets of them, interned.
#[derive(Debug)]
pub struct Labels {
    most_values: usize,
    /// The key that is kept, however many values it has.
    pub kept: Option<&'static str>,
    keys: Vec<Key>,
    sets: Vec<Set>,
    set_ids: HashMap<Set, LabelSetId>,
}

/// A key with its values.
#[derive(Debug)]
pub struct Key {
    /// The key.
    pub name: String,
    /// The values, each with the number of its place, from 1.
    pub values: Vec<String>,
    numbers: HashMap<String, u32>,
    /// Whether the key has more values than are kept. Then none is.
    pub is_dropped: bool,
}

impl Labels {
    /// No labels. Keys with more than `most_values` values are dropped.
    pub fn new(most_values: usize) -> Self {
        let none = Set::default();
        Self {
            most_values,
            kept: None,
            keys: Vec::new(),
            sets: vec![none.clone()],
            set_ids: HashMap::from([(none, 0)]),
        }
    }

    /// The keys, dropped ones included.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The number of sets.
    pub fn set_count(&self) -> usize {
        self.sets.len()
    }

    /// The value number of a key in a set; 0 if the set has no such label, or if the key was dropped.
    pub fn value(&self, set: usize, key: usize) -> u32 {
        let is_dropped = self.keys[key].is_dropped;
        self.sets[set].1.get(key).copied().filter(|_| !is_dropped).unwrap_or(0)
    }

    /// The role of the threads of a set.
    pub fn role(&self, set: usize) -> ThreadRole {
        self.sets[set].0
    }

    /// The set of a sample's attributes and of attributes of its resource, on a thread of this role. Where
    /// both have a key, the sample's value counts.
    pub fn set_of<'r>(
        &mut self,
        tables: EncodedTables<'_>,
        of_resource: impl Iterator<Item = &'r (String, String)>,
        of_sample: &[i32],
        role: ThreadRole,
    ) -> LabelSetId {
        let mut set = vec![0; self.keys.len()];
        for (name, value) in of_resource {
            self.enter(&mut set, name, value);
        }
        for (name, value) in tables.attributes(of_sample) {
            self.enter(&mut set, name, &text_of(tables, value.as_ref()));
        }
        while set.last() == Some(&0) {
            set.pop();
        }
        let set: Set = (role, set.into());
        if let Some(&known) = self.set_ids.get(&set) {
            return known;
        }
        // SANITY: 2^32 sets do not fit into memory.
        let id = self.sets.len() as LabelSetId;
        self.sets.push(set.clone());
        self.set_ids.insert(set, id);
        id
    }

    /// Enters a label in a set. An empty value is no label.
    fn enter(&mut self, set: &mut Vec<u32>, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        let key = self.key(name);
        set.resize(self.keys.len(), 0);
        let most_values = if self.kept == Some(name) { usize::MAX } else { self.most_values };
        set[key] = self.keys[key].number(value, most_values);
    }

    fn key(&mut self, name: &str) -> usize {
        let known = self.keys.iter().position(|key| key.name == name);
        known.unwrap_or_else(|| {
            let (values, numbers) = Default::default();
            self.keys.push(Key { name: name.to_owned(), values, numbers, is_dropped: false });
            self.keys.len() - 1
        })
    }
}

impl Key {
    /// The number of a value; 0 once the key is dropped.
    fn number(&mut self, value: &str, most_values: usize) -> u32 {
        if self.is_dropped {
            return 0;
        }
        if let Some(&known) = self.numbers.get(value) {
            return known;
        }
        if self.values.len() >= most_values {
            self.is_dropped = true;
            (self.values, self.numbers) = Default::default();
            return 0;
        }
        self.values.push(value.to_owned());
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.numbers.insert(value.to_owned(), number);
        number
    }
}

//! The resources of the profiles, which describe processes.

use std::collections::{BTreeMap, HashMap};

use crate::profile_context::ProfileContext;

/// Processes by number, with their attributes.
#[derive(Debug, Default)]
pub struct Processes {
    numbers: HashMap<u64, u32>,
    attributes: Vec<BTreeMap<String, String>>,
}

impl Processes {
    /// The number of a profile's process.
    pub fn of(&mut self, profile: &ProfileContext<'_>) -> u32 {
        if let Some(&known) = self.numbers.get(&profile.process) {
            return known;
        }
        let with_text = profile.resource.iter().filter(|(_, text)| !text.is_empty());
        self.attributes.push(with_text.cloned().collect());
        let number = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        self.numbers.insert(profile.process, number);
        number
    }

    /// The number of processes.
    pub fn len(&self) -> usize {
        self.attributes.len()
    }

    /// Whether there is no process.
    pub fn is_empty(&self) -> bool {
        self.attributes.is_empty()
    }

    /// The value of a process's attribute; empty if there is none.
    pub fn attribute(&self, process: u32, key: &str) -> &str {
        let of_process = self.attributes.get(process as usize);
        of_process.and_then(|attributes| attributes.get(key)).map_or("", String::as_str)
    }

    /// The attributes that all processes share.
    pub fn shared(&self) -> impl Iterator<Item = (&str, &str)> {
        let first = self.attributes.first().into_iter().flatten();
        let pairs = first.filter(|(key, value)| self.is_shared(key, value));
        pairs.map(|(key, value)| (&**key, &**value))
    }

    /// The attributes of each process that other processes do not share.
    pub fn differing(&self) -> impl Iterator<Item = Vec<(&str, &str)>> {
        self.attributes.iter().map(|of_process| {
            let pairs = of_process.iter().filter(|(key, value)| !self.is_shared(key, value));
            pairs.map(|(key, value)| (&**key, &**value)).collect()
        })
    }

    fn is_shared(&self, key: &str, value: &str) -> bool {
        self.attributes.iter().all(|of_process| of_process.get(key).is_some_and(|other| other == value))
    }
}

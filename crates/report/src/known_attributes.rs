//! The attributes of all samples, profiles and resources, compared with the wanted ones: so that a misspelt
//! key or value can be told from one that no selected sample has.

use std::collections::{BTreeSet, HashSet};
use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_otlp::encoded_profiles::EncodedScope;
use otlpprof_otlp::lookup::DictionaryTables as _;

use super::selection::text_of;

/// The most texts that are named instead of a missing one.
const MOST_NAMED: usize = 10;
/// The most different texts that are counted, which bounds the memory.
const MOST_COUNTED: usize = 1 << 20;

/// A wanted text, and those among the texts that exist which are nearest to it in spelling.
#[derive(Debug)]
pub struct WantedText {
    text: String,
    exists: bool,
    /// Each with its distance, the nearest first.
    nearest: BTreeSet<(u32, String)>,
    hasher: RandomState,
    /// The hashes of the texts that exist.
    known: HashSet<u64, RandomState>,
}

impl WantedText {
    fn new(text: &str) -> Self {
        let (nearest, hasher, known) = Default::default();
        Self { text: text.to_owned(), exists: false, nearest, hasher, known }
    }

    fn note(&mut self, existing: &str) {
        self.exists |= existing == self.text;
        if existing.is_empty() || self.known.len() >= MOST_COUNTED {
            return;
        }
        if self.known.insert(self.hasher.hash_one(existing)) {
            self.nearest.insert((distance(&self.text, existing), existing.to_owned()));
            if self.nearest.len() > MOST_NAMED {
                self.nearest.pop_last();
            }
        }
    }

    /// The texts that exist, in words, the nearest one first.
    pub fn existing(&self) -> String {
        if self.nearest.is_empty() {
            return "none".to_owned();
        }
        let names: Vec<_> = self.nearest.iter().map(|(_, text)| &**text).collect();
        let more = match self.known.len() - names.len() {
            0 => String::new(),
            _ if self.known.len() >= MOST_COUNTED => format!(" and more than {MOST_COUNTED} more"),
            more => format!(" and {more} more"),
        };
        format!("{}{more}", names.join(", "))
    }
}

/// The distance of two texts in spelling: least where one is a part of the other.
fn distance(wanted: &str, existing: &str) -> u32 {
    let (wanted, existing) = (wanted.to_lowercase(), existing.to_lowercase());
    let is_part = !wanted.is_empty() && existing.contains(&wanted) || wanted.contains(&existing);
    let difference = 1.0 - strsim::jaro_winkler(&wanted, &existing);
    // The similarity is between 0 and 1.
    (difference * 1e6) as u32 + if is_part { 0 } else { 1_000_000 }
}

/// A wanted attribute.
#[derive(Debug)]
pub struct WantedAttribute {
    key: WantedText,
    /// `None` if any value will do.
    value: Option<WantedText>,
}

/// The part of a wanted attribute that no sample, profile or resource has.
#[derive(Clone, Copy, Debug)]
pub enum Missing<'w> {
    /// The key.
    Key(&'w WantedText),
    /// The value, of a key that exists.
    Value(&'w WantedText),
}

impl WantedAttribute {
    /// An attribute of this key, with this value or with any.
    pub fn new(key: &str, value: Option<&str>) -> Self {
        Self { key: WantedText::new(key), value: value.map(WantedText::new) }
    }

    /// The missing part; `None` if the attribute exists.
    pub fn missing(&self) -> Option<Missing<'_>> {
        if !self.key.exists {
            return Some(Missing::Key(&self.key));
        }
        self.value.as_ref().filter(|value| !value.exists).map(Missing::Value)
    }

    fn note(&mut self, key: &str, value: &str) {
        self.key.note(key);
        if let Some(wanted) = self.value.as_mut().filter(|_| key == self.key.text) {
            wanted.note(value);
        }
    }
}

/// Compares all attributes of a message with the wanted ones.
pub fn compare(message: &EncodedMessage, wanted: &mut [WantedAttribute]) {
    let tables = message.tables();
    let mut note = |key: &str, value: &str| wanted.iter_mut().for_each(|wanted| wanted.note(key, value));
    // Many samples refer to one attribute.
    let mut referred: HashSet<i32, RandomState> = HashSet::default();
    for resource in message.resources() {
        for attribute in resource.resource().unwrap_or_default().attributes {
            let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
            note(tables.key(&attribute), &text_of(tables, value));
        }
        for profile in resource.scopes().flat_map(EncodedScope::profiles) {
            referred.extend(profile.header().attribute_indices);
            profile.samples().for_each(|sample| referred.extend(sample.attribute_indices));
        }
    }
    let referred: Vec<_> = referred.into_iter().collect();
    tables.attributes(&referred).for_each(|(key, value)| note(key, &text_of(tables, value.as_ref())));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn existing(wanted: &str, texts: &[&str]) -> String {
        let mut wanted = WantedText::new(wanted);
        texts.iter().for_each(|text| wanted.note(text));
        wanted.existing()
    }

    #[test]
    fn the_nearest_spelling_is_first() {
        assert_eq!(existing("tenent", &["thread.name", "tenant", "host"]), "tenant, thread.name, host");
        assert_eq!(existing("endpoint", &["endless", "trace_root.endpoint"]), "trace_root.endpoint, endless");
        assert_eq!(existing("MAIN", &["mail", "main", "main"]), "main, mail");
        assert_eq!(existing("x", &[]), "none");
    }

    #[test]
    fn few_of_many_are_named() {
        let names: Vec<_> = (0..30).map(|at| format!("worker-{at}")).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let existing = existing("worker_7", &names);
        assert!(existing.starts_with("worker-7, ") && existing.ends_with(" and 20 more"), "{existing}");
    }
}

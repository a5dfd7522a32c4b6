//! What validation found: counted by rule, the first few with their places.

use std::collections::BTreeMap;
use std::fmt;

use super::super::read_error::BytePlace;
use super::rules::{RuleId, Severity};

/// Where in a file something was found. Messages, resources, profiles and samples are counted from 0; profiles
/// are counted through all resources and scopes of their message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The whole file.
    File,
    /// A byte of the file.
    Byte(BytePlace),
    /// A message.
    Message(usize),
    /// A field of a message, by its path.
    Field(usize, String),
    /// A message's part.
    Part(usize, Part),
}

/// A part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// An element of a dictionary table.
    Entry(&'static str, usize),
    /// A resource.
    Resource(usize),
    /// A scope, of a resource.
    Scope(usize, usize),
    /// A profile.
    Profile(usize),
    /// A sample, of a profile.
    Sample(usize, usize),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry(table, index) => write!(f, "{table}[{index}]"),
            Self::Resource(resource) => write!(f, "resource {resource}"),
            Self::Scope(resource, scope) => write!(f, "resource {resource}, scope {scope}"),
            Self::Profile(profile) => write!(f, "profile {profile}"),
            Self::Sample(profile, sample) => write!(f, "profile {profile}, sample {sample}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => write!(f, "file"),
            Self::Byte(place) => write!(f, "{place}"),
            Self::Message(message) => write!(f, "message {message}"),
            Self::Field(message, path) => write!(f, "message {message}, {path}"),
            Self::Part(message, part) => write!(f, "message {message}, {part}"),
        }
    }
}

/// One breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where.
    pub place: Place,
    /// What is there, in one line; empty where the rule says it all.
    pub detail: String,
}

/// The breaches of one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breaches {
    /// The first of them.
    pub first: Vec<Finding>,
    /// How many there are.
    pub count: u64,
}

/// What was found in a file. Its size is bounded by the number of rules.
#[derive(Clone, Debug)]
pub struct Report {
    breaches: BTreeMap<RuleId, Breaches>,
    keep: usize,
    /// Messages read.
    pub messages: u64,
    /// Profiles in them.
    pub profiles: u64,
    /// Samples in those.
    pub samples: u64,
}

impl Report {
    /// An empty report that will keep this many findings of each rule.
    pub fn new(keep: usize) -> Self {
        Self { breaches: BTreeMap::new(), keep, messages: 0, profiles: 0, samples: 0 }
    }

    /// Adds a breach. `detail` is only called if it is kept.
    pub(super) fn add(
        &mut self,
        rule: RuleId,
        place: impl FnOnce() -> Place,
        detail: impl FnOnce() -> String,
    ) {
        let breaches = self.breaches.entry(rule).or_default();
        breaches.count += 1;
        if breaches.first.len() < self.keep {
            breaches.first.push(Finding { place: place(), detail: detail() });
        }
    }

    /// Adds breaches that nothing more is known of.
    pub(super) fn add_uncounted(&mut self, rule: RuleId, more: u64) {
        if more > 0 {
            self.breaches.entry(rule).or_default().count += more;
        }
    }

    /// The rules that were broken, in the order of the table.
    pub fn breaches(&self) -> impl Iterator<Item = (RuleId, &Breaches)> {
        self.breaches.iter().map(|(&rule, breaches)| (rule, breaches))
    }

    /// The breaches of a severity.
    pub fn count(&self, severity: Severity) -> u64 {
        let of_severity = self.breaches.iter().filter(|(rule, _)| rule.rule().severity == severity);
        of_severity.map(|(_, breaches)| breaches.count).sum()
    }
}

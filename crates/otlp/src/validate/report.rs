//! The findings of a validation: counted by rule, with the places of the first few.

use std::collections::BTreeMap;
use std::fmt;

use super::super::read_error::BytePlace;
use super::rules::{RuleId, Severity};

/// A place in a file. Messages, resources, profiles and samples are counted from 0. Profiles are counted over
/// all resources and scopes of their message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindingPlace {
    /// The whole file.
    File,
    /// A byte of the file.
    Byte(BytePlace),
    /// A message.
    Message(usize),
    /// A field of a message, by its path.
    Field(usize, String),
    /// A part of a message.
    Part(usize, Part),
}

/// A part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// An element of a dictionary table.
    Entry(&'static str, usize),
    /// A resource.
    Resource(usize),
    /// A scope: the resource's index, and the scope's index in it.
    Scope(usize, usize),
    /// A profile.
    Profile(usize),
    /// A sample: the profile's index, and the sample's index in it.
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

impl fmt::Display for FindingPlace {
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
    /// The place of the breach.
    pub place: FindingPlace,
    /// The offending value, in one line; empty if the rule's text suffices.
    pub detail: String,
}

/// The breaches of one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breaches {
    /// The first breaches.
    pub first: Vec<Finding>,
    /// The number of breaches.
    pub count: u64,
}

/// The findings in a file. The number of rules bounds the report's size.
#[derive(Clone, Debug)]
pub struct Report {
    breaches: BTreeMap<RuleId, Breaches>,
    keep: usize,
    /// The number of messages read.
    pub messages: u64,
    /// The number of profiles in these messages.
    pub profiles: u64,
    /// The number of samples in these profiles.
    pub samples: u64,
}

impl Report {
    /// An empty report that will keep at most this many findings of each rule.
    pub fn new(keep: usize) -> Self {
        Self { breaches: BTreeMap::new(), keep, messages: 0, profiles: 0, samples: 0 }
    }

    /// Adds a breach. `place` and `detail` are called only if the breach is kept.
    pub(super) fn add(
        &mut self,
        rule: RuleId,
        place: impl FnOnce() -> FindingPlace,
        detail: impl FnOnce() -> String,
    ) {
        let breaches = self.breaches.entry(rule).or_default();
        breaches.count += 1;
        if breaches.first.len() < self.keep {
            breaches.first.push(Finding { place: place(), detail: detail() });
        }
    }

    /// Adds breaches of which only the number is known.
    pub(super) fn add_unplaced(&mut self, rule: RuleId, more: u64) {
        if more > 0 {
            self.breaches.entry(rule).or_default().count += more;
        }
    }

    /// The broken rules, in the order of [`super::rules::RULES`].
    pub fn breaches(&self) -> impl Iterator<Item = (RuleId, &Breaches)> {
        self.breaches.iter().map(|(&rule, breaches)| (rule, breaches))
    }

    /// The number of breaches with this severity.
    pub fn count(&self, severity: Severity) -> u64 {
        let of_severity = self.breaches.iter().filter(|(rule, _)| rule.rule().severity == severity);
        of_severity.map(|(_, breaches)| breaches.count).sum()
    }
}

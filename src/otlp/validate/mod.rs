//! Validation: every rule of OTLP profiles that a file can break.
//!
//! In: messages as `otlp::read` delivers them. Out: a [`Report`] of breaches, by rule and with their places.
//! [`rules::RULES`] is the list of rules. Used by the command line and by tests of everything that writes.

mod attributes;
mod dictionary;
mod encoding;
mod profiles;
mod references;
pub mod report;
pub mod rules;

use super::lookup::Lookup;
use super::read::{self, Limits, Message};
use super::read_error::ReadError;
use super::wire::ProfilesData;
use report::{Part, Place, Report};
use rules::RuleId;

/// Validates a file. The report keeps the first `keep` breaches of each rule.
pub fn validate(bytes: &[u8], keep: usize) -> Report {
    validate_within(bytes, keep, Limits::default())
}

/// Validates a file within limits of the caller's.
pub fn validate_within(bytes: &[u8], keep: usize, limits: Limits) -> Report {
    let mut validator = Validator::new(keep);
    for message in read::read_within(bytes, limits) {
        match message {
            Ok(message) => validator.message(&message),
            Err(error) => validator.unreadable(&error),
        }
    }
    validator.finish()
}

/// Validates the messages of one file, as they are read.
#[derive(Debug)]
pub struct Validator {
    report: Report,
    profile_ids: profiles::ProfileIds,
}

impl Validator {
    /// A validator whose report keeps the first `keep` breaches of each rule.
    pub fn new(keep: usize) -> Self {
        Self { report: Report::new(keep), profile_ids: profiles::ProfileIds::default() }
    }

    /// Validates the next message.
    pub fn message(&mut self, message: &Message) {
        let profiles = || message.data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
        let profiles = || profiles().flat_map(|scope| &scope.profiles);
        self.report.messages += 1;
        self.report.profiles += profiles().count() as u64;
        self.report.samples += profiles().map(|profile| profile.samples.len() as u64).sum::<u64>();

        encoding::check(message, &mut self.report);
        let mut check = Check {
            report: &mut self.report,
            message: message.index,
            data: &message.data,
            tables: Lookup::new(&message.data),
        };
        dictionary::check(&mut check);
        attributes::check(&mut check);
        profiles::check(&mut check, &mut self.profile_ids);
    }

    /// Notes why no further message could be read.
    pub fn unreadable(&mut self, error: &ReadError) {
        encoding::unreadable(error, &mut self.report);
    }

    /// What was found.
    pub fn finish(mut self) -> Report {
        if self.report.messages == 0 && self.report.breaches().next().is_none() {
            self.report.add(RuleId::FileEmpty, || Place::File, || "no message".into());
        }
        self.report
    }
}

/// One message being validated.
struct Check<'a> {
    report: &'a mut Report,
    message: usize,
    data: &'a ProfilesData,
    tables: Lookup<'a>,
}

impl Check<'_> {
    /// Reports a breach in a part of the message.
    fn breach(&mut self, rule: RuleId, part: Part, detail: impl FnOnce() -> String) {
        let message = self.message;
        self.report.add(rule, || Place::Part(message, part), detail);
    }
}

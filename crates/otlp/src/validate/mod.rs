//! Validates a file against every rule of OTLP profiles.
//!
//! In: messages as `otlp::reader` delivers them. Out: a [`Report`] of breaches, by rule and with their
//! places. [`rules::RULES`] lists the rules. The command line uses this module, and so do the tests of all
//! code that writes messages.
//!
//! | Module | Duty |
//! |---|---|
//! | [`rules`] | the rules, each with its name, severity, reason and source |
//! | [`report`] | the findings: counted by rule, with the places of the first few |
//! | `check` | one message while it is validated |
//! | `encoding` | the check of the bytes: the end of reading, and oddities |
//! | `references` | every index in a message |
//! | `dictionary` | the check of the dictionary's tables and their elements |
//! | `profiles` | the check of profiles and their samples |
//! | `attributes` | the check of attributes: keys, types, semantic conventions |
//! | `repeated` | repeated elements of a long sequence, in little memory |

mod attributes;
mod check;
mod dictionary;
mod encoding;
mod profiles;
mod references;
mod repeated;
pub mod report;
pub mod rules;

use std::io::{self, Read};

use super::encoded::EncodedMessage;
use super::encoded_profiles::{EncodedResource, EncodedScope};
use super::read_error::ReadError;
use super::reader::{Failure, Limits, Reader};
use check::Check;
use report::{FindingPlace, Report};
use rules::RuleId;

/// Validates a file. The report keeps the first `keep` breaches of each rule.
pub fn validate(bytes: &[u8], keep: usize) -> Report {
    validate_within(bytes, keep, Limits::default())
}

/// Validates a file within the caller's limits.
pub fn validate_within(bytes: &[u8], keep: usize, limits: Limits) -> Report {
    let mut validator = Validator::new(keep);
    let messages = Reader::within(bytes, limits);
    // SANITY: reading from memory never fails.
    let _ = messages.map_err(Failure::Io).and_then(|messages| validator.all(messages));
    validator.finish()
}

/// Validates a file as a stream. The report keeps the first `keep` breaches of each rule.
///
/// # Errors
/// If the file's bytes cannot be read.
pub fn validate_stream(from: impl Read, keep: usize) -> io::Result<Report> {
    let mut validator = Validator::new(keep);
    match validator.all(Reader::new(from)?) {
        Err(Failure::Io(error)) => Err(error),
        Ok(()) | Err(Failure::Read(_)) => Ok(validator.finish()),
    }
}

/// Validates the messages of one file while they are read.
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

    /// Validates all messages up to the first one that cannot be read, and reports that one.
    fn all(&mut self, messages: Reader<'_>) -> Result<(), Failure> {
        for message in messages {
            match message {
                Ok(message) => self.message(&message),
                Err(Failure::Read(error)) => self.unreadable(&error),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Validates the next message.
    pub fn message(&mut self, message: &EncodedMessage) {
        let profiles =
            || message.resources().flat_map(EncodedResource::scopes).flat_map(EncodedScope::profiles);
        self.report.messages += 1;
        self.report.profiles += profiles().count() as u64;
        self.report.samples += profiles().map(|profile| profile.sample_count() as u64).sum::<u64>();

        encoding::check(message, &mut self.report);
        let mut check = Check {
            report: &mut self.report,
            message: message.index,
            data: message,
            tables: message.tables(),
        };
        dictionary::check(&mut check);
        attributes::check(&mut check);
        profiles::check(&mut check, &mut self.profile_ids);
    }

    /// Reports why no further message could be read.
    pub fn unreadable(&mut self, error: &ReadError) {
        encoding::unreadable(error, &mut self.report);
    }

    /// The report of all messages so far.
    pub fn finish(mut self) -> Report {
        if self.report.messages == 0 && self.report.breaches().next().is_none() {
            self.report.add(RuleId::FileEmpty, || FindingPlace::File, || "no message".into());
        }
        self.report
    }
}

//! One message while it is validated. The checks of its parts share it.

use super::super::encoded::{EncodedMessage, EncodedTables};
use super::report::{FindingPlace, Part, Report};
use super::rules::RuleId;

/// One message being validated.
pub(super) struct Check<'a> {
    pub(super) report: &'a mut Report,
    pub(super) message: usize,
    pub(super) data: &'a EncodedMessage,
    pub(super) tables: EncodedTables<'a>,
}

impl Check<'_> {
    /// Reports a breach in a part of the message.
    pub(super) fn breach(&mut self, rule: RuleId, part: Part, detail: impl FnOnce() -> String) {
        let message = self.message;
        self.report.add(rule, || FindingPlace::Part(message, part), detail);
    }
}

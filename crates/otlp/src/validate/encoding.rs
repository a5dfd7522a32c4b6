//! Checks the observations of the reader: why it stopped, and oddities of the bytes.

use super::super::encoded::EncodedMessage;
use super::super::encoded_profiles::{EncodedResource, EncodedScope};
use super::super::framing::Form;
use super::super::read_error::{ErrorKind, NoteKind, ReadError};
use super::report::{FindingPlace, Report};
use super::rules::RuleId;

/// The most bytes of a request that a collector accepts, after decompression.
const HTTP_LIMIT: u64 = 20 << 20;

pub(super) fn check(message: &EncodedMessage, report: &mut Report) {
    let kinds = [
        (NoteKind::UnknownField, RuleId::UnknownField),
        (NoteKind::IntegerOverflow, RuleId::IntegerOverflow),
        (NoteKind::RepeatedSingular, RuleId::RepeatedSingular),
        (NoteKind::JsonUnknownKey, RuleId::JsonUnknownKey),
        (NoteKind::JsonSnakeCase, RuleId::JsonSnakeCase),
        (NoteKind::JsonDuplicateKey, RuleId::JsonDuplicateKey),
        (NoteKind::JsonInt64Number, RuleId::JsonInt64Number),
        (NoteKind::JsonBase64Id, RuleId::JsonBase64Id),
        (NoteKind::JsonBase64Form, RuleId::JsonBase64Form),
    ];
    for (kind, rule) in kinds {
        let mut kept = 0;
        for note in message.notes.first().iter().filter(|note| note.kind == kind) {
            kept += 1;
            let detail = || match message.form {
                Form::Json => String::new(),
                Form::Plain | Form::LengthPrefixed => format!("at {}", message.place(note.offset)),
            };
            report.add(rule, || FindingPlace::Field(message.index, note.path.clone()), detail);
        }
        report.add_unplaced(rule, message.notes.count(kind) - kept);
    }
    let place = || FindingPlace::Message(message.index);
    if message.size > HTTP_LIMIT {
        report.add(RuleId::MessageTooLarge, place, || format!("{} bytes", message.size));
    }
    let scopes = message.resources().flat_map(EncodedResource::scopes);
    if scopes.flat_map(EncodedScope::profiles).next().is_none() {
        report.add(RuleId::NoProfiles, place, String::new);
    }
}

pub(super) fn unreadable(error: &ReadError, report: &mut Report) {
    let rule = match error.kind {
        ErrorKind::UnknownFormat => RuleId::UnknownFormat,
        ErrorKind::GzipCorrupt => RuleId::GzipCorrupt,
        ErrorKind::TooLarge => RuleId::TooLarge,
        ErrorKind::FrameTruncated => RuleId::FrameTruncated,
        ErrorKind::WireMalformed => RuleId::WireMalformed,
        ErrorKind::WireType => RuleId::WireType,
        ErrorKind::WireUtf8 => RuleId::WireUtf8,
        ErrorKind::TooDeep => RuleId::TooDeep,
        ErrorKind::OldSampleLayout => RuleId::OldSampleLayout,
        ErrorKind::JsonMalformed => RuleId::JsonMalformed,
        ErrorKind::JsonValue => RuleId::JsonValue,
    };
    report.add(
        rule,
        || match &*error.path {
            "" => FindingPlace::Byte(error.place()),
            path => FindingPlace::Field(error.message, path.to_owned()),
        },
        || match &*error.path {
            "" => error.detail.clone(),
            _ => format!("{} ({})", error.detail, error.place()),
        },
    );
}

#[cfg(test)]
mod tests {
    use super::super::super::read_error::ReadError;
    use super::*;

    #[test]
    fn a_read_error_has_its_rule_of_the_same_name() {
        let kinds = [
            ErrorKind::UnknownFormat,
            ErrorKind::GzipCorrupt,
            ErrorKind::TooLarge,
            ErrorKind::FrameTruncated,
            ErrorKind::WireMalformed,
            ErrorKind::WireType,
            ErrorKind::WireUtf8,
            ErrorKind::TooDeep,
            ErrorKind::OldSampleLayout,
            ErrorKind::JsonMalformed,
            ErrorKind::JsonValue,
        ];
        for kind in kinds {
            let mut report = Report::new(1);
            unreadable(&ReadError::new(kind, 0, ""), &mut report);
            let (rule, _) = report.breaches().next().unwrap();
            assert_eq!(rule.rule().name, kind.name());
        }
    }
}

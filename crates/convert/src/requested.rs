//! Events that a user requests in addition to the table's.

use otlpprof_jfr::types::{Type, Unit};
use otlpprof_model::ProfileType;
use thiserror::Error;

use super::events::known_name;

/// An event to convert, by name, and optionally the field whose values are summed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedEvent {
    name: String,
    field: Option<String>,
}

/// The error of an invalid text of a [`RequestedEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("an event must be NAME or NAME:VALUE_FIELD, such as jdk.ThreadStart or app.Sent:bytes")]
pub struct InvalidEvent;

impl std::str::FromStr for RequestedEvent {
    type Err = InvalidEvent;

    fn from_str(text: &str) -> Result<Self, InvalidEvent> {
        let (name, field) = match text.split_once(':') {
            Some((name, field)) => (name, Some(field)),
            None => (text, None),
        };
        if name.is_empty() || field == Some("") {
            return Err(InvalidEvent);
        }
        Ok(Self { name: known_name(name).to_owned(), field: field.map(str::to_owned) })
    }
}

impl RequestedEvent {
    /// The event's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The field whose values are summed. `None` if events are counted.
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    pub(super) fn is_for(&self, event: &Type) -> bool {
        self.name == known_name(&event.name)
    }

    /// The reason why events of this type cannot be converted.
    pub(super) fn problem(&self, event: &Type) -> Option<String> {
        let name = &self.name;
        if event.field("stackTrace").is_none() {
            return Some(format!("{name} has no stack trace"));
        }
        let field = self.field()?;
        let Some(of) = event.field(field) else { return Some(format!("{name} has no field {field}")) };
        use otlpprof_jfr::types::FieldKind::{Byte, Int, Long, Short};
        let is_integer = matches!(of.kind, Byte | Short | Int | Long) && !of.is_array;
        (!is_integer).then(|| format!("{name}: the field {field} is not an integer"))
    }

    /// The type of the profile: the number of events, or the sum of their field in the unit that the field's
    /// annotations give.
    pub(super) fn profile_type(&self, event: &Type) -> &'static ProfileType {
        let events = ("events", "count");
        let Some(field) = self.field() else { return ProfileType::custom(&self.name, events, events) };
        let unit = match event.field(field).and_then(|field| field.unit()) {
            Some(Unit::TimespanTicks | Unit::TimespanNanos(_)) => "nanoseconds",
            Some(Unit::Bytes) => "bytes",
            _ => "count",
        };
        ProfileType::custom(&self.name, (field, unit), events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_a_name_and_perhaps_a_field() {
        let parsed: RequestedEvent = "app.Sent:bytes".parse().unwrap();
        assert_eq!((parsed.name(), parsed.field()), ("app.Sent", Some("bytes")));
        assert_eq!("app.Sent".parse::<RequestedEvent>().unwrap().field(), None);
        for text in ["", ":bytes", "app.Sent:"] {
            assert_eq!(text.parse::<RequestedEvent>(), Err(InvalidEvent), "{text}");
        }
    }
}

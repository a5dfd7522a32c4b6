//! Bounds on the bytes and parts of one message, so that a reader's memory stays below about four times the
//! message's size, whatever the message contains.
//!
//! A decoded element is larger than an encoded one: an empty Location takes 2 bytes encoded and 72 decoded.
//! So elements are decoded one at a time. The bounds limit the size of one element, and the number of
//! elements for which a reader keeps an index entry. Messages of real programs are far below all of these
//! bounds.

use super::schema::{self, Kind, Schema, SchemaField};

/// The most bytes of a message, after decompression. `convert` makes no larger messages.
pub const MESSAGE_BYTES: usize = 1 << 31;
/// The most bytes of a resource, of a scope, and of an element of any table but the stack table.
pub const ELEMENT_BYTES: usize = 1 << 20;
/// The most messages nested in such an element: lines of a location, values of an attribute.
pub const ELEMENT_PARTS: usize = 1 << 13;
/// The most table elements and samples of a message together. A message may exceed this bound if it has at
/// least [`BYTES_FOR_EACH`] bytes for each of them on average.
pub const ELEMENTS: usize = 1 << 20;
/// Bytes of a message for each table element or sample: see [`ELEMENTS`].
pub const BYTES_FOR_EACH: usize = 6;
/// The most resources of a message; also the most scopes and the most profiles, each counted over all
/// resources.
pub const PROFILES: usize = 1 << 16;
/// The most values of a sample, and the most timestamps.
pub const VALUES: usize = 1 << 21;
/// The most attributes of a profile, of a sample, of a mapping and of a location.
pub const ATTRIBUTES: usize = 1 << 12;
/// The lowest of the bounds on lists of numbers.
pub(super) const SHORTEST_LIST: usize = ATTRIBUTES;
/// The most locations of a stack, and the most frames that these locations expand to.
pub const STACK_FRAMES: usize = 1 << 18;
/// The most frames of all stacks of a message together. A message may exceed this bound if it has at most
/// [`FRAMES_FOR_EACH_BYTE`] frames for each of its bytes.
pub const FRAMES: usize = 1 << 20;
/// Frames for each byte of a message: see [`FRAMES`]. Each location of a stack takes at least one byte.
pub const FRAMES_FOR_EACH_BYTE: usize = 16;

/// The most values of a list of numbers; `None` for fields of other types.
pub(super) fn longest_list(schema: &Schema, field: &SchemaField) -> Option<usize> {
    match (field.repeated, field.kind, field.name) {
        (false, ..) | (_, Kind::Message(_) | Kind::String, _) => None,
        (_, _, "attribute_indices") => Some(ATTRIBUTES),
        _ if std::ptr::eq(schema, &schema::STACK) => Some(STACK_FRAMES),
        _ => Some(VALUES),
    }
}

/// Counts of the parts of one message so far, with their bounds.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    /// The most table elements and samples.
    most: usize,
    elements: usize,
    resources: usize,
    scopes: usize,
    profiles: usize,
    /// The number of messages nested in the element that was entered last.
    parts: usize,
}

impl Bounds {
    /// The bounds for this message.
    pub(super) fn of(message: &[u8]) -> Self {
        Self { most: ELEMENTS.max(message.len() / BYTES_FOR_EACH), ..Self::default() }
    }

    /// Counts a message that begins. The error names the exceeded bound.
    pub(super) fn enter(&mut self, schema: &'static Schema, length: usize) -> Result<(), String> {
        let is = |one: &'static Schema| std::ptr::eq(schema, one);
        let is_element = [
            &schema::RESOURCE,
            &schema::SCOPE,
            &schema::MAPPING,
            &schema::LOCATION,
            &schema::FUNCTION,
            &schema::LINK,
            &schema::KEY_VALUE_AND_UNIT,
        ]
        .into_iter()
        .any(is);
        if is_element && length > ELEMENT_BYTES {
            return Err(format!("{} of {length} bytes: more than {ELEMENT_BYTES}", schema.name));
        }
        let (count, most, what) = if is_element || is(&schema::SAMPLE) || is(&schema::STACK) {
            self.parts = 0;
            (&mut self.elements, self.most, ELEMENTS_TEXT)
        } else if is(&schema::RESOURCE_PROFILES) {
            (&mut self.resources, PROFILES, "resources")
        } else if is(&schema::SCOPE_PROFILES) {
            (&mut self.scopes, PROFILES, "scopes")
        } else if is(&schema::PROFILE) {
            self.parts = 0;
            (&mut self.profiles, PROFILES, "profiles")
        } else {
            (&mut self.parts, ELEMENT_PARTS, "parts of one element")
        };
        *count += 1;
        match *count > most {
            true => Err(format!("more than {most} {what}")),
            false => Ok(()),
        }
    }

    /// Counts an element of the string table. The error names the exceeded bound.
    pub(super) fn string(&mut self, length: usize) -> Result<(), String> {
        self.elements += 1;
        if length > ELEMENT_BYTES {
            return Err(format!("text of {length} bytes: more than {ELEMENT_BYTES}"));
        }
        match self.elements > self.most {
            true => Err(format!("more than {} {ELEMENTS_TEXT}", self.most)),
            false => Ok(()),
        }
    }
}

const ELEMENTS_TEXT: &str = "elements of tables and samples";

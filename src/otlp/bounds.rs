//! How much of a message is taken: bounds on its bytes and on its parts, so that whoever reads it holds no
//! more than some four times its size, whatever it says.
//!
//! A decoded element is larger than an encoded one (an empty Location is 2 bytes and becomes 72), so elements
//! are decoded one at a time; these bounds say how large one may be, and how many there may be of what has an
//! entry in some index. Messages of programs are far below all of them.

use super::schema::{self, Field, Kind, Schema};

/// Bytes of a message, after decompression. `convert` makes none that are larger.
pub const MESSAGE_BYTES: usize = 1 << 31;
/// Bytes of a resource, a scope, and an element of a table other than stacks.
pub const ELEMENT_BYTES: usize = 1 << 20;
/// Messages within such an element: lines of a location, values of an attribute.
pub const ELEMENT_PARTS: usize = 1 << 13;
/// Elements of all tables, and samples: as many are taken of any message, and of a larger one as many as have
/// [`BYTES_FOR_EACH`] in the mean.
pub const ELEMENTS: usize = 1 << 20;
/// See [`ELEMENTS`].
pub const BYTES_FOR_EACH: usize = 6;
/// Resources, and scopes and profiles of all resources, each.
pub const PROFILES: usize = 1 << 16;
/// Values, and timestamps, of a sample.
pub const VALUES: usize = 1 << 21;
/// Attributes of a profile, a sample, a mapping and a location.
pub const ATTRIBUTES: usize = 1 << 12;
/// Locations of a stack, and frames that they stand for.
pub const STACK_FRAMES: usize = 1 << 18;
/// Frames of all stacks: as many are taken of any message, and of a larger one as many as
/// [`FRAMES_FOR_EACH_BYTE`].
pub const FRAMES: usize = 1 << 20;
/// See [`FRAMES`]. A location of a stack takes a byte at least.
pub const FRAMES_FOR_EACH_BYTE: usize = 16;

/// The most values of a field that is a list of numbers.
pub(super) fn longest_list(schema: &Schema, field: &Field) -> Option<usize> {
    match (field.repeated, field.kind, field.name) {
        (false, ..) | (_, Kind::Message(_) | Kind::String, _) => None,
        (_, _, "attribute_indices") => Some(ATTRIBUTES),
        _ if std::ptr::eq(schema, &schema::STACK) => Some(STACK_FRAMES),
        _ => Some(VALUES),
    }
}

/// Counts of a message's parts so far, and their bounds.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    /// The most elements.
    most: usize,
    elements: usize,
    resources: usize,
    scopes: usize,
    profiles: usize,
    /// Of the element that was entered last.
    parts: usize,
}

impl Bounds {
    /// The bounds of a message of these bytes.
    pub(super) fn of(message: &[u8]) -> Self {
        Self { most: ELEMENTS.max(message.len() / BYTES_FOR_EACH), ..Self::default() }
    }

    /// Counts a message that begins. The error says what there is too much of.
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

    /// Counts an element of the string table.
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

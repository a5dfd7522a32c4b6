//! The selection of samples: by attributes, thread, trace, time, and by the frames of their stacks.

use std::borrow::Cow;

use otlpprof_model::attribute_keys;
use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::lookup::DictionaryTables as _;
use otlpprof_otlp::wire::Value;
use regex::Regex;

use super::frame_table::{FrameEntry, FrameId, FrameTable};

/// The samples that are wanted. Every condition must hold.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Attributes of the sample, its profile or its resource, each with the wanted value.
    pub attributes: Vec<(String, String)>,
    /// The trace that the sample's span belongs to: 16 bytes.
    pub trace: Option<[u8; 16]>,
    /// Expressions each of which must match a frame of the stack.
    pub frames: Vec<Regex>,
    /// Expressions none of which may match a frame of the stack.
    pub without: Vec<Regex>,
    /// The wanted times.
    pub window: Window,
    /// Whether idle threads of the VM and of native code are left out of wall-clock time.
    pub without_idle: bool,
}

/// A window of time in nanoseconds since 1970: from `from_ns` on, before `to_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first time in the window.
    pub from_ns: u64,
    /// The first time after the window.
    pub to_ns: u64,
}

impl Default for Window {
    /// All times.
    fn default() -> Self {
        Self { from_ns: 0, to_ns: u64::MAX }
    }
}

impl Window {
    /// Whether the window has this time.
    pub fn has(self, unix_ns: u64) -> bool {
        (self.from_ns..self.to_ns).contains(&unix_ns)
    }

    /// Whether the window has all times.
    pub fn is_everything(self) -> bool {
        self == Self::default()
    }
}

impl Selection {
    /// The condition on the name of a sample's thread.
    pub fn thread(name: &str) -> (String, String) {
        (attribute_keys::THREAD_NAME.to_owned(), name.to_owned())
    }

    /// Whether all samples are selected, but for those of idle threads.
    pub fn is_everything(&self) -> bool {
        self.attributes.is_empty()
            && self.trace.is_none()
            && !self.has_expressions()
            && self.window.is_everything()
    }

    /// Whether a condition is about the thread of a sample: its name, its id or its state.
    pub fn is_about_threads(&self) -> bool {
        use attribute_keys::{THREAD_ID, THREAD_NAME, THREAD_OS_ID, THREAD_STATE};
        let keys = [THREAD_NAME, THREAD_ID, THREAD_OS_ID, THREAD_STATE];
        self.attributes.iter().any(|(key, _)| keys.contains(&&**key))
    }

    /// Whether all samples with the attributes that were found are selected, whatever their traces and stacks
    /// are. `found` is that of [`Selection::note`].
    pub fn is_fulfilled_by_attributes(&self, found: &[bool]) -> bool {
        self.trace.is_none() && !self.has_expressions() && found.iter().all(|&found| found)
    }

    /// Whether frames are compared with expressions.
    pub fn has_expressions(&self) -> bool {
        !self.frames.is_empty() || !self.without.is_empty()
    }

    /// Compares attributes of the table with the wanted ones. Sets `found` for each condition that holds.
    pub fn note_attributes(&self, tables: EncodedTables<'_>, indices: &[i32], found: &mut [bool]) {
        if self.attributes.is_empty() {
            return;
        }
        for (key, value) in tables.attributes(indices) {
            self.note(key, &text_of(tables, value.as_ref()), found);
        }
    }

    /// As [`Selection::note_attributes`], for one attribute.
    pub fn note(&self, key: &str, value: &str, found: &mut [bool]) {
        for ((wanted_key, wanted_value), found) in self.attributes.iter().zip(found) {
            *found |= key == wanted_key && value == wanted_value;
        }
    }
}

/// The text of an attribute's value, as it is written on the command line; empty for a value without a plain
/// text, such as a list.
pub fn text_of<'v>(tables: EncodedTables<'v>, value: Option<&'v Value>) -> Cow<'v, str> {
    match value {
        Some(Value::StringValue(text)) => Cow::Borrowed(text),
        Some(Value::StringValueStrindex(index)) => Cow::Borrowed(tables.text(*index)),
        Some(Value::BoolValue(value)) => value.to_string().into(),
        Some(Value::IntValue(value)) => value.to_string().into(),
        Some(Value::DoubleValue(value)) => value.to_string().into(),
        _ => Cow::Borrowed(""),
    }
}

/// Whether a stack's frames fulfil the conditions of a selection, for each node of a tree of stacks. A frame
/// is compared with the expressions once, a node once.
#[derive(Debug)]
pub struct StackMatches<'s> {
    selection: &'s Selection,
    /// By frame: a bit for each expression that matches.
    of_frames: Vec<Option<u64>>,
    /// The bits of the expressions that must match.
    wanted: u64,
}

/// The most expressions in a selection.
pub const MOST_EXPRESSIONS: usize = 64;

impl<'s> StackMatches<'s> {
    /// Prepares the comparison with a selection of at most [`MOST_EXPRESSIONS`] expressions.
    pub fn new(selection: &'s Selection) -> Self {
        let wanted = (0..selection.frames.len()).fold(0, |bits, at| bits | 1 << at);
        Self { selection, of_frames: Vec::new(), wanted }
    }

    /// The bits of a stack: of its youngest frame, and of its callers.
    pub fn bits(&mut self, frames: &FrameTable, frame: FrameId, of_callers: u64) -> u64 {
        if !self.selection.has_expressions() {
            return 0;
        }
        let at = frame as usize;
        if self.of_frames.len() <= at {
            self.of_frames.resize(frames.len(), None);
        }
        let of_frame = self.of_frames[at].unwrap_or_else(|| self.compare(frames.get(frame)));
        self.of_frames[at] = Some(of_frame);
        of_frame | of_callers
    }

    fn compare(&self, frame: &FrameEntry) -> u64 {
        let expressions = self.selection.frames.iter().chain(&self.selection.without);
        let matching = expressions.enumerate().filter(|(_, expression)| expression.is_match(&frame.name));
        matching.fold(0, |bits, (at, _)| bits | 1 << at)
    }

    /// Whether a stack with these bits is wanted.
    pub fn is_wanted(&self, bits: u64) -> bool {
        bits == self.wanted
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_otlp::frames::{Frame, Naming};

    use super::*;
    use crate::frame_table::FrameOrigin;

    fn selection(frames: &[&str], without: &[&str]) -> Selection {
        let expressions = |texts: &[&str]| texts.iter().map(|text| Regex::new(text).unwrap()).collect();
        Selection { frames: expressions(frames), without: expressions(without), ..Selection::default() }
    }

    fn is_wanted(selection: &Selection, stack: &[&'static str]) -> bool {
        let mut frames = FrameTable::default();
        let mut matches = StackMatches::new(selection);
        let bits = stack.iter().fold(0, |bits, &name| {
            let frame = Frame {
                text: name.into(),
                naming: Naming::Function,
                frame_type: "jvm",
                is_stub: false,
                mapping_index: 0,
                file: "",
                line: 0,
            };
            let frame = frames.intern(&frame, false, 0, FrameOrigin::Jvm);
            matches.bits(&frames, frame, bits)
        });
        matches.is_wanted(bits)
    }

    #[test]
    fn each_expression_must_match_some_frame_and_none_of_the_others_any() {
        let stack = ["main", "Shop.cart", "Shop.price"];
        assert!(is_wanted(&selection(&[], &[]), &stack));
        assert!(is_wanted(&selection(&["cart$", "^main"], &[]), &stack));
        assert!(!is_wanted(&selection(&["cart$", "other"], &[]), &stack));
        assert!(!is_wanted(&selection(&["cart$"], &["price"]), &stack));
        assert!(is_wanted(&selection(&[], &["pay"]), &stack));
        assert!(is_wanted(&selection(&[], &["pay"]), &[]));
        assert!(!is_wanted(&selection(&["pay"], &[]), &[]));
    }

    #[test]
    fn a_window_has_its_first_time_and_not_its_last() {
        let window = Window { from_ns: 5, to_ns: 7 };
        assert_eq!([4, 5, 6, 7].map(|at| window.has(at)), [false, true, true, false]);
        assert!(Window::default().is_everything() && !window.is_everything());
    }
}

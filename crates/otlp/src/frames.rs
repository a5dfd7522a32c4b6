//! The frames of a stack as readable text.

use std::borrow::{Borrow as _, Cow};
use std::fmt;

use otlpprof_core::address::ElfVaddr;
use otlpprof_core::build_id::BuildId;
use otlpprof_model::{FrameType, RemoteFrame, STUB_KIND, attribute_keys, markers};

use super::lookup::DictionaryTables;
use super::wire::Location;

/// The information that a frame's text was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Naming {
    /// A function's name. Markers such as `[truncated]` are functions too.
    Function,
    /// Build-id and address: `<build-id>.<remote>(0x…)`.
    Remote,
    /// File and offset: `[libc.so.6+0x…]`.
    Object,
    /// An address and nothing else.
    RawAddress,
    /// The location names no code.
    Nothing,
}

/// One frame. Each inlined call is a frame of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame<'a> {
    /// The frame's name.
    pub text: Cow<'a, str>,
    /// The information that the name was made of.
    pub naming: Naming,
    /// `profile.frame.type` of the frame's location; empty if there is none.
    pub frame_type: &'a str,
    /// Whether the frame's location says that the code is the VM's own.
    pub is_stub: bool,
    /// The index of the location's mapping; 0 if there is none.
    pub mapping_index: i32,
    /// The source file; empty if unknown.
    pub file: &'a str,
    /// The source line; 0 if unknown.
    pub line: i64,
}

impl fmt::Display for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match (self.file, self.line) {
            ("", 0) => Ok(()),
            (file, 0) => write!(f, " ({file})"),
            ("", line) => write!(f, " (line {line})"),
            (file, line) => write!(f, " ({file}:{line})"),
        }
    }
}

/// The frames of a stack, leaf first. An index out of range becomes a frame that names the index.
pub fn frames<'a>(tables: impl DictionaryTables<'a>, stack_index: i32) -> Vec<Frame<'a>> {
    let Some(locations) = tables.stack(stack_index) else {
        return vec![unresolved(markers::no_stack_at(stack_index))];
    };
    let mut frames = Vec::with_capacity(locations.len());
    for &index in &*locations {
        push_location(tables, index, &mut frames);
    }
    frames
}

/// Appends the frames of a location, innermost first.
pub fn push_location<'a>(tables: impl DictionaryTables<'a>, index: i32, frames: &mut Vec<Frame<'a>>) {
    match tables.location(index) {
        Some(location) => push_frames(tables, location.borrow(), frames),
        None => frames.push(unresolved(markers::no_location_at(index))),
    }
}

fn unresolved<'a>(text: String) -> Frame<'a> {
    let (text, naming) = (text.into(), Naming::Nothing);
    Frame { text, naming, frame_type: "", is_stub: false, mapping_index: 0, file: "", line: 0 }
}

fn push_frames<'a>(tables: impl DictionaryTables<'a>, location: &Location, frames: &mut Vec<Frame<'a>>) {
    let frame_type =
        tables.attribute_text(&location.attribute_indices, attribute_keys::FRAME_TYPE).unwrap_or_default();
    let is_stub = frame_type == FrameType::Native.as_str()
        && tables.attribute_text(&location.attribute_indices, attribute_keys::FRAME_KIND) == Some(STUB_KIND);
    let mapping_index = location.mapping_index;
    if location.lines.is_empty() {
        let (text, naming) = name_without_line(tables, location);
        frames.push(Frame { text, naming, frame_type, is_stub, mapping_index, file: "", line: 0 });
    }
    for line in &location.lines {
        let function =
            tables.function(line.function_index).map(|function| *function.borrow()).unwrap_or_default();
        let names = [function.name_strindex, function.system_name_strindex];
        let name = names.into_iter().map(|name| tables.text(name)).find(|name| !name.is_empty());
        let (text, naming) = match name {
            Some(name) => (Cow::Borrowed(name), naming_of(name)),
            None => name_without_line(tables, location),
        };
        let file = tables.text(function.filename_strindex);
        let line = line.line;
        frames.push(Frame { text, naming, frame_type, is_stub, mapping_index, file, line });
    }
}

fn naming_of(name: &str) -> Naming {
    let digits = name.strip_prefix("0x").or_else(|| name.strip_prefix("[0x")?.strip_suffix(']'));
    if digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    {
        return Naming::RawAddress;
    }
    match RemoteFrame::parse(name) {
        Some(_) => Naming::Remote,
        None => Naming::Function,
    }
}

fn name_without_line<'a>(tables: impl DictionaryTables<'a>, location: &Location) -> (Cow<'a, str>, Naming) {
    if let Some(text) = tables.attribute_text(&location.attribute_indices, attribute_keys::FRAME_REMOTE) {
        return (text.into(), Naming::Remote);
    }
    let address = ElfVaddr(location.address);
    if let Some(mapping) = tables.mapping(location.mapping_index) {
        let mapping = mapping.borrow();
        let build_id = tables.attribute_text(&mapping.attribute_indices, attribute_keys::BUILD_ID_GNU);
        if let Some(build_id) = build_id.and_then(BuildId::from_hex) {
            return (RemoteFrame { build_id, address }.to_string().into(), Naming::Remote);
        }
        let path = tables.text(mapping.filename_strindex);
        let name = path.rsplit('/').next().unwrap_or(path);
        if !name.is_empty() {
            return (format!("[{name}+{address:#x}]").into(), Naming::Object);
        }
    }
    match address.0 {
        0 => (markers::NO_NAME.into(), Naming::Nothing),
        _ => (format!("{address:#x}").into(), Naming::RawAddress),
    }
}

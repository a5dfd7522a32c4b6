//! The frames of locations.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::fast::RandomState;
use otlpprof_core::address::{ElfVaddr, FileOffset, RuntimeAddr};
use otlpprof_core::build_id::BuildId;
use otlpprof_model::{
    Frame, FrameId, FrameType, JavaMethod, MappingId, Tables, is_hotspot_stub, markers, native_frame_nowhere,
    unnamed_native_frame,
};

use super::error::PprofError;
use super::messages::{Function, Location, Mapping};
use super::parts::Parts;

/// A name or a path is cut after this many bytes.
const LONGEST_TEXT: usize = 4096;

/// File extensions of languages of the JVM.
const JVM_FILES: [&str; 5] = [".java", ".kt", ".scala", ".groovy", ".clj"];

/// The frames of the locations met so far, innermost first.
#[derive(Debug, Default)]
pub(super) struct Frames {
    by_location: HashMap<u64, Box<[FrameId]>, RandomState>,
}

/// A location with its mapping.
struct MappedLocation<'l> {
    location: &'l Location,
    mapping: Option<(MappingId, Mapping)>,
    is_kernel: bool,
}

impl Frames {
    /// The frames of a location.
    pub(super) fn of(
        &mut self,
        parts: &Parts<'_>,
        location: u64,
        tables: &mut Tables,
    ) -> Result<&[FrameId], PprofError> {
        let known = match self.by_location.entry(location) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(frames(parts, &parts.location(location)?, tables)?),
        };
        Ok(&**known)
    }
}

fn frames(parts: &Parts<'_>, location: &Location, tables: &mut Tables) -> Result<Box<[FrameId]>, PprofError> {
    let mut place = MappedLocation { location, mapping: None, is_kernel: false };
    if location.mapping_id != 0 {
        let mapping = parts.mapping(location.mapping_id)?;
        let filename = cut(parts.text(mapping.filename)?);
        place.is_kernel = filename.starts_with("[kernel");
        let made = otlpprof_model::Mapping {
            memory_start: ElfVaddr(mapping.memory_start),
            memory_limit: ElfVaddr(mapping.memory_limit),
            file_offset: FileOffset(mapping.file_offset),
            filename: tables.strings.intern(&filename),
            // Go's own build-ids are no hexadecimal numbers, and have no place in the model.
            build_id: BuildId::from_hex(&parts.text(mapping.build_id)?),
            htlhash: None,
        };
        place.mapping = Some((tables.mappings.intern(made), mapping));
    }
    let mut frames = Vec::with_capacity(location.lines.len().max(1));
    for line in &location.lines {
        let function = if line.function_id == 0 { None } else { Some(parts.function(line.function_id)?) };
        // A line that is not known or makes no sense is 0.
        let line = u32::try_from(line.line).unwrap_or(0);
        let frame = match function {
            Some(function) => named(parts, &place, &function, line, tables)?,
            None => unnamed(&place, tables),
        };
        frames.push(tables.frames.intern(frame));
    }
    if frames.is_empty() {
        let frame = unnamed(&place, tables);
        frames.push(tables.frames.intern(frame));
    }
    Ok(frames.into())
}

/// The frame of a function. Code with an address or a mapping is machine code. Of other code the source file
/// or the form of the name tells whether it is of the JVM. A name of the form of `encoding/json.Marshal` is a
/// Java method's only with such a file or in a profile of a JVM, because functions in Go have that form.
fn named(
    parts: &Parts<'_>,
    place: &MappedLocation<'_>,
    function: &Function,
    line: u32,
    tables: &mut Tables,
) -> Result<Frame, PprofError> {
    let [name, system_name, filename] = [function.name, function.system_name, function.filename];
    let text = |index| parts.text(index).map(cut);
    let (name, system_name, filename) = (text(name)?, text(system_name)?, text(filename)?);
    let text = if name.is_empty() { &system_name } else { &name };
    if text.is_empty() {
        return Ok(unnamed(place, tables));
    }
    let start_line = u32::try_from(function.start_line).unwrap_or(0);
    let has_place = place.mapping.is_some() || place.location.address != 0;
    if !has_place {
        let is_known = parts.is_of_jvm || is_of_jvm(&filename);
        let is_java = |method: &JavaMethod<'_>| is_known || method.has_conventional_class();
        if let Some(method) = JavaMethod::parse(text).filter(is_java) {
            return Ok(Frame::java(tables.java_function(method, &filename, start_line), line));
        }
        if is_hotspot_stub(text) {
            return Ok(Frame::Stub { function: tables.named_function(text) });
        }
        if text.starts_with('[') && text.ends_with(']') && !text.contains("+0x") {
            let function = tables.named_function(text);
            return Ok(Frame::Marker { function, frame_type: FrameType::Native });
        }
    }
    let made = otlpprof_model::Function {
        name: tables.strings.intern(text),
        system_name: tables.strings.intern(if system_name == *text { "" } else { &system_name }),
        is_method: false,
        filename: tables.strings.intern(&filename),
        start_line,
    };
    let function = tables.functions.intern(made);
    if !has_place && is_of_jvm(&filename) {
        return Ok(Frame::java(function, line));
    }
    let (mapping, address) = (place.mapping.map(|(id, _)| id), place.address());
    Ok(match place.is_kernel {
        true => Frame::Kernel { mapping, address, function },
        false => Frame::Native { mapping, address, function, line },
    })
}

/// Whether a source file is in a language of the JVM.
fn is_of_jvm(filename: &str) -> bool {
    JVM_FILES.iter().any(|extension| filename.ends_with(extension))
}

/// The frame of a place without a function's name: `[libc.so.6+0x…]` with the offset in the file.
fn unnamed(place: &MappedLocation<'_>, tables: &mut Tables) -> Frame {
    let address = place.location.address;
    let text = match place.mapping {
        _ if address == 0 => markers::NO_NAME.to_owned(),
        Some((id, mapping)) => {
            let offset = address.wrapping_sub(mapping.memory_start).wrapping_add(mapping.file_offset);
            let path = tables.mappings.get(id).filename;
            unnamed_native_frame(tables.strings.get(path), ElfVaddr(offset))
        }
        None => native_frame_nowhere(RuntimeAddr(address)),
    };
    let (mapping, address) = (place.mapping.map(|(id, _)| id), place.address());
    Frame::Native { mapping, address, function: tables.native_function(&text, ""), line: 0 }
}

fn cut(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[..text.floor_char_boundary(LONGEST_TEXT)]),
        Cow::Owned(mut text) => {
            text.truncate(text.floor_char_boundary(LONGEST_TEXT));
            Cow::Owned(text)
        }
    }
}

impl MappedLocation<'_> {
    /// The address; `None` if there is none.
    fn address(&self) -> Option<ElfVaddr> {
        Some(ElfVaddr(self.location.address)).filter(|address| address.0 != 0)
    }
}

//! Finds the frames without names in a message.
//!
//! | Form of the location | Written by |
//! |---|---|
//! | a mapping and an address, and no line | this profiler, the eBPF profiler, others |
//! | no line, and the attribute `otlpprof.frame.remote` | this profiler, with a mapping |
//! | one line: a function `<build-id>.<remote>(0x…)` | `native_frames=name`, imported profiles |
//! | one line: a function `[file+0x…]`, a mapping and an address | this profiler where nothing has a name |

use std::collections::HashMap;

use foldhash::fast::RandomState;
use otlpprof_core::address::ElfVaddr;
use otlpprof_core::build_id::BuildId;
use otlpprof_debug_files::ObjectIdentity;
use otlpprof_model::attribute_keys::{FRAME_REMOTE, FRAME_TYPE};
use otlpprof_model::{FrameType, RemoteFrame, unnamed_native_frame};
use otlpprof_otlp::encoded::{EncodedMessage, EncodedTables};
use otlpprof_otlp::lookup::DictionaryTables as _;

use super::address::MappedRange;
use super::location_fields::LocationFields;
use super::objects::{ObjectNumber, Objects, identity_of};

/// The kinds of machine code that object files describe (semantic conventions, `profile.frame.type`).
const NATIVE_TYPES: [&str; 3] = [FrameType::Native.as_str(), "go", "rust"];

/// The place of a frame's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The object that has the code.
    pub(super) object: ObjectNumber,
    /// The address, in the address space of `mapped`.
    pub(super) address: u64,
    /// The mapping's addresses.
    pub(super) mapped: MappedRange,
}

/// A frame without a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unnamed {
    /// The index of its location.
    pub(super) location: u32,
    /// The place of its code.
    pub(super) place: Place,
}

/// The unnamed frames of a message, in the order of its location table.
pub(super) fn find(message: &EncodedMessage, objects: &mut Objects) -> Vec<Unnamed> {
    let mut finder = Finder::new(message.tables(), objects);
    let mut found = Vec::new();
    for (location, encoded) in (0..).zip(message.tables().encoded_locations()) {
        if let Some(place) = finder.place(LocationFields::of(encoded)) {
            found.push(Unnamed { location, place });
        }
    }
    found
}

/// The object of a mapping, and the mapping's addresses.
#[derive(Clone, Copy)]
struct Mapped {
    object: ObjectNumber,
    range: MappedRange,
    build_id: Option<BuildId>,
}

/// The meaning of a function's name for its frame.
#[derive(Clone, Copy)]
enum FunctionName {
    /// A name.
    Name,
    /// An object and an address.
    Remote(RemoteFrame),
    /// Probably `[file+0x…]`.
    Offset,
}

/// The meaning of a location's attribute for its frame.
#[derive(Clone, Copy)]
enum AttributeRole {
    /// The attribute has no meaning for the frame.
    Other,
    /// The code is not machine code of an object file.
    NotNative,
    /// An object and an address.
    Remote(RemoteFrame),
}

/// Looks each entry of a message's tables up once.
struct Finder<'m, 'o> {
    tables: EncodedTables<'m>,
    objects: &'o mut Objects,
    mappings: HashMap<i32, Mapped, RandomState>,
    functions: HashMap<i32, FunctionName, RandomState>,
    /// By index.
    attributes: Vec<Option<AttributeRole>>,
}

impl<'m, 'o> Finder<'m, 'o> {
    fn new(tables: EncodedTables<'m>, objects: &'o mut Objects) -> Self {
        let (mappings, functions) = Default::default();
        let attributes = vec![None; tables.attribute_table().len()];
        Self { tables, objects, mappings, functions, attributes }
    }

    /// The place of a location's code, if the location has no name.
    fn place(&mut self, location: LocationFields<'_>) -> Option<Place> {
        let name = match location.lines {
            0 => None,
            1 => Some(self.function_name(location.function)),
            _ => return None,
        };
        if matches!(name, Some(FunctionName::Name)) {
            return None;
        }
        let mut remote = None;
        for index in location.attributes() {
            match self.attribute_role(index) {
                AttributeRole::Other => {}
                AttributeRole::NotNative => return None,
                AttributeRole::Remote(frame) => remote = Some(frame),
            }
        }
        let mapped = self.mapped(location.mapping);
        let Mapped { object, range, .. } = mapped;
        let in_mapping = Place { object, address: location.address, mapped: range };
        match name {
            Some(FunctionName::Remote(frame)) => Some(self.remote_place(mapped, frame)),
            Some(FunctionName::Offset) => {
                let is_own = location.mapping != 0 && self.is_offset_of(location, range);
                is_own.then_some(in_mapping)
            }
            _ => match remote {
                Some(frame) => Some(self.remote_place(mapped, frame)),
                None => (location.mapping != 0 && location.address != 0).then_some(in_mapping),
            },
        }
    }

    /// The place that a text names. Its address is an ELF virtual address.
    fn remote_place(&mut self, mapped: Mapped, frame: RemoteFrame) -> Place {
        let object = if mapped.build_id == Some(frame.build_id) {
            mapped.object
        } else {
            let build_id = Some(frame.build_id);
            self.objects.number(&ObjectIdentity { build_id, ..ObjectIdentity::default() })
        };
        Place { object, address: frame.address.0, mapped: MappedRange::default() }
    }

    /// Whether the function of a location is named by the location's own file and address.
    fn is_offset_of(&self, location: LocationFields<'_>, range: MappedRange) -> bool {
        let function = self.tables.function(location.function).unwrap_or_default();
        let mapping = self.tables.mapping(location.mapping).unwrap_or_default();
        let (name, path) =
            (self.tables.text(function.name_strindex), self.tables.text(mapping.filename_strindex));
        let offset = location.address.wrapping_sub(range.start).wrapping_add(range.file_offset);
        [location.address, offset].iter().any(|&at| unnamed_native_frame(path, ElfVaddr(at)) == name)
    }

    fn mapped(&mut self, index: i32) -> Mapped {
        if let Some(&known) = self.mappings.get(&index) {
            return known;
        }
        let mapping = self.tables.mapping(index).unwrap_or_default();
        let identity = identity_of(self.tables, &mapping);
        let mapped = Mapped {
            object: self.objects.number(&identity),
            range: MappedRange {
                start: mapping.memory_start,
                limit: mapping.memory_limit,
                file_offset: mapping.file_offset,
            },
            build_id: identity.build_id,
        };
        self.mappings.insert(index, mapped);
        mapped
    }

    fn function_name(&mut self, index: i32) -> FunctionName {
        let tables = self.tables;
        *self.functions.entry(index).or_insert_with(|| {
            let function = tables.function(index).unwrap_or_default();
            let name = tables.text(function.name_strindex);
            match RemoteFrame::parse(name) {
                Some(frame) => FunctionName::Remote(frame),
                None if name.starts_with('[') && name.contains("+0x") => FunctionName::Offset,
                None => FunctionName::Name,
            }
        })
    }

    fn attribute_role(&mut self, index: i32) -> AttributeRole {
        let place = usize::try_from(index).ok().and_then(|index| self.attributes.get_mut(index));
        let Some(role) = place else { return AttributeRole::Other };
        *role.get_or_insert_with(|| match self.tables.text_attribute(index) {
            Some((FRAME_TYPE, code)) if !NATIVE_TYPES.contains(&code) => AttributeRole::NotNative,
            Some((FRAME_REMOTE, frame)) => {
                RemoteFrame::parse(frame).map_or(AttributeRole::Other, AttributeRole::Remote)
            }
            _ => AttributeRole::Other,
        })
    }
}

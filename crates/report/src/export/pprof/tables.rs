//! The tables of a pprof profile: texts, functions, mappings, locations and stacks, interned over all
//! messages.

use std::mem::take;

use otlpprof_model::{
    FrameId, FunctionId, Id, Interner, MappingId, SliceInterner, StackId, StringId, StringInterner,
    attribute_keys, markers,
};
use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::frames::{Frame, push_location};
use otlpprof_otlp::lookup::DictionaryTables as _;
use otlpprof_otlp::wire as otlp;
use otlpprof_pprof::messages::{Function, Line, Location, Mapping, Profile};

/// The attributes that identify a mapping's object, the best first.
const BUILD_IDS: [&str; 3] =
    [attribute_keys::BUILD_ID_GNU, attribute_keys::BUILD_ID_GO, attribute_keys::BUILD_ID_HTLHASH];

/// Tables that grow.
#[derive(Debug)]
pub struct ProfileTables {
    texts: StringInterner<StringId>,
    /// In these tables, ids are 0 until the profile is encoded.
    functions: Interner<Function, FunctionId>,
    mappings: Interner<Mapping, MappingId>,
    locations: Interner<Location, FrameId>,
    stacks: SliceInterner<FrameId, StackId>,
    /// The locations of the present message, by their indices there; those that do not exist are left out.
    of_locations: Vec<Option<FrameId>>,
    /// The stacks of the present message, by their indices there; those that do not exist are left out.
    of_stacks: Vec<Option<StackId>>,
    /// Scratch space: the locations of a stack, in the message and here.
    indices: Vec<i32>,
    stack: Vec<FrameId>,
}

impl Default for ProfileTables {
    fn default() -> Self {
        let mut texts = StringInterner::default();
        // Index 0 means no text.
        texts.intern("");
        Self {
            texts,
            functions: Interner::default(),
            mappings: Interner::default(),
            locations: Interner::default(),
            stacks: SliceInterner::default(),
            of_locations: Vec::new(),
            of_stacks: Vec::new(),
            indices: Vec::new(),
            stack: Vec::new(),
        }
    }
}

impl ProfileTables {
    /// Begins the next message, in which indices have another meaning.
    pub fn begin_message(&mut self) {
        self.of_locations.clear();
        self.of_stacks.clear();
    }

    /// The index of a text.
    pub fn text(&mut self, text: &str) -> i64 {
        self.texts.intern(text).index() as i64
    }

    /// A stack of the present message.
    pub fn stack(&mut self, tables: EncodedTables<'_>, index: i32) -> StackId {
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some(&Some(known)) = self.of_stacks.get(at) {
            return known;
        }
        let (mut indices, mut locations) = (take(&mut self.indices), take(&mut self.stack));
        locations.clear();
        let exists = tables.stack_to(index, &mut indices);
        if exists {
            locations.extend(indices.iter().map(|&index| self.location(tables, index)));
        } else {
            let name = self.text(&markers::no_stack_at(index));
            let function_id = self.function(Function { name, ..Function::default() });
            let lines = vec![Line { function_id, ..Line::default() }];
            locations.push(self.locations.intern(Location { lines, ..Location::default() }));
        }
        let stack = self.stacks.intern(&locations);
        (self.indices, self.stack) = (indices, locations);
        if exists {
            remember(&mut self.of_stacks, at, stack);
        }
        stack
    }

    /// Replaces a list by the ids of a stack's locations, leaf first.
    pub fn location_ids_to(&self, stack: StackId, ids: &mut Vec<u64>) {
        ids.clear();
        ids.extend(self.stacks.get(stack).iter().map(|&location| id_of(location)));
    }

    /// A location of the present message. A location that a reader can resolve by mapping and address has no
    /// line; any other has a function for each of its frames.
    fn location(&mut self, tables: EncodedTables<'_>, index: i32) -> FrameId {
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some(&Some(known)) = self.of_locations.get(at) {
            return known;
        }
        let found = tables.location(index);
        let exists = found.is_some();
        let location = found.unwrap_or_default();
        let mapping = tables.mapping(location.mapping_index);
        let mapping_id = mapping.map_or(0, |mapping| self.mapping(tables, &mapping));
        let mut lines = Vec::new();
        if !location.lines.is_empty() || mapping_id == 0 {
            let mut frames = Vec::new();
            push_location(tables, index, &mut frames);
            let none = otlp::Line::default();
            for (at, frame) in frames.iter().enumerate() {
                let of_frame = location.lines.get(at).unwrap_or(&none);
                lines.push(self.line(tables, frame, of_frame));
            }
        }
        let location = Location { id: 0, mapping_id, address: location.address, lines };
        let location = self.locations.intern(location);
        if exists {
            remember(&mut self.of_locations, at, location);
        }
        location
    }

    fn line(&mut self, tables: EncodedTables<'_>, frame: &Frame<'_>, line: &otlp::Line) -> Line {
        let function = tables.function(line.function_index).unwrap_or_default();
        // pprof takes a name that equals the system's name for a mangled one, and shortens it.
        let system_name = Some(tables.text(function.system_name_strindex)).filter(|&name| name != frame.text);
        let function = Function {
            id: 0,
            name: self.text(&frame.text),
            system_name: self.text(system_name.unwrap_or_default()),
            filename: self.text(frame.file),
            start_line: function.start_line,
        };
        Line { function_id: self.function(function), line: line.line, column: line.column }
    }

    fn function(&mut self, function: Function) -> u64 {
        id_of(self.functions.intern(function))
    }

    fn mapping(&mut self, tables: EncodedTables<'_>, mapping: &otlp::Mapping) -> u64 {
        let mut build_ids =
            BUILD_IDS.iter().filter_map(|key| tables.attribute_text(&mapping.attribute_indices, key));
        let entry = Mapping {
            memory_start: mapping.memory_start,
            memory_limit: mapping.memory_limit,
            file_offset: mapping.file_offset,
            filename: self.text(tables.text(mapping.filename_strindex)),
            build_id: self.text(build_ids.next().unwrap_or_default()),
            ..Mapping::default()
        };
        id_of(self.mappings.intern(entry))
    }

    /// Calls `put` with parts of the profile that have the tables. `program` is the index of the program's
    /// file, or 0. pprof takes the first mapping for the program's.
    ///
    /// # Errors
    /// The first error of `put`.
    pub fn parts<E>(&self, program: i64, mut put: impl FnMut(&Profile) -> Result<(), E>) -> Result<(), E> {
        let mut mappings = self.described_mappings();
        match mappings.iter().position(|mapping| mapping.filename == program) {
            _ if program == 0 => {}
            Some(at) => mappings[..=at].rotate_right(1),
            None => {
                let named = Mapping { filename: program, ..Mapping::default() };
                mappings.insert(0, described(mappings.len() as u64 + 1, named));
            }
        }
        for mapping in mappings {
            put(&Profile { mapping: vec![mapping], ..Profile::default() })?;
        }
        for (id, location) in (1..).zip(self.locations.values()) {
            let location = vec![Location { id, ..location.clone() }];
            put(&Profile { location, ..Profile::default() })?;
        }
        for (id, function) in (1..).zip(self.functions.values()) {
            put(&Profile { function: vec![Function { id, ..*function }], ..Profile::default() })?;
        }
        for index in 0..self.texts.len() {
            // SANITY: an interner has fewer than 2^32 texts.
            let text = self.texts.get(StringId(index as u32)).to_owned();
            put(&Profile { string_table: vec![text], ..Profile::default() })?;
        }
        Ok(())
    }

    /// The mappings with their ids, and with the parts that all of their locations have.
    fn described_mappings(&self) -> Vec<Mapping> {
        let numbered = (1..).zip(self.mappings.values());
        let mut mappings: Vec<_> = numbered.map(|(id, mapping)| described(id, *mapping)).collect();
        for location in self.locations.values() {
            let Some(at) = location.mapping_id.checked_sub(1) else { continue };
            // SANITY: `mapping` has given out no id beyond the table.
            let mapping = &mut mappings[at as usize];
            let has_lines = !location.lines.is_empty();
            let has_file = |line: &Line| {
                // SANITY: `function` has given out no id beyond the table.
                self.functions.values()[line.function_id as usize - 1].filename != 0
            };
            mapping.has_functions &= has_lines;
            mapping.has_inline_frames &= has_lines;
            mapping.has_filenames &= has_lines && location.lines.iter().all(has_file);
            mapping.has_line_numbers &= has_lines && location.lines.iter().all(|line| line.line != 0);
        }
        mappings
    }
}

/// Sets the value of an entry of a message's table.
fn remember<T: Copy>(values: &mut Vec<Option<T>>, at: usize, value: T) {
    if values.len() <= at {
        values.resize(at + 1, None);
    }
    values[at] = Some(value);
}

/// A mapping with its id. Nothing is left to resolve in a mapping without locations.
fn described(id: u64, mapping: Mapping) -> Mapping {
    Mapping {
        id,
        has_functions: true,
        has_filenames: true,
        has_line_numbers: true,
        has_inline_frames: true,
        ..mapping
    }
}

/// The id in the file of an entry: its place, from 1.
fn id_of(entry: impl Id) -> u64 {
    entry.index() as u64 + 1
}

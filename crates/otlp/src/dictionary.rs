//! The dictionary of one message: exactly the values that the samples refer to, each value once.
//!
//! Every table has its zero value at index 0. A value is entered when something that is written refers to it.
//! Values that the model's tables already keep distinct are found by their id. Only values that are new to
//! the message are hashed.

use otlpprof_core::address::ElfVaddr;
use otlpprof_model::{
    Attribute, AttributeId, AttributeSetId, AttributeValue, Execution, Frame, FrameId, FrameType, Function,
    FunctionId, Id, Interner, Link, LinkId, Mapping, MappingId, ProfileType, RemoteFrame, STUB_KIND,
    SliceInterner, StackId, StringId, StringInterner, Tables, attribute_keys, markers, unnamed_native_frame,
};

use super::encode_options::NativeFrames;
use super::functions::{EnteredFunction, Functions};
use super::locations::{Locations, WireLocation};
use super::wire_index::WireIndex;

/// The id of a string that the model's tables do not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct AddedText(u32);

impl Id for AddedText {
    fn from_index(index: u32) -> Self {
        Self(index)
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a string is stored. Equal strings are stored in one place: only strings that the tables lack are
/// added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Text {
    Table(StringId),
    Added(AddedText),
}

/// An entry of the function table.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireFunction {
    pub(super) name: WireIndex,
    pub(super) system_name: WireIndex,
    pub(super) filename: WireIndex,
    pub(super) start_line: u32,
}

/// The number of variants of [`FrameType`].
const FRAME_TYPES: usize = 3;
/// The number of variants of [`Execution`].
const EXECUTIONS: usize = 5;
/// The position of the attribute of stubs among the fixed attributes.
const STUB: usize = FRAME_TYPES + EXECUTIONS;

/// An entry of the mapping table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct WireMapping {
    pub(super) start: u64,
    pub(super) limit: u64,
    pub(super) file_offset: u64,
    pub(super) filename: WireIndex,
    /// The indices of the build-id attributes; zero where there is none.
    pub(super) attributes: [WireIndex; 2],
}

/// An entry of the attribute table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct WireAttribute {
    key: WireIndex,
    /// `None` only in the zero entry.
    value: Option<WireValue>,
    unit: WireIndex,
}

/// The value of an attribute. String values are written inline, because readers do not resolve string
/// references here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum WireValue {
    Str(Text),
    /// Any value but a string.
    Other(AttributeValue),
}

/// The value of an attribute, with its text resolved.
#[derive(Clone, Copy, Debug)]
pub(super) enum AnyValueRef<'a> {
    Str(&'a str),
    Int(i64),
    Bool(bool),
    Double(f64),
}

/// The message index of each value of a model table; zero for a value that has not been entered.
#[derive(Debug)]
struct Places(Vec<WireIndex>);

impl Places {
    fn new(len: usize) -> Self {
        Self(vec![WireIndex::ZERO; len])
    }

    fn get(&self, id: impl Id) -> Option<WireIndex> {
        let place = self.0[id.index()];
        (place != WireIndex::ZERO).then_some(place)
    }

    fn set(&mut self, id: impl Id, place: WireIndex) -> WireIndex {
        self.0[id.index()] = place;
        place
    }
}

/// The dictionary while it grows.
#[derive(Debug)]
pub(super) struct Dictionary<'a> {
    tables: &'a Tables,
    native_frames: NativeFrames,

    added: StringInterner<AddedText>,
    strings: Vec<Text>,
    functions: Functions,
    /// The system names to write, one for each function. They are set once all functions are known.
    system_names: Vec<WireIndex>,
    mappings: Interner<WireMapping, WireIndex>,
    locations: Locations,
    stacks: SliceInterner<WireIndex, WireIndex>,
    attributes: Interner<WireAttribute, WireIndex>,
    links: Vec<LinkId>,

    string_places: Places,
    added_places: Vec<WireIndex>,
    function_places: Places,
    frame_places: Places,
    stack_places: Places,
    attribute_places: Places,
    link_places: Places,
    /// Attribute indices: one for each frame type, then one for each kind of execution of Java frames, then
    /// that of stubs.
    fixed_places: [WireIndex; STUB + 1],
    /// The locations of the stack being entered.
    scratch: Vec<WireIndex>,
    locations_merged: bool,
    stacks_merged: bool,
}

impl<'a> Dictionary<'a> {
    /// A dictionary that holds only the zero values.
    pub(super) fn new(tables: &'a Tables, native_frames: NativeFrames) -> Self {
        let mut dictionary = Self {
            tables,
            native_frames,
            added: StringInterner::default(),
            strings: vec![Text::Table(StringId::EMPTY)],
            functions: Functions::with_capacity(tables.functions.len()),
            system_names: Vec::new(),
            mappings: Interner::default(),
            locations: Locations::new(),
            stacks: SliceInterner::default(),
            attributes: Interner::default(),
            links: vec![LinkId::NONE],
            string_places: Places::new(tables.strings.len()),
            added_places: Vec::new(),
            function_places: Places::new(tables.functions.len()),
            frame_places: Places::new(tables.frames.len()),
            stack_places: Places::new(tables.stacks.len()),
            attribute_places: Places::new(tables.attributes.len()),
            link_places: Places::new(tables.links.len()),
            fixed_places: [WireIndex::ZERO; STUB + 1],
            scratch: Vec::new(),
            locations_merged: false,
            stacks_merged: false,
        };
        dictionary.mappings.intern(WireMapping::default());
        dictionary.stacks.intern(&[]);
        dictionary.attributes.intern(WireAttribute {
            key: WireIndex::ZERO,
            value: None,
            unit: WireIndex::ZERO,
        });
        dictionary
    }

    /// The tables that the ids refer to.
    pub(super) fn tables(&self) -> &'a Tables {
        self.tables
    }

    /// Whether two different stacks of the model became equal stacks of the message.
    pub(super) fn stacks_merged(&self) -> bool {
        self.stacks_merged
    }

    /// Enters a stack and everything that it refers to.
    pub(super) fn stack(&mut self, id: StackId) -> WireIndex {
        if let Some(place) = self.stack_places.get(id) {
            return place;
        }
        let frames = self.tables.stacks.get(id);
        if frames.is_empty() {
            return WireIndex::ZERO;
        }
        let mut locations = std::mem::take(&mut self.scratch);
        locations.clear();
        locations.extend(frames.iter().map(|&frame| self.location(frame)));
        let known = self.stacks.len();
        // As long as no two frames share a location, different stacks of the model stay different, so they
        // need no hashing.
        let place = if self.locations_merged {
            self.stacks.intern(&locations)
        } else {
            self.stacks.push_distinct(&locations)
        };
        self.stacks_merged |= self.stacks.len() == known;
        self.scratch = locations;
        self.stack_places.set(id, place)
    }

    /// Enters the attributes of a set, and appends their indices.
    pub(super) fn attribute_set(&mut self, set: AttributeSetId, indices: &mut Vec<WireIndex>) {
        indices.extend(self.tables.attributes_of(set).iter().map(|&attribute| self.attribute(attribute)));
    }

    /// Enters a link.
    pub(super) fn link(&mut self, id: LinkId) -> WireIndex {
        if id == LinkId::NONE {
            return WireIndex::ZERO;
        }
        if let Some(place) = self.link_places.get(id) {
            return place;
        }
        let place = WireIndex(self.links.len() as u32);
        self.links.push(id);
        self.link_places.set(id, place)
    }

    /// Enters a string.
    pub(super) fn text(&mut self, text: &str) -> WireIndex {
        let text = self.place_of(text);
        self.string(text)
    }

    /// Enters the `profile.type` attribute of a profile.
    pub(super) fn profile_type(&mut self, profile_type: &ProfileType) -> WireIndex {
        self.text_attribute(attribute_keys::PROFILE_TYPE, profile_type.profile_type)
    }

    fn place_of(&mut self, text: &str) -> Text {
        match self.tables.strings.find(text) {
            Some(id) => Text::Table(id),
            None => Text::Added(self.added.intern(text)),
        }
    }

    fn string(&mut self, text: Text) -> WireIndex {
        let next = WireIndex(self.strings.len() as u32);
        let place = match text {
            Text::Table(StringId::EMPTY) => return WireIndex::ZERO,
            Text::Table(id) => &mut self.string_places.0[id.index()],
            Text::Added(id) => {
                self.added_places.resize(self.added.len(), WireIndex::ZERO);
                &mut self.added_places[id.index()]
            }
        };
        if *place == WireIndex::ZERO {
            *place = next;
            self.strings.push(text);
        }
        *place
    }

    fn table_string(&mut self, id: StringId) -> WireIndex {
        self.string(Text::Table(id))
    }

    pub(super) fn attribute(&mut self, id: AttributeId) -> WireIndex {
        if let Some(place) = self.attribute_places.get(id) {
            return place;
        }
        let Attribute { key, value, unit } = *self.tables.attributes.get(id);
        let value = match value {
            AttributeValue::Str(id) => WireValue::Str(Text::Table(id)),
            other => WireValue::Other(other),
        };
        let attribute =
            WireAttribute { key: self.table_string(key), value: Some(value), unit: self.table_string(unit) };
        let place = self.attributes.intern(attribute);
        self.attribute_places.set(id, place)
    }

    fn text_attribute(&mut self, key: &str, value: &str) -> WireIndex {
        let value = self.place_of(value);
        self.placed_attribute(key, value)
    }

    fn placed_attribute(&mut self, key: &str, value: Text) -> WireIndex {
        let key = self.text(key);
        let value = Some(WireValue::Str(value));
        self.attributes.intern(WireAttribute { key, value, unit: WireIndex::ZERO })
    }

    fn frame_type(&mut self, frame_type: FrameType) -> WireIndex {
        self.fixed_attribute(frame_type as usize, attribute_keys::FRAME_TYPE, frame_type.as_str())
    }

    fn execution(&mut self, execution: Execution) -> WireIndex {
        self.fixed_attribute(
            FRAME_TYPES + execution as usize,
            attribute_keys::FRAME_EXECUTION,
            execution.as_str(),
        )
    }

    /// Enters an attribute that many locations share. `number` is the attribute's position in `fixed_places`.
    fn fixed_attribute(&mut self, number: usize, key: &str, value: &str) -> WireIndex {
        if self.fixed_places[number] == WireIndex::ZERO {
            self.fixed_places[number] = self.text_attribute(key, value);
        }
        self.fixed_places[number]
    }

    #[inline]
    fn location(&mut self, id: FrameId) -> WireIndex {
        match self.frame_places.get(id) {
            Some(place) => place,
            None => self.enter_location(id),
        }
    }

    #[cold]
    fn enter_location(&mut self, id: FrameId) -> WireIndex {
        let frame = *self.tables.frames.get(id);
        let frame_type = [self.frame_type(frame.frame_type()), WireIndex::ZERO];
        let plain = WireLocation { attributes: frame_type, ..WireLocation::default() };
        let location = match frame {
            Frame::Java { function, line, execution } => {
                let function = self.function(function);
                let execution = execution.map_or(WireIndex::ZERO, |execution| self.execution(execution));
                // Different methods are different functions of the message, and a marker has no line. So a
                // method's frame with a line has a location that no other frame has.
                if line != 0 && self.functions.is_method(function) {
                    let place = self.locations.push_distinct(id);
                    return self.frame_places.set(id, place);
                }
                java_location(function, line, [plain.attributes[0], execution])
            }
            Frame::RemoteNative { mapping, address } => self.remote_location(mapping, address, plain),
            Frame::Native { mapping, address, function, line } => WireLocation {
                mapping: mapping.map_or(WireIndex::ZERO, |mapping| self.mapping(mapping)),
                address: address.unwrap_or_default(),
                function: self.function(function),
                line,
                ..plain
            },
            Frame::Kernel { mapping, address, function } => WireLocation {
                mapping: mapping.map_or(WireIndex::ZERO, |mapping| self.mapping(mapping)),
                address: address.unwrap_or_default(),
                function: self.function(function),
                ..plain
            },
            Frame::Stub { function } => {
                let function = self.function(function);
                let kind = self.fixed_attribute(STUB, attribute_keys::FRAME_KIND, STUB_KIND);
                WireLocation { function, attributes: [plain.attributes[0], kind], ..plain }
            }
            Frame::Marker { function, .. } => WireLocation { function: self.function(function), ..plain },
        };
        let known = self.locations.len();
        let place = self.locations.intern(location);
        self.locations_merged |= self.locations.len() == known;
        self.frame_places.set(id, place)
    }

    /// The location of a Java frame that was added as a distinct one. Everything that the location refers to
    /// has been entered.
    fn distinct_location(&self, id: FrameId) -> WireLocation {
        let Frame::Java { function, line, execution } = *self.tables.frames.get(id) else {
            // SANITY: `enter_location` calls `push_distinct` for Java frames only.
            unreachable!("a distinct location of no Java frame");
        };
        let function = self.function_places.get(function).unwrap_or_default();
        let execution = execution.map(|execution| self.fixed_places[FRAME_TYPES + execution as usize]);
        let frame_type = self.fixed_places[FrameType::Jvm as usize];
        java_location(function, line, [frame_type, execution.unwrap_or_default()])
    }

    /// The location of an unsymbolized frame. Backends take a frame with a line for a symbolized one, so the
    /// frame's text becomes an attribute. It becomes a function's name if the user asks for that, or if no
    /// build-id lets a backend look the frame up.
    fn remote_location(&mut self, id: MappingId, address: ElfVaddr, plain: WireLocation) -> WireLocation {
        let mapping = self.tables.mappings.get(id);
        let location = WireLocation { mapping: self.mapping(id), address, ..plain };
        let Some(build_id) = mapping.build_id else {
            let name = unnamed_native_frame(self.tables.strings.get(mapping.filename), address);
            return WireLocation { function: self.named_function(&name), ..location };
        };
        let text = RemoteFrame { build_id, address }.to_string();
        match self.native_frames {
            NativeFrames::Remote => {
                let remote = self.text_attribute(attribute_keys::FRAME_REMOTE, &text);
                WireLocation { attributes: [plain.attributes[0], remote], ..location }
            }
            NativeFrames::Name => WireLocation { function: self.named_function(&text), ..location },
        }
    }

    fn function(&mut self, id: FunctionId) -> WireIndex {
        if let Some(place) = self.function_places.get(id) {
            return place;
        }
        let Function { name, system_name, is_method, filename, start_line } = *self.tables.functions.get(id);
        let place = if [name, system_name, filename] == [StringId::EMPTY; 3] {
            self.named_function(markers::UNKNOWN)
        } else {
            let (name, filename) = (self.table_string(name), self.table_string(filename));
            self.functions.intern(EnteredFunction { name, system_name, is_method, filename, start_line })
        };
        self.function_places.set(id, place)
    }

    fn named_function(&mut self, name: &str) -> WireIndex {
        let name = self.text(name);
        self.functions.intern(EnteredFunction { name, ..EnteredFunction::default() })
    }

    /// Enters the system names that are written. Call this after the last function has been entered and
    /// before any table is written.
    pub(super) fn enter_system_names(&mut self) {
        let written = self.functions.written_system_names(self.strings.len());
        self.system_names = written.into_iter().map(|name| self.table_string(name)).collect();
    }

    /// Enters a mapping. Returns zero for a mapping without any build-id, since such a mapping must not be
    /// written.
    fn mapping(&mut self, id: MappingId) -> WireIndex {
        let Mapping { memory_start, memory_limit, file_offset, filename, build_id, htlhash } =
            *self.tables.mappings.get(id);
        let gnu =
            build_id.map(|build_id| self.text_attribute(attribute_keys::BUILD_ID_GNU, &build_id.to_string()));
        let htlhash = htlhash
            .filter(|&hash| hash != StringId::EMPTY)
            .map(|hash| self.placed_attribute(attribute_keys::BUILD_ID_HTLHASH, Text::Table(hash)));
        let attributes = match (gnu, htlhash) {
            (None, None) => return WireIndex::ZERO,
            (Some(one), None) | (None, Some(one)) => [one, WireIndex::ZERO],
            (Some(gnu), Some(htlhash)) => [gnu, htlhash],
        };
        let filename = self.table_string(filename);
        self.mappings.intern(WireMapping {
            start: memory_start.0,
            limit: memory_limit.0,
            file_offset: file_offset.0,
            filename,
            attributes,
        })
    }
}

fn java_location(function: WireIndex, line: u32, attributes: [WireIndex; 2]) -> WireLocation {
    WireLocation { function, line, attributes, ..WireLocation::default() }
}

/// The contents of the tables, zero values included.
impl<'a> Dictionary<'a> {
    pub(super) fn strings(&self) -> impl Iterator<Item = &str> {
        self.strings.iter().map(|&text| self.resolve(text))
    }

    pub(super) fn functions(&self) -> impl Iterator<Item = WireFunction> {
        let functions = self.functions.entered().iter().zip(&self.system_names);
        functions.map(|(&EnteredFunction { name, filename, start_line, .. }, &system_name)| WireFunction {
            name,
            system_name,
            filename,
            start_line,
        })
    }

    pub(super) fn mappings(&self) -> &[WireMapping] {
        self.mappings.values()
    }

    pub(super) fn locations(&self) -> impl Iterator<Item = WireLocation> {
        self.locations.iter(|frame| self.distinct_location(frame))
    }

    pub(super) fn stacks(&self) -> impl Iterator<Item = &[WireIndex]> {
        self.stacks.iter()
    }

    /// The key, value and unit of each attribute; the zero entry has no value.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (WireIndex, Option<AnyValueRef<'_>>, WireIndex)> {
        self.attributes.values().iter().map(|attribute| {
            let value = attribute.value.map(|value| match value {
                WireValue::Str(text) => AnyValueRef::Str(self.resolve(text)),
                WireValue::Other(AttributeValue::Str(id)) => AnyValueRef::Str(self.tables.strings.get(id)),
                WireValue::Other(AttributeValue::Int(value)) => AnyValueRef::Int(value),
                WireValue::Other(AttributeValue::Bool(value)) => AnyValueRef::Bool(value),
                WireValue::Other(AttributeValue::Double(value)) => AnyValueRef::Double(value),
            });
            (attribute.key, value, attribute.unit)
        })
    }

    /// `None` for the zero entry, which is written as an empty link: readers reject a link whose ids are all
    /// zeros.
    pub(super) fn links(&self) -> impl Iterator<Item = Option<&'a Link>> {
        let tables = self.tables;
        self.links.iter().map(move |&id| (id != LinkId::NONE).then(|| tables.links.get(id)))
    }

    fn resolve(&self, text: Text) -> &str {
        match text {
            Text::Table(id) => self.tables.strings.get(id),
            Text::Added(id) => self.added.get(id),
        }
    }
}

//! A message that stays encoded: each element is decoded when a caller asks for it.
//!
//! In: the bytes of a message, which are checked first. Out: its tables, by index, and its profiles, one
//! after another (`encoded_profiles`). Memory: the bytes, and, once its tables are used, four to eight more
//! bytes for each of their elements.

use std::sync::OnceLock;

use otlpprof_protobuf::{ByteCursor, RawField, decoded, fields, payloads};
use prost::Message;

use super::bounds::{ELEMENT_BYTES, ELEMENT_PARTS, ELEMENTS, FRAMES, FRAMES_FOR_EACH_BYTE, STACK_FRAMES};
use super::encoded_profiles::EncodedResource;
use super::framing::Form;
use super::json_transcode::to_json;
use super::lookup::DictionaryTables;
use super::read_error::{BytePlace, ErrorKind, Notes, ReadError};
use super::read_protobuf;
use super::schema::dictionary::number as table_number;
use super::schema::profiles_data::number::{DICTIONARY, RESOURCE_PROFILES};
use super::schema::{self, any_value, function, key_value_and_unit, line, location, stack};
use super::wire::*;

/// A message of a file, with its place in the file and the oddities of its encoding.
#[derive(Clone, Debug)]
pub struct EncodedMessage {
    /// The message as protobuf, whatever the file's form.
    bytes: Vec<u8>,
    /// The index of its tables, made at the first use.
    tables: OnceLock<TableIndex>,
    /// The message's position in the file, from 0.
    pub index: usize,
    /// The file's form.
    pub form: Form,
    /// The offset of the message's first byte in the file, after decompression and without the length prefix.
    pub offset: u64,
    /// Whether the file is compressed.
    pub compressed: bool,
    /// The message's size in the file, in bytes.
    pub size: u64,
    /// Oddities of the message's encoding.
    pub notes: Notes,
}

/// The parts that a changed message has more than the message before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Growth {
    /// The number of added functions and strings, each far below [`ELEMENT_BYTES`].
    pub elements: usize,
    /// The bytes of the longest location that got lines.
    pub longest_location: usize,
    /// The greatest number of lines that a location got.
    pub most_lines: usize,
}

/// For each table of the dictionary, by field number less one: the offsets of its elements' keys in the
/// message.
#[derive(Clone, Debug, Default)]
struct TableIndex {
    has_dictionary: bool,
    elements: [Vec<u32>; TABLES],
}

const TABLES: usize = 7;
/// The dictionary's tables: positions in [`TableIndex::elements`].
const MAPPINGS: usize = table_number::MAPPING_TABLE as usize - 1;
const LOCATIONS: usize = table_number::LOCATION_TABLE as usize - 1;
const FUNCTIONS: usize = table_number::FUNCTION_TABLE as usize - 1;
const LINKS: usize = table_number::LINK_TABLE as usize - 1;
const STRINGS: usize = table_number::STRING_TABLE as usize - 1;
const ATTRIBUTES: usize = table_number::ATTRIBUTE_TABLE as usize - 1;
const STACKS: usize = table_number::STACK_TABLE as usize - 1;
/// The most lines of a location that need no check: a stack's location takes at least one byte, and the
/// bounds allow this many frames for each byte.
const FEW_LINES: usize = FRAMES_FOR_EACH_BYTE;
/// The bytes of the shortest element: a key and a length.
const LEAST_ELEMENT: usize = 2;

impl EncodedMessage {
    /// Checks and indexes a protobuf message.
    ///
    /// # Errors
    /// If the bytes are not such a message, or exceed [`super::bounds`].
    pub fn of_protobuf(bytes: Vec<u8>) -> Result<Self, ReadError> {
        let notes = read_protobuf::check(&bytes)?;
        let size = bytes.len() as u64;
        Self::of_checked(bytes, Form::Plain, size, notes)
    }

    /// Checks the frames of bytes that `read_protobuf` has checked.
    pub(super) fn of_checked(bytes: Vec<u8>, form: Form, size: u64, notes: Notes) -> Result<Self, ReadError> {
        let message = Self::unchecked(bytes, form, size, notes)?;
        message.check_frames()?;
        Ok(message)
    }

    /// A message of bytes that have been checked.
    pub(super) fn unchecked(bytes: Vec<u8>, form: Form, size: u64, notes: Notes) -> Result<Self, ReadError> {
        if u32::try_from(bytes.len()).is_err() {
            return Err(ReadError::new(ErrorKind::TooLarge, 0, "a message of 4 GiB or more"));
        }
        let tables = OnceLock::new();
        Ok(Self { bytes, tables, index: 0, form, offset: 0, compressed: false, size, notes })
    }

    /// A message of the same place in the same file, with other bytes: the bytes of this message with lines
    /// of locations, functions and strings added.
    ///
    /// # Errors
    /// If the bytes exceed [`super::bounds`].
    pub fn with_bytes(&self, bytes: Vec<u8>, growth: Growth) -> Result<Self, ReadError> {
        let Growth { elements, longest_location, most_lines } = growth;
        let samples_at_most =
            payloads(&self.bytes, RESOURCE_PROFILES).map(<[u8]>::len).sum::<usize>() / LEAST_ELEMENT;
        let elements_at_most = self.tables().elements() + samples_at_most + elements;
        if elements_at_most > ELEMENTS || longest_location > ELEMENT_BYTES || most_lines > ELEMENT_PARTS {
            read_protobuf::check_bounds(&bytes)?;
        }
        let changed = Self::unchecked(bytes, self.form, self.size, self.notes.clone())?;
        let (mut longest_stack, mut all_stacks) = (0, 0);
        for stack in self.tables().raw(STACKS) {
            longest_stack = longest_stack.max(stack.len());
            all_stacks += stack.len();
        }
        // Each location of a stack takes at least a byte.
        if longest_stack * most_lines > STACK_FRAMES || all_stacks * most_lines > changed.most_frames() {
            changed.check_frames()?;
        }
        let (index, offset, compressed) = (self.index, self.offset, self.compressed);
        Ok(Self { index, offset, compressed, ..changed })
    }

    /// The message as protobuf.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The message as protobuf, without its index.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Decodes the whole message. In the worst case the result is about 40 times as large as the bytes.
    pub fn decode(&self) -> ProfilesData {
        // SANITY: the bytes have been checked, so decoding does not fail; if it did, the message would be
        // empty.
        ProfilesData::decode(&*self.bytes).unwrap_or_default()
    }

    /// Whether readers take the protobuf for what it is. They may not if the message came as JSON: in
    /// protobuf, its samples without values and times resemble samples of OTLP v1.9.
    pub fn is_readable_protobuf(&self) -> bool {
        self.form != Form::Json || read_protobuf::check(&self.bytes).is_ok()
    }

    /// The message as one JSON document, without a line end. `None` only for bytes that no check has passed.
    pub fn to_json(&self) -> Option<Vec<u8>> {
        // Another writer's document may have the fields of a message in another order.
        to_json(&self.bytes).or_else(|| to_json(&self.decode().encode_to_vec()))
    }

    /// The dictionary's tables.
    pub fn tables(&self) -> EncodedTables<'_> {
        EncodedTables { message: self }
    }

    /// The profiles, grouped by resource.
    pub fn resources(&self) -> impl Iterator<Item = EncodedResource<'_>> {
        payloads(&self.bytes, RESOURCE_PROFILES).map(EncodedResource::new)
    }

    /// The place in the file of a byte of this message, for error messages.
    pub fn place(&self, offset: u64) -> BytePlace {
        BytePlace { offset: self.offset + offset, compressed: self.compressed }
    }

    /// The most frames of all stacks together.
    fn most_frames(&self) -> usize {
        FRAMES.max(self.bytes.len() * FRAMES_FOR_EACH_BYTE)
    }

    /// Refuses stacks that expand to more frames than the bounds allow.
    fn check_frames(&self) -> Result<(), ReadError> {
        let tables = self.tables();
        let lines = |location| payloads(location, location::number::LINES).count();
        let many: std::collections::HashMap<_, _> = (0..)
            .zip(tables.raw(LOCATIONS))
            // A line takes at least two bytes.
            .filter(|(_, location)| location.len() > 2 * FEW_LINES)
            .map(|(index, location)| (index, lines(location)))
            .filter(|&(_, lines)| lines > FEW_LINES)
            .collect();
        if many.is_empty() {
            return Ok(());
        }
        let most = self.most_frames();
        let mut of_all = 0;
        for stack in tables.stacks() {
            let frames = stack.iter().map(|index| many.get(index).copied().unwrap_or(1)).sum::<usize>();
            of_all += frames;
            if frames > STACK_FRAMES || of_all > most {
                let detail = format!("more than {STACK_FRAMES} frames of a stack, or {most} of all");
                return Err(
                    ReadError::new(ErrorKind::TooLarge, 0, detail).at("dictionary.stack_table".into())
                );
            }
        }
        Ok(())
    }
}

impl TableIndex {
    /// Indexes a message of less than 4 GiB.
    fn of(bytes: &[u8]) -> Self {
        let mut index = Self::default();
        for dictionary in payloads(bytes, DICTIONARY) {
            index.has_dictionary = true;
            for field in fields(dictionary) {
                if let Some(of_table) = table(&field).and_then(|table| index.elements.get_mut(table)) {
                    of_table.push((field.whole.as_ptr() as usize - bytes.as_ptr() as usize) as u32);
                }
            }
        }
        index
    }
}

fn table(field: &RawField<'_>) -> Option<usize> {
    usize::try_from(field.number).ok()?.checked_sub(1)
}

/// The tables of a message. An index out of range never panics.
#[derive(Clone, Copy, Debug)]
pub struct EncodedTables<'a> {
    message: &'a EncodedMessage,
}

impl<'a> EncodedTables<'a> {
    fn index(self) -> &'a TableIndex {
        self.message.tables.get_or_init(|| TableIndex::of(&self.message.bytes))
    }

    /// Whether the message has a dictionary.
    pub fn has_dictionary(self) -> bool {
        self.index().has_dictionary
    }

    /// The number of elements of all tables.
    fn elements(self) -> usize {
        self.index().elements.iter().map(Vec::len).sum()
    }

    fn at(self, table: usize, index: usize) -> Option<&'a [u8]> {
        let offset = *self.index().elements[table].get(index)?;
        let mut rest = ByteCursor::new(self.message.bytes.get(usize::try_from(offset).ok()?..)?);
        let (_, wire_type) = rest.key().ok()?;
        Some(rest.value(wire_type).ok()?.1)
    }

    fn entry(self, table: usize, index: i32) -> Option<&'a [u8]> {
        self.at(table, usize::try_from(index).ok()?)
    }

    fn raw(self, table: usize) -> impl ExactSizeIterator<Item = &'a [u8]> {
        (0..self.index().elements[table].len()).map(move |index| self.at(table, index).unwrap_or_default())
    }

    fn all<T: Message + Default>(self, table: usize) -> impl ExactSizeIterator<Item = T> {
        self.raw(table).map(decoded)
    }

    /// The mappings.
    pub fn mappings(self) -> impl ExactSizeIterator<Item = Mapping> {
        self.all(MAPPINGS)
    }

    /// The locations.
    pub fn locations(self) -> impl ExactSizeIterator<Item = Location> {
        self.all(LOCATIONS)
    }

    /// The locations, encoded.
    pub fn encoded_locations(self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.raw(LOCATIONS)
    }

    /// The functions.
    pub fn functions(self) -> impl ExactSizeIterator<Item = Function> {
        self.all(FUNCTIONS)
    }

    /// The links.
    pub fn links(self) -> impl ExactSizeIterator<Item = Link> {
        self.all(LINKS)
    }

    /// The strings.
    pub fn strings(self) -> impl ExactSizeIterator<Item = &'a str> {
        self.raw(STRINGS).map(text_of)
    }

    /// The attributes.
    pub fn attribute_table(self) -> impl ExactSizeIterator<Item = KeyValueAndUnit> {
        self.all(ATTRIBUTES)
    }

    /// The locations of each stack, leaf first.
    pub fn stacks(self) -> impl ExactSizeIterator<Item = Vec<i32>> {
        self.all::<Stack>(STACKS).map(|stack| stack.location_indices)
    }

    /// Decodes a stack's locations, leaf first, into a list. Returns whether the stack exists.
    pub fn stack_to(self, index: i32, locations: &mut Vec<i32>) -> bool {
        locations.clear();
        let Some(stack) = self.entry(STACKS, index) else { return false };
        for field in fields(stack).filter(|field| field.number == stack::number::LOCATION_INDICES) {
            field.each_varint(|location| locations.push(location as i32));
        }
        true
    }

    /// A link; `None` for index 0.
    pub fn link(self, index: i32) -> Option<Link> {
        self.entry(LINKS, index).filter(|_| index != 0).map(decoded)
    }

    /// An attribute; `None` for index 0.
    pub fn attribute(self, index: i32) -> Option<KeyValueAndUnit> {
        self.entry(ATTRIBUTES, index).filter(|_| index != 0).map(decoded)
    }

    /// The key and value of each attribute. Index 0 and indices out of range are skipped.
    pub fn attributes<'i>(
        self,
        indices: &'i [i32],
    ) -> impl Iterator<Item = (&'a str, Option<Value>)> + use<'a, 'i> {
        let attributes = indices.iter().filter(|&&index| index != 0);
        attributes.filter_map(move |&index| {
            let attribute: KeyValueAndUnit = decoded(self.entry(ATTRIBUTES, index)?);
            Some((self.text(attribute.key_strindex), attribute.value.and_then(|value| value.value)))
        })
    }

    /// The keys of the attributes. Index 0 and indices out of range are skipped.
    pub fn attribute_keys<'i>(self, indices: &'i [i32]) -> impl Iterator<Item = &'a str> + use<'a, 'i> {
        let attributes = indices.iter().filter(|&&index| index != 0);
        attributes.filter_map(move |&index| Some(self.key_of(self.entry(ATTRIBUTES, index)?)))
    }

    /// The key of each attribute of the table.
    pub fn all_attribute_keys(self) -> impl ExactSizeIterator<Item = &'a str> {
        self.raw(ATTRIBUTES).map(move |attribute| self.key_of(attribute))
    }

    /// The key and the text of an attribute; `None` if its value is not text.
    pub fn text_attribute(self, index: i32) -> Option<(&'a str, &'a str)> {
        let attribute = self.entry(ATTRIBUTES, index).filter(|_| index != 0)?;
        Some((self.key_of(attribute), self.encoded_text(attribute)?))
    }

    /// The key of an encoded KeyValueAndUnit.
    fn key_of(self, attribute: &[u8]) -> &'a str {
        let key =
            fields(attribute).filter(|field| field.number == key_value_and_unit::number::KEY_STRINDEX).last();
        self.text(key.map_or(0, |key| key.value as i32))
    }

    /// The value of an encoded KeyValueAndUnit, if the value is text. If the value occurs several times, the
    /// last counts.
    fn encoded_text(self, attribute: &'a [u8]) -> Option<&'a str> {
        let values = payloads(attribute, key_value_and_unit::number::VALUE).flat_map(fields);
        let value = values.filter(|value| schema::ANY_VALUE.by_number(value.number).is_some()).last()?;
        match value.number {
            any_value::number::STRING_VALUE => Some(text_of(value.payload)),
            any_value::number::STRING_VALUE_STRINDEX => self.string(value.value as i32),
            _ => None,
        }
    }
}

/// Decodes a location of a checked message. Large files have millions of them, and a general decoder takes
/// twice as long.
fn location_of(bytes: &[u8]) -> Location {
    use location::number::{ADDRESS, ATTRIBUTE_INDICES, LINES, MAPPING_INDEX};
    let mut location = Location::default();
    for field in fields(bytes) {
        match field.number {
            MAPPING_INDEX => location.mapping_index = field.value as i32,
            ADDRESS => location.address = field.value,
            LINES => location.lines.push(line_of(field.payload)),
            ATTRIBUTE_INDICES => {
                field.each_varint(|index| location.attribute_indices.push(index as i32));
            }
            _ => {}
        }
    }
    location
}

fn line_of(bytes: &[u8]) -> Line {
    use line::number::{COLUMN, FUNCTION_INDEX, LINE};
    let mut line = Line::default();
    for field in fields(bytes) {
        match field.number {
            FUNCTION_INDEX => line.function_index = field.value as i32,
            LINE => line.line = field.value as i64,
            COLUMN => line.column = field.value as i64,
            _ => {}
        }
    }
    line
}

fn function_of(bytes: &[u8]) -> Function {
    use function::number::{FILENAME_STRINDEX, NAME_STRINDEX, START_LINE, SYSTEM_NAME_STRINDEX};
    let mut function = Function::default();
    for field in fields(bytes) {
        match field.number {
            NAME_STRINDEX => function.name_strindex = field.value as i32,
            SYSTEM_NAME_STRINDEX => function.system_name_strindex = field.value as i32,
            FILENAME_STRINDEX => function.filename_strindex = field.value as i32,
            START_LINE => function.start_line = field.value as i64,
            _ => {}
        }
    }
    function
}

impl<'a> DictionaryTables<'a> for EncodedTables<'a> {
    type Stack = Vec<i32>;
    type Location = Location;
    type Mapping = Mapping;
    type Function = Function;

    fn string(self, index: i32) -> Option<&'a str> {
        self.entry(STRINGS, index).map(text_of)
    }

    fn stack(self, index: i32) -> Option<Vec<i32>> {
        self.entry(STACKS, index).map(|stack| decoded::<Stack>(stack).location_indices)
    }

    fn location(self, index: i32) -> Option<Location> {
        self.entry(LOCATIONS, index).map(location_of)
    }

    fn mapping(self, index: i32) -> Option<Mapping> {
        self.entry(MAPPINGS, index).filter(|_| index != 0).map(decoded)
    }

    fn function(self, index: i32) -> Option<Function> {
        self.entry(FUNCTIONS, index).filter(|_| index != 0).map(function_of)
    }

    fn attribute_text(self, indices: &[i32], key: &str) -> Option<&'a str> {
        let attributes = indices.iter().filter(|&&index| index != 0);
        let mut attributes = attributes.filter_map(|&index| self.entry(ATTRIBUTES, index));
        self.encoded_text(attributes.find(|attribute| self.key_of(attribute) == key)?)
    }
}

fn text_of(bytes: &[u8]) -> &str {
    // SANITY: the check has found this string to be UTF-8.
    std::str::from_utf8(bytes).unwrap_or_default()
}

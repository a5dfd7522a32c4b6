//! Puts chains into a message's dictionary.
//!
//! The bytes of the message are copied, except for the locations that get lines. New functions and strings
//! follow those that the message has; equal ones are not repeated. Fields that are not known here are kept.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use otlpprof_model::{FunctionId, StringId};
use otlpprof_otlp::encoded::{EncodedMessage, EncodedTables, Growth};
use otlpprof_otlp::read_error::ReadError;
use otlpprof_otlp::wire::Function;
use otlpprof_protobuf::{RawField, fields};

use super::location_fields::{ADDRESS, LINES};
use super::names::{ChainId, Names};

/// ProfilesData.dictionary.
const DICTIONARY: u32 = 2;
/// Tables of ProfilesDictionary.
const LOCATIONS: u32 = 2;
const FUNCTIONS: u32 = 3;
const STRINGS: u32 = 5;

/// A location whose chain is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resolved {
    /// The index of the location.
    pub(super) location: u32,
    /// The chain.
    pub(super) chain: ChainId,
    /// The ELF virtual address. A location without an address gets it, so that different frames stay
    /// different.
    pub(super) address: u64,
}

/// The bytes of most lines: a key, a length, and three numbers with their keys.
const USUAL_LINE_BYTES: usize = 14;

/// The message with lines in these locations, which are in ascending order.
///
/// # Errors
/// If the result would exceed the bounds of messages.
pub(super) fn rewritten(
    message: &EncodedMessage,
    resolved: &[Resolved],
    names: &Names,
) -> Result<EncodedMessage, ReadError> {
    let mut tables = GrowingTables::new(message.tables(), names);
    let mut lines = 0;
    for resolved in resolved {
        let chain = names.lines(resolved.chain);
        chain.iter().for_each(|line| tables.function(line.function));
        lines += chain.len();
    }
    let bytes = message.bytes();
    let added = tables.added.functions.len() + tables.added.strings.len() + lines * USUAL_LINE_BYTES;
    let mut out = Vec::with_capacity(bytes.len() + added);
    let dictionaries = fields(bytes).filter(|field| field.number == DICTIONARY).count();
    let mut writer = DictionaryWriter::new(&tables, resolved);
    for field in fields(bytes) {
        match field.number {
            DICTIONARY => {
                put_delimited_by(&mut out, DICTIONARY, |out| {
                    writer.write(field.payload, writer.copied.dictionaries + 1 == dictionaries, out);
                });
            }
            _ => out.extend_from_slice(field.whole),
        }
    }
    let DictionaryWriter { growth, .. } = writer;
    message.with_bytes(out, growth)
}

/// The functions and strings of a message, and those that are added.
struct GrowingTables<'n> {
    names: &'n Names,
    added: Added,
    /// By the numbers in `names`: the indices in the message; 0 if not yet known.
    strings: Vec<i32>,
    functions: Vec<i32>,
    /// The functions that the message has.
    own_function_numbers: HashMap<Function, i32, RandomState>,
    next_string: i32,
    next_function: i32,
}

/// The encoded fields of added functions and strings. They follow the last function and the last string that
/// the message has: elements of one table stay together, which some readers rely on.
#[derive(Default)]
struct Added {
    functions: Vec<u8>,
    strings: Vec<u8>,
    /// The numbers of functions and strings that the message has.
    own_functions: usize,
    own_strings: usize,
}

/// The parts of a message's dictionaries that have been copied.
#[derive(Default)]
struct Copied {
    dictionaries: usize,
    locations: u32,
    functions: usize,
    strings: usize,
}

impl<'n> GrowingTables<'n> {
    fn new(tables: EncodedTables<'n>, names: &'n Names) -> Self {
        let (own_strings, own_functions) = (tables.strings().len(), tables.functions().len());
        let mut added = Added { own_strings, own_functions, ..Added::default() };
        // Index 0 of each table is its zero value: a message without the table gets it.
        if own_strings == 0 {
            put_delimited(&mut added.strings, STRINGS, b"");
        }
        if own_functions == 0 {
            put_delimited(&mut added.functions, FUNCTIONS, b"");
        }
        let mut strings = vec![0; names.strings.len()];
        for (index, text) in (0..).zip(tables.strings()) {
            if let Some(id) = names.strings.find(text).filter(|&id| id != StringId::EMPTY) {
                strings[id.0 as usize] = index;
            }
        }
        Self {
            names,
            added,
            strings,
            functions: vec![0; names.functions.len()],
            own_function_numbers: (0..)
                .zip(tables.functions())
                .skip(1)
                .map(|(index, own)| (own, index))
                .collect(),
            next_string: own_strings.max(1) as i32,
            next_function: own_functions.max(1) as i32,
        }
    }

    /// Adds a function unless the message has it.
    fn function(&mut self, id: FunctionId) {
        let number = id.0 as usize;
        if self.functions[number] != 0 {
            return;
        }
        let function = *self.names.functions.get(id);
        let wire = Function {
            name_strindex: self.string(function.name),
            system_name_strindex: self.string(function.system_name),
            filename_strindex: self.string(function.filename),
            start_line: 0,
        };
        self.functions[number] = match self.own_function_numbers.get(&wire) {
            Some(&own) => own,
            None => {
                put_delimited_by(&mut self.added.functions, FUNCTIONS, |out| {
                    put_number(out, 1, wire.name_strindex as u64);
                    put_number(out, 2, wire.system_name_strindex as u64);
                    put_number(out, 3, wire.filename_strindex as u64);
                });
                self.next_function += 1;
                self.next_function - 1
            }
        };
    }

    fn string(&mut self, id: StringId) -> i32 {
        let number = id.0 as usize;
        if id != StringId::EMPTY && self.strings[number] == 0 {
            put_delimited(&mut self.added.strings, STRINGS, self.names.strings.get(id).as_bytes());
            self.strings[number] = self.next_string;
            self.next_string += 1;
        }
        self.strings[number]
    }
}

/// Copies the dictionaries of a message with lines in the resolved locations, and with added functions and
/// strings.
struct DictionaryWriter<'t> {
    tables: &'t GrowingTables<'t>,
    /// The resolved locations that have not been reached.
    resolved: &'t [Resolved],
    copied: Copied,
    growth: Growth,
}

impl<'t> DictionaryWriter<'t> {
    fn new(tables: &'t GrowingTables<'t>, resolved: &'t [Resolved]) -> Self {
        let Added { own_functions, own_strings, .. } = tables.added;
        let elements =
            tables.next_function as usize - own_functions + tables.next_string as usize - own_strings;
        Self { tables, resolved, copied: Copied::default(), growth: Growth { elements, ..Growth::default() } }
    }

    /// Copies a dictionary. The last one gets the tables that the message has not.
    fn write(&mut self, dictionary: &[u8], is_last: bool, out: &mut Vec<u8>) {
        let added = &self.tables.added;
        for field in fields(dictionary) {
            match field.number {
                LOCATIONS => {
                    let index = self.copied.locations;
                    self.copied.locations += 1;
                    match self.resolved.split_first().filter(|(resolved, _)| resolved.location == index) {
                        Some((resolved, rest)) => {
                            self.resolved = rest;
                            self.put_location(field, resolved, out);
                        }
                        None => out.extend_from_slice(field.whole),
                    }
                }
                FUNCTIONS => {
                    out.extend_from_slice(field.whole);
                    self.copied.functions += 1;
                    if self.copied.functions == added.own_functions {
                        out.extend_from_slice(&added.functions);
                    }
                }
                STRINGS => {
                    out.extend_from_slice(field.whole);
                    self.copied.strings += 1;
                    if self.copied.strings == added.own_strings {
                        out.extend_from_slice(&added.strings);
                    }
                }
                _ => out.extend_from_slice(field.whole),
            }
        }
        self.copied.dictionaries += 1;
        if is_last && added.own_functions == 0 {
            out.extend_from_slice(&added.functions);
        }
        if is_last && added.own_strings == 0 {
            out.extend_from_slice(&added.strings);
        }
    }

    /// Writes a location with the lines of its chain in place of its own.
    fn put_location(&mut self, location: RawField<'_>, resolved: &Resolved, out: &mut Vec<u8>) {
        let lines = self.tables.names.lines(resolved.chain);
        let before = out.len();
        put_delimited_by(out, LOCATIONS, |out| {
            let (mut has_address, mut has_lines) = (false, false);
            for field in fields(location.payload) {
                match field.number {
                    LINES => continue,
                    ADDRESS if field.value == 0 => continue,
                    ADDRESS => has_address = true,
                    // The usual order is the order of the numbers.
                    LINES.. if !has_lines => {
                        has_lines = true;
                        self.put_lines(resolved, has_address, out);
                    }
                    _ => {}
                }
                out.extend_from_slice(field.whole);
            }
            if !has_lines {
                self.put_lines(resolved, has_address, out);
            }
        });
        self.growth.most_lines = self.growth.most_lines.max(lines.len());
        self.growth.longest_location = self.growth.longest_location.max(out.len() - before);
    }

    /// Writes the lines of a chain, and the address before them unless the location has one.
    fn put_lines(&self, resolved: &Resolved, has_address: bool, out: &mut Vec<u8>) {
        if !has_address {
            put_number(out, ADDRESS, resolved.address);
        }
        for line in self.tables.names.lines(resolved.chain) {
            put_delimited_by(out, LINES, |out| {
                put_number(out, 1, self.tables.functions[line.function.0 as usize] as u64);
                put_number(out, 2, line.line.into());
                put_number(out, 3, line.column.into());
            });
        }
    }
}

/// Writes a field of the bytes that `write` appends.
fn put_delimited_by(out: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>)) {
    put_key(out, number);
    let length_at = out.len();
    out.push(0);
    let payload_at = out.len();
    write(out);
    let length = out.len() - payload_at;
    let length_bytes = prost::encoding::encoded_len_varint(length as u64);
    if length_bytes > 1 {
        // The length of few fields takes more than one byte.
        out.resize(out.len() + length_bytes - 1, 0);
        out.copy_within(payload_at..payload_at + length, length_at + length_bytes);
    }
    prost::encoding::encode_varint(length as u64, &mut &mut out[length_at..length_at + length_bytes]);
}

fn put_delimited(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_key(out, number);
    prost::encoding::encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Writes the key of a field that has a length.
fn put_key(out: &mut Vec<u8>, number: u32) {
    const DELIMITED: u32 = 2;
    prost::encoding::encode_varint((number << 3 | DELIMITED).into(), out);
}

/// Writes a varint, unless it is 0: a field with its default value is not on the wire.
fn put_number(out: &mut Vec<u8>, number: u32, value: u64) {
    if value != 0 {
        prost::encoding::encode_varint((number << 3).into(), out);
        prost::encoding::encode_varint(value, out);
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_otlp::wire::{Line, Location, ProfilesData, ProfilesDictionary, ResourceProfiles};
    use prost::Message as _;

    use super::*;
    use crate::names;

    /// Field 99, which no message has, as text.
    const UNKNOWN: &[u8] = &[0x9a, 6, 3, b'n', b'e', b'w'];

    fn delimited(number: u32, parts: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        put_delimited(&mut out, number, &parts.concat());
        out
    }

    /// A chain of `inner`, which is inlined, and `outer`.
    fn chain(names: &mut Names) -> ChainId {
        let lines = ["inner", "outer"].map(|name| {
            let [name, filename] = [name, "a.c"].map(|text| names.text(text));
            let function = names.functions.intern(names::NamedFunction { name, system_name: name, filename });
            names::CodeLine { function, line: 7, column: 3 }
        });
        names.chain(&lines)
    }

    #[test]
    fn everything_but_the_lines_is_copied_byte_for_byte() {
        let mut names = Names::default();
        let chain = chain(&mut names);
        let location = Location { mapping_index: 1, attribute_indices: vec![3, 300], ..Location::default() };
        let location = delimited(LOCATIONS, &[&location.encode_to_vec(), UNKNOWN]);
        let known =
            Function { name_strindex: 1, system_name_strindex: 1, filename_strindex: 2, start_line: 0 };
        let functions = [delimited(FUNCTIONS, &[]), delimited(FUNCTIONS, &[&known.encode_to_vec()])].concat();
        let strings = ["", "outer", "a.c"].map(|text| delimited(STRINGS, &[text.as_bytes()])).concat();
        // The dictionary in two parts, which a reader joins.
        let first = delimited(DICTIONARY, &[&delimited(LOCATIONS, &[]), &location, UNKNOWN]);
        let second = [&location[..], &functions, &strings];
        let resource = ResourceProfiles { schema_url: "s".into(), ..ResourceProfiles::default() };
        let before = [UNKNOWN, &delimited(1, &[&resource.encode_to_vec()]), &first].concat();
        let bytes = [&before[..], &delimited(DICTIONARY, &second), UNKNOWN].concat();
        let message = EncodedMessage::of_protobuf(bytes.clone()).unwrap();
        // Only the location of the second part is resolved.
        let resolved = [Resolved { location: 2, chain, address: 0x1234 }];
        let after = rewritten(&message, &resolved, &names).unwrap();
        let bytes = after.bytes();
        assert!(
            bytes.starts_with(&before)
                && bytes.ends_with(&[&strings, &b"\x2a\x05inner"[..], UNKNOWN].concat())
        );
        let data = ProfilesData::decode(bytes).unwrap();
        let ProfilesDictionary { location_table, function_table, string_table, .. } =
            data.dictionary.unwrap();
        assert_eq!(string_table, ["", "outer", "a.c", "inner"]);
        let inner = Function { name_strindex: 3, system_name_strindex: 3, ..known };
        assert_eq!(function_table, [Function::default(), known, inner]);
        let line = |function_index| Line { function_index, line: 7, column: 3 };
        assert_eq!(location_table[1].lines, []);
        assert_eq!(location_table[2].lines, [line(2), line(1)]);
        assert_eq!(
            (location_table[2].address, &*location_table[2].attribute_indices),
            (0x1234, &[3, 300][..])
        );
        // Field 99 of the location.
        assert_eq!(bytes.windows(UNKNOWN.len()).filter(|part| *part == UNKNOWN).count(), 5);
    }

    #[test]
    fn tables_that_a_message_lacks_get_their_zero_values() {
        let mut names = Names::default();
        let chain = chain(&mut names);
        let bytes =
            delimited(DICTIONARY, &[&delimited(LOCATIONS, &[]), &delimited(LOCATIONS, &[&[0x10, 5]])]);
        let message = EncodedMessage::of_protobuf(bytes).unwrap();
        let resolved = [Resolved { location: 1, chain, address: 9 }];
        let data = rewritten(&message, &resolved, &names).unwrap().decode();
        let dictionary = data.dictionary.unwrap();
        assert_eq!(dictionary.string_table, ["", "inner", "a.c", "outer"]);
        assert_eq!(dictionary.function_table.len(), 3);
        assert_eq!(dictionary.location_table[1].address, 5, "the message's own address stays");
    }
}

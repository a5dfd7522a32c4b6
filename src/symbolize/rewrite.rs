//! Puts chains into a message's dictionary.
//!
//! The bytes of the message are copied, except for the locations that get lines. New functions and strings
//! follow those that the message has; equal ones are not repeated. Fields that are not known here are kept.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::location_fields::{ADDRESS, LINES, MAPPING};
use super::names::{ChainId, Names};
use crate::model::{FunctionId, StringId};
use crate::otlp::encoded::{EncodedMessage, EncodedTables};
use crate::otlp::read_error::ReadError;
use crate::otlp::wire::Function;
use crate::protobuf::{RawField, fields};

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
    let mut most_lines = 0;
    for resolved in resolved {
        let lines = names.lines(resolved.chain);
        most_lines = most_lines.max(lines.len());
        lines.iter().for_each(|line| tables.function(line.function));
    }
    let bytes = message.bytes();
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 2);
    let last = fields(bytes).filter(|field| field.number == DICTIONARY).count();
    let (mut dictionaries, mut copied) = (0, Copied::default());
    for field in fields(bytes) {
        if field.number != DICTIONARY {
            out.extend_from_slice(field.whole);
            continue;
        }
        dictionaries += 1;
        let mut dictionary = Vec::with_capacity(field.payload.len() + field.payload.len() / 2);
        write_dictionary(field.payload, resolved, &tables, &mut copied, &mut dictionary);
        if dictionaries == last {
            tables.added.write_new_tables(&mut dictionary);
        }
        put_delimited(&mut out, DICTIONARY, &dictionary);
    }
    message.with_bytes(out, most_lines)
}

/// The functions and strings of a message, and those that are added.
struct GrowingTables<'n> {
    names: &'n Names,
    added: Added,
    /// By the numbers in `names`: the indices in the message; 0 if not yet known.
    strings: Vec<i32>,
    functions: Vec<i32>,
    known_strings: HashMap<&'n str, i32, RandomState>,
    known_functions: HashMap<Function, i32, RandomState>,
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

impl Added {
    /// Writes the tables that the message has not.
    fn write_new_tables(&self, dictionary: &mut Vec<u8>) {
        if self.own_functions == 0 {
            dictionary.extend_from_slice(&self.functions);
        }
        if self.own_strings == 0 {
            dictionary.extend_from_slice(&self.strings);
        }
    }
}

/// The elements of a message's tables that have been copied, over all its dictionaries.
#[derive(Default)]
struct Copied {
    locations: u32,
    functions: usize,
    strings: usize,
}

impl<'n> GrowingTables<'n> {
    fn new(tables: EncodedTables<'n>, names: &'n Names) -> Self {
        let strings = tables.strings();
        let functions = tables.functions();
        // Index 0 of each table is its zero value: a message without the table gets it.
        let (next_string, next_function) = (strings.len().max(1) as i32, functions.len().max(1) as i32);
        let (own_strings, own_functions) = (strings.len(), functions.len());
        let mut added = Added { own_strings, own_functions, ..Added::default() };
        if strings.len() == 0 {
            put_delimited(&mut added.strings, STRINGS, b"");
        }
        if functions.len() == 0 {
            put_delimited(&mut added.functions, FUNCTIONS, b"");
        }
        let known_strings = (0..).zip(strings).map(|(index, text)| (text, index)).collect();
        let known_functions =
            (0..).zip(functions).skip(1).map(|(index, function)| (function, index)).collect();
        Self {
            names,
            added,
            strings: vec![0; names.strings.len()],
            functions: vec![0; names.functions.len()],
            known_strings,
            known_functions,
            next_string,
            next_function,
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
        self.functions[number] = match self.known_functions.get(&wire) {
            Some(&known) => known,
            None => {
                put_message(&mut self.added.functions, FUNCTIONS, &wire);
                self.next_function += 1;
                self.next_function - 1
            }
        };
    }

    fn string(&mut self, id: StringId) -> i32 {
        let number = id.0 as usize;
        if id == StringId::EMPTY || self.strings[number] != 0 {
            return self.strings[number];
        }
        let text = self.names.strings.get(id);
        self.strings[number] = match self.known_strings.get(text) {
            Some(&known) => known,
            None => {
                put_delimited(&mut self.added.strings, STRINGS, text.as_bytes());
                self.next_string += 1;
                self.next_string - 1
            }
        };
        self.strings[number]
    }
}

/// Copies a dictionary with lines in the resolved locations, and with added functions and strings.
fn write_dictionary(
    dictionary: &[u8],
    resolved: &[Resolved],
    tables: &GrowingTables<'_>,
    copied: &mut Copied,
    out: &mut Vec<u8>,
) {
    let added = &tables.added;
    let mut rest = &resolved[resolved.partition_point(|resolved| resolved.location < copied.locations)..];
    for field in fields(dictionary) {
        match field.number {
            LOCATIONS => {
                let index = copied.locations;
                copied.locations += 1;
                match rest.split_first().filter(|(resolved, _)| resolved.location == index) {
                    Some((resolved, after)) => {
                        put_location(out, field, resolved, tables);
                        rest = after;
                    }
                    None => out.extend_from_slice(field.whole),
                }
            }
            FUNCTIONS => {
                out.extend_from_slice(field.whole);
                copied.functions += 1;
                if copied.functions == added.own_functions {
                    out.extend_from_slice(&added.functions);
                }
            }
            STRINGS => {
                out.extend_from_slice(field.whole);
                copied.strings += 1;
                if copied.strings == added.own_strings {
                    out.extend_from_slice(&added.strings);
                }
            }
            _ => out.extend_from_slice(field.whole),
        }
    }
}

/// Writes a location with the lines of its chain in place of its own.
fn put_location(out: &mut Vec<u8>, location: RawField<'_>, resolved: &Resolved, tables: &GrowingTables<'_>) {
    let mut body = Vec::with_capacity(location.payload.len() + 64);
    let (mut after, mut address) = (Vec::new(), None);
    for field in fields(location.payload) {
        match field.number {
            ..=MAPPING => body.extend_from_slice(field.whole),
            ADDRESS => address = Some(field).filter(|address| address.value != 0),
            LINES => {}
            _ => after.extend_from_slice(field.whole),
        }
    }
    match address {
        Some(address) => body.extend_from_slice(address.whole),
        None => put_number(&mut body, ADDRESS, resolved.address),
    }
    let mut encoded = Vec::with_capacity(16);
    for line in tables.names.lines(resolved.chain) {
        encoded.clear();
        put_number(&mut encoded, 1, tables.functions[line.function.0 as usize] as u64);
        put_number(&mut encoded, 2, line.line.into());
        put_number(&mut encoded, 3, line.column.into());
        put_delimited(&mut body, LINES, &encoded);
    }
    body.extend_from_slice(&after);
    put_delimited(out, LOCATIONS, &body);
}

fn put_message(out: &mut Vec<u8>, number: u32, message: &impl prost::Message) {
    put_delimited(out, number, &message.encode_to_vec());
}

fn put_delimited(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    const DELIMITED: u32 = 2;
    prost::encoding::encode_varint((number << 3 | DELIMITED).into(), out);
    prost::encoding::encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
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
    use prost::Message as _;

    use super::*;
    use crate::otlp::wire::{Line, Location, ProfilesData, ProfilesDictionary, ResourceProfiles};
    use crate::symbolize::names;

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
            let function = names.functions.intern(names::Function { name, system_name: name, filename });
            names::Line { function, line: 7, column: 3 }
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
        // The location of the second part alone is resolved.
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

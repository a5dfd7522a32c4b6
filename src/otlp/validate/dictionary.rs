//! The dictionary: its tables, their elements, and the indices into them.

use std::collections::HashMap;
use std::hash::Hash;

use prost::Message as _;

use super::super::wire::*;
use super::Check;
use super::references::{self, Table};
use super::report::{Part, Place};
use super::rules::RuleId;

pub(super) fn check(check: &mut Check<'_>) {
    let Some(dictionary) = &check.data.dictionary else {
        let message = check.message;
        check.report.add(RuleId::DictionaryMissing, || Place::Message(message), String::new);
        return;
    };
    zero_values(check, dictionary);
    elements(check, dictionary);
    duplicates(check, dictionary);
    indices(check, dictionary);
}

fn zero_values(check: &mut Check<'_>, dictionary: &ProfilesDictionary) {
    fn is_zero<T: Default + PartialEq>(table: &[T]) -> Option<bool> {
        table.first().map(|entry| *entry == T::default())
    }
    let zero_bytes = |id: &[u8], length| id.len() == length && id.iter().all(|&byte| byte == 0);
    for table in Table::ALL {
        let zero = match table {
            Table::Mapping => is_zero(&dictionary.mapping_table),
            Table::Location => is_zero(&dictionary.location_table),
            Table::Function => is_zero(&dictionary.function_table),
            Table::String => is_zero(&dictionary.string_table),
            Table::Attribute => is_zero(&dictionary.attribute_table),
            Table::Stack => is_zero(&dictionary.stack_table),
            Table::Link => match dictionary.link_table.first() {
                Some(link) if zero_bytes(&link.trace_id, 16) && zero_bytes(&link.span_id, 8) => {
                    check.breach(RuleId::LinkZeroBytes, Part::Entry(table.name(), 0), String::new);
                    Some(true)
                }
                _ => is_zero(&dictionary.link_table),
            },
        };
        match zero {
            Some(true) => {}
            Some(false) => check.breach(RuleId::TableZeroValue, Part::Entry(table.name(), 0), String::new),
            None => {
                let message = check.message;
                let place = || Place::Field(message, format!("dictionary.{}", table.name()));
                check.report.add(RuleId::TableEmpty, place, String::new);
            }
        }
    }
}

fn elements(check: &mut Check<'_>, dictionary: &ProfilesDictionary) {
    for (index, function) in dictionary.function_table.iter().enumerate().skip(1) {
        let names = [function.name_strindex, function.system_name_strindex, function.filename_strindex];
        if names.iter().all(|&name| check.tables.string(name) == Some("")) {
            check.breach(RuleId::FunctionNameless, Part::Entry("function_table", index), String::new);
        }
    }
    for (index, location) in dictionary.location_table.iter().enumerate().skip(1) {
        let Some(mapping) = check.tables.mapping(location.mapping_index) else { continue };
        let inside = (mapping.memory_start..mapping.memory_limit).contains(&location.address);
        if location.address != 0 && mapping.memory_limit != 0 && !inside {
            let (address, start, limit) = (location.address, mapping.memory_start, mapping.memory_limit);
            check.breach(RuleId::AddressOutsideMapping, Part::Entry("location_table", index), || {
                format!("{address:#x} is not in {start:#x}..{limit:#x}")
            });
        }
    }
    for (index, link) in dictionary.link_table.iter().enumerate() {
        let part = Part::Entry("link_table", index);
        let lengths = (link.trace_id.len(), link.span_id.len());
        let zero = |id: &[u8]| id.iter().all(|&byte| byte == 0);
        if index == 0 {
            // What it may be is a rule of its own.
        } else if lengths != (16, 8) {
            let detail = || format!("{} and {} bytes", lengths.0, lengths.1);
            check.breach(RuleId::LinkIdLength, part, detail);
        } else if zero(&link.trace_id) || zero(&link.span_id) {
            check.breach(RuleId::LinkIdZero, part, String::new);
        }
    }
}

fn duplicates(check: &mut Check<'_>, dictionary: &ProfilesDictionary) {
    fn find<K: Hash + Eq>(check: &mut Check<'_>, table: Table, keys: impl Iterator<Item = K>) {
        let mut first = HashMap::new();
        for (index, key) in keys.enumerate() {
            let earlier = *first.entry(key).or_insert(index);
            if earlier != index {
                check.breach(RuleId::DictionaryDuplicate, Part::Entry(table.name(), index), || {
                    format!("equals [{earlier}]")
                });
            }
        }
    }
    find(check, Table::Mapping, dictionary.mapping_table.iter());
    find(check, Table::Location, dictionary.location_table.iter());
    find(check, Table::Function, dictionary.function_table.iter());
    find(check, Table::Link, dictionary.link_table.iter());
    find(check, Table::String, dictionary.string_table.iter());
    // Values may be floating-point numbers, which are no keys; their encoding is.
    find(check, Table::Attribute, dictionary.attribute_table.iter().map(|entry| entry.encode_to_vec()));
    find(check, Table::Stack, dictionary.stack_table.iter());
}

fn indices(check: &mut Check<'_>, dictionary: &ProfilesDictionary) {
    let mut used = Table::ALL.map(|table| vec![false; table.len(dictionary)]);
    let mut all_in_range = true;
    let data = check.data;
    references::visit(data, &mut |reference| {
        if reference.index == 0 && matches!(reference.field, "location_indices" | "attribute_indices") {
            check.breach(RuleId::ZeroReference, reference.from, || reference.field.to_owned());
        }
        let entries = &mut used[reference.table as usize];
        let length = entries.len();
        match usize::try_from(reference.index).ok().and_then(|index| entries.get_mut(index)) {
            Some(entry) => *entry = true,
            // That the table is empty was reported.
            None if length == 0 => all_in_range = false,
            None => {
                all_in_range = false;
                check.breach(RuleId::IndexOutOfRange, reference.from, || {
                    let (field, index, table) = (reference.field, reference.index, reference.table.name());
                    format!("{field} is {index}, {table} has {length}")
                });
            }
        }
    });
    if !all_in_range {
        // An element that a wrong index was meant for is no orphan.
        return;
    }
    for (table, used) in Table::ALL.into_iter().zip(used) {
        for (index, _) in used.iter().enumerate().skip(1).filter(|(_, used)| !**used) {
            let detail = || match table {
                Table::String => format!("{:?}", shorten(&dictionary.string_table[index])),
                _ => String::new(),
            };
            check.breach(RuleId::DictionaryOrphan, Part::Entry(table.name(), index), detail);
        }
    }
}

/// At most the first 60 characters.
pub(super) fn shorten(text: &str) -> &str {
    text.char_indices().nth(60).map_or(text, |(end, _)| &text[..end])
}

//! Checks the dictionary: its tables, their elements, and the indices into them.

use std::hash::{BuildHasher as _, RandomState};

use prost::Message as _;

use super::super::wire::*;
use super::check::Check;
use super::references::{self, DictionaryTable};
use super::repeated;
use super::report::{FindingPlace, Part};
use super::rules::RuleId;
use crate::lookup::DictionaryTables as _;

pub(super) fn check(check: &mut Check<'_>) {
    if !check.tables.has_dictionary() {
        let message = check.message;
        check.report.add(RuleId::DictionaryMissing, || FindingPlace::Message(message), String::new);
        return;
    }
    zero_values(check);
    elements(check);
    duplicates(check);
    indices(check);
}

fn zero_values(check: &mut Check<'_>) {
    fn is_zero<T: Default + PartialEq>(mut table: impl Iterator<Item = T>) -> Option<bool> {
        table.next().map(|entry| entry == T::default())
    }
    let tables = check.tables;
    let zero_bytes = |id: &[u8], length| id.len() == length && id.iter().all(|&byte| byte == 0);
    for table in DictionaryTable::ALL {
        let zero = match table {
            DictionaryTable::Mapping => is_zero(tables.mappings()),
            DictionaryTable::Location => is_zero(tables.locations()),
            DictionaryTable::Function => is_zero(tables.functions()),
            DictionaryTable::String => is_zero(tables.strings()),
            // Go libraries write an empty value for an attribute without a value.
            DictionaryTable::Attribute => is_zero(tables.attribute_table().map(|attribute| {
                KeyValueAndUnit { value: attribute.value.filter(|value| value.value.is_some()), ..attribute }
            })),
            DictionaryTable::Stack => is_zero(tables.stacks()),
            DictionaryTable::Link => tables.links().next().map(|link| {
                let [trace_id, span_id] = [(&link.trace_id, 16), (&link.span_id, 8)];
                if zero_bytes(trace_id.0, trace_id.1) || zero_bytes(span_id.0, span_id.1) {
                    check.breach(RuleId::LinkZeroBytes, Part::Entry(table.name(), 0), String::new);
                }
                [trace_id, span_id].into_iter().all(|(id, length)| id.is_empty() || zero_bytes(id, length))
            }),
        };
        match zero {
            Some(true) => {}
            Some(false) => check.breach(RuleId::TableZeroValue, Part::Entry(table.name(), 0), String::new),
            None => {
                let message = check.message;
                let place = || FindingPlace::Field(message, format!("dictionary.{}", table.name()));
                check.report.add(RuleId::TableEmpty, place, String::new);
            }
        }
    }
}

fn elements(check: &mut Check<'_>) {
    let tables = check.tables;
    for (index, function) in tables.functions().enumerate().skip(1) {
        let names = [function.name_strindex, function.system_name_strindex, function.filename_strindex];
        if names.iter().all(|&name| tables.string(name) == Some("")) {
            check.breach(RuleId::FunctionNameless, Part::Entry("function_table", index), String::new);
        }
    }
    for (index, location) in tables.locations().enumerate().skip(1) {
        let Some(mapping) = tables.mapping(location.mapping_index) else { continue };
        let inside = (mapping.memory_start..mapping.memory_limit).contains(&location.address);
        if location.address != 0 && mapping.memory_limit != 0 && !inside {
            let (address, start, limit) = (location.address, mapping.memory_start, mapping.memory_limit);
            check.breach(RuleId::AddressOutsideMapping, Part::Entry("location_table", index), || {
                format!("{address:#x} is not in {start:#x}..{limit:#x}")
            });
        }
    }
    // Another rule covers element 0.
    for (index, link) in tables.links().enumerate().skip(1) {
        let part = Part::Entry("link_table", index);
        let lengths = (link.trace_id.len(), link.span_id.len());
        let zero = |id: &[u8]| id.iter().all(|&byte| byte == 0);
        if lengths != (16, 8) {
            let detail = || format!("{} and {} bytes", lengths.0, lengths.1);
            check.breach(RuleId::LinkIdLength, part, detail);
        } else if zero(&link.trace_id) || zero(&link.span_id) {
            check.breach(RuleId::LinkIdZero, part, String::new);
        }
    }
}

fn duplicates(check: &mut Check<'_>) {
    fn find<I: Iterator<Item = u64>>(check: &mut Check<'_>, table: DictionaryTable, hashes: impl Fn() -> I) {
        repeated::find(hashes, |index, earlier| {
            check.breach(RuleId::DictionaryDuplicate, Part::Entry(table.name(), index), || {
                format!("equals [{earlier}]")
            });
        });
    }
    let (hasher, tables) = (&RandomState::new(), check.tables);
    find(check, DictionaryTable::Mapping, || tables.mappings().map(|entry| hasher.hash_one(entry)));
    find(check, DictionaryTable::Location, || tables.locations().map(|entry| hasher.hash_one(entry)));
    find(check, DictionaryTable::Function, || tables.functions().map(|entry| hasher.hash_one(entry)));
    find(check, DictionaryTable::Link, || tables.links().map(|entry| hasher.hash_one(entry)));
    find(check, DictionaryTable::String, || tables.strings().map(|entry| hasher.hash_one(entry)));
    // Values may be floating-point numbers, which cannot be hashed; so their encoding is hashed.
    find(check, DictionaryTable::Attribute, || {
        tables.attribute_table().map(|entry| hasher.hash_one(entry.encode_to_vec()))
    });
    find(check, DictionaryTable::Stack, || tables.stacks().map(|entry| hasher.hash_one(entry)));
}

fn indices(check: &mut Check<'_>) {
    let tables = check.tables;
    let mut used = DictionaryTable::ALL.map(|table| vec![false; table.len(tables)]);
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
            // The empty table has already been reported.
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
        // An element without a reference may be the one that a wrong index meant, so no orphans are reported.
        return;
    }
    for (table, used) in DictionaryTable::ALL.into_iter().zip(used) {
        for (index, _) in used.iter().enumerate().skip(1).filter(|(_, used)| !**used) {
            let detail = || match table {
                DictionaryTable::String => {
                    format!("{:?}", shorten(i32::try_from(index).map_or("", |index| tables.text(index))))
                }
                _ => String::new(),
            };
            check.breach(RuleId::DictionaryOrphan, Part::Entry(table.name(), index), detail);
        }
    }
}

/// The first 60 characters.
pub(super) fn shorten(text: &str) -> &str {
    text.char_indices().nth(60).map_or(text, |(end, _)| &text[..end])
}

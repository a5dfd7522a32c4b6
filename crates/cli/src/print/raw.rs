//! The dictionary's tables, element by element.

use std::io::{self, Write};

use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::lookup::DictionaryTables as _;

use super::value;

pub(super) fn print(tables: EncodedTables<'_>, out: &mut dyn Write) -> io::Result<()> {
    for (index, text) in tables.strings().enumerate() {
        writeln!(out, "string_table[{index}] {text:?}")?;
    }
    for (index, attribute) in tables.attribute_table().enumerate() {
        let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
        let (key, unit) = (attribute.key_strindex, attribute.unit_strindex);
        let text = value::text(tables, value);
        writeln!(out, "attribute_table[{index}] key {key} {:?} unit {unit} value {text}", tables.text(key))?;
    }
    for (index, mapping) in tables.mappings().enumerate() {
        let (start, limit, offset) = (mapping.memory_start, mapping.memory_limit, mapping.file_offset);
        let (name, attributes) = (mapping.filename_strindex, &mapping.attribute_indices);
        let file = tables.text(name);
        writeln!(
            out,
            "mapping_table[{index}] {start:#x}..{limit:#x} from {offset:#x} of {name} {file:?} attributes \
             {attributes:?}"
        )?;
    }
    for (index, function) in tables.functions().enumerate() {
        let [name, system, file] =
            [function.name_strindex, function.system_name_strindex, function.filename_strindex]
                .map(|index| format!("{index} {:?}", tables.text(index)));
        let line = function.start_line;
        writeln!(out, "function_table[{index}] name {name} system {system} file {file} line {line}")?;
    }
    for (index, location) in tables.locations().enumerate() {
        let (mapping, address, attributes) =
            (location.mapping_index, location.address, &location.attribute_indices);
        write!(
            out,
            "location_table[{index}] mapping {mapping} address {address:#x} attributes {attributes:?}"
        )?;
        for line in &location.lines {
            write!(out, " function {} line {} column {}", line.function_index, line.line, line.column)?;
        }
        writeln!(out)?;
    }
    for (index, link) in tables.links().enumerate() {
        let (trace, span) = (value::hexadecimal(&link.trace_id), value::hexadecimal(&link.span_id));
        writeln!(out, "link_table[{index}] trace {trace:?} span {span:?}")?;
    }
    for (index, stack) in tables.stacks().enumerate() {
        writeln!(out, "stack_table[{index}] {:?}", stack)?;
    }
    Ok(())
}

//! The line table of a unit (DWARF 5, section 6.2).

use std::ops::Range;

use gimli::{AttributeValue, ColumnType, LineProgramHeader, UnitRef};

use super::error::DwarfError;
use super::limits;
use super::owners::{is_wanted, starts_in};
use super::sections::Bytes;
use super::texts::{NO_TEXT, SharedTexts};

/// A place in the source code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SourcePosition {
    /// The number of the file's path.
    pub(super) file: u32,
    /// The line; 0 if it is unknown.
    pub(super) line: u32,
    /// The column; 0 if it is unknown.
    pub(super) column: u32,
}

impl SourcePosition {
    /// No place.
    pub(super) const NONE: Self = Self { file: NO_TEXT, line: 0, column: 0 };
}

/// The paths of a unit's files.
pub(super) struct Files<'u, 'a> {
    unit: UnitRef<'u, Bytes<'a>>,
    header: Option<LineProgramHeader<Bytes<'a>>>,
    numbers: Vec<Option<u32>>,
}

impl<'u, 'a> Files<'u, 'a> {
    /// The number of a file's path; [`NO_TEXT`] if there is no such file.
    ///
    /// # Errors
    /// If the path is too long.
    pub(super) fn number(&mut self, index: u64, texts: &SharedTexts) -> Result<u32, DwarfError> {
        let Some(header) = &self.header else { return Ok(NO_TEXT) };
        let count = header.file_names().len() + 1;
        let Some(slot) = usize::try_from(index).ok().filter(|&slot| slot < count) else { return Ok(NO_TEXT) };
        self.numbers.resize(count.max(self.numbers.len()), None);
        if let Some(number) = self.numbers[slot] {
            return Ok(number);
        }
        let number = match path(self.unit, header, index) {
            Some(path) => texts.add(&path)?,
            None => NO_TEXT,
        };
        self.numbers[slot] = Some(number);
        Ok(number)
    }
}

/// The path of a file: absolute if the compiler recorded its folder (LLVM's `Prologue::getFileNameByIndex`).
fn path<'a>(
    unit: UnitRef<'_, Bytes<'a>>,
    header: &LineProgramHeader<Bytes<'a>>,
    index: u64,
) -> Option<Vec<u8>> {
    let is_5 = header.version() >= 5;
    if index == 0 && !is_5 {
        return None;
    }
    let file = header.file(index)?;
    let name = unit.attr_string(file.path_name()).ok()?.slice();
    if is_absolute(name) {
        return Some(name.to_vec());
    }
    let folder_index = file.directory_index();
    let folders = header.include_directories();
    let folder: Option<&AttributeValue<_>> = match folder_index.checked_sub(u64::from(!is_5)) {
        Some(index) => usize::try_from(index).ok().and_then(|index| folders.get(index)),
        None => None,
    };
    let folder =
        folder.and_then(|&folder| unit.attr_string(folder).ok()).map_or(&[][..], |text| text.slice());
    let mut path = Vec::new();
    // Folder 0 of DWARF 5 is the compilation's folder itself.
    if (!is_5 || folder_index != 0) && !is_absolute(folder) {
        append(&mut path, unit.comp_dir.map_or(&[][..], |text| text.slice()));
    }
    append(&mut path, folder);
    append(&mut path, name);
    Some(path)
}

/// Appends a part of a path (LLVM's `sys::path::append`).
fn append(path: &mut Vec<u8>, part: &[u8]) {
    if part.is_empty() {
        return;
    }
    if path.last() == Some(&b'/') {
        let begin = part.iter().position(|&byte| byte != b'/').unwrap_or(part.len());
        path.extend_from_slice(&part[begin..]);
        return;
    }
    if !path.is_empty() && part[0] != b'/' {
        path.push(b'/');
    }
    path.extend_from_slice(part);
}

/// Whether a path is absolute, on this system or on Windows.
fn is_absolute(path: &[u8]) -> bool {
    let is_separator = |byte: Option<&u8>| matches!(byte, Some(b'/' | b'\\'));
    let has_drive = path.first().is_some_and(u8::is_ascii_alphabetic) && path.get(1) == Some(&b':');
    path.first() == Some(&b'/') || has_drive && is_separator(path.get(2)) || path.starts_with(b"\\\\")
}

/// A row of the line table.
struct LineRow {
    address: u64,
    file: u64,
    line: u32,
    column: u32,
}

/// Rows whose addresses ascend, up to the address at which the last one ends.
struct Sequence {
    at: Range<u64>,
    rows: Range<usize>,
}

/// The places of a unit's addresses: each with the address at which it begins, in ascending order.
pub(super) struct Lines<'u, 'a> {
    /// The places, [`SourcePosition::NONE`] where there is none.
    pub(super) steps: Vec<(u64, SourcePosition)>,
    /// The unit's files.
    pub(super) files: Files<'u, 'a>,
    /// The error that ended the table.
    pub(super) cut: Option<DwarfError>,
}

/// Reads the line table of a unit. Sequences that begin outside `code` belong to functions that a linker has
/// removed. Sequences without a `wanted` address, which ascend, have no place: all are wanted if there is no
/// list.
///
/// # Errors
/// If a path is too long.
pub(super) fn read_lines<'u, 'a>(
    unit: UnitRef<'u, Bytes<'a>>,
    code: &[Range<u64>],
    wanted: Option<&[u64]>,
    texts: &SharedTexts,
) -> Result<Lines<'u, 'a>, DwarfError> {
    let mut lines =
        Lines { steps: Vec::new(), files: Files { unit, header: None, numbers: Vec::new() }, cut: None };
    let Some(program) = unit.line_program.clone() else { return Ok(lines) };
    let (mut rows, mut sequences, mut begin) = (Vec::<LineRow>::new(), Vec::new(), 0);
    let mut machine = program.rows();
    loop {
        let row = match machine.next_row() {
            Ok(Some((_, row))) => row,
            Ok(None) => break,
            Err(error) => {
                lines.cut = Some(error.into());
                break;
            }
        };
        if row.end_sequence() {
            let start = rows.get(begin).map_or(u64::MAX, |row| row.address);
            let at = start..row.address();
            let is_code = start < at.end && starts_in(code, start);
            if !is_code || wanted.is_some_and(|wanted| !is_wanted(wanted, std::slice::from_ref(&at))) {
                rows.truncate(begin);
            }
            if is_code {
                sequences.push(Sequence { at, rows: begin..rows.len() });
            }
            begin = rows.len();
            continue;
        }
        let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let column = match row.column() {
            ColumnType::LeftEdge => 0,
            ColumnType::Column(column) => number(column.get()),
        };
        let line = row.line().map_or(0, |line| number(line.get()));
        let row = LineRow { address: row.address(), file: row.file_index(), line, column };
        // Of rows for one address, the last one counts.
        if let Some(last) = rows[begin..].last_mut().filter(|last| last.address == row.address) {
            *last = row;
        } else if rows.len() == limits::LINE_ROWS {
            lines.cut = Some(DwarfError::LineRows);
            break;
        } else {
            rows.push(row);
        }
    }
    lines.files.header = Some(machine.header().clone());
    // The order in which LLVM searches: the sequence with the lowest end above the address.
    sequences.sort_by_key(|sequence| sequence.at.end);
    let mut from = 0;
    lines.steps.reserve(rows.len() + sequences.len());
    for Sequence { at, rows: of } in sequences {
        from = at.start.max(from);
        if from >= at.end {
            continue;
        }
        let rows = &rows[of];
        if rows.is_empty() {
            from = at.end;
            continue;
        }
        let first = rows.partition_point(|row| row.address <= from).saturating_sub(1);
        if lines.steps.last().is_some_and(|&(address, _)| address == from) {
            lines.steps.pop();
        }
        for row in &rows[first..] {
            let file = lines.files.number(row.file, texts)?;
            // LLVM gives no line either if there is no such file.
            let place = match file {
                NO_TEXT => SourcePosition::NONE,
                _ => SourcePosition { file, line: row.line, column: row.column },
            };
            lines.steps.push((row.address.max(from), place));
        }
        lines.steps.push((at.end, SourcePosition::NONE));
        from = at.end;
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_paths_are_joined_as_by_llvm() {
        for (parts, joined) in [
            (["/a", "b", "c.c"], "/a/b/c.c"),
            (["/a/", "/b", "c.c"], "/a/b/c.c"),
            (["", "b", "c.c"], "b/c.c"),
            (["", "", "c.c"], "c.c"),
            (["/a", "../b/", "./c.c"], "/a/../b/./c.c"),
        ] {
            let mut path = Vec::new();
            parts.iter().for_each(|part| append(&mut path, part.as_bytes()));
            assert_eq!(String::from_utf8(path).unwrap(), joined);
        }
    }

    #[test]
    fn paths_of_other_systems_are_absolute() {
        let absolute = ["/a", "C:\\a", "c:/a", "\\\\server\\a"];
        assert!(absolute.iter().all(|path| is_absolute(path.as_bytes())));
        assert!(["a/b", "C:a", "", "./a"].iter().all(|path| !is_absolute(path.as_bytes())));
    }
}

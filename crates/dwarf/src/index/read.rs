//! Reads an index.

use std::borrow::Cow;

use otlpprof_elf::source::Source;

use super::codec::{FunctionEntry, Malformed, Numbers, RowState, required};
use super::directory::{Directory, Identity, IndexError};
use super::table::{Group, TableReader};
use crate::compile::{frame, name_by_symbol};
use crate::frame::{LookUp, SourceFrame, TextId};
use crate::limits;
use crate::lines::SourcePosition;
use crate::symbols::Symbol;

/// An open index.
#[derive(Debug)]
pub struct Index<S> {
    source: S,
    identity: Identity,
    problems: u64,
    rows: TableReader,
    functions: TableReader,
    texts: TableReader,
    names: TableReader,
    symbols: TableReader,
    /// The text that was read last.
    text: Vec<u8>,
}

impl<S: Source> Index<S> {
    /// Opens an index: reads its header and directory.
    ///
    /// # Errors
    /// If the bytes are no index, another version's, or damaged.
    pub fn open(source: S) -> Result<Self, IndexError> {
        let Directory { identity, problems, tables } = Directory::read(&source)?;
        let [rows, functions, texts, names, symbols] = tables;
        Ok(Self {
            source,
            identity,
            problems,
            rows: TableReader::new("rows", rows),
            functions: TableReader::new("functions", functions),
            texts: TableReader::new("texts", texts),
            names: TableReader::new("names", names),
            symbols: TableReader::new("symbols", symbols),
            text: Vec::new(),
        })
    }

    /// The index's bytes.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The files that the index was made from.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The number of units that were lost when the index was made.
    pub fn problems(&self) -> u64 {
        self.problems
    }

    fn row(&mut self, vaddr: u64) -> Result<RowState, IndexError> {
        let Some(group) = self.rows.group(&self.source, vaddr)? else { return Ok(RowState::default()) };
        let found = row_of(&group, vaddr);
        found.map_err(|Malformed| self.rows.damaged())
    }

    fn function(&mut self, number: u32) -> Result<FunctionEntry, IndexError> {
        let group = self.functions.group(&self.source, number.into())?;
        let found = group.ok_or(Malformed).and_then(|group| function_of(&group, number));
        found.map_err(|Malformed| self.functions.damaged())
    }

    fn symbol(&mut self, vaddr: u64) -> Result<Option<Symbol>, IndexError> {
        let Some(group) = self.symbols.group(&self.source, vaddr)? else { return Ok(None) };
        let found = symbol_of(&group, vaddr);
        found.map_err(|Malformed| self.symbols.damaged())
    }
}

impl<S: Clone> Index<S> {
    /// Another reader of the index, for another thread. It has read no block yet.
    pub fn another(&self) -> Self {
        Self {
            source: self.source.clone(),
            identity: self.identity.clone(),
            problems: self.problems,
            rows: self.rows.another(),
            functions: self.functions.another(),
            texts: self.texts.another(),
            names: self.names.another(),
            symbols: self.symbols.another(),
            text: Vec::new(),
        }
    }
}

/// The state at an address, which is not below the group's key.
fn row_of(group: &Group<'_>, vaddr: u64) -> Result<RowState, Malformed> {
    let mut numbers = group.numbers();
    let (mut address, mut row) = (group.key, RowState::first(&mut numbers)?);
    while !numbers.is_empty() {
        let (distance, next) = row.next(&mut numbers)?;
        address = address.checked_add(distance).ok_or(Malformed)?;
        if address > vaddr {
            break;
        }
        row = next;
    }
    Ok(row)
}

fn function_of(group: &Group<'_>, wanted: u32) -> Result<FunctionEntry, Malformed> {
    let mut numbers = group.numbers();
    let mut file = 0;
    for number in group.key..u64::from(wanted) {
        FunctionEntry::read(&mut numbers, number as u32, &mut file)?;
    }
    FunctionEntry::read(&mut numbers, wanted, &mut file)
}

fn symbol_of(group: &Group<'_>, vaddr: u64) -> Result<Option<Symbol>, Malformed> {
    let mut numbers = group.numbers();
    let (mut start, mut found) = (group.key, None);
    while !numbers.is_empty() {
        start = start.checked_add(numbers.number()?).ok_or(Malformed)?;
        if start > vaddr {
            break;
        }
        let end = start.saturating_add(numbers.number()?);
        let (name, file) = (required(numbers.short()?), required(numbers.short()?));
        found = Some(Symbol { start, end, name, file });
    }
    Ok(found.filter(|symbol| vaddr < symbol.end))
}

/// The number of the demangled name; `None` if the text has none.
fn name_of(group: &Group<'_>, wanted: u32) -> Result<Option<u32>, Malformed> {
    let mut numbers = group.numbers();
    let mut linkage_name = group.key;
    while !numbers.is_empty() {
        linkage_name = linkage_name.checked_add(numbers.number()?).ok_or(Malformed)?;
        let name = numbers.short()?;
        if linkage_name >= u64::from(wanted) {
            return Ok((linkage_name == u64::from(wanted)).then_some(name));
        }
    }
    Ok(None)
}

fn read_text_of(group: &Group<'_>, wanted: u32, text: &mut Vec<u8>) -> Result<(), Malformed> {
    let mut numbers = group.numbers();
    text.clear();
    (group.key..=u64::from(wanted)).try_for_each(|_| read_text(&mut numbers, text))
}

/// Replaces a text by the one after it.
fn read_text(numbers: &mut Numbers<'_>, text: &mut Vec<u8>) -> Result<(), Malformed> {
    let (shared, rest) = (numbers.number()?, numbers.number()?);
    let shared = usize::try_from(shared).ok().filter(|&shared| shared <= text.len()).ok_or(Malformed)?;
    let rest = numbers.bytes(rest)?;
    if shared + rest.len() > limits::TEXT {
        return Err(Malformed);
    }
    text.truncate(shared);
    text.extend_from_slice(rest);
    Ok(())
}

impl<S: Source> LookUp for Index<S> {
    type Error = IndexError;

    fn frames(&mut self, vaddr: u64, frames: &mut Vec<SourceFrame>) -> Result<(), Self::Error> {
        frames.clear();
        let row = self.row(vaddr)?;
        let mut place = SourcePosition { file: required(row.file), line: row.line, column: row.column };
        let mut function = row.function;
        if function == 0 {
            frames.extend(Some(frame(required(0), place)).filter(|frame| !frame.is_empty()));
        }
        while function != 0 {
            if frames.len() == limits::CHAIN {
                return Err(self.functions.damaged());
            }
            let entry = self.function(required(function))?;
            frames.push(frame(entry.name, place));
            place = SourcePosition { file: entry.file, line: entry.line, column: entry.column };
            function = entry.caller;
        }
        let symbol = self.symbol(vaddr)?;
        name_by_symbol(frames, symbol);
        frames.retain(|frame| !frame.is_empty());
        Ok(())
    }

    fn name(&mut self, id: TextId) -> Result<Cow<'_, str>, Self::Error> {
        let name = match self.names.group(&self.source, id.0.into())? {
            None => None,
            Some(group) => name_of(&group, id.0).map_err(|Malformed| self.names.damaged())?,
        };
        self.text(name.map_or(id, TextId))
    }

    fn text(&mut self, id: TextId) -> Result<Cow<'_, str>, Self::Error> {
        let group = self.texts.group(&self.source, id.0.into())?;
        let read = group.ok_or(Malformed).and_then(|group| read_text_of(&group, id.0, &mut self.text));
        read.map_err(|Malformed| self.texts.damaged())?;
        Ok(String::from_utf8_lossy(&self.text))
    }
}

//! Writes an index.

use std::hash::BuildHasher as _;
use std::io::{self, BufWriter, SeekFrom, Write};
use std::path::Path;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use otlpprof_incomplete_file::IncompleteFile;

use super::codec::{FUNCTIONS, FunctionEntry, NAMES, ROWS, RowState, SYMBOLS, TEXTS, optional, put};
use super::directory::{Block, Directory, HEADER_LEN, Identity};
use super::names::DemangledNames;
use super::table::{Output, TableWriter};
use crate::compile::Compiled;
use crate::functions::NO_FUNCTION;
use crate::texts::{NO_TEXT, Texts};
use crate::unit::{LineRow, UnitRows};

/// Writes the index of debug information to a file, which is there as a whole or not at all.
///
/// # Errors
/// If the file cannot be written. The debug information must cover all addresses.
pub fn write(compiled: &Compiled, identity: &Identity, path: &Path) -> io::Result<()> {
    let mut index = IncompleteFile::inside(path.parent().unwrap_or(path))?;
    {
        let mut out = Output { to: BufWriter::with_capacity(1 << 20, &index.file), len: 0 };
        write_to(compiled, identity, &mut out)?;
        out.to.flush()?;
    }
    index.persist(path)
}

fn write_to<W: Write + io::Seek>(
    compiled: &Compiled,
    identity: &Identity,
    out: &mut Output<W>,
) -> io::Result<()> {
    out.put(&[0; HEADER_LEN])?;
    let (texts, numbers, names) = write_texts(&compiled.texts, out)?;
    let mut writer = RowWriter::new(compiled, &numbers);
    writer.write_all(out)?;
    let RowWriter { table, functions, .. } = writer;
    let rows = table.finish(out)?;
    let functions = write_functions(&functions.entries, out)?;
    let symbols = write_symbols(compiled, &numbers, out)?;
    let directory = Directory {
        identity: identity.clone(),
        problems: compiled.all_problems() as u64,
        tables: [rows, functions, texts, names, symbols],
    };
    let (directory, offset) = (directory.encode(), out.len);
    out.put(&directory)?;
    let header = Directory::header(&directory, offset, out.len);
    out.to.seek(SeekFrom::Start(0))?;
    out.to.write_all(&header)
}

/// Writes the texts with the demangled names among them, sorted, and the table of names. Returns the blocks
/// of texts, the new number of each text, and the blocks of names.
fn write_texts(
    texts: &Texts,
    out: &mut Output<impl Write>,
) -> io::Result<(Vec<Block>, Vec<u32>, Vec<Block>)> {
    let names = DemangledNames::of(texts);
    let text = |old: u32| match (old as usize).checked_sub(texts.len()) {
        None => texts.get(old),
        Some(position) => names.get(position),
    };
    let mut sorted: Vec<u32> = (0..(texts.len() + names.len()) as u32).collect();
    sorted.sort_unstable_by_key(|&old| text(old));
    let mut numbers = vec![0; sorted.len()];
    let mut table = TableWriter::default();
    let (mut next, mut last) = (0, None);
    for old in sorted {
        let text = text(old);
        if last == Some(text) {
            numbers[old as usize] = next - 1;
            continue;
        }
        let is_first = (next as usize).is_multiple_of(TEXTS);
        if is_first {
            table.group(next.into(), out)?;
        }
        let before = last.filter(|_| !is_first).unwrap_or_default();
        let shared = before.iter().zip(text).take_while(|(a, b)| a == b).count();
        let entries = table.entries();
        put(entries, shared as u64);
        put(entries, (text.len() - shared) as u64);
        entries.extend_from_slice(&text[shared..]);
        numbers[old as usize] = next;
        (next, last) = (next + 1, Some(text));
    }
    let text_blocks = table.finish(out)?;
    let demangled = numbers.split_off(texts.len());
    let linkage_names = (0..names.len()).map(|position| numbers[names.linkage_name(position) as usize]);
    let name_blocks = write_names(linkage_names.zip(demangled).collect(), out)?;
    Ok((text_blocks, numbers, name_blocks))
}

/// Writes the numbers of linkage names and of their demangled names.
fn write_names(mut names: Vec<(u32, u32)>, out: &mut Output<impl Write>) -> io::Result<Vec<Block>> {
    names.sort_unstable();
    let mut table = TableWriter::default();
    let mut before = 0;
    for (position, &(linkage_name, name)) in names.iter().enumerate() {
        if position.is_multiple_of(NAMES) {
            table.group(linkage_name.into(), out)?;
            before = linkage_name;
        }
        let entries = table.entries();
        put(entries, (linkage_name - before).into());
        put(entries, name.into());
        before = linkage_name;
    }
    table.finish(out)
}

fn renumbered(numbers: &[u32], text: u32) -> u32 {
    numbers.get(text as usize).copied().unwrap_or(NO_TEXT)
}

/// The functions that rows need, numbered in the order in which rows need them, callers first. Equal ones
/// have one number.
#[derive(Default)]
struct UsedFunctions {
    entries: Vec<FunctionEntry>,
    numbers: HashTable<u32>,
    hasher: FixedState,
    /// For each unit, the numbers of its functions that are known, plus 1.
    known: Vec<Vec<u32>>,
}

impl UsedFunctions {
    /// The number of a unit's function, plus 1; 0 for none.
    fn number(&mut self, unit: usize, of: &UnitRows, function: u32, texts: &[u32]) -> u32 {
        let known = &mut self.known[unit];
        if known.is_empty() {
            known.resize(of.functions.len(), 0);
        }
        let mut chain = Vec::new();
        let mut at = function;
        let mut caller = loop {
            match known.get(at as usize) {
                None => break 0,
                Some(0) => {
                    chain.push(at);
                    at = of.functions[at as usize].caller;
                }
                Some(&number) => break number,
            }
        };
        for at in chain.into_iter().rev() {
            let function = &of.functions[at as usize];
            let entry = FunctionEntry {
                caller,
                name: renumbered(texts, function.name.text()),
                file: renumbered(texts, function.call.file),
                line: function.call.line,
                column: function.call.column,
            };
            let hash = self.hasher.hash_one(entry);
            let (entries, hasher) = (&mut self.entries, &self.hasher);
            let found = self.numbers.find(hash, |&number| entries[number as usize - 1] == entry);
            caller = match found {
                Some(&number) => number,
                None => {
                    entries.push(entry);
                    let number = entries.len() as u32;
                    let hash_of = |&number: &u32| hasher.hash_one(entries[number as usize - 1]);
                    self.numbers.insert_unique(hash, number, hash_of);
                    number
                }
            };
            known[at as usize] = caller;
        }
        caller
    }
}

/// Writes rows in ascending order of their addresses, without those that change nothing.
struct RowWriter<'c> {
    compiled: &'c Compiled,
    texts: &'c [u32],
    functions: UsedFunctions,
    table: TableWriter,
    /// The address and state of the last row.
    last: (u64, RowState),
    in_group: usize,
}

impl<'c> RowWriter<'c> {
    fn new(compiled: &'c Compiled, texts: &'c [u32]) -> Self {
        let known = vec![Vec::new(); compiled.units.len()];
        let functions = UsedFunctions { known, ..UsedFunctions::default() };
        let last = (0, RowState::default());
        Self { compiled, texts, functions, table: TableWriter::default(), last, in_group: ROWS }
    }

    fn write_all(&mut self, out: &mut Output<impl Write>) -> io::Result<()> {
        let compiled = self.compiled;
        let mut end = 0;
        for owned in &compiled.owners {
            if end < owned.at.start {
                self.write(end, RowState::default(), out)?;
            }
            end = owned.at.end;
            let (number, mut at) = (owned.unit as usize, owned.at.start);
            let Some(unit) = compiled.units.get(number) else { continue };
            let first = unit.rows.partition_point(|row| row.address <= at);
            match first.checked_sub(1) {
                Some(before) => {
                    let state = self.state(number, unit, &unit.rows[before]);
                    self.write(at, state, out)?;
                }
                None => self.write(at, RowState::default(), out)?,
            }
            for row in unit.rows[first..].iter().take_while(|row| row.address < owned.at.end) {
                at = row.address;
                let state = self.state(number, unit, row);
                self.write(at, state, out)?;
            }
        }
        self.write(end, RowState::default(), out)
    }

    fn state(&mut self, number: usize, unit: &UnitRows, row: &LineRow) -> RowState {
        let function = match row.function {
            NO_FUNCTION => 0,
            function => self.functions.number(number, unit, function, self.texts),
        };
        let file = optional(renumbered(self.texts, row.place.file));
        RowState { function, file, line: row.place.line, column: row.place.column }
    }

    fn write(&mut self, address: u64, state: RowState, out: &mut Output<impl Write>) -> io::Result<()> {
        let (before, last) = self.last;
        if state == last {
            return Ok(());
        }
        if self.in_group == ROWS {
            state.put_first(self.table.group(address, out)?);
            self.in_group = 0;
        } else {
            state.put_next(self.table.entries(), address - before, &last);
        }
        self.in_group += 1;
        self.last = (address, state);
        Ok(())
    }
}

fn write_functions(functions: &[FunctionEntry], out: &mut Output<impl Write>) -> io::Result<Vec<Block>> {
    let mut table = TableWriter::default();
    let mut file = 0;
    for (number, function) in functions.iter().enumerate() {
        if number % FUNCTIONS == 0 {
            table.group(number as u64, out)?;
            file = 0;
        }
        function.put(table.entries(), number as u32, &mut file);
    }
    table.finish(out)
}

fn write_symbols(compiled: &Compiled, texts: &[u32], out: &mut Output<impl Write>) -> io::Result<Vec<Block>> {
    let mut table = TableWriter::default();
    let mut before = 0;
    for (number, symbol) in compiled.symbols.symbols.iter().enumerate() {
        if number % SYMBOLS == 0 {
            table.group(symbol.start, out)?;
            before = symbol.start;
        }
        let entries = table.entries();
        put(entries, symbol.start - before);
        put(entries, symbol.end.saturating_sub(symbol.start));
        put(entries, optional(renumbered(texts, symbol.name)).into());
        put(entries, optional(renumbered(texts, symbol.file)).into());
        before = symbol.start;
    }
    table.finish(out)
}

//! Resolves addresses of one object, for measurements:
//!
//! ```text
//! resolve_addresses [--demangle] FILE <addresses       from the debug information
//! resolve_addresses [--demangle] --index INDEX <addresses
//! resolve_addresses --make INDEX FILE                  writes an index
//! ```
//!
//! Reads one hexadecimal ELF virtual address a line, and prints for each its functions, innermost first, as
//! function, tab, `file:line:column`, and then an empty line.

mod addresses_support;

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Display;
use std::io::{BufWriter, Write as _};
use std::ops::Range;
use std::path::Path;

use addresses_support::addresses;
use otlpprof_dwarf::index::{Identity, Index, write};
use otlpprof_dwarf::{Frame, Inputs, LookUp, TextId, compile};
use otlpprof_elf::source::{FileSource, Source as _};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut demangles, mut index, mut make, mut file) = (false, None, None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--demangle" => demangles = true,
            "--index" => index = arguments.next(),
            "--make" => make = arguments.next(),
            _ => file = Some(argument),
        }
    }
    if let Some(index) = index {
        let (addresses, threads) = (addresses()?, threads());
        let sorted = sorted(&addresses);
        // Each thread opens the index for its part of the addresses.
        let resolve = |numbers: &[usize]| {
            let source = FileSource::open(Path::new(&index)).map_err(|error| error.to_string())?;
            let mut index = Index::open(source).map_err(|error| error.to_string())?;
            Part::resolve(&mut index, &addresses, numbers, demangles)
        };
        let parts: Result<Vec<Part>, String> = std::thread::scope(|scope| {
            let parts = sorted.chunks(sorted.len().div_ceil(threads).max(1));
            let started: Vec<_> = parts.map(|part| scope.spawn(|| resolve(part))).collect();
            started.into_iter().map(|part| part.join().map_err(|_| "a panic".to_owned())?).collect()
        });
        return print(&parts?, addresses.len());
    }
    let source = FileSource::open(Path::new(&file.ok_or("no file")?))?;
    let addresses = if make.is_none() { Some(addresses()?) } else { None };
    let mut compiled = compile(&Inputs::of(&source), addresses.as_deref())?;
    for problem in compiled.problems() {
        eprintln!("unit {:#x}: {}", problem.unit, problem.why);
    }
    match (make, addresses) {
        (Some(path), _) => {
            let identity = Identity { debug_len: source.len(), ..Identity::default() };
            Ok(write(&compiled, &identity, Path::new(&path))?)
        }
        (None, addresses) => {
            let addresses = addresses.unwrap_or_default();
            let part = Part::resolve(&mut compiled, &addresses, &sorted(&addresses), demangles)?;
            print(&[part], addresses.len())
        }
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The numbers of the addresses, in ascending order of the addresses.
fn sorted(addresses: &[u64]) -> Vec<usize> {
    let mut sorted: Vec<usize> = (0..addresses.len()).collect();
    sorted.sort_by_key(|&number| addresses[number]);
    sorted
}

type Texts = HashMap<TextId, String>;

/// The answers for some addresses, as they are printed.
struct Part {
    /// The number of each address, and the place of its answer in `text`.
    answers: Vec<(usize, Range<usize>)>,
    text: Vec<u8>,
}

impl Part {
    /// Resolves the addresses with these numbers.
    fn resolve<L: LookUp<Error: Display>>(
        from: &mut L,
        addresses: &[u64],
        numbers: &[usize],
        demangles: bool,
    ) -> Result<Self, String> {
        let (mut all, mut ends, mut frames) = (Vec::new(), Vec::with_capacity(numbers.len()), Vec::new());
        for &number in numbers {
            from.frames(addresses[number], &mut frames).map_err(|error| error.to_string())?;
            all.extend_from_slice(&frames);
            ends.push((number, all.len()));
        }
        let functions = texts(from, all.iter().filter_map(|frame| frame.function), demangles)?;
        let files = texts(from, all.iter().filter_map(|frame| frame.file), false)?;
        let known = |texts: &'_ Texts, id: Option<TextId>| id.and_then(|id| texts.get(&id).cloned());
        let mut part = Self { answers: Vec::with_capacity(numbers.len()), text: Vec::new() };
        let mut begin = 0;
        for (number, end) in ends {
            let at = part.text.len();
            for frame in &all[begin..end] {
                let Frame { line, column, .. } = frame;
                let (function, file) = (known(&functions, frame.function), known(&files, frame.file));
                let [function, file] = [&function, &file].map(|text| text.as_deref().unwrap_or("?"));
                writeln!(part.text, "{function}\t{file}:{line}:{column}")
                    .map_err(|error| error.to_string())?;
            }
            part.text.push(b'\n');
            part.answers.push((number, at..part.text.len()));
            begin = end;
        }
        Ok(part)
    }
}

/// The texts of these numbers, as they are printed.
fn texts<L: LookUp<Error: Display>>(
    from: &mut L,
    ids: impl Iterator<Item = TextId>,
    demangles: bool,
) -> Result<Texts, String> {
    let mut ids: Vec<TextId> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    let mut texts = Vec::with_capacity(ids.len());
    for &id in &ids {
        let text = if demangles { from.name(id) } else { from.text(id) };
        texts.push(text.map_err(|error| error.to_string())?.into_owned());
    }
    Ok(ids.into_iter().zip(texts).collect())
}

fn print(parts: &[Part], count: usize) -> Result<(), Box<dyn Error>> {
    let mut by_number: Vec<&[u8]> = vec![b""; count];
    for part in parts {
        for (number, place) in &part.answers {
            by_number[*number] = &part.text[place.clone()];
        }
    }
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    for answer in by_number {
        out.write_all(answer)?;
    }
    Ok(out.flush()?)
}

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

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Display;
use std::io::{BufWriter, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use otlpprof::dwarf::index::{Identity, Index, write};
use otlpprof::dwarf::{Inputs, LookUp, TextId, compile};
use otlpprof::elf::source::{FileSource, Source as _};
use otlpprof::elf::symbols::demangle::demangle;

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
        return resolve(&mut Index::open(FileSource::open(Path::new(&index))?)?, &addresses()?, demangles);
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
        (None, addresses) => resolve(&mut compiled, &addresses.unwrap_or_default(), demangles),
    }
}

fn addresses() -> Result<Vec<u64>, Box<dyn Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let words = text.split_whitespace().map(|word| word.trim_start_matches("0x"));
    Ok(words.map(|word| u64::from_str_radix(word, 16)).collect::<Result<_, _>>()?)
}

/// The texts of these numbers, as they are printed. Names are demangled by several threads.
fn texts<L: LookUp<Error: Display>>(
    from: &mut L,
    ids: impl Iterator<Item = TextId>,
    demangles: bool,
) -> Result<HashMap<TextId, Arc<str>>, String> {
    let mut ids: Vec<TextId> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    let mut texts = Vec::with_capacity(ids.len());
    for &id in &ids {
        texts.push(from.text(id).map_err(|error| error.to_string())?);
    }
    if demangles {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for part in texts.chunks_mut(ids.len().div_ceil(threads).max(1)) {
                scope.spawn(|| part.iter_mut().for_each(|text| *text = demangle(text).into()));
            }
        });
    }
    Ok(ids.into_iter().zip(texts).collect())
}

fn resolve<L: LookUp<Error: Display>>(
    from: &mut L,
    addresses: &[u64],
    demangles: bool,
) -> Result<(), Box<dyn Error>> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut order: Vec<usize> = (0..addresses.len()).collect();
    order.sort_by_key(|&number| addresses[number]);
    let mut answers = vec![Vec::new(); addresses.len()];
    for number in order {
        from.frames(addresses[number], &mut answers[number]).map_err(|error| error.to_string())?;
    }
    let all = || answers.iter().flatten();
    let functions = texts(from, all().filter_map(|frame| frame.function), demangles)?;
    let files = texts(from, all().filter_map(|frame| frame.file), false)?;
    let text = |texts: &HashMap<TextId, Arc<str>>, id: Option<TextId>| {
        id.and_then(|id| texts.get(&id)).map_or("?".into(), Arc::clone)
    };
    for frames in &answers {
        for frame in frames {
            let (function, file) = (text(&functions, frame.function), text(&files, frame.file));
            writeln!(out, "{function}\t{file}:{}:{}", frame.line, frame.column)?;
        }
        writeln!(out)?;
    }
    Ok(out.flush()?)
}

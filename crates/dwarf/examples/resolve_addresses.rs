//! Resolves addresses of one object, as addr2line does:
//!
//! ```text
//! resolve_addresses [--demangle] FILE [ADDRESS…]              from the debug information
//! resolve_addresses [--demangle] --index INDEX [ADDRESS…]     from an index
//! resolve_addresses --make INDEX FILE                         writes an index
//! ```
//!
//! Addresses are ELF virtual ones in hexadecimal. Without any, they are read from standard input, one a line.
//! Prints for each its functions, innermost first, as function, tab, `file:line:column`, and then an empty
//! line.

use std::error::Error;
use std::io::{BufWriter, Write as _, stdin, stdout};
use std::path::Path;

use otlpprof_dwarf::index::{Identity, Index, write};
use otlpprof_dwarf::{FileSource, Inputs, LookUp, Source as _, compile};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut demangles, mut index, mut make, mut names) = (false, None, None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--demangle" => demangles = true,
            "--index" => index = Some(arguments.next().ok_or("--index: the path is missing")?),
            "--make" => make = Some(arguments.next().ok_or("--make: the path is missing")?),
            _ => names.push(argument),
        }
    }
    if let Some(index) = index {
        let mut index = Index::open(FileSource::open(Path::new(&index))?)?;
        return print(&mut index, &addresses(&names)?, demangles);
    }
    let (file, names) = names.split_first().ok_or("the path of a file is missing")?;
    let source = FileSource::open(Path::new(file))?;
    let addresses = if make.is_none() { Some(addresses(names)?) } else { None };
    let mut compiled = compile(&Inputs::of(&source), addresses.as_deref())?;
    for problem in compiled.problems() {
        eprintln!("unit {:#x}: {}", problem.unit, problem.why);
    }
    if let Some(path) = make {
        let identity = Identity { debug_len: source.len(), ..Identity::default() };
        write(&compiled, &identity, Path::new(&path))?;
    }
    print(&mut compiled, &addresses.unwrap_or_default(), demangles)
}

/// The addresses of the command line, or those of standard input if it has none.
fn addresses(of_arguments: &[String]) -> Result<Vec<u64>, Box<dyn Error>> {
    let words = match of_arguments {
        [] => stdin().lines().collect::<Result<_, _>>()?,
        words => words.to_vec(),
    };
    let address = |word: &str| {
        let digits = word.trim().trim_start_matches("0x");
        u64::from_str_radix(digits, 16).map_err(|error| format!("{word}: {error}"))
    };
    Ok(words.iter().map(|word| address(word)).collect::<Result<_, _>>()?)
}

/// Looks addresses up in ascending order, which is the fastest, and prints the answers in the given order.
fn print<L>(from: &mut L, addresses: &[u64], demangles: bool) -> Result<(), Box<dyn Error>>
where
    L: LookUp<Error: Error + 'static>,
{
    let mut sorted: Vec<usize> = (0..addresses.len()).collect();
    sorted.sort_by_key(|&number| addresses[number]);
    let mut answers = vec![String::new(); addresses.len()];
    let mut frames = Vec::new();
    for number in sorted {
        from.frames(addresses[number], &mut frames)?;
        for frame in &frames {
            let function = match frame.function {
                Some(id) if demangles => from.name(id)?.into_owned(),
                Some(id) => from.text(id)?.into_owned(),
                None => "?".to_owned(),
            };
            let file = frame.file.map(|id| from.text(id)).transpose()?.unwrap_or("?".into());
            answers[number] += &format!("{function}\t{file}:{}:{}\n", frame.line, frame.column);
        }
    }
    let mut out = BufWriter::new(stdout().lock());
    answers.iter().try_for_each(|answer| writeln!(out, "{answer}"))?;
    Ok(out.flush()?)
}

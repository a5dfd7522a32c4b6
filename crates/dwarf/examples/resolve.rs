//! Resolves addresses of a file with debug information: `resolve FILE ADDRESS…`, ELF virtual addresses in
//! hexadecimal. Prints the innermost function first.

use std::error::Error;
use std::path::Path;

use otlpprof_dwarf::{FileSource, Inputs, LookUp as _, compile};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("the path of a file is missing")?;
    let address = |text: String| u64::from_str_radix(text.trim_start_matches("0x"), 16);
    let addresses = arguments.map(address).collect::<Result<Vec<_>, _>>()?;
    let file = FileSource::open(Path::new(&path))?;
    let mut compiled = compile(&Inputs::of(&file), Some(&addresses))?;
    let mut frames = Vec::new();
    for vaddr in addresses {
        println!("{vaddr:#x}");
        compiled.frames(vaddr, &mut frames)?;
        for frame in &frames {
            let function = match frame.function {
                Some(id) => compiled.name(id)?.into_owned(),
                None => "?".to_owned(),
            };
            let path = frame.file.map(|id| compiled.text(id)).transpose()?.unwrap_or_default();
            println!("    {function} {path}:{}:{}", frame.line, frame.column);
        }
    }
    Ok(())
}

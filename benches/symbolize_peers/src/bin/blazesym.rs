//! Resolves addresses by blazesym.

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Symbolized, Symbolizer};
use otlpprof_bench_symbolize_peers::{Output, arguments, output};

fn print(out: &mut Output, name: &str, code: Option<&CodeInfo<'_>>) {
    let path = code.map(|code| code.to_path().into_owned()).unwrap_or_default();
    let line = code.and_then(|code| code.line).unwrap_or_default();
    let column = code.and_then(|code| code.column).unwrap_or_default();
    out.frame(name, &path.to_string_lossy(), line, column.into());
}

fn main() {
    let (file, addresses) = arguments();
    let symbolizer = Symbolizer::new();
    let source = Source::Elf(Elf::new(file));
    let symbols = symbolizer.symbolize(&source, Input::VirtOffset(&addresses)).expect("symbols");
    let mut out = output();
    for symbol in symbols {
        if let Symbolized::Sym(symbol) = symbol {
            for inlined in symbol.inlined.iter().rev() {
                print(&mut out, &inlined.name, inlined.code_info.as_ref());
            }
            print(&mut out, &symbol.name, symbol.code_info.as_deref());
        }
        out.end();
    }
}

//! Resolves addresses by the crate addr2line.

use otlpprof_bench_symbolize_peers::{arguments, output};

fn main() {
    let (file, addresses) = arguments();
    let loader = addr2line::Loader::new(file).expect("a file with debug information");
    let mut out = output();
    for address in addresses {
        let mut frames = loader.find_frames(address).expect("frames");
        while let Some(frame) = frames.next().expect("a frame") {
            let name = frame.function.as_ref().and_then(|function| function.demangle().ok());
            let place = frame.location.as_ref();
            let file = place.and_then(|place| place.file).unwrap_or("?");
            let number = |number: Option<u32>| number.unwrap_or_default();
            let (line, column) = (place.and_then(|place| place.line), place.and_then(|place| place.column));
            out.frame(name.as_deref().unwrap_or("?"), file, number(line), number(column));
        }
        out.end();
    }
}

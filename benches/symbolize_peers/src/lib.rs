//! Arguments and output that the programs share.

use std::io::{self, BufWriter, Read as _, Write as _};

/// The file to resolve in, and the hexadecimal addresses of standard input.
pub fn arguments() -> (String, Vec<u64>) {
    let file = std::env::args().nth(1).expect("a file");
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).expect("addresses");
    let words = text.split_whitespace().map(|word| word.trim_start_matches("0x"));
    (file, words.map(|word| u64::from_str_radix(word, 16).expect("a hexadecimal address")).collect())
}

/// Standard output.
pub fn output() -> Output {
    Output(BufWriter::new(io::stdout()))
}

/// Prints frames.
pub struct Output(BufWriter<io::Stdout>);

impl Output {
    /// Prints a frame.
    pub fn frame(&mut self, function: &str, file: &str, line: u32, column: u32) {
        writeln!(self.0, "{function}\t{file}:{line}:{column}").expect("standard output");
    }

    /// Ends an address.
    pub fn end(&mut self) {
        writeln!(self.0).expect("standard output");
    }
}

//! The addresses that an example reads.

use std::error::Error;
use std::io::Read as _;

/// The addresses on standard input: hexadecimal ELF virtual ones, one a line.
pub(crate) fn addresses() -> Result<Vec<u64>, Box<dyn Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let words = text.split_whitespace().map(|word| word.trim_start_matches("0x"));
    Ok(words.map(|word| u64::from_str_radix(word, 16)).collect::<Result<_, _>>()?)
}

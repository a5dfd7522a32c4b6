//! Archives of tar (POSIX, "ustar Interchange Format" and "pax Header"; GNU's long names).

use std::io::{self, Read};

use super::content::with_content;
use super::error::PackageError;
use super::numbers::of_text;

const BLOCK: u64 = 512;
/// The most bytes of a header that extends the next one. Longer ones are not read: only a path is lost.
const MOST_EXTENSION: u64 = 1 << 20;

/// Whether a block is a header: its checksum is right.
pub(super) fn is_header(block: &[u8]) -> bool {
    if block.len() < BLOCK as usize {
        return false;
    }
    let block = &block[..BLOCK as usize];
    // The checksum's own bytes count as spaces.
    let sum: u64 = block.iter().map(|&byte| u64::from(byte)).sum();
    let own: u64 = block[148..156].iter().map(|&byte| u64::from(byte)).sum();
    let noted = of_text(&block[148..156], 8);
    block[0] != 0 && noted == Some(sum - own + 8 * u64::from(b' '))
}

/// The fields that a header extends the next one by.
#[derive(Default)]
struct Extension {
    name: Option<Vec<u8>>,
    len: Option<u64>,
}

/// Calls `take` with the path and the content of each file.
pub(super) fn each_file(
    from: &mut dyn Read,
    mut take: impl FnMut(&[u8], &mut dyn Read) -> Result<(), PackageError>,
) -> Result<(), PackageError> {
    let damaged = |why| PackageError::Damaged { format: "tar", why };
    let mut extension = Extension::default();
    loop {
        let mut header = Vec::new();
        (&mut *from).take(BLOCK).read_to_end(&mut header)?;
        // The archive ends with blocks of zeros, which may be missing.
        if header.iter().all(|&byte| byte == 0) {
            return Ok(());
        }
        if header.len() < BLOCK as usize {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        if !is_header(&header) {
            return Err(damaged("a header with a wrong checksum"));
        }
        let len = number(&header[124..136]).ok_or(damaged("a length that is no number"))?;
        match header[156] {
            kind @ (b'L' | b'x') => {
                with_content(from, len, BLOCK, |content| {
                    if len <= MOST_EXTENSION {
                        let mut bytes = Vec::new();
                        content.read_to_end(&mut bytes)?;
                        extension.add(kind, &bytes);
                    }
                    Ok(())
                })?;
            }
            kind => {
                let Extension { name, len: long } = std::mem::take(&mut extension);
                let name = name.unwrap_or_else(|| name_of(&header));
                let is_regular = matches!(kind, 0 | b'0' | b'7');
                let take = |content: &mut dyn Read| if is_regular { take(&name, content) } else { Ok(()) };
                with_content(from, long.unwrap_or(len), BLOCK, take)?;
            }
        }
    }
}

impl Extension {
    fn add(&mut self, kind: u8, bytes: &[u8]) {
        if kind == b'L' {
            self.name = Some(until_nul(bytes).to_vec());
            return;
        }
        // "LENGTH KEY=VALUE\n", the length in digits being the whole record's.
        let mut left = bytes;
        while let Some(space) = left.iter().position(|&byte| byte == b' ') {
            let Some(len) = of_text(&left[..space], 10).and_then(|len| usize::try_from(len).ok()) else {
                return;
            };
            let Some(record) = left.get(space + 1..len) else { return };
            let record = record.strip_suffix(b"\n").unwrap_or(record);
            if let Some(path) = record.strip_prefix(b"path=") {
                self.name = Some(path.to_vec());
            } else if let Some(size) = record.strip_prefix(b"size=") {
                self.len = of_text(size, 10);
            }
            left = &left[len..];
        }
    }
}

/// A length: octal digits, or, with the first bit set, a big-endian number (GNU).
fn number(field: &[u8]) -> Option<u64> {
    match field {
        [0x80, rest @ ..] => {
            let (high, low) = rest.split_at_checked(rest.len().checked_sub(8)?)?;
            let number = low.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
            high.iter().all(|&byte| byte == 0).then_some(number)
        }
        digits => of_text(digits, 8),
    }
    // Padded to a block, the length must still be a number.
    .filter(|&len| len < u64::MAX / 2)
}

fn name_of(header: &[u8]) -> Vec<u8> {
    let (name, prefix) = (until_nul(&header[..100]), until_nul(&header[345..500]));
    let is_posix = &header[257..263] == b"ustar\0";
    if !is_posix || prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

//! Recordings that were compressed in a format that is not supported.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Advice on a file that is not a recording, if its first bytes show a known compression format.
pub(super) fn hint(path: &Path) -> &'static str {
    let mut first = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4).read_to_end(&mut first));
    match &first[..] {
        _ if read.is_err() => "",
        [0x04, 0x22, 0x4d, 0x18] => "; it is compressed with lz4: decompress it first",
        [b'P', b'K', 3, 4] => "; it is a ZIP archive: unpack it first",
        _ => "",
    }
}

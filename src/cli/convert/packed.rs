//! Recordings that somebody has compressed in a form that is not read.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// What to do with a file that is no recording, if that can be told: what programs compress begins with these bytes.
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

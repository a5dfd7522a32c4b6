//! Recordings of JDK Flight Recorder as inputs: the line for a recording that cannot be read to its end, and
//! advice on compressions that are not supported.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use anyhow::anyhow;

use otlpprof_convert::AddError;
use otlpprof_jfr::error::Problem;

/// The line for a recording of which everything before the error has been read.
///
/// # Errors
/// The file itself cannot be read.
pub(super) fn problem(path: &Path, error: AddError) -> anyhow::Result<String> {
    let name = path.display();
    match error {
        AddError::Io(error) => Err(anyhow::Error::new(error).context(name.to_string())),
        AddError::Jfr(error) => {
            let packed = if error.at == 0 { hint(path) } else { String::new() };
            Ok(format!("{name}: {error}{packed}"))
        }
        AddError::Packed(error) => Ok(format!("{name}: {error}")),
    }
}

/// Whether the recording has no constants, as one that is still being written.
pub(super) fn is_without_constants(error: &AddError) -> bool {
    matches!(error, AddError::Jfr(error) if error.problem == Problem::NoConstants)
}

/// Advice on a file with these first bytes, if they show a format that must be unpacked first.
pub(super) fn unsupported(first: &[u8]) -> Option<&'static str> {
    match first {
        [0x04, 0x22, 0x4d, 0x18, ..] => Some("it is compressed with lz4: decompress it first"),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some("it is compressed with xz: decompress it first"),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some("it is compressed with bzip2: decompress it first"),
        [b'P', b'K', 3, 4, ..] => Some("it is a ZIP archive: unpack it first"),
        _ => None,
    }
}

/// Advice on a file that is no recording, after a semicolon; empty if there is none.
fn hint(path: &Path) -> String {
    let mut first = Vec::new();
    let read: io::Result<_> = File::open(path).and_then(|file| file.take(6).read_to_end(&mut first));
    let advice = read.ok().and_then(|_| unsupported(&first));
    advice.map_or_else(String::new, |advice| format!("; {advice}"))
}

/// The error of a recording none of whose events is converted.
pub(super) fn nothing(path: &Path) -> anyhow::Error {
    anyhow!(
        "nothing to convert in {}: none of its events is converted by default; `otlpprof convert --event \
         NAME` converts others",
        path.display()
    )
}

//! Archives of cpio in the format of SVR4, the inner form of RPM packages (cpio(5), "New ASCII Format").

use std::io::Read;

use super::content::{skip, with_content};
use super::error::PackageError;
use super::numbers::of_text;

/// The first bytes, without the last digit: 1, or 2 with checksums, which are not checked.
pub(super) const MAGIC: &[u8] = b"07070";

const HEADER_LEN: u64 = 110;
/// The most bytes of a path.
const MOST_NAME: u64 = 64 << 10;

/// Calls `take` with the path and the content of each file.
pub(super) fn each_file(
    from: &mut dyn Read,
    mut take: impl FnMut(&[u8], &mut dyn Read) -> Result<(), PackageError>,
) -> Result<(), PackageError> {
    let damaged = |why| PackageError::Damaged { format: "cpio", why };
    loop {
        let mut header = [0; HEADER_LEN as usize];
        from.read_exact(&mut header)?;
        match &header[..6] {
            b"070701" | b"070702" => {}
            // RPM's format for files of 4 GiB and more: the lengths are in the package's header.
            b"07070X" => {
                return Err(PackageError::Unknown { format: "rpm", what: "a file of 4 GiB or more" });
            }
            _ => return Err(damaged("a header without its beginning")),
        }
        let field = |number: usize| of_text(&header[6 + 8 * number..][..8], 16);
        let (Some(mode), Some(len), Some(name_len)) = (field(1), field(6), field(11)) else {
            return Err(damaged("a length that is no number"));
        };
        if name_len > MOST_NAME {
            return Err(damaged("a path of more than 64 KiB"));
        }
        let mut name = vec![0; name_len as usize];
        from.read_exact(&mut name)?;
        skip(from, (HEADER_LEN + name_len).next_multiple_of(4) - HEADER_LEN - name_len)?;
        let name = name.strip_suffix(b"\0").unwrap_or(&name);
        if name == b"TRAILER!!!" {
            return Ok(());
        }
        /// The kind of file in the mode: a regular one.
        const REGULAR: u64 = 0o10;
        let is_regular = mode >> 12 == REGULAR;
        with_content(from, len, 4, |content| if is_regular { take(name, content) } else { Ok(()) })?;
    }
}

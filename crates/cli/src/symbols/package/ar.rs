//! Archives of ar, the outer form of Debian packages (deb(5)).

use std::io::Read;

use super::content::{skip, with_content};
use super::error::PackageError;
use super::numbers::of_text;

pub(super) const MAGIC: &[u8] = b"!<arch>\n";

/// Calls `take` with the name and the content of each file.
pub(super) fn each_file(
    from: &mut dyn Read,
    mut take: impl FnMut(&[u8], &mut dyn Read) -> Result<(), PackageError>,
) -> Result<(), PackageError> {
    let damaged = |why| PackageError::Damaged { format: "deb", why };
    skip(from, MAGIC.len() as u64)?;
    loop {
        let mut header = Vec::new();
        (&mut *from).take(60).read_to_end(&mut header)?;
        let [name @ .., _, _] = &header[..] else {
            return if header.is_empty() { Ok(()) } else { Err(damaged("cut within a header")) };
        };
        if header.len() < 60 || !header.ends_with(b"`\n") {
            return Err(damaged("a header without its end"));
        }
        let len = of_text(&header[48..58], 10).ok_or(damaged("a length that is no number"))?;
        let name = name[..16].trim_ascii_end();
        let name = name.strip_suffix(b"/").unwrap_or(name);
        with_content(from, len, 2, |content| take(name, content))?;
    }
}

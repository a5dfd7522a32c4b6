//! The link from an object to its separate debug file: `.gnu_debuglink`, a file's name and the CRC-32 of its
//! content (GDB manual, "Debugging Information in Separate Files").

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;

use super::file::{ElfFile, FileError};
use super::source::Source;

/// The longest section to read, in bytes. A name has at most 255 bytes, the longest name that Linux allows.
const MAX_LEN: u64 = 264;

/// The name and the checksum of a debug file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugLink {
    /// The file's name: one component of a path, never `.` or `..`.
    pub name: OsString,
    /// The CRC-32 of the file's content.
    pub crc: u32,
}

impl DebugLink {
    /// The link of an object's file; `None` if the file has none, or the link is malformed.
    ///
    /// # Errors
    /// If the file cannot be read, or is malformed.
    pub fn of_file<S: Source>(file: &ElfFile<S>) -> Result<Option<Self>, FileError> {
        let Some(section) = file.section(".gnu_debuglink")? else { return Ok(None) };
        if section.sh_size > MAX_LEN {
            return Ok(None);
        }
        let bytes = file.source().read(section.sh_offset, section.sh_size)?;
        Ok(Self::parse(&bytes, file.is_little_endian()))
    }

    /// Parses the section: the name with its zero byte, zeros up to a multiple of four bytes, the checksum in
    /// the file's byte order.
    pub fn parse(section: &[u8], little_endian: bool) -> Option<Self> {
        let end = section.iter().position(|&byte| byte == 0)?;
        let (name, at) = (&section[..end], (end + 1).next_multiple_of(4));
        let crc: [u8; 4] = section.get(at..)?.get(..4)?.try_into().ok()?;
        let is_component = !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/');
        let crc = if little_endian { u32::from_le_bytes(crc) } else { u32::from_be_bytes(crc) };
        is_component.then(|| Self { name: OsStr::from_bytes(name).to_owned(), crc })
    }
}

impl DebugLink {
    /// Whether a file is the linked one, by its checksum. A file that cannot be read is not.
    pub fn is_of<S: Source + ?Sized>(&self, source: &S) -> bool {
        crc_of(source).is_ok_and(|crc| crc == self.crc)
    }
}

/// The CRC-32 of a file's content. Reads the file in pieces.
///
/// # Errors
/// If the file cannot be read.
pub fn crc_of<S: Source + ?Sized>(source: &S) -> io::Result<u32> {
    let mut crc = flate2::Crc::new();
    let mut piece = vec![0; 256 << 10];
    let (mut done, len) = (0, source.len());
    while done < len {
        let size = piece.len().min(usize::try_from(len - done).unwrap_or(usize::MAX));
        source.read_into(done, &mut piece[..size])?;
        crc.update(&piece[..size]);
        done += size as u64;
    }
    Ok(crc.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_follows_the_padded_name() {
        for (name, padding) in [("a", 2), ("ab", 1), ("abc", 0), ("abcd", 3), ("libjvm.debuginfo", 3)] {
            let section =
                [name.as_bytes(), &[0], &vec![0; padding][..], &0x1234_5678_u32.to_le_bytes()].concat();
            let link = DebugLink { name: name.into(), crc: 0x1234_5678 };
            assert_eq!(DebugLink::parse(&section, true), Some(link.clone()));
            let swapped = DebugLink { crc: 0x7856_3412, ..link };
            assert_eq!(DebugLink::parse(&section, false), Some(swapped));
            for len in 0..section.len() {
                assert_eq!(DebugLink::parse(&section[..len], true), None, "{name}: {len} bytes");
            }
        }
    }

    #[test]
    fn a_name_that_is_a_path_is_no_link() {
        for name in ["", ".", "..", "/etc/passwd", "../x", "a/b"] {
            let section = [name.as_bytes(), &[0; 8]].concat();
            assert_eq!(DebugLink::parse(&section, true), None, "{name:?}");
        }
    }

    #[test]
    fn a_checksum_is_of_the_whole_content() {
        // The check value of CRC-32/ISO-HDLC.
        assert_eq!(crc_of(&b"123456789"[..]).unwrap(), 0xcbf4_3926);
        let long = vec![7; (256 << 10) + 3];
        let mut crc = flate2::Crc::new();
        crc.update(&long);
        assert_eq!(crc_of(&long[..]).unwrap(), crc.sum());
    }
}

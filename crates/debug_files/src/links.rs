//! The sections by which a debug file names its supplementary file: `.gnu_debugaltlink` (dwz) and
//! `.debug_sup` (DWARF 5, section 7.3.6). The supplementary file's own `.debug_sup` has the file's identity.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use otlpprof_core::build_id::BuildId;

/// The most bytes of such a section. A path has at most 4,096 bytes.
pub const LINK_MAX_LEN: u64 = 8 << 10;

/// The path and the build-id of a supplementary file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupplementaryLink {
    /// The path, which may be relative to the file that names it.
    pub path: PathBuf,
    /// The build-id.
    pub build_id: BuildId,
}

impl SupplementaryLink {
    /// Parses `.gnu_debugaltlink`; `None` if it is malformed.
    pub fn parse(section: &[u8]) -> Option<Self> {
        let (path, build_id) = text(section)?;
        Self::of(path, build_id)
    }

    /// Parses `.debug_sup`; `None` if it is malformed, or is a supplementary file's own.
    pub fn parse_dwarf5(section: &[u8], is_little_endian: bool) -> Option<Self> {
        let (path, rest) = text(after_header(section, is_little_endian, false)?)?;
        Self::of(path, checksum(rest)?)
    }

    fn of(path: &[u8], build_id: &[u8]) -> Option<Self> {
        Some(Self { path: OsStr::from_bytes(path).into(), build_id: BuildId::new(build_id)? })
    }
}

/// The checksum in a supplementary file's own `.debug_sup`, by which other files name the file. dwz gives
/// such a file no build-id.
pub fn own_checksum(section: &[u8], is_little_endian: bool) -> Option<BuildId> {
    let rest = after_header(section, is_little_endian, true)?;
    // dwz 0.15 leaves out the empty path.
    BuildId::new(checksum(rest.strip_prefix(b"\0").unwrap_or(rest))?)
}

/// The bytes of `.debug_sup` after version and kind; `None` if the section has another version or kind.
fn after_header(section: &[u8], is_little_endian: bool, is_supplementary: bool) -> Option<&[u8]> {
    let (version, rest) = section.split_first_chunk()?;
    let version = if is_little_endian { u16::from_le_bytes(*version) } else { u16::from_be_bytes(*version) };
    let (&kind, rest) = rest.split_first()?;
    (version == 5 && kind == u8::from(is_supplementary)).then_some(rest)
}

/// The checksum after its length. A LEB128 number below 128 is one byte, and no checksum has more bytes.
fn checksum(bytes: &[u8]) -> Option<&[u8]> {
    let (&len, rest) = bytes.split_first()?;
    rest.get(..usize::from(len))
}

/// The text up to a NUL, which is not empty, and the bytes after the NUL.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == 0).filter(|&end| end > 0)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supplementary_link_is_a_path_and_a_build_id() {
        let link = SupplementaryLink { path: "../a.debug".into(), build_id: BuildId::new(&[1, 2]).unwrap() };
        assert_eq!(SupplementaryLink::parse(b"../a.debug\0\x01\x02"), Some(link.clone()));
        assert_eq!(SupplementaryLink::parse(b"../a.debug\0"), None);
        assert_eq!(SupplementaryLink::parse_dwarf5(b"\x05\0\0../a.debug\0\x02\x01\x02", true), Some(link));
        for bad in [&b"\x05\0\x01a\0\x01\x01"[..], b"\x04\0\0a\0\x01\x01", b"\x05\0\0a\0\x02\x01", b"\x05"] {
            assert_eq!(SupplementaryLink::parse_dwarf5(bad, true), None, "{bad:?}");
        }
    }

    /// Regression: a supplementary file of `dwz -5`, which has no build-id, was not found.
    #[test]
    fn a_supplementary_file_has_the_identity_that_others_name() {
        let id = BuildId::new(&[1, 2]);
        // As dwz writes the section, and as the specification has it.
        for section in [&b"\x05\0\x01\x02\x01\x02"[..], b"\x05\0\x01\0\x02\x01\x02"] {
            assert_eq!(own_checksum(section, true), id, "{section:?}");
            assert_eq!(own_checksum(section, false), None, "{section:?}");
        }
        for bad in
            [&b"\x05\0\0a\0\x02\x01\x02"[..], b"\x05\0\x01\x03\x01\x02", b"\x05\0\x01\0", b"\x05\0\x01"]
        {
            assert_eq!(own_checksum(bad, true), None, "{bad:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>, little: bool) {
            let _ = own_checksum(&bytes, little);
            let _ = SupplementaryLink::parse(&bytes);
            let _ = SupplementaryLink::parse_dwarf5(&bytes, little);
        }
    }
}

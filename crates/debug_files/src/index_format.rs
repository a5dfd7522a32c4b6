//! The file in which the content of a folder is remembered: the identity of each ELF file, by the file's
//! path, length and time of change.
//!
//! The format: `MAGIC`, the XXH64 of the rest, and for each file its path (length, bytes), its length, its
//! time of change (seconds, nanoseconds), and one byte. If the byte is `ELF`, the build-id (length, bytes)
//! and the htlhash follow. Numbers are little-endian.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use twox_hash::XxHash64;

use otlpprof_core::build_id::BuildId;
use otlpprof_elf::htlhash::HtlHash;

/// The most files that are remembered: those of a very large folder.
pub const MOST_FILES: usize = 4 << 20;

const MAGIC: &[u8; 8] = b"otlpidx1";
const OTHER: u8 = 0;
const ELF: u8 = 1;

/// A regular file below the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedFile {
    /// The path.
    pub path: PathBuf,
    /// Length and time of change.
    pub version: Version,
    /// The identity, if the file is an ELF file.
    pub elf: Option<ElfIdentity>,
}

/// The length and the time of change of a file. A file with both unchanged is not read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The length, in bytes.
    pub len: u64,
    /// The time of change, in seconds since 1970.
    pub seconds: i64,
    /// The nanoseconds of the time of change.
    pub nanoseconds: u32,
}

/// The identity of an ELF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElfIdentity {
    /// The GNU build-id.
    pub build_id: Option<BuildId>,
    /// The hash of the file's content.
    pub htlhash: HtlHash,
}

/// The files as bytes.
pub fn encode(files: &[IndexedFile]) -> Vec<u8> {
    let mut rest = Vec::new();
    for IndexedFile { path, version, elf } in files {
        let path = path.as_os_str().as_bytes();
        rest.extend((path.len() as u32).to_le_bytes());
        rest.extend(path);
        rest.extend(version.len.to_le_bytes());
        rest.extend(version.seconds.to_le_bytes());
        rest.extend(version.nanoseconds.to_le_bytes());
        let Some(elf) = elf else {
            rest.push(OTHER);
            continue;
        };
        let build_id = elf.build_id.as_ref().map(BuildId::as_bytes).unwrap_or_default();
        rest.extend([ELF, build_id.len() as u8]);
        rest.extend(build_id);
        rest.extend(elf.htlhash.0);
    }
    let mut bytes = MAGIC.to_vec();
    bytes.extend(checksum(&rest));
    bytes.extend(rest);
    bytes
}

/// The files of bytes that [`encode`] has written; `None` for bytes of another version, or damaged ones.
pub fn decode(bytes: &[u8]) -> Option<Vec<IndexedFile>> {
    let (sum, rest) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<8>()?;
    (checksum(rest) == *sum).then(|| decode_files(rest))?
}

/// The files of the bytes after the checksum; `None` if they are damaged, or are of more than [`MOST_FILES`].
pub fn decode_files(bytes: &[u8]) -> Option<Vec<IndexedFile>> {
    decode_at_most(MOST_FILES, bytes)
}

fn decode_at_most(most: usize, bytes: &[u8]) -> Option<Vec<IndexedFile>> {
    let mut left = Left(bytes);
    let mut files = Vec::new();
    while !left.0.is_empty() {
        if files.len() == most {
            return None;
        }
        let path_len = u32::from_le_bytes(left.array()?);
        let path = OsStr::from_bytes(left.take(usize::try_from(path_len).ok()?)?).into();
        let len = u64::from_le_bytes(left.array()?);
        let seconds = i64::from_le_bytes(left.array()?);
        let nanoseconds = u32::from_le_bytes(left.array()?);
        let elf = match left.array()? {
            [OTHER] => None,
            [ELF] => {
                let [len] = left.array()?;
                let build_id = left.take(usize::from(len))?;
                let build_id = if len == 0 { None } else { Some(BuildId::new(build_id)?) };
                Some(ElfIdentity { build_id, htlhash: HtlHash(left.array()?) })
            }
            _ => return None,
        };
        files.push(IndexedFile { path, version: Version { len, seconds, nanoseconds }, elf });
    }
    Some(files)
}

fn checksum(bytes: &[u8]) -> [u8; 8] {
    XxHash64::oneshot(0, bytes).to_le_bytes()
}

/// The bytes that are still to be read.
struct Left<'a>(&'a [u8]);

impl<'a> Left<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(len)?;
        self.0 = left;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Vec<IndexedFile> {
        let version = Version { len: 7, seconds: -1, nanoseconds: 999_999_999 };
        let elf = |build_id| Some(ElfIdentity { build_id, htlhash: HtlHash([9; 16]) });
        let file = |path: &str, elf| IndexedFile { path: path.into(), version, elf };
        vec![file("/a", None), file("/b c", elf(BuildId::new(&[1; 20]))), file("", elf(None))]
    }

    #[test]
    fn reads_what_it_writes() {
        assert_eq!(decode(&encode(&files())), Some(files()));
        assert_eq!(decode(&encode(&[])), Some(Vec::new()));
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let bytes = encode(&files());
        for end in 0..bytes.len() {
            assert_eq!(decode(&bytes[..end]), None, "{end}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            assert_eq!(decode(&damaged), None, "{at}");
        }
    }

    /// Regression: damaged bytes with a right checksum gave files without a bound.
    #[test]
    fn more_files_than_a_folder_has_are_refused() {
        let bytes = encode(&files());
        let after_checksum = &bytes[MAGIC.len() + 8..];
        assert_eq!(decode_at_most(3, after_checksum), Some(files()));
        assert_eq!(decode_at_most(2, after_checksum), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let _ = decode_files(&bytes);
        }
    }
}

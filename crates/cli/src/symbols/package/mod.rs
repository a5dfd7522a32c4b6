//! Packages: the ELF files in them, in order, without unpacking them to a folder.
//!
//! In: the bytes of a Debian package, an RPM package, an archive of tar or cpio, or an image of containers,
//! which is an archive of archives; each plain, or compressed with gzip, xz or zstd. Out: each ELF file as a
//! reader. The format is known by the first bytes. All is read as a stream and bounded; packages come from
//! anywhere.
//!
//! | Module | Duty |
//! |---|---|
//! | `ar` | archives of ar, the outer form of Debian packages |
//! | `tar` | archives of tar |
//! | `rpm` | RPM packages: a lead, two headers, and a compressed archive of cpio |
//! | `cpio` | archives of cpio, the inner form of RPM packages |
//! | `numbers` | numbers that archives hold as text |
//! | `content` | the content of a file in an archive: read, or skipped to its end |
//! | `error` | the reasons why a package cannot be read to its end |

mod ar;
mod content;
mod cpio;
mod error;
mod numbers;
mod rpm;
mod tar;

use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt as _;

use lzma_rust2::XzReader;

use otlpprof_convert::Unpacked;

use self::error::MOST_BYTES;
pub use self::error::PackageError;

/// The most packings within each other: an image has its layers' archives, compressed, in its own,
/// compressed.
const MOST_PACKINGS: usize = 8;

/// The most memory for xz, in KiB. Its largest preset needs 64 MiB.
const XZ_MEMORY_KIB: u32 = 128 << 10;

/// The bytes by which a format is known: tar's magic number is the farthest.
const HEAD_LEN: u64 = 512;

/// The bytes that are read at once for xz.
const READ_LEN: usize = 64 << 10;

/// Takes an ELF file: its path in the package, and its bytes.
pub type Take<'a> = dyn FnMut(&OsStr, &mut dyn Read) -> anyhow::Result<()> + 'a;

/// Calls `take` with each ELF file of a package, or of an ELF file itself, which has the name `name`.
///
/// # Errors
/// If the package is damaged or is none, and errors of `take`.
pub fn each_elf_file(from: &mut dyn Read, name: &OsStr, take: &mut Take<'_>) -> Result<(), PackageError> {
    let mut unpacking = Unpacking { left: MOST_BYTES, take };
    match unpacking.unpack(from, name, MOST_PACKINGS)? {
        Found::Something => Ok(()),
        Found::Nothing => Err(PackageError::NoPackage),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Elf,
    Ar,
    Rpm,
    Cpio,
    Tar,
    Xz,
    GzipOrZstd,
    Other,
}

impl Format {
    fn of(head: &[u8]) -> Self {
        match head {
            [0x7f, b'E', b'L', b'F', ..] => Self::Elf,
            _ if head.starts_with(ar::MAGIC) => Self::Ar,
            _ if head.starts_with(&rpm::MAGIC) => Self::Rpm,
            _ if head.starts_with(cpio::MAGIC) => Self::Cpio,
            _ if tar::is_header(head) => Self::Tar,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [0x1f, 0x8b, 8, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::GzipOrZstd,
            _ => Self::Other,
        }
    }
}

/// Whether a stream was something that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Something,
    Nothing,
}

/// The state of unpacking one package.
struct Unpacking<'a, 'b> {
    /// The number of bytes that may still be read, of all packings.
    left: u64,
    take: &'a mut Take<'b>,
}

impl Unpacking<'_, '_> {
    /// Unpacks a stream within `depth` packings more.
    fn unpack(&mut self, from: &mut dyn Read, name: &OsStr, depth: usize) -> Result<Found, PackageError> {
        let mut head = Vec::new();
        (&mut *from).take(HEAD_LEN).read_to_end(&mut head)?;
        let format = Format::of(&head);
        let before = self.left;
        let mut all = Bounded { from: head.as_slice().chain(from), left: before };
        let found = self.unpack_as(format, &mut all, name, depth);
        // Packings within this one have counted their own bytes.
        self.left = self.left.saturating_sub(before - all.left);
        if all.left == 0 || self.left == 0 { Err(PackageError::TooLarge) } else { found }
    }

    fn unpack_as(
        &mut self,
        format: Format,
        all: &mut dyn Read,
        name: &OsStr,
        depth: usize,
    ) -> Result<Found, PackageError> {
        let Some(depth) = depth.checked_sub(1) else { return Ok(Found::Nothing) };
        let each = |unpacking: &mut Self, name: &[u8], content: &mut dyn Read| {
            unpacking.unpack(content, OsStr::from_bytes(name), depth).map(drop)
        };
        match format {
            Format::Elf => (self.take)(name, all).map_err(PackageError::Taken)?,
            Format::Ar => ar::each_file(all, |name, content| match name.starts_with(b"data.tar") {
                true => each(&mut *self, name, content),
                false => Ok(()),
            })?,
            Format::Cpio => cpio::each_file(all, |name, content| each(&mut *self, name, content))?,
            Format::Tar => tar::each_file(all, |name, content| each(&mut *self, name, content))?,
            Format::Rpm => {
                rpm::skip_headers(all)?;
                if self.unpack(all, name, depth)? == Found::Nothing {
                    return Err(PackageError::Unknown {
                        format: "rpm",
                        what: "the compression of its files",
                    });
                }
            }
            Format::Xz => {
                let all = BufReader::with_capacity(READ_LEN, all);
                let mut content = XzReader::new_mem_limit(all, true, XZ_MEMORY_KIB);
                return self.unpack(&mut content, &without_ending(name), depth);
            }
            Format::GzipOrZstd => {
                let mut content = Unpacked::new(all)?;
                return self.unpack(&mut content, &without_ending(name), depth);
            }
            Format::Other => return Ok(Found::Nothing),
        }
        Ok(Found::Something)
    }
}

/// The name of a compressed file without the ending of its compression.
fn without_ending(name: &OsStr) -> OsString {
    let bytes = name.as_bytes();
    let bare = [&b".gz"[..], b".xz", b".zst"].iter().find_map(|ending| bytes.strip_suffix(*ending));
    OsStr::from_bytes(bare.unwrap_or(bytes)).to_owned()
}

/// A reader that ends after a number of bytes, and counts them.
struct Bounded<R> {
    from: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = into.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if len == 0 {
            return Ok(0);
        }
        let len = self.from.read(&mut into[..len])?;
        self.left -= len as u64;
        Ok(len)
    }
}

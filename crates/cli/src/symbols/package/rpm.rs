//! RPM packages (rpm.org, "RPM V4 Package format"): a lead, two headers, and a compressed archive of cpio.

use std::io::Read;

use super::content::skip;
use super::error::PackageError;

pub(super) const MAGIC: [u8; 4] = [0xed, 0xab, 0xee, 0xdb];

const LEAD_LEN: u64 = 96;
const HEADER_MAGIC: [u8; 3] = [0x8e, 0xad, 0xe8];
/// The most bytes of a header: rpm's own bound (lib/header.cc).
const MOST_HEADER: u64 = 256 << 20;

/// Reads up to the archive.
pub(super) fn skip_headers(from: &mut dyn Read) -> Result<(), PackageError> {
    skip(from, LEAD_LEN)?;
    let signature = skip_header(from)?;
    skip(from, signature.next_multiple_of(8) - signature)?;
    skip_header(from).map(drop)
}

/// Reads a header, and returns its length.
fn skip_header(from: &mut dyn Read) -> Result<u64, PackageError> {
    const INTRODUCTION: u64 = 16;
    const ENTRY: u64 = 16;
    let mut introduction = [0; INTRODUCTION as usize];
    from.read_exact(&mut introduction)?;
    if !introduction.starts_with(&HEADER_MAGIC) {
        return Err(PackageError::Damaged { format: "rpm", why: "a header without its beginning" });
    }
    let number = |at: usize| introduction[at..at + 4].iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    let len = ENTRY * number(8) + number(12);
    if len > MOST_HEADER {
        return Err(PackageError::Damaged { format: "rpm", why: "a header of more than 256 MiB" });
    }
    skip(from, len)?;
    Ok(INTRODUCTION + len)
}

//! A chunk's header: 68 bytes, big-endian (JDK 17 `jdk.jfr.internal.consumer.ChunkHeader`,
//! HotSpot 17 `jfrChunkWriter.cpp`).

use super::clock::Clock;
use super::error::{JfrError, Problem};

/// The length of a header in bytes; the first event follows it.
pub const HEADER_LEN: usize = 68;

const MAGIC: [u8; 4] = *b"FLR\0";
/// The supported major versions.
const MAJOR_VERSIONS: [u16; 2] = [1, 2];
/// The byte `state` while HotSpot rewrites the header.
const STATE_BEING_WRITTEN: u8 = 255;

/// A chunk's description of itself. If the chunk is still being written, only its versions and flags are
/// reliable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHeader {
    /// 1: JDK 9, JDK 10 and early builds of 11, with the same format and other type names. 2: all later
    /// versions. The JDK's own reader accepts both (JDK 25 `jdk.jfr.internal.consumer.ChunkHeader`).
    pub major: u16,
    /// 0: JDK 9 to 11, 8u, async-profiler; 1: JDK 17 and later.
    pub minor: u16,
    /// The chunk's length in bytes, header included. While HotSpot writes a chunk, this is the length up to
    /// the last flush. Other writers write a placeholder until the chunk ends, some of them 1 GiB.
    pub size: i64,
    /// The offset in the chunk of its last checkpoint, which refers to the previous ones; 0 if unknown.
    pub checkpoint_offset: i64,
    /// The offset in the chunk of its latest metadata; 0 if unknown.
    pub metadata_offset: i64,
    /// The start of the chunk, and the conversion of ticks to times.
    pub clock: Clock,
    /// The length of the time for which the chunk was written, in nanoseconds.
    pub duration_ns: i64,
    /// 0: finished, or the writer does not maintain this field. 255: the header is being rewritten.
    /// Otherwise: a generation.
    pub state: u8,
    /// Bit 0: integers are compressed. Bit 1: the chunk is the recording's last.
    pub flags: u16,
}

impl ChunkHeader {
    /// Reads the header at the beginning of `bytes`; `base` is their offset in the recording.
    pub fn parse(bytes: &[u8], base: u64) -> Result<Self, JfrError> {
        let known = bytes.len().min(MAGIC.len());
        if bytes[..known] != MAGIC[..known] {
            return Err(Problem::NoMagic.at(base));
        }
        let Some(header) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(Problem::TruncatedHeader { left: bytes.len() }.at(base));
        };
        let u16_at = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let i64_at = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&header[at..at + 8]);
            i64::from_be_bytes(word)
        };
        let (major, minor) = (u16_at(4), u16_at(6));
        if !MAJOR_VERSIONS.contains(&major) {
            return Err(Problem::UnsupportedVersion { major, minor }.at(base + 4));
        }
        Ok(Self {
            major,
            minor,
            size: i64_at(8),
            checkpoint_offset: i64_at(16),
            metadata_offset: i64_at(24),
            clock: Clock {
                start_unix_nano: i64_at(32),
                start_ticks: i64_at(48),
                ticks_per_second: i64_at(56),
            },
            duration_ns: i64_at(40),
            state: header[64],
            flags: u16_at(66),
        })
    }

    /// Whether short, char, int and long values are compressed.
    pub fn compressed_integers(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Whether the recording ends with this chunk.
    pub fn is_final(&self) -> bool {
        self.flags & 2 != 0
    }

    /// Whether the header is complete: as far as the header can say, the chunk is finished.
    pub fn is_finished(&self) -> bool {
        self.state == 0 && self.metadata_offset > 0 && self.checkpoint_offset > 0
    }

    /// Whether HotSpot is rewriting the header, so that its fields may be inconsistent.
    pub fn is_being_written(&self) -> bool {
        self.state == STATE_BEING_WRITTEN
    }
}

/// Whether a chunk begins here: magic, version 1 or 2, minor version below 256. Read as an event, these
/// bytes would be an event of 70 bytes with type id 76 and an unlikely content.
pub(super) fn begins_chunk(bytes: &[u8]) -> bool {
    bytes.starts_with(b"FLR\0\0\x02\0") || bytes.starts_with(b"FLR\0\0\x01\0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([0, 2, 0, 1]);
        for word in [1_000i64, 900, 800, 1_700_000_000_000_000_000, 5_000, 77, 1_000_000] {
            bytes.extend(word.to_be_bytes());
        }
        bytes.extend([0, 0, 0, 3]);
        bytes
    }

    #[test]
    fn every_field_has_its_place() {
        let parsed = ChunkHeader::parse(&header(), 0).unwrap();
        assert_eq!((parsed.major, parsed.minor, parsed.size), (2, 1, 1_000));
        assert_eq!((parsed.checkpoint_offset, parsed.metadata_offset), (900, 800));
        assert_eq!((parsed.clock.start_unix_nano, parsed.duration_ns), (1_700_000_000_000_000_000, 5_000));
        assert_eq!((parsed.clock.start_ticks, parsed.clock.ticks_per_second), (77, 1_000_000));
        assert!(parsed.is_finished() && parsed.compressed_integers() && parsed.is_final());
    }

    #[test]
    fn bytes_that_are_no_chunk_are_refused() {
        let error = |bytes: &[u8]| ChunkHeader::parse(bytes, 10).unwrap_err();
        assert_eq!(error(b"ELF"), Problem::NoMagic.at(10));
        assert_eq!(error(b""), Problem::TruncatedHeader { left: 0 }.at(10));
        assert_eq!(error(&header()[..67]), Problem::TruncatedHeader { left: 67 }.at(10));
        let mut old = header();
        old[5] = 0;
        assert_eq!(error(&old), Problem::UnsupportedVersion { major: 0, minor: 1 }.at(14));
        old[5] = 1;
        assert_eq!(ChunkHeader::parse(&old, 0).unwrap().major, 1);
    }
}

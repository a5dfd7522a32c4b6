//! Deflate by several threads: each block of the content is compressed on its own, and the blocks are joined.
//!
//! The result is one stream, which every reader takes. It does not depend on the number of threads.

use std::io::{self, Write};
use std::mem::take;
use std::thread;

use flate2::{Compress, Compression, FlushCompress};
use otlpprof_workers::{InOrder, Workers, processors};
use zlib_rs::adler32::{adler32, adler32_combine};
use zlib_rs::crc32::{crc32, crc32_combine};

/// The bytes of the content that a block has. Smaller blocks would make a larger result: none finds its
/// repetitions in the block before.
const BLOCK_BYTES: usize = 1 << 19;
/// The most threads. Content is made about as fast as a few of them compress it.
const MOST_THREADS: usize = 8;
/// The least room for compressed bytes. With no more than six bytes the end of a block would be repeated.
const LEAST_ROOM: usize = 64;
/// The last block of a deflate stream, without content (RFC 1951): each block before is followed by others.
const LAST_BLOCK: [u8; 2] = [3, 0];

/// The form of a compressed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// One member of gzip, without time and name (RFC 1952).
    Gzip,
    /// A zlib stream (RFC 1950).
    Zlib,
}

impl Container {
    fn header(self) -> &'static [u8] {
        match self {
            Self::Gzip => &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff],
            Self::Zlib => &[0x78, 0x9c],
        }
    }

    /// The check sum of some content: CRC-32 or Adler-32.
    fn check_sum(self, content: &[u8]) -> u32 {
        match self {
            Self::Gzip => crc32(0, content),
            Self::Zlib => adler32(1, content),
        }
    }

    /// The check sum of some content and of the `bytes` that follow, whose sum is `next`.
    fn joined_check_sum(self, sum: u32, next: u32, bytes: usize) -> u32 {
        match self {
            Self::Gzip => crc32_combine(sum, next, bytes as u64),
            Self::Zlib => adler32_combine(sum, next, bytes as u64),
        }
    }

    /// The end of a file whose content has this check sum and this number of bytes.
    fn trailer(self, sum: u32, bytes: u64) -> Vec<u8> {
        match self {
            // The size is modulo 2^32.
            Self::Gzip => [sum.to_le_bytes(), (bytes as u32).to_le_bytes()].concat(),
            Self::Zlib => sum.to_be_bytes().to_vec(),
        }
    }
}

/// Compresses what `content` writes.
///
/// # Errors
/// If `out` cannot be written, or `content` fails.
pub fn write(
    container: Container,
    level: Compression,
    out: &mut dyn Write,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    out.write_all(container.header())?;
    let compressed = |content| Block::of(content, level, container);
    thread::scope(|scope| {
        let threads = processors(MOST_THREADS);
        let blocks = Workers::start(scope, threads, &compressed)?.in_order();
        let sum = container.check_sum(&[]);
        let mut stream = Stream { content: Vec::new(), blocks, container, sum, bytes: 0, out };
        content(&mut stream)?;
        stream.finish()
    })
}

/// A compressed block.
struct Block {
    compressed: Vec<u8>,
    /// The number of bytes of the content, and their check sum.
    bytes: usize,
    sum: u32,
}

impl Block {
    fn of(content: Vec<u8>, level: Compression, container: Container) -> io::Result<Self> {
        let mut deflate = Compress::new(level, false);
        let mut compressed = Vec::new();
        // The block is complete once room is left.
        while compressed.len() == compressed.capacity() {
            compressed.reserve(content.len() / 2 + LEAST_ROOM);
            // SANITY: no more is read than the content has.
            let rest = &content[deflate.total_in() as usize..];
            // Ends the block at a byte, so that others can follow.
            deflate.compress_vec(rest, &mut compressed, FlushCompress::Sync)?;
        }
        Ok(Self { compressed, bytes: content.len(), sum: container.check_sum(&content) })
    }
}

/// A stream that is being written.
struct Stream<'o> {
    /// The content of the next block.
    content: Vec<u8>,
    blocks: InOrder<Vec<u8>, io::Result<Block>>,
    container: Container,
    /// The check sum of the blocks that are written, and their bytes.
    sum: u32,
    bytes: u64,
    out: &'o mut dyn Write,
}

impl Stream<'_> {
    fn end_block(&mut self) -> io::Result<()> {
        if self.blocks.is_full() {
            self.write_block()?;
        }
        self.blocks.give(take(&mut self.content));
        Ok(())
    }

    /// Writes the next block. Returns whether there is one.
    fn write_block(&mut self) -> io::Result<bool> {
        let Some(block) = self.blocks.take()?.transpose()? else { return Ok(false) };
        self.sum = self.container.joined_check_sum(self.sum, block.sum, block.bytes);
        self.bytes += block.bytes as u64;
        self.out.write_all(&block.compressed)?;
        Ok(true)
    }

    fn finish(mut self) -> io::Result<()> {
        if !self.content.is_empty() {
            self.end_block()?;
        }
        while self.write_block()? {}
        self.out.write_all(&LAST_BLOCK)?;
        self.out.write_all(&self.container.trailer(self.sum, self.bytes))
    }
}

impl Write for Stream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(BLOCK_BYTES - self.content.len());
        self.content.extend_from_slice(&bytes[..taken]);
        if self.content.len() == BLOCK_BYTES {
            self.end_block()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, Read};

    use flate2::bufread::{GzDecoder, ZlibDecoder};

    use super::*;

    /// The content that a decoder reads, which checks the sums.
    fn read(mut from: impl Read) -> Vec<u8> {
        let mut content = Vec::new();
        from.read_to_end(&mut content).unwrap();
        content
    }

    #[test]
    fn content_of_any_size_is_one_stream() {
        for size in [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, 20 * BLOCK_BYTES + 7] {
            // Parts repeat, and parts cannot be compressed.
            let byte = |at: usize| match at & 1 << 12 {
                0 => at as u64,
                _ => (at as u64).wrapping_mul(at as u64 ^ 0x9e37_79b9_7f4a_7c15) >> 40,
            };
            let content: Vec<u8> = (0..size).map(|at| byte(at) as u8).collect();
            for container in [Container::Gzip, Container::Zlib] {
                let mut compressed = Vec::new();
                write(container, Compression::fast(), &mut compressed, |out| {
                    content.chunks(100_003).try_for_each(|part| out.write_all(part))
                })
                .unwrap();
                let mut rest = &*compressed;
                let found = match container {
                    Container::Gzip => read(GzDecoder::new(&mut rest as &mut dyn BufRead)),
                    Container::Zlib => read(ZlibDecoder::new(&mut rest as &mut dyn BufRead)),
                };
                assert!(found == content && rest.is_empty(), "{container:?} {size}");
            }
        }
    }

    #[test]
    fn an_error_of_the_content_or_of_the_output_ends_the_work() {
        let level = Compression::default();
        let failed = write(Container::Gzip, level, &mut Vec::new(), |out| {
            out.write_all(&vec![7; 3 * BLOCK_BYTES])?;
            Err(io::Error::other("no content"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no content");
        let mut small = [0; 20];
        let failed = write(Container::Zlib, level, &mut &mut small[..], |out| {
            out.write_all(&vec![7; 30 * BLOCK_BYTES])
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::WriteZero);
    }
}

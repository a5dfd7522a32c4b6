//! Decompresses recordings that are compressed with gzip or zstd.

use std::io::{self, BufReader, Chain, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use thiserror::Error;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: u32 = 0xfd2f_b528;
/// The magic number of frames without data, except for its last four bits (RFC 8878, section 3.1.2).
const ZSTD_SKIPPABLE: u32 = 0x184d_2a50;
const MAGIC_LEN: usize = 4;

/// The error of a compressed recording that cannot be read to its end.
#[derive(Debug, Error)]
#[error("the {form} stream is cut or damaged ({why})")]
pub struct PackedError {
    form: &'static str,
    why: io::Error,
}

/// Reads from a reader, and decompresses the bytes if their first bytes announce a compressed format.
///
/// A sequence of gzip members or zstd frames is allowed. An error in the compressed bytes contains a
/// [`PackedError`]. Other errors are the reader's own.
#[derive(Debug)]
pub struct Unpacked<R: Read> {
    form: Form<R>,
    has_failed: Arc<AtomicBool>,
}

enum Form<R: Read> {
    Plain(Input<R>),
    Gzip(Box<MultiGzDecoder<BufReader<Input<R>>>>),
    Zstd(ZstdFrames<BufReader<Input<R>>>),
}

/// The bytes that the format was detected by, and the remaining ones.
type Input<R> = Chain<Cursor<Vec<u8>>, FailureRecorder<R>>;

impl<R: Read> Unpacked<R> {
    /// Reads the bytes that the format is detected by.
    ///
    /// # Errors
    /// If the reader fails.
    pub fn new(mut from: R) -> io::Result<Self> {
        let mut first = Vec::new();
        from.by_ref().take(MAGIC_LEN as u64).read_to_end(&mut first)?;
        let magic = first.first_chunk().map(|magic| u32::from_le_bytes(*magic));
        let (is_gzip, has_failed) = (first.starts_with(&GZIP), Arc::new(AtomicBool::new(false)));
        let input = Cursor::new(first).chain(FailureRecorder { from, has_failed: Arc::clone(&has_failed) });
        let form = match magic {
            _ if is_gzip => Form::Gzip(Box::new(MultiGzDecoder::new(BufReader::new(input)))),
            Some(magic) if magic == ZSTD || is_skippable(magic) => {
                Form::Zstd(ZstdFrames { frame: None, from: Some(BufReader::new(input)) })
            }
            _ => Form::Plain(input),
        };
        Ok(Self { form, has_failed })
    }

    /// Whether the bytes are compressed.
    pub fn is_packed(&self) -> bool {
        !matches!(self.form, Form::Plain(_))
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (read, form) = match &mut self.form {
            Form::Plain(from) => return from.read(into),
            Form::Gzip(from) => (from.read(into), "gzip"),
            Form::Zstd(from) => (from.read(into), "zstd"),
        };
        read.map_err(|why| match self.has_failed.load(Ordering::Relaxed) {
            true => why,
            false => io::Error::new(io::ErrorKind::InvalidData, PackedError { form, why }),
        })
    }
}

impl<R: Read> std::fmt::Debug for Form<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "Plain",
            Self::Gzip(_) => "Gzip",
            Self::Zstd(_) => "Zstd",
        })
    }
}

/// A reader that records its failure, which distinguishes errors of this reader from errors in the compressed
/// bytes.
#[derive(Debug)]
struct FailureRecorder<R> {
    from: R,
    has_failed: Arc<AtomicBool>,
}

impl<R: Read> Read for FailureRecorder<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.from.read(into) {
                // Decoders may not support reading on after an error.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.has_failed.store(true, Ordering::Relaxed);
                    return Err(error);
                }
                Ok(count) => return Ok(count),
            }
        }
    }
}

/// The data of a sequence of zstd frames.
struct ZstdFrames<R: Read> {
    /// The current frame.
    frame: Option<Box<ZstdFrame<R>>>,
    /// The input while no frame is open.
    from: Option<R>,
}

type ZstdFrame<R> = StreamingDecoder<Chain<Cursor<[u8; MAGIC_LEN]>, R>, FrameDecoder>;

impl<R: Read> Read for ZstdFrames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(mut frame) = self.frame.take() {
                let count = frame.read(into)?;
                if count > 0 || into.is_empty() {
                    self.frame = Some(frame);
                    return Ok(count);
                }
                let (input, decoder) = frame.into_parts();
                let noted = decoder.get_checksum_from_data();
                if noted.is_some() && noted != decoder.get_calculated_checksum() {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "wrong checksum"));
                }
                self.from = Some(input.into_inner().1);
            }
            if !self.begin_frame()? {
                return Ok(0);
            }
        }
    }
}

impl<R: Read> ZstdFrames<R> {
    /// Opens the next frame that has data. Returns whether there is one.
    fn begin_frame(&mut self) -> io::Result<bool> {
        let Some(from) = &mut self.from else { return Ok(false) };
        loop {
            let mut magic = Vec::new();
            from.by_ref().take(MAGIC_LEN as u64).read_to_end(&mut magic)?;
            let Some(&magic) = magic.first_chunk::<MAGIC_LEN>() else {
                return if magic.is_empty() { Ok(false) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            };
            if !is_skippable(u32::from_le_bytes(magic)) {
                let Some(from) = self.from.take() else { return Ok(false) };
                let frame =
                    StreamingDecoder::new(Cursor::new(magic).chain(from)).map_err(io::Error::other)?;
                self.frame = Some(Box::new(frame));
                return Ok(true);
            }
            let mut length = [0; 4];
            from.read_exact(&mut length)?;
            let length = u64::from(u32::from_le_bytes(length));
            if io::copy(&mut from.by_ref().take(length), &mut io::sink())? < length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

fn is_skippable(magic: u32) -> bool {
    magic & !0xf == ZSTD_SKIPPABLE
}

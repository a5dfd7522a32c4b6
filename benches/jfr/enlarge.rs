//! Enlarges a small recording: repeats its chunks, each time as if they had been recorded later. JMC's core
//! treats the events of two chunks with equal times as the same events.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use otlpprof_jfr::recording::Chunks;

/// The places of a chunk's start, in nanoseconds since 1970-01-01 UTC, and of its duration in the chunk's
/// header.
const START_NANOS: std::ops::Range<usize> = 32..40;
const DURATION_NANOS: std::ops::Range<usize> = 40..48;

/// Writes a file of at least `len` bytes beside the recording, and returns its path.
pub(crate) fn enlarge(path: &str, len: usize) -> PathBuf {
    let bytes = std::fs::read(path).expect("the recording");
    let chunks: Vec<Vec<u8>> = Chunks::new(&bytes)
        .map(|chunk| chunk.expect("a recording that is whole").contents().bytes().to_vec())
        .collect();
    let number = |chunk: &[u8], at: std::ops::Range<usize>| {
        i64::from_be_bytes(chunk[at].try_into().expect("eight bytes"))
    };
    let starts = chunks.iter().map(|chunk| number(chunk, START_NANOS));
    let ends = chunks.iter().map(|chunk| number(chunk, START_NANOS) + number(chunk, DURATION_NANOS));
    let span = ends.max().unwrap_or(0) - starts.min().unwrap_or(0);
    let large = Path::new(path).with_extension("large.jfr");
    let mut file = BufWriter::new(std::fs::File::create(&large).expect("a file beside the recording"));
    let mut written = 0;
    for copy in 0.. {
        for chunk in &chunks {
            let mut chunk = chunk.clone();
            let start = number(&chunk, START_NANOS) + copy * span;
            chunk[START_NANOS].copy_from_slice(&start.to_be_bytes());
            file.write_all(&chunk).expect("room for the large recording");
            written += chunk.len();
        }
        if written >= len {
            break;
        }
    }
    file.flush().expect("room for the large recording");
    large
}

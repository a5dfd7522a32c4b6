//! A small recording made large: its chunks again and again, each time as if they had been recorded later. JMC's core takes
//! the events of a chunk that comes twice as the same.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use otlpprof::jfr::recording::Chunks;

/// Where a chunk's header has its beginning, in nanoseconds since 1970-01-01 UTC, and how long it is.
const START_NANOS: std::ops::Range<usize> = 32..40;
const DURATION_NANOS: std::ops::Range<usize> = 40..48;

/// A file beside the recording with at least so many bytes.
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

//! The content of an input file, by its first bytes.

use std::io::Read as _;

use anyhow::{Context as _, bail};
use otlpprof_collapsed::is_collapsed;
use otlpprof_convert::Unpacked;
use otlpprof_pprof::is_pprof;

use crate::input::Input;
use crate::recording;

/// The number of bytes that decide, after decompression.
const FIRST: u64 = 1 << 16;
/// The first bytes of a recording (JDK Flight Recorder, `jfrChunkWriter.cpp`).
const RECORDING: [u8; 4] = *b"FLR\0";

/// The formats of profiles that can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// OTLP in any form, or in no known format: its reader says so.
    Otlp,
    /// A recording of JDK Flight Recorder.
    Recording,
    /// pprof's `profile.proto`.
    Pprof,
    /// Collapsed stacks.
    Collapsed,
}

impl Content {
    /// Detects the content of an input, compressed with gzip or zstd or not.
    ///
    /// # Errors
    /// The file cannot be read, or must be unpacked first.
    pub(crate) fn of(input: &Input) -> anyhow::Result<Self> {
        let name = || input.path.display().to_string();
        let mut first = Vec::new();
        let mut unpacked = Unpacked::new(input.bytes()?).with_context(name)?.take(FIRST);
        // The reader of the content reports where a compressed file is damaged.
        let _ = unpacked.read_to_end(&mut first);
        if let Some(advice) = recording::unsupported(&first) {
            bail!("{}: {advice}", name());
        }
        Ok(match &first[..] {
            bytes if bytes.starts_with(&RECORDING) => Self::Recording,
            bytes if is_collapsed(bytes) => Self::Collapsed,
            bytes if is_pprof(bytes) => Self::Pprof,
            _ => Self::Otlp,
        })
    }

    /// A file with this content, in words.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Otlp => "OTLP",
            Self::Recording => "a recording of JDK Flight Recorder",
            Self::Pprof => "a pprof profile",
            Self::Collapsed => "collapsed stacks",
        }
    }
}

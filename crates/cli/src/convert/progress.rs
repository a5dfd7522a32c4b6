//! A progress bar on the terminal while long recordings are read.

use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The fewest bytes for which a bar is shown. Shorter inputs are done before a user would look.
const SHORTEST: u64 = 64 << 20;

/// The part of the inputs that has been read.
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar for these files. None is shown if the files are short, if a length is not known, or if standard
    /// error is not a terminal.
    pub(super) fn over(files: &[PathBuf]) -> Self {
        let lengths = files.iter().map(|path| std::fs::metadata(path).ok().filter(|file| file.is_file()));
        let length = lengths.map(|file| file.map(|file| file.len())).sum::<Option<u64>>();
        let Some(length) = length.filter(|&length| length >= SHORTEST) else {
            return Self { bar: ProgressBar::hidden() };
        };
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(5));
        let style = ProgressStyle::with_template("{wide_bar} {bytes} of {total_bytes}, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar }
    }

    /// Wraps a reader so that the bytes read from it are counted.
    pub(super) fn count<'p>(&'p self, from: impl Read + 'p) -> impl Read + 'p {
        CountedReader { from, bar: &self.bar }
    }

    /// Removes the bar.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

struct CountedReader<'p, R> {
    from: R,
    bar: &'p ProgressBar,
}

impl<R: Read> Read for CountedReader<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(into)?;
        self.bar.inc(count as u64);
        Ok(count)
    }
}

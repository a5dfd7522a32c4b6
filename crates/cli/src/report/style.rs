//! Colours and columns of a terminal.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd as _};

use otlpprof_report::frame_table::FrameKind;

use super::fitted::fitted;
use crate::terminal::Shown;

/// The fewest columns into which lines are fitted.
const LEAST_COLUMNS: u16 = 40;
/// The fewest columns of a name at a line's end, however narrow the terminal.
const LEAST_OF_NAME: usize = 20;

/// Whether text is coloured, and the columns that it may occupy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    is_coloured: bool,
    columns: Option<u16>,
}

impl Style {
    /// Coloured if standard output is a terminal, unless the variable NO_COLOR is set.
    pub(super) fn of_stdout() -> Self {
        Self::of(&io::stdout())
    }

    /// As [`Style::of_stdout`], for standard error.
    pub(super) fn of_stderr() -> Self {
        Self::of(&io::stderr())
    }

    fn of(stream: &(impl IsTerminal + AsFd)) -> Self {
        let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let columns = columns_of(stream).filter(|&columns| columns >= LEAST_COLUMNS);
        Self { is_coloured: stream.is_terminal() && !is_refused, columns }
    }

    /// The columns of the terminal; `None` if lines are not fitted into columns.
    pub(super) fn columns(self) -> Option<usize> {
        self.columns.map(usize::from)
    }

    /// A name at the end of a line whose other text has `others` columns. It is cut to the columns of a
    /// terminal.
    pub(super) fn name_at_end(self, name: impl Display, others: usize) -> String {
        match self.columns() {
            None => name.to_string(),
            Some(columns) => {
                let room = columns.saturating_sub(others).max(LEAST_OF_NAME);
                fitted(&Shown(name).to_string(), room).into_owned()
            }
        }
    }

    /// Begins the colour of a kind of code.
    pub(super) fn kind(self, out: &mut dyn Write, kind: FrameKind) -> io::Result<()> {
        self.begin(
            out,
            match kind {
                FrameKind::Java => b"\x1b[32m".as_slice(),
                FrameKind::Native => b"\x1b[34m",
                FrameKind::Kernel => b"\x1b[31m",
                FrameKind::Stub => b"\x1b[36m",
                FrameKind::Marker => b"\x1b[90m",
                FrameKind::Other(_) => b"\x1b[33m",
            },
        )
    }

    /// Begins the colour of less important text.
    pub(super) fn faint(self, out: &mut dyn Write) -> io::Result<()> {
        self.begin(out, b"\x1b[90m")
    }

    /// Ends a colour.
    pub(super) fn plain(self, out: &mut dyn Write) -> io::Result<()> {
        self.begin(out, b"\x1b[0m")
    }

    fn begin(self, out: &mut dyn Write, code: &[u8]) -> io::Result<()> {
        if self.is_coloured { out.write_all(code) } else { Ok(()) }
    }
}

/// The columns of a terminal; `None` if the stream is none, or if they are unknown.
fn columns_of(stream: &impl AsFd) -> Option<u16> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the descriptor is open, and the pointer is valid for the size that the request writes.
    let result = unsafe { libc::ioctl(stream.as_fd().as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    (result == 0 && size.ws_col > 0).then_some(size.ws_col)
}

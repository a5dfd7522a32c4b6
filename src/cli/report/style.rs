//! Colours on a terminal.

use std::io::{self, IsTerminal, Write};

use crate::report::frame_table::FrameKind;

/// Whether text is coloured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    is_coloured: bool,
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

    fn of(stream: &impl IsTerminal) -> Self {
        let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { is_coloured: stream.is_terminal() && !is_refused }
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

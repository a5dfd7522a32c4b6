//! The terminal in the mode of a full screen, which is left again however the command ends.

use std::io::{self, Stdout};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd as _, OwnedFd};
use std::panic;
use std::sync::Once;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use crate::signals::Signals;

/// The terminal in the mode of a full screen, until this value is dropped.
pub(super) struct Screen {
    /// Never dropped: its destructor shows the cursor, as `leave` does, but panics where the terminal is
    /// gone.
    pub(super) terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    /// Has something to read when SIGTSTP or SIGWINCH has arrived. Crossterm does not receive SIGWINCH: its
    /// reader loses keys that arrive with this signal, until the next key (`try_read` in
    /// event/source/unix/mio.rs returns at the signal, and its epoll reports the keys only once).
    pub(super) signal: OwnedFd,
    signals: Signals,
}

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        restore_before_a_panic_is_printed();
        let signals = Signals::block_of_view();
        let signal = signals.descriptor()?;
        enter()?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout())).inspect_err(|_| leave())?;
        Ok(Self { terminal: ManuallyDrop::new(terminal), signal, signals })
    }

    /// Handles the signal that has arrived, after which everything is drawn. SIGTSTP: restores the terminal,
    /// stops this process until SIGCONT, and takes the terminal again. SIGWINCH: clears the terminal, which
    /// may have cut or moved lines even if its size is the former one again.
    pub(super) fn heed_signal(&mut self) -> io::Result<()> {
        if i32::from(Signals::take(self.signal.as_fd())) == libc::SIGTSTP {
            leave();
            // SAFETY: the call accesses no memory.
            unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
            enter()?;
        } else {
            execute!(io::stdout(), Clear(ClearType::All))?;
        }
        // A new one: clearing the old one would ask the terminal for the cursor's place, and wait for the
        // answer.
        self.terminal = ManuallyDrop::new(Terminal::new(CrosstermBackend::new(io::stdout()))?);
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
        self.signals.unblock();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, Clear(ClearType::All)).inspect_err(|_| leave())
}

/// A terminal that is gone needs nothing restored.
fn leave() {
    let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

/// The message of a panic belongs on the restored screen.
fn restore_before_a_panic_is_printed() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            leave();
            print(info);
        }));
    });
}

//! Waits that SIGINT, SIGTERM and SIGHUP end, so that files in the target's /tmp are removed before the
//! command ends.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use super::error::AttachError;
use crate::cli::signals::Signals;

/// The signals that end the command, and the time at which it gives up.
pub(super) struct Interrupts {
    signals: Signals,
    /// Has something to read when a signal has arrived.
    arrived: OwnedFd,
    started: Instant,
    timeout: Duration,
}

impl Interrupts {
    /// Takes the signals over. The command gives up after `timeout`.
    pub(super) fn new(timeout: Duration) -> Result<Self, AttachError> {
        let signals = Signals::block_with_hangup();
        let arrived = signals.descriptor().map_err(AttachError::Wait)?;
        Ok(Self { signals, arrived, started: Instant::now(), timeout })
    }

    /// Begins another request: the command gives up `timeout` from now.
    pub(super) fn restart(&mut self) {
        self.started = Instant::now();
    }

    /// Lets the next signal end the command at once.
    pub(super) fn release(self) {
        self.signals.unblock();
    }

    /// The time until the command gives up.
    pub(super) fn left(&self) -> Duration {
        self.timeout.saturating_sub(self.started.elapsed())
    }

    /// The time after which the command gives up.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Waits until one of the descriptors has something to read, or until the time has passed. Returns which
    /// of them have.
    pub(super) fn wait<const N: usize>(
        &self,
        descriptors: [BorrowedFd<'_>; N],
        time: Duration,
    ) -> Result<[bool; N], AttachError> {
        let entry = |descriptor: i32| libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        let mut entries = vec![entry(self.arrived.as_raw_fd())];
        entries.extend(descriptors.iter().map(|descriptor| entry(descriptor.as_raw_fd())));
        let milliseconds = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: the pointer and the length are those of the vector.
        let ready = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, milliseconds) };
        if ready < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(AttachError::Wait(error));
            }
            return Ok([false; N]);
        }
        if entries[0].revents != 0 {
            return Err(AttachError::Interrupted(self.signal()));
        }
        Ok(std::array::from_fn(|index| entries[index + 1].revents != 0))
    }

    /// The number of the signal that has arrived.
    fn signal(&self) -> u8 {
        // SAFETY: the structure consists of integers, so zeros are a valid value.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer and the length are those of the structure.
        unsafe { libc::read(self.arrived.as_raw_fd(), (&raw mut info).cast(), size_of_val(&info)) };
        u8::try_from(info.ssi_signo).unwrap_or(0)
    }
}

//! Waits that SIGINT, SIGTERM, SIGQUIT and SIGHUP end, so that files in the target's /tmp are removed before
//! the command ends.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use super::error::AttachError;
use crate::signals::Signals;

/// The signals that end the command, and the time at which it gives up.
pub(crate) struct Interrupts {
    signals: Signals,
    /// Has something to read when a signal has arrived.
    arrived: OwnedFd,
    started: Instant,
    timeout: Duration,
}

impl Interrupts {
    /// Takes the signals over. The command gives up after `timeout`.
    pub(crate) fn new(timeout: Duration) -> Result<Self, AttachError> {
        let signals = Signals::block_all_of_terminal();
        let arrived = signals.descriptor().map_err(AttachError::Wait)?;
        Ok(Self { signals, arrived, started: Instant::now(), timeout })
    }

    /// Begins another request: the command gives up `timeout` from now.
    pub(crate) fn restart(&mut self) {
        self.started = Instant::now();
    }

    /// Lets the next signal end the command at once.
    pub(crate) fn release(self) {
        self.signals.unblock();
    }

    /// The time until the command gives up.
    pub(crate) fn left(&self) -> Duration {
        self.timeout.saturating_sub(self.started.elapsed())
    }

    /// The time after which the command gives up.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Waits until one of the descriptors has something to read, or until the time has passed. Returns which
    /// of them have.
    pub(crate) fn wait<const N: usize>(
        &self,
        descriptors: [BorrowedFd<'_>; N],
        time: Duration,
    ) -> Result<[bool; N], AttachError> {
        let ready = self.wait_any(&descriptors, time)?;
        Ok(std::array::from_fn(|index| ready[index]))
    }

    /// As [`Interrupts::wait`], for any number of descriptors.
    pub(crate) fn wait_any(
        &self,
        descriptors: &[BorrowedFd<'_>],
        time: Duration,
    ) -> Result<Vec<bool>, AttachError> {
        let entry = |descriptor: i32| libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        let mut entries = vec![entry(self.arrived.as_raw_fd())];
        entries.extend(descriptors.iter().map(|descriptor| entry(descriptor.as_raw_fd())));
        let milliseconds = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: the pointer and the length describe the vector.
        let ready = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, milliseconds) };
        if ready < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(AttachError::Wait(error));
            }
            return Ok(vec![false; descriptors.len()]);
        }
        if entries[0].revents != 0 {
            return Err(AttachError::Interrupted(Signals::take(self.arrived.as_fd())));
        }
        Ok(entries[1..].iter().map(|entry| entry.revents != 0).collect())
    }
}

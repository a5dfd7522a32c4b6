//! The user of the JVM, as whom the command makes files and connects: HotSpot checks both.

use std::io;

use super::error::AttachError;
use super::process::JvmProcess;

/// The command runs as another user until this value is dropped.
#[derive(Debug)]
pub(super) struct TargetUser {
    /// The user and the group to return to. `None` if nothing was switched.
    before: Option<(libc::uid_t, libc::gid_t)>,
}

impl TargetUser {
    /// Switches the effective user and group to those of the process.
    pub(super) fn switch_to(process: &JvmProcess) -> Result<Self, AttachError> {
        // SAFETY: the calls access no memory.
        let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
        if (uid, gid) == (process.uid, process.gid) || uid != 0 {
            return Ok(Self { before: None });
        }
        let switched = Self { before: Some((uid, gid)) };
        // The group first: another user may not change it.
        // SAFETY: the calls access no memory.
        if unsafe { libc::setegid(process.gid) != 0 || libc::seteuid(process.uid) != 0 } {
            return Err(AttachError::Switch { uid: process.uid, error: io::Error::last_os_error() });
        }
        Ok(switched)
    }
}

impl Drop for TargetUser {
    fn drop(&mut self) {
        if let Some((uid, gid)) = self.before {
            // SAFETY: the calls access no memory. The real user is the earlier one, so they are allowed.
            unsafe {
                libc::seteuid(uid);
                libc::setegid(gid);
            }
        }
    }
}

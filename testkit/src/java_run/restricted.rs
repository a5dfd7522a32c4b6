//! Removes privileges of root from a process.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::resource::{Resource, setrlimit};

/// CAP_IPC_LOCK (include/uapi/linux/capability.h): permits locking more memory than RLIMIT_MEMLOCK.
pub const CAP_IPC_LOCK: libc::c_ulong = 14;
/// CAP_SYSLOG: permits reading the kernel's addresses.
pub const CAP_SYSLOG: libc::c_ulong = 34;

/// Removes a capability from the program's bounding set. Does nothing if it is not in the set.
pub(super) fn without_capability(command: &mut Command, capability: libc::c_ulong) {
    let drop = move || {
        // SAFETY: prctl is called with numbers only.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        Ok(())
    };
    // SAFETY: the code between fork and exec makes one system call and allocates nothing.
    unsafe { command.pre_exec(drop) };
}

/// Sets a limit of the program's resources to 0.
pub(super) fn without_resource(command: &mut Command, resource: Resource) {
    let limit = move || setrlimit(resource, 0, 0).map_err(io::Error::from);
    // SAFETY: the code between fork and exec makes one system call and allocates nothing.
    unsafe { command.pre_exec(limit) };
}

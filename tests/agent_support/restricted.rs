//! A process that may not do what root may.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// CAP_IPC_LOCK (include/uapi/linux/capability.h): more memory may be locked than the limit says.
pub(crate) const CAP_IPC_LOCK: libc::c_ulong = 14;
/// CAP_SYSLOG: the kernel's addresses are shown.
pub(crate) const CAP_SYSLOG: libc::c_ulong = 34;

/// Takes the capability from what the program may ever have, if it is there at all.
pub(super) fn without_capability(command: &mut Command, capability: libc::c_ulong) {
    let drop = move || {
        // SAFETY: the call takes numbers.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        Ok(())
    };
    // SAFETY: what runs between fork and exec makes one system call and allocates nothing.
    unsafe { command.pre_exec(drop) };
}

/// Has the program lock no memory.
pub(super) fn without_locked_memory(command: &mut Command) {
    let limit = || {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the kernel reads one rlimit.
        let result = unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const none) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: what runs between fork and exec makes one system call and allocates nothing.
    unsafe { command.pre_exec(limit) };
}

//! The reason for which the kernel closes the files of a process in /proc to this command.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use super::account_names::{group_name, user_name};
use super::error::AttachError;
use super::status::Status;

/// The ids and capabilities that the kernel compares with those of a process (ptrace(2), "Ptrace access mode
/// checking").
#[derive(Clone, Copy, Debug)]
struct Credentials {
    uid: libc::uid_t,
    gid: libc::gid_t,
    /// The permitted capabilities. Bit 0 is capability 0.
    permitted: u64,
}

/// Whether this command's user is root or this user.
pub(super) fn may_command(uid: libc::uid_t) -> bool {
    // SAFETY: the call accesses no memory.
    let own_uid = unsafe { libc::geteuid() };
    own_uid == 0 || own_uid == uid
}

/// The reason why this command may not read the memory map of a process with this status.
pub(super) fn refusal(pid: u32, status: &Status) -> AttachError {
    // SAFETY: the calls access no memory.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let permitted = Status::of(std::process::id()).map_or(0, |own| own.permitted);
    // The owner is root where the process has been started with more privileges than its caller's.
    let owner = fs::metadata(format!("/proc/{pid}/maps")).map_or(status.uid, |file| file.uid());
    reason(pid, status, owner, Credentials { uid, gid, permitted })
}

fn reason(pid: u32, status: &Status, owner: libc::uid_t, own: Credentials) -> AttachError {
    if own.uid == 0 {
        return AttachError::NotTraceable(pid);
    }
    if own.uid != status.uid {
        return AttachError::OtherUser { pid, user: user_name(status.uid) };
    }
    if own.gid != status.gid {
        return AttachError::OtherGroup { pid, group: group_name(status.gid) };
    }
    if owner != status.uid || status.permitted & !own.permitted != 0 {
        return AttachError::MorePrivileges(pid);
    }
    AttachError::NotTraceable(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: each of these causes was called a missing CAP_SYS_PTRACE.
    #[test]
    fn each_cause_has_its_reason() {
        let (user, net_bind) = (Credentials { uid: 1000, gid: 100, permitted: 0 }, 1 << 10);
        let of = Status::of_ids;
        let reason = |status, owner, own| reason(7, &status, owner, own).to_string();
        assert!(reason(of(1001, 100, 0), 1001, user).contains("user 1001"));
        assert!(reason(of(1000, 200, 0), 1000, user).contains("group 200"));
        assert!(reason(of(1000, 100, net_bind), 0, user).contains("more privileges"));
        assert!(reason(of(1000, 100, 0), 0, user).contains("more privileges"));
        assert!(reason(of(1000, 100, net_bind), 1000, user).contains("more privileges"));
        assert!(reason(of(1000, 100, 0), 1000, user).contains("CAP_SYS_PTRACE"));
        let root = Credentials { uid: 0, gid: 0, permitted: net_bind };
        assert!(reason(of(1000, 200, !0), 0, root).contains("CAP_SYS_PTRACE"));
    }
}

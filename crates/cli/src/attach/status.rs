//! The status of a process, from /proc/PID/status.

use std::fs;

use super::error::AttachError;

/// Facts from /proc/PID/status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// The id of the process. Another id that names one of its threads has the same files in /proc.
    pub(super) process: u32,
    /// The state's letter (proc_pid_status(5)).
    pub(super) state: char,
    pub(super) uid: libc::uid_t,
    pub(super) gid: libc::gid_t,
    /// The id in the innermost PID namespace.
    pub(super) own_pid: u32,
    /// The set of caught signals. Bit 0 is signal 1.
    caught: u64,
    /// The set of permitted capabilities. Bit 0 is capability 0.
    pub(super) permitted: u64,
}

impl Status {
    pub(super) fn of(pid: u32) -> Result<Self, AttachError> {
        // The kernel keeps 15 bytes of the process's name, so the last letter may be cut.
        let text = fs::read(format!("/proc/{pid}/status")).map_err(|_| AttachError::NoProcess(pid))?;
        Self::parse(&String::from_utf8_lossy(&text)).ok_or(AttachError::NoProcess(pid))
    }

    fn parse(text: &str) -> Option<Self> {
        let values = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(str::split_whitespace)
        };
        let set = |name: &str| u64::from_str_radix(values(name)?.next()?, 16).ok();
        // Four ids: real, effective, saved, and the id for file accesses.
        let own_pid = values("NSpid").or_else(|| values("Pid"))?.next_back()?;
        Some(Self {
            process: values("Tgid")?.next()?.parse().ok()?,
            state: values("State")?.next()?.chars().next()?,
            uid: values("Uid")?.nth(1)?.parse().ok()?,
            gid: values("Gid")?.nth(1)?.parse().ok()?,
            own_pid: own_pid.parse().ok()?,
            caught: set("SigCgt")?,
            permitted: set("CapPrm")?,
        })
    }

    /// Whether the process has a handler for the signal.
    pub(super) fn catches(&self, signal: i32) -> bool {
        self.caught >> (signal - 1) & 1 == 1
    }
}

#[cfg(test)]
impl Status {
    /// A process of which only these facts matter.
    pub(super) fn of_ids(uid: libc::uid_t, gid: libc::gid_t, permitted: u64) -> Self {
        Self { uid, gid, permitted, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tjava\nState:\tS (sleeping)\nTgid:\t4711\nPid:\t4711\n\
                          Uid:\t0\t1000\t1000\t1000\nGid:\t0\t100\t100\t100\nNSpid:\t4711\t17\t1\n\
                          SigIgn:\t0000000000000000\n\
                          SigCgt:\t2000000181005ccf\n\
                          CapPrm:\t0000000000000400\n";

    #[test]
    fn the_status_has_the_own_pid_the_effective_user_and_caught_signals() {
        let status = Status::parse(STATUS).unwrap();
        assert_eq!(status.process, 4711);
        assert_eq!((status.state, status.uid, status.gid, status.own_pid), ('S', 1000, 100, 1));
        assert_eq!(status.permitted, 1 << 10);
        assert!(status.catches(libc::SIGQUIT) && status.catches(libc::SIGHUP));
        assert!(!status.catches(libc::SIGTRAP));
        let uncaught = STATUS.replace("2000000181005ccf", "2000000181005cc8");
        assert!(!Status::parse(&uncaught).unwrap().catches(libc::SIGQUIT));
        // Kernels before 4.1 have no NSpid.
        let old = STATUS.replace("NSpid", "Other");
        assert_eq!(Status::parse(&old).unwrap().own_pid, 4711);
        for missing in ["Tgid", "State", "Uid", "Gid", "SigCgt", "CapPrm"] {
            assert_eq!(Status::parse(&STATUS.replace(missing, "Other")), None, "{missing}");
        }
    }
}

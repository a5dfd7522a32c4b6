//! Other processes: their state by /proc, and signals to them.

use std::fs;

/// The value of a field of /proc/PID/status.
pub fn status(pid: u32, name: &str) -> String {
    // The process's name may end inside a letter.
    let text = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_default().trim().to_owned()
}

/// Whether a process has a handler for a signal.
pub fn caught(pid: u32, signal: i32) -> bool {
    u64::from_str_radix(&status(pid, "SigCgt"), 16).is_ok_and(|caught| caught >> (signal - 1) & 1 == 1)
}

/// The paths of a process's mapped files.
pub fn maps(pid: u32) -> Vec<String> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines().filter_map(|line| Some(line[line.find('/')?..].to_owned())).collect()
}

/// Sends a signal to a process that has not been waited for.
#[track_caller]
pub fn kill(pid: u32, signal: libc::c_int) {
    // SAFETY: the call accesses no memory.
    assert_eq!(unsafe { libc::kill(pid.cast_signed(), signal) }, 0, "{}", std::io::Error::last_os_error());
}

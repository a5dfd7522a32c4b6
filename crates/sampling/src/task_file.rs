//! The files in which the kernel describes a thread of this process.

use std::fs::File;
use std::io::{self, ErrorKind};

use super::foreign_proc;

/// Opens a thread's file, such as `comm`. Fails if the thread has ended, if the kernel has no such file, or
/// if it may not be read.
///
/// The path is below /proc/self, since in some PID namespaces /proc itself has no folder for the thread's id.
pub fn open(tid: i32, name: &str) -> io::Result<File> {
    let number = foreign_proc::number_of(tid).ok_or(ErrorKind::NotFound)?;
    File::open(format!("/proc/self/task/{number}/{name}"))
}

//! The kernel's list of the process's threads.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use nix::dir::Dir;
use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, fstat};

use super::foreign_proc;

/// The descriptor of the open list, for a forked child to close; -1 if there is none.
static FD: AtomicI32 = AtomicI32::new(-1);

/// `/proc/self/task`, kept open so that it can be read when no descriptor is left. Only one may exist at a
/// time.
pub(super) struct Tasks(Dir);

impl Tasks {
    pub(super) fn open() -> io::Result<Self> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let directory = Dir::open("/proc/self/task", flags, Mode::empty())?;
        FD.store(directory.as_raw_fd(), Ordering::Relaxed);
        if foreign_proc::notice() {
            static HAS_LOGGED: AtomicBool = AtomicBool::new(false);
            if !HAS_LOGGED.swap(true, Ordering::Relaxed) {
                log::warn!(
                    "/proc belongs to another PID namespace, in which this process's threads have other ids: \
                     each thread is looked up there, which takes longer"
                );
            }
        }
        Ok(Self(directory))
    }

    /// Returns the number of threads by one system call: proc's directory has one link for each thread,
    /// besides two of its own.
    pub(super) fn count(&self) -> io::Result<usize> {
        let status = fstat(&self.0)?;
        Ok(usize::try_from(status.st_nlink).unwrap_or(0).saturating_sub(2))
    }

    /// Returns the threads' ids. A thread that starts or ends meanwhile may be missed.
    pub(super) fn ids(&mut self) -> io::Result<Vec<i32>> {
        let mut ids = Vec::new();
        for entry in self.0.iter() {
            ids.extend(entry?.file_name().to_str().ok().and_then(|name| name.parse::<i32>().ok()));
        }
        Ok(foreign_proc::own_ids(ids))
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        FD.store(-1, Ordering::Relaxed);
    }
}

/// Closes the descriptor in a forked child, which inherited it from its parent. Async-signal-safe.
pub(super) fn close_inherited() {
    let fd = FD.swap(-1, Ordering::Relaxed);
    if fd >= 0 {
        // SAFETY: the list's descriptor, which no other code in the child uses.
        unsafe { libc::close(fd) };
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_core::thread::current_os_tid;

    use super::*;

    #[test]
    fn the_list_has_this_thread_each_time_it_is_read() {
        let mut tasks = Tasks::open().unwrap();
        let tid = current_os_tid();
        for _ in 0..2 {
            assert!(tasks.ids().unwrap().contains(&tid));
            assert!(tasks.count().unwrap() >= 1);
        }
    }
}

//! The kernel's names of threads that are not Java's: the VM's own, such as `GC Thread#0` and `C2
//! CompilerThre`, and those that native code has named. The kernel keeps 15 bytes.
//!
//! A thread that nobody has named has the name of the thread that made it, which is the process's or a Java
//! thread's. That is no name of its own, and is left out.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use crate::sampling::thread_records;

/// The longest name that the kernel keeps (`TASK_COMM_LEN` in include/linux/sched.h, without the zero).
const LONGEST: usize = 15;

/// At most so many names are remembered in an interval.
const MOST: usize = 100_000;

/// The names of an interval, by the kernel's ids.
#[derive(Default)]
pub(super) struct NativeThreadNames {
    /// Names of threads that may have ended when the interval does.
    seen: Mutex<HashMap<i32, String>>,
}

impl NativeThreadNames {
    /// Reads the names of threads that have not been seen in this interval.
    pub(super) fn look(&self) {
        let mut seen = self.seen.lock();
        thread_records::for_each_thread(|record| {
            let os_tid = record.os_tid.load(Ordering::Relaxed);
            let is_native = record.java_thread.load(Ordering::Relaxed) == 0;
            if is_native && seen.len() < MOST && !seen.contains_key(&os_tid) {
                seen.extend(name_of(os_tid).map(|name| (os_tid, name)));
            }
        });
    }

    /// The names for an interval that ends now. `java_names` are those of the Java threads, `is_java` tells
    /// one by its incarnation.
    pub(super) fn of_interval<'a>(
        &self,
        java_names: impl Iterator<Item = &'a str>,
        is_java: impl Fn(u32) -> bool,
    ) -> HashMap<i32, String> {
        let mut names = std::mem::take(&mut *self.seen.lock());
        // Threads of the VM that Java does not show have a JavaThread, too.
        thread_records::for_each_thread(|record| {
            let os_tid = record.os_tid.load(Ordering::Relaxed);
            if !is_java(record.java_incarnation.load(Ordering::Relaxed)) {
                names.extend(name_of(os_tid).map(|name| (os_tid, name)));
            }
        });
        let inherited: HashSet<&[u8]> = java_names.map(as_kept).collect();
        let of_process = read("/proc/self/comm");
        names.retain(|_, name| Some(&*name) != of_process.as_ref() && !inherited.contains(name.as_bytes()));
        names
    }
}

/// The part of a Java thread's name that the kernel keeps.
fn as_kept(name: &str) -> &[u8] {
    let bytes = name.as_bytes();
    &bytes[..bytes.len().min(LONGEST)]
}

fn name_of(os_tid: i32) -> Option<String> {
    read(&format!("/proc/self/task/{os_tid}/comm"))
}

fn read(path: &str) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let name = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}

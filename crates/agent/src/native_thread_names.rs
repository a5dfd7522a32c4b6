//! The kernel's names of threads that are not Java threads: threads of the VM, such as `GC Thread#0` and `C2
//! CompilerThre`, and threads that native code has named. The kernel keeps 15 bytes of a name; from JDK 26 on
//! HotSpot gives it an abbreviation of a longer one, such as `C2 Comp..hread0`.
//!
//! A thread without a name of its own has the name of the thread that created it, which is the process's name
//! or a Java thread's. Such an inherited name is left out.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use otlpprof_sampling::threads::next_incarnation;
use otlpprof_sampling::{task_file, thread_records};

/// The longest name that the kernel keeps, in bytes (`TASK_COMM_LEN` in include/linux/sched.h, without the
/// zero).
const LONGEST: usize = 15;

/// The most names that are remembered in an interval.
const MAX_THREADS: usize = 100_000;

/// No life of a thread: marks a record whose thread has not been sampled since its name was read.
const NOT_SAMPLED: u32 = u32::MAX;

/// One life of a thread: the kernel's id, and the record's incarnation.
pub(super) type NativeLife = (i32, u32);

/// The names of an interval.
#[derive(Default)]
pub(super) struct NativeThreadNames {
    /// Names of lives that may be over when the interval ends.
    seen: Mutex<HashMap<NativeLife, String>>,
}

impl NativeThreadNames {
    /// Reads the names of threads that have not been seen in this interval, or have been sampled since they
    /// were. If a thread's name has changed, the thread begins another life: its samples so far keep the
    /// earlier name.
    pub(super) fn scan(&self) {
        let mut seen = self.seen.lock();
        thread_records::for_each_thread(|record| {
            if record.java_thread.load(Ordering::Relaxed) != 0 || seen.len() >= MAX_THREADS {
                return;
            }
            let incarnation = record.java_incarnation.load(Ordering::Relaxed);
            let life = (record.os_tid.load(Ordering::Relaxed), incarnation);
            let is_sampled = record.sampled_incarnation.swap(NOT_SAMPLED, Ordering::Relaxed) == incarnation;
            let known = seen.get(&life);
            if known.is_some() && !is_sampled {
                return;
            }
            let Some(name) = name_of(life.0).filter(|name| known != Some(name)) else { return };
            // A thread that still has the process's name is named in the first moments of its life. It keeps
            // that life.
            if known.is_none_or(|known| Some(known) == of_process().as_ref()) {
                seen.insert(life, name);
                return;
            }
            let next = next_incarnation();
            // The name is stored first, since a sample of the new life may be taken at any time.
            seen.insert((life.0, next), name);
            // Fails if the thread has become a Java thread meanwhile.
            let is_free = record.java_incarnation.compare_exchange(
                incarnation,
                next,
                Ordering::Release,
                Ordering::Relaxed,
            );
            if is_free.is_err() {
                seen.remove(&(life.0, next));
            }
        });
    }

    /// Returns the names for an interval that ends now. `java_names` are the names of the Java threads;
    /// `is_java` says whether an incarnation belongs to one of them.
    pub(super) fn of_interval<'a>(
        &self,
        java_names: impl Iterator<Item = &'a str>,
        is_java: impl Fn(u32) -> bool,
    ) -> HashMap<NativeLife, String> {
        let seen = std::mem::take(&mut *self.seen.lock());
        completed(seen, java_names, is_java)
    }

    /// The names of the interval so far, as [`NativeThreadNames::of_interval`]. The interval goes on.
    pub(super) fn so_far<'a>(
        &self,
        java_names: impl Iterator<Item = &'a str>,
        is_java: impl Fn(u32) -> bool,
    ) -> HashMap<NativeLife, String> {
        let seen = self.seen.lock().clone();
        completed(seen, java_names, is_java)
    }
}

/// Adds the names of threads that have not been seen, and removes inherited names.
fn completed<'a>(
    seen: HashMap<NativeLife, String>,
    java_names: impl Iterator<Item = &'a str>,
    is_java: impl Fn(u32) -> bool,
) -> HashMap<NativeLife, String> {
    let mut names = seen;
    // Threads of the VM that Java does not show have a JavaThread, too.
    thread_records::for_each_thread(|record| {
        let incarnation = record.java_incarnation.load(Ordering::Relaxed);
        let life = (record.os_tid.load(Ordering::Relaxed), incarnation);
        if !is_java(incarnation) && !names.contains_key(&life) {
            names.extend(name_of(life.0).map(|name| (life, name)));
        }
    });
    let inherited: HashSet<&[u8]> = java_names.map(as_kept).collect();
    let of_process = of_process();
    names.retain(|_, name| Some(&*name) != of_process.as_ref() && !inherited.contains(name.as_bytes()));
    names
}

/// Returns the part of a Java thread's name that the kernel keeps.
fn as_kept(name: &str) -> &[u8] {
    let bytes = name.as_bytes();
    &bytes[..bytes.len().min(LONGEST)]
}

fn name_of(os_tid: i32) -> Option<String> {
    read(task_file::open(os_tid, "comm"))
}

/// Returns the process's name, which is the name of its first thread.
fn of_process() -> Option<String> {
    read(File::open("/proc/self/comm"))
}

fn read(file: io::Result<File>) -> Option<String> {
    let mut bytes = Vec::new();
    file.ok()?.read_to_end(&mut bytes).ok()?;
    let name = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}

//! The role of a thread in a JVM, by the thread's name.

/// The role of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ThreadRole {
    /// A thread of the program or of the JDK, or a thread of an unknown name.
    #[default]
    Other,
    /// A thread of a JIT compiler.
    Compiler,
    /// A thread of a garbage collector.
    Collector,
    /// Another thread of the VM.
    Vm,
}

/// The beginnings of the names of HotSpot's compiler threads (`compiler/compileBroker.cpp`). The kernel keeps
/// 15 bytes of a thread's name.
const COMPILERS: [&str; 4] = ["C1 CompilerThre", "C2 CompilerThre", "JVMCI CompilerT", "JVMCI-native Co"];

/// The beginnings of the names of collectors' threads (`gc/*/*Thread.cpp`, `gc/shared/workerThread.cpp`, and
/// `gc/shared/stringdedup`, JDK 8 to 27).
const COLLECTORS: [&str; 32] = [
    "CMS Main Thread",
    "CMS Thread#",
    "Concurrent Mark",
    "G1 Conc#",
    "G1 Main",
    "G1 Refine",
    "G1 Service",
    "G1 Young RemSet ",
    "GC Thread#",
    "GC task thread#",
    "Gang worker#",
    "ParGC Thread#",
    "RuntimeWorker#",
    "ShenControl",
    "ShenRegulator",
    "ShenUncommit",
    "ShenWorker#",
    "Shenandoah ",
    "StrDedup",
    "StringDedup",
    "XDirector",
    "XDriver",
    "XStat",
    "XUncommitter",
    "XUnmapper",
    "XWorker",
    "ZDirector",
    "ZDriver",
    "ZStat",
    "ZUncommitter",
    "ZUnmapper",
    "ZWorker",
];

/// The code that a thread of the JVM's own runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnCode {
    /// The VM's alone.
    Vm,
    /// Java methods of the JDK.
    Jdk,
    /// Java methods of the JDK, which may call the program's.
    Program,
}

/// The names of the JVM's other threads (`runtime/*.cpp`, `services/*.cpp`, `logging/logAsyncWriter.cpp`,
/// `jfr/`, `prims/jni.cpp`; of the JDK `java.lang.ref.Reference`, `java.lang.ref.Finalizer` and
/// `jdk.internal.ref.CleanerFactory`). Each exists in every program, or serves the VM alone.
const OTHERS: [(&str, OwnCode); 19] = [
    ("Archive Worker Thread", OwnCode::Vm),
    ("AsyncLog Thread", OwnCode::Vm),
    ("Attach Listener", OwnCode::Vm),
    ("Common-Cleaner", OwnCode::Program),
    ("DestroyJavaVM", OwnCode::Jdk),
    ("Finalizer", OwnCode::Program),
    ("JFR CPU Sampler Thread", OwnCode::Vm),
    ("JFR Recorder Thread", OwnCode::Vm),
    ("JFR Sampler Thread", OwnCode::Vm),
    ("JFR Thread Sampler", OwnCode::Vm),
    ("Monitor Deflation Thread", OwnCode::Vm),
    ("Native Heap Trimmer", OwnCode::Vm),
    ("Notification Thread", OwnCode::Jdk),
    ("Reference Handler", OwnCode::Jdk),
    ("Service Thread", OwnCode::Vm),
    ("Signal Dispatcher", OwnCode::Vm),
    ("Sweeper thread", OwnCode::Vm),
    ("VM Periodic Task Thread", OwnCode::Vm),
    ("VM Thread", OwnCode::Vm),
];

/// The bytes of a thread's name that the kernel keeps.
const KERNEL_BYTES: usize = 15;
/// The bytes at the start and at the end of a longer name that an abbreviation keeps.
const START: usize = 7;
const END: usize = 6;

/// A name such as `C2 Comp..hread0`: from JDK 26 on, HotSpot gives the kernel the start and the end of a name
/// that is too long (`os/linux/os_linux.cpp`, `os::set_native_thread_name`).
#[derive(Clone, Copy)]
struct Abbreviated<'n> {
    start: &'n str,
    end: &'n str,
}

impl<'n> Abbreviated<'n> {
    fn of(name: &'n str) -> Option<Self> {
        let (start, end) = name.split_once("..")?;
        (start.len() == START && end.len() == END).then_some(Self { start, end })
    }
}

impl ThreadRole {
    /// All roles, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Other, Self::Compiler, Self::Collector, Self::Vm];

    /// Whether a thread of this role shows that a JVM runs.
    pub fn is_of_jvm(self) -> bool {
        matches!(self, Self::Compiler | Self::Collector)
    }

    /// The role of the thread of this name.
    pub fn of(name: &str) -> Self {
        // Most names of a program's threads end here.
        if !name.starts_with(|first: char| first.is_ascii_uppercase()) {
            return Self::Other;
        }
        // SANITY for all slices: the known names are ASCII.
        let abbreviated = Abbreviated::of(name);
        let begins = |known: &&str| {
            let has_start = |name: Abbreviated<'_>| known.len() >= START && known[..START] == *name.start;
            name.starts_with(*known) || abbreviated.is_some_and(has_start)
        };
        let is = |known: &str| {
            let fits = |name: Abbreviated<'_>| known.starts_with(name.start) && known.ends_with(name.end);
            let is_long = known.len() > KERNEL_BYTES;
            name == &known[..known.len().min(KERNEL_BYTES)]
                || name == known
                || (is_long && abbreviated.is_some_and(fits))
        };
        if COMPILERS.iter().any(begins) {
            Self::Compiler
        } else if COLLECTORS.iter().any(begins) {
            Self::Collector
        } else if OTHERS.iter().any(|(known, code)| *code == OwnCode::Vm && is(known)) {
            Self::Vm
        } else {
            Self::Other
        }
    }
}

impl OwnCode {
    /// The code of the Java thread of this name; `None` if the thread is not one of the JVM's own.
    pub(super) fn of_java_thread(name: &str) -> Option<Self> {
        OTHERS.iter().find_map(|(known, code)| (*known == name).then_some(*code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: on JDK 26 and later the threads of the VM had no role.
    #[test]
    fn threads_are_known_by_names_that_hotspot_has_abbreviated() {
        for (role, names) in [
            (ThreadRole::Compiler, &["C1 Comp..hread0", "C2 Comp..read12"][..]),
            (
                ThreadRole::Collector,
                &["G1 Refi..kers#0", "G1 Refi..ontrol", "Shenand..eads#0", "ShenWorker#1", "StringD..Thread"],
            ),
            (
                ThreadRole::Vm,
                &["VM Peri..Thread", "Monitor..Thread", "Signal ..atcher", "JFR Rec..Thread", "VM Thread"],
            ),
            (
                ThreadRole::Other,
                &["Monitor..worker", "Referen..andler", "C2 Comp..", "VM Thre..Thread", "My Pool..hread0"],
            ),
        ] {
            for name in names {
                assert_eq!(ThreadRole::of(name), role, "{name}");
            }
        }
    }

    #[test]
    fn threads_are_known_by_whole_names_and_by_those_that_the_kernel_has_cut() {
        for (role, names) in [
            (
                ThreadRole::Compiler,
                &["C2 CompilerThread0", "C2 CompilerThre", "C1 CompilerThre", "JVMCI CompilerThread2"][..],
            ),
            (
                ThreadRole::Collector,
                &[
                    "GC Thread#0",
                    "G1 Conc#1",
                    "G1 Main Marker",
                    "G1 Refine#0",
                    "ZWorkerYoung#0",
                    "ZDriverMinor",
                    "Shenandoah GC T",
                    "ParGC Thread#3",
                ],
            ),
            (
                ThreadRole::Vm,
                &[
                    "VM Thread",
                    "VM Periodic Tas",
                    "VM Periodic Task Thread",
                    "Monitor Deflati",
                    "Signal Dispatch",
                ],
            ),
            (
                ThreadRole::Other,
                &[
                    "main",
                    "",
                    "Reference Handler",
                    "VM Threads",
                    "CompilerThread",
                    "http C2 CompilerThread0",
                    "größe",
                ],
            ),
        ] {
            for name in names {
                assert_eq!(ThreadRole::of(name), role, "{name}");
            }
        }
    }
}

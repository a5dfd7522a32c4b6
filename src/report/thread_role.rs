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
const COLLECTORS: [&str; 28] = [
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

/// The names of HotSpot's other threads that run no method of the program or of the JDK (`runtime/*.cpp`,
/// `services/attachListener.cpp`, `logging/logAsyncWriter.cpp`, `jfr/`).
const OTHERS: [&str; 14] = [
    "Archive Worker Thread",
    "AsyncLog Thread",
    "Attach Listener",
    "JFR CPU Sampler Thread",
    "JFR Recorder Thread",
    "JFR Sampler Thread",
    "JFR Thread Sampler",
    "Monitor Deflation Thread",
    "Native Heap Trimmer",
    "Service Thread",
    "Signal Dispatcher",
    "Sweeper thread",
    "VM Periodic Task Thread",
    "VM Thread",
];

/// The bytes of a thread's name that the kernel keeps.
const KERNEL_BYTES: usize = 15;

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
        let begins = |known: &&str| name.starts_with(*known);
        // SANITY: the names are ASCII.
        let is = |known: &&str| name == *known || name == &known[..known.len().min(KERNEL_BYTES)];
        if COMPILERS.iter().any(begins) {
            Self::Compiler
        } else if COLLECTORS.iter().any(begins) {
            Self::Collector
        } else if OTHERS.iter().any(is) {
            Self::Vm
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

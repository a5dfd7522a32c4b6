//! The names of the kinds of code, and their shares as the line below a report's first one.

use otlpprof_report::code_kind::{CodeKind, KindSums};

use super::amount::percent;

/// Shares below this one, in percent, would be shown as zero.
const LEAST_PERCENT: f64 = 0.05;

/// The line: the kinds that have a share of the whole, which is not zero. `None` if none has.
pub(crate) fn line(sums: &KindSums, whole: i64) -> Option<String> {
    let shares = CodeKind::ALL.map(|kind| (name(kind), percent(sums.get(kind), whole)));
    let shown = shares.into_iter().filter(|&(_, percent)| percent >= LEAST_PERCENT);
    let shown: Vec<_> = shown.map(|(name, percent)| format!("{name} {percent:.1} %")).collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

/// The names of all kinds in the line.
pub(crate) fn names() -> [&'static str; CodeKind::ALL.len()] {
    CodeKind::ALL.map(name)
}

/// The name of a kind in the line.
fn name(kind: CodeKind) -> &'static str {
    match kind {
        CodeKind::Program => "your code",
        CodeKind::Jdk => "JDK",
        CodeKind::JitCompiler => "JIT",
        CodeKind::GarbageCollection => "GC",
        CodeKind::OtherVm => "other VM",
        CodeKind::NativeLibraries => "native",
        CodeKind::Kernel => "kernel",
        CodeKind::Other => "other",
    }
}

/// The name of the row that stands for the VM's threads of this kind.
pub(super) fn threads(kind: CodeKind) -> &'static str {
    match kind {
        CodeKind::JitCompiler => "(threads of the JIT compilers)",
        CodeKind::GarbageCollection => "(threads of the garbage collector)",
        // No thread of the VM has a sample of another kind.
        _ => "(other threads of the VM)",
    }
}

/// The name of what the VM's threads of this kind wait for.
pub(super) fn work(kind: CodeKind) -> &'static str {
    match kind {
        CodeKind::JitCompiler => "(work for the JIT compilers)",
        CodeKind::GarbageCollection => "(work for the garbage collector)",
        // No thread of the VM has a sample of another kind.
        _ => "(work for other threads of the VM)",
    }
}

/// The name of a kind's sum in JSON.
pub(super) fn key(kind: CodeKind) -> &'static str {
    match kind {
        CodeKind::Program => "yourCode",
        CodeKind::Jdk => "jdk",
        CodeKind::JitCompiler => "jit",
        CodeKind::GarbageCollection => "gc",
        CodeKind::OtherVm => "otherVm",
        CodeKind::NativeLibraries => "native",
        CodeKind::Kernel => "kernel",
        CodeKind::Other => "other",
    }
}

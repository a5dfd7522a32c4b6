//! Whether a sample's stack reaches its root: the one definition, for our profiles and for others'.
//!
//! A stack reaches its root if it ends where its thread began: a Java thread at the last Java entry, a virtual
//! thread at `VirtualThread.run`, or at the entry of its continuation before and behind that, a native thread at its native entry. A raw address, a marker of a walk that
//! broke off, or a truncation anywhere in it makes it broken.
//!
//! Where the walker is one that goes through the whole mixed stack (`vmx`), every thread ends at its native entry,
//! a virtual one at its carrier's. Where it leaves native frames out (`no`), `[no_Java_frame]` stands for the whole
//! stack of a thread that has none.
//!
//! Where a stack ends in a Java method that is no known entry, the frames alone cannot tell an upcall from a
//! walk that stopped silently. otlpprof puts a marker on every stack that it could not finish, so its stacks
//! without one are whole ([`Ends::Marked`]); of others such an end counts as broken ([`Ends::Unmarked`]). The
//! strict reading holds for both producers when they are to be compared.

use super::frames::{Frame, Naming};
use crate::core::stack_walker::StackWalker;

/// The scope name of profiles whose broken stacks all have a marker.
pub const MARKING_SCOPE: &str = env!("CARGO_PKG_NAME");

/// What may be concluded from the absence of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Every walk that broke off left a marker.
    Marked,
    /// Some did not; only known entries are roots.
    Unmarked,
}

impl Ends {
    /// How the profiles of a scope are to be read.
    pub fn of_scope(name: &str) -> Self {
        match name == MARKING_SCOPE {
            true => Self::Marked,
            false => Self::Unmarked,
        }
    }
}

/// What kind of thread a stack belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Root {
    /// A Java thread.
    Java,
    /// A virtual thread.
    Virtual,
    /// A thread whose outermost frame is native.
    Native,
}

impl Root {
    /// The root in one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Java => "java",
            Self::Virtual => "virtual",
            Self::Native => "native",
        }
    }
}

/// Why a stack does not reach its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Broken {
    /// It has no frame.
    Empty,
    /// It has a marker of a walk that broke off or was cut.
    Marker,
    /// It has a frame of an address and nothing else.
    RawAddress,
    /// It ends in a Java method that is no thread's entry.
    JavaEnd,
    /// It ends in a native function that is no thread's entry.
    NativeEnd,
    /// It goes from a virtual thread's frames to its carrier's, without those between.
    VirtualMiddle,
}

impl Broken {
    /// The reason in one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Marker => "marker",
            Self::RawAddress => "raw-address",
            Self::JavaEnd => "java-end",
            Self::NativeEnd => "native-end",
            Self::VirtualMiddle => "virtual-middle",
        }
    }
}

/// What a stack was found to be, and the name of the frame that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'f> {
    /// It reaches its root.
    Reached(Root, &'f str),
    /// It does not.
    Broken(Broken, &'f str),
}

/// Judges a stack, leaf first, that `walker` has walked.
pub fn classify<'f>(frames: &'f [Frame<'_>], ends: Ends, walker: StackWalker) -> Verdict<'f> {
    if let Some(frame) = frames.iter().find(|frame| is_marker(&frame.text)) {
        return Verdict::Broken(Broken::Marker, &frame.text);
    }
    let raw = |frame: &&Frame<'_>| matches!(frame.naming, Naming::RawAddress | Naming::Nothing);
    if let Some(frame) = frames.iter().find(raw) {
        return Verdict::Broken(Broken::RawAddress, &frame.text);
    }
    if let Some(frame) = missing_middle(frames) {
        return Verdict::Broken(Broken::VirtualMiddle, &frame.text);
    }
    let virtual_root = frames.iter().find(|frame| is_method(frame, VIRTUAL_RUN));
    if let Some(frame) = virtual_root.filter(|_| walker != StackWalker::Vmx) {
        return Verdict::Reached(Root::Virtual, &frame.text);
    }
    let Some(last) = frames.iter().rfind(|frame| !is_thread_name(&frame.text)) else {
        return Verdict::Broken(Broken::Empty, "");
    };
    // Without `run`, which `missing_middle` has found not to be missing: the thread begins or ends.
    if is_method(last, CONTINUATION_ENTER) && walker != StackWalker::Vmx {
        return Verdict::Reached(Root::Virtual, &last.text);
    }
    let (root, known, broken) = match is_java(last) {
        true => (Root::Java, is_java_entry(last), Broken::JavaEnd),
        false => (Root::Native, is_native_entry(last), Broken::NativeEnd),
    };
    let (root, known, ends) = match walker {
        // Whatever the method, this walker would have gone on below it.
        StackWalker::Vmx if root == Root::Java => (root, false, Ends::Unmarked),
        StackWalker::Vmx if virtual_root.is_some() => (Root::Virtual, known, ends),
        StackWalker::Vmx if frames.iter().any(is_java) => (Root::Java, known, ends),
        StackWalker::Vm if is_entering_java(frames) => (Root::Java, true, ends),
        StackWalker::No if last.text == NO_JAVA_FRAME => (Root::Native, true, ends),
        // AsyncGetCallTrace ends without a word where it cannot go on.
        StackWalker::Fp | StackWalker::Dwarf if root == Root::Java => (root, known, Ends::Unmarked),
        _ => (root, known, ends),
    };
    match known || ends == Ends::Marked {
        true => Verdict::Reached(root, &last.text),
        false => Verdict::Broken(broken, &last.text),
    }
}

/// Whether nothing is there but what leads from an entry frame to the method that is called, or back: a thread that begins,
/// or ends, is there. Such an adapter may take long, as the first to touch a page of the stack.
fn is_entering_java(frames: &[Frame<'_>]) -> bool {
    const WAYS: [&str; 2] = ["call_stub", "I2C/C2I adapters"];
    matches!(frames, [frame] if WAYS.contains(&&*frame.text))
}

/// What a walker without native frames, ours or async-profiler's, puts down for a thread without Java frames.
const NO_JAVA_FRAME: &str = "[no_Java_frame]";

/// Frames that stand for a walk that broke off: ours by how they begin, async-profiler's by name
/// (`Profiler::asgctError`, `StackWalker::walkVM`, `FrameName::name` in its 4.5).
pub fn is_marker(text: &str) -> bool {
    const OURS: [&str; 5] = ["[unwalkable", "[truncated", "[frozen", "[unknown", "[no stack"];
    const ASYNC_PROFILER: [&str; 10] = [
        "[not_walkable_Java]",
        "[not_walkable_not_Java]",
        "[GC_active]",
        "[deoptimization]",
        "[safepoint]",
        "[skipped]",
        "[unexpected_state]",
        "[storage_overflow]",
        "[stale_jmethodID]",
        "[skipped_frames]",
    ];
    let bare = text.strip_prefix('[').unwrap_or(text);
    bare.starts_with("break_")
        || OURS.iter().any(|prefix| text.starts_with(prefix))
        || text.starts_with("[jvmtiError ")
        || ASYNC_PROFILER.contains(&text)
}

/// async-profiler's outermost frame with option `threads`: `[main tid=17]`.
fn is_thread_name(text: &str) -> bool {
    text.starts_with('[') && text.ends_with(']') && text.contains("tid=")
}

/// Whether the frame is this method, whose name may be written with dots or slashes.
fn is_method(frame: &Frame<'_>, name: &str) -> bool {
    frame.text.len() == name.len()
        && frame
            .text
            .bytes()
            .zip(name.bytes())
            .all(|(found, one)| found == one || (found == b'/' && one == b'.'))
}

/// Where a virtual thread's task runs.
const VIRTUAL_RUN: &str = "java.lang.VirtualThread.run";

/// Where a continuation begins, of which a virtual thread is one.
const CONTINUATION_ENTER: &str = "jdk.internal.vm.Continuation.enter";

/// The frame at which a virtual thread's own frames pass into its carrier's without `VirtualThread.run`: the
/// frames that stayed frozen on the heap are missing.
fn missing_middle<'f, 'a>(frames: &'f [Frame<'a>]) -> Option<&'f Frame<'a>> {
    const ENTRIES: [&str; 3] = [
        "jdk.internal.vm.Continuation.enterSpecial",
        "jdk.internal.vm.Continuation.enter0",
        CONTINUATION_ENTER,
    ];
    let entry = frames.iter().position(|frame| ENTRIES.iter().any(|entry| is_method(frame, entry)))?;
    let inner = &frames[..entry];
    let is_complete =
        inner.iter().any(|frame| is_method(frame, VIRTUAL_RUN)) || is_own_of_continuation(inner);
    (!is_complete).then(|| &frames[entry])
}

/// Whether the frames above a continuation's entry are those of a virtual thread that has not come to `VirtualThread.run`, or
/// has left it: `VThreadContinuation`'s, which tells the VM that the thread begins and ends (java.lang.VirtualThread, 24 on),
/// and what the entry itself calls in the end. Threads that do little spend much of their time there while an agent wants to
/// know of virtual threads.
fn is_own_of_continuation(inner: &[Frame<'_>]) -> bool {
    let names = inner.iter().rev().filter(|frame| is_java(frame)).map(|frame| frame.text.replace('/', "."));
    let mut names = names.skip_while(|name| name.starts_with("java.lang.VirtualThread$VThreadContinuation"));
    match names.next() {
        None => true,
        Some(name) => {
            let is_told = name.starts_with("java.lang.VirtualThread.notifyJvmti");
            (is_told || name == "jdk.internal.vm.Continuation.finish") && names.next().is_none()
        }
    }
}

/// Whether the frame is a Java method: by its type, or without one by the form of its name. Suffixes that
/// compilers give to parts of functions, and names of files, have dots too.
pub fn is_java(frame: &Frame<'_>) -> bool {
    match frame.frame_type {
        "jvm" => return true,
        "" => {}
        _ => return false,
    }
    let Some((class, method)) = frame.text.rsplit_once('.') else { return false };
    let identifier = |text: &str| {
        let mut letters = text.chars();
        letters.next().is_some_and(|first| first.is_alphabetic() || "_$".contains(first))
            && letters.all(|letter| letter.is_alphanumeric() || "_$".contains(letter))
    };
    const SUFFIXES: [&str; 9] =
        ["so", "part", "cold", "isra", "constprop", "clone", "llvm", "lto_priv", "localalias"];
    let is_method = identifier(method) || ["<init>", "<clinit>"].contains(&method);
    let first_name = class.split(['.', '/']).next().unwrap_or(class);
    frame.naming == Naming::Function
        && is_method
        && !SUFFIXES.contains(&method)
        && identifier(first_name)
        && !class.contains("::")
        && !class.contains(['(', ' ', '@'])
}

/// Methods that the VM calls on a thread whose stack is otherwise empty, and that are not `main` or `run`.
const VM_CALLS: [&str; 17] = [
    "java.lang.System.initPhase1",
    "java.lang.System.initPhase2",
    "java.lang.System.initPhase3",
    "java.lang.Shutdown.<clinit>",
    "java.lang.Shutdown.shutdown",
    "java.lang.Thread.exit",
    "java.lang.Thread.dispatchUncaughtException",
    "java.lang.Thread.<init>",
    "java.lang.ThreadGroup.<init>",
    "jdk.internal.misc.Signal.dispatch",
    "jdk.internal.vm.VMSupport.serializePropertiesToByteArray",
    "sun.launcher.LauncherHelper.<clinit>",
    "sun.launcher.LauncherHelper.checkAndLoadMain",
    "sun.launcher.LauncherHelper.makePlatformString",
    "sun.instrument.InstrumentationImpl.loadClassAndCallPremain",
    "sun.instrument.InstrumentationImpl.loadClassAndCallAgentmain",
    "sun.management.Sensor.trigger",
];

/// Classes whose `run` is a task's and never a thread's.
const TASKS: [&str; 5] = [
    "java.util.concurrent.ThreadPoolExecutor$Worker",
    "java.util.concurrent.FutureTask",
    "java.util.concurrent.CompletableFuture$",
    "java.util.concurrent.ForkJoinTask$",
    "java.util.concurrent.Executors$",
];

/// Where a Java thread begins: `main`, the `run` of a Thread (any class may be one, but lambdas and the
/// library's tasks are not), or what the VM itself calls.
fn is_java_entry(frame: &Frame<'_>) -> bool {
    let name = frame.text.replace('/', ".");
    let Some((class, method)) = name.rsplit_once('.') else { return false };
    match method {
        "main" => true,
        "run" => !class.contains("$$Lambda") && !TASKS.iter().any(|task| class.starts_with(task)),
        _ => VM_CALLS.contains(&&*name),
    }
}

/// Where a native thread begins: glibc's and musl's thread and process entries, HotSpot's thread entry, and
/// libc itself where its private symbols are stripped.
fn is_native_entry(frame: &Frame<'_>) -> bool {
    const ENTRIES: [&str; 16] = [
        "start_thread",
        "thread_start",
        "clone",
        "clone3",
        "__clone",
        "__clone3",
        "__clone_internal",
        "_start",
        "start",
        "__libc_start_main",
        "__libc_start_call_main",
        "__libc_start_main_impl",
        "libc_start_main_stage2",
        "thread_native_entry",
        "java_start",
        "thread_start_wrapper",
    ];
    const LIBC: [&str; 4] = ["libc.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-musl-x86_64.so.1"];
    let name = frame.text.split(['@', '(']).next().unwrap_or_default();
    let object = name.trim_start_matches('[').split(['+', ']']).next().unwrap_or_default();
    let object = object.rsplit('/').next().unwrap_or_default();
    ENTRIES.contains(&name) || LIBC.contains(&object) || object.starts_with("libc-2.")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Untyped frames, leaf first, as async-profiler writes them.
    fn stack<'a>(names: &[&'a str]) -> Vec<Frame<'a>> {
        let frame = |&name: &&'a str| {
            let naming = if name.starts_with("0x") { Naming::RawAddress } else { Naming::Function };
            Frame { text: name.into(), naming, frame_type: "", file: "", line: 0 }
        };
        names.iter().map(frame).collect()
    }

    fn unmarked(names: &[&str]) -> Result<Root, Broken> {
        walked_by(StackWalker::Vm, names)
    }

    fn walked_by(walker: StackWalker, names: &[&str]) -> Result<Root, Broken> {
        match classify(&stack(names), Ends::Unmarked, walker) {
            Verdict::Reached(root, _) => Ok(root),
            Verdict::Broken(broken, _) => Err(broken),
        }
    }

    #[test]
    fn roots_of_every_kind_are_reached() {
        assert_eq!(unmarked(&["a/B.c", "a/B.main"]), Ok(Root::Java));
        assert_eq!(unmarked(&["memcpy", "a/B.c", "java/lang/Thread.run"]), Ok(Root::Java));
        assert_eq!(unmarked(&["a.B.c", "java.util.concurrent.ForkJoinWorkerThread.run"]), Ok(Root::Java));
        assert_eq!(unmarked(&["a/B.c", "java/lang/Thread.run", "[worker tid=17]"]), Ok(Root::Java));
        assert_eq!(
            unmarked(&["futex", "G1YoungCollector::collect", "start_thread", "clone3"]),
            Ok(Root::Native)
        );
        assert_eq!(unmarked(&["pthread_cond_wait@@GLIBC_2.3.2", "libc.so.6"]), Ok(Root::Native));
        assert_eq!(unmarked(&["spin", "main", "__libc_start_call_main"]), Ok(Root::Native));
    }

    #[test]
    fn a_virtual_thread_ends_at_its_run_whatever_carries_it() {
        let own = ["a/B.c", "java/lang/VirtualThread.run"];
        let carrier = [
            "java/lang/VirtualThread$VThreadContinuation$1.run",
            "jdk/internal/vm/Continuation.enter0",
            "jdk/internal/vm/Continuation.enter",
            "jdk/internal/vm/Continuation.enterSpecial",
            "jdk/internal/vm/Continuation.run",
            "java/util/concurrent/ForkJoinWorkerThread.run",
        ];
        assert_eq!(unmarked(&own), Ok(Root::Virtual));
        assert_eq!(unmarked(&[&own[..], &carrier].concat()), Ok(Root::Virtual));
        assert_eq!(unmarked(&carrier), Ok(Root::Java), "the carrier about to enter");
        assert_eq!(unmarked(&carrier[4..]), Ok(Root::Java), "the carrier's own work");
        assert_eq!(unmarked(&[&own[..1], &carrier[1..]].concat()), Err(Broken::VirtualMiddle));
    }

    /// Regression: up to a fifth of the samples of 50,000 virtual threads seemed to end at `Continuation.enter0`.
    #[test]
    fn a_virtual_thread_that_begins_or_ends_is_at_its_root() {
        let entry = [
            "java/lang/VirtualThread$VThreadContinuation$1.run",
            "jdk/internal/vm/Continuation.enter0",
            "jdk/internal/vm/Continuation.enter",
        ];
        for told in ["java/lang/VirtualThread.notifyJvmtiStart", "java/lang/VirtualThread.notifyJvmtiEnd"] {
            let stack = [&["JVM_VirtualThreadEnd", told][..], &entry].concat();
            assert_eq!(unmarked(&stack), Ok(Root::Virtual), "{told}");
            assert_eq!(walked_by(StackWalker::Vmx, &stack), Err(Broken::JavaEnd), "{told}");
        }
        assert_eq!(unmarked(&[&["thaw", "cont_returnBarrier"][..], &entry].concat()), Ok(Root::Virtual));
        assert_eq!(unmarked(&["jdk/internal/vm/Continuation.finish", entry[2]]), Ok(Root::Virtual));
        for lost in ["java/lang/VirtualThread.park", "java/lang/Thread.run", "a/B.c"] {
            assert_eq!(unmarked(&[&[lost][..], &entry].concat()), Err(Broken::VirtualMiddle), "{lost}");
            let called = ["a/B.c", "java/lang/VirtualThread.notifyJvmtiEnd"];
            assert_eq!(unmarked(&[&called[..], &entry].concat()), Err(Broken::VirtualMiddle));
        }
    }

    #[test]
    fn every_marker_breaks_a_stack_that_seems_whole() {
        for marker in [
            "[unwalkable: no frame]",
            "[truncated]",
            "[truncated: 2048 frames]",
            "[frozen: 3 frames]",
            "[unknown]",
            "[unknown_Java]",
            "[unknown_nmethod]",
            "[unknown_state]",
            "[not_walkable_Java]",
            "[not_walkable_not_Java]",
            "[break_stack_range]",
            "break_stack_range",
            "[break_compiled]",
            "[deoptimization]",
            "[GC_active]",
            "[jvmtiError 23]",
            "[storage_overflow]",
        ] {
            let broken = unmarked(&["a/B.c", marker, "java/lang/Thread.run"]);
            assert_eq!(broken, Err(Broken::Marker), "{marker}");
            assert!(matches!(
                classify(&stack(&[marker, "a.B.main"]), Ends::Marked, StackWalker::Vm),
                Verdict::Broken(Broken::Marker, _)
            ));
        }
    }

    /// Regression: on a machine with slow page faults these were more than half a percent of short threads' stacks.
    #[test]
    fn a_thread_that_is_just_entering_java_is_at_its_root() {
        for way in ["call_stub", "I2C/C2I adapters"] {
            assert_eq!(unmarked(&[way]), Ok(Root::Java), "{way}");
            assert_eq!(unmarked(&[way, "a/B.c"]), Err(Broken::JavaEnd), "{way}");
            assert_eq!(unmarked(&["memcpy", way]), Err(Broken::NativeEnd), "{way}");
            assert_eq!(walked_by(StackWalker::Vmx, &[way]), Err(Broken::NativeEnd), "{way}");
        }
    }

    #[test]
    fn raw_addresses_and_lost_ends_break_a_stack() {
        assert_eq!(unmarked(&[]), Err(Broken::Empty));
        assert_eq!(unmarked(&["[worker tid=17]"]), Err(Broken::Empty));
        assert_eq!(unmarked(&["0x7f0012345678", "a/B.main"]), Err(Broken::RawAddress));
        assert_eq!(unmarked(&["a/B.c", "java/lang/ClassLoader.loadClass"]), Err(Broken::JavaEnd));
        assert_eq!(unmarked(&["a/B.c", "java/lang/Thread.runWith"]), Err(Broken::JavaEnd));
        assert_eq!(unmarked(&["java/util/concurrent/ThreadPoolExecutor$Worker.run"]), Err(Broken::JavaEnd));
        assert_eq!(unmarked(&["a/B$$Lambda.run"]), Err(Broken::JavaEnd));
        for end in ["memcpy", "find.part.0", "scan.cold", "libfoo.so", "Klass::size", "f.constprop.0"] {
            assert_eq!(unmarked(&[end]), Err(Broken::NativeEnd), "{end}");
        }
    }

    #[test]
    fn ends_without_a_marker_are_trusted_where_all_broken_ones_have_one() {
        let upcall = stack(&["a.B.c", "a.B.onEvent"]);
        assert_eq!(
            classify(&upcall, Ends::Marked, StackWalker::Vm),
            Verdict::Reached(Root::Java, "a.B.onEvent")
        );
        assert_eq!(
            classify(&upcall, Ends::Unmarked, StackWalker::Vm),
            Verdict::Broken(Broken::JavaEnd, "a.B.onEvent")
        );
        assert_eq!(Ends::of_scope("otlpprof"), Ends::Marked);
        assert_eq!(Ends::of_scope(""), Ends::Unmarked);
    }

    #[test]
    fn a_mixed_stack_ends_at_the_native_entry_and_nowhere_before() {
        let mixed = |names: &[&str]| walked_by(StackWalker::Vmx, names);
        let entry = ["JavaCalls::call_helper", "thread_native_entry", "start_thread", "clone3"];
        assert_eq!(mixed(&[&["a/B.c", "java/lang/Thread.run"][..], &entry].concat()), Ok(Root::Java));
        assert_eq!(mixed(&entry), Ok(Root::Native));
        assert_eq!(mixed(&["a/B.c", "java/lang/Thread.run"]), Err(Broken::JavaEnd));
        assert_eq!(mixed(&["a/B.c", "JavaCalls::call_helper"]), Err(Broken::NativeEnd));
        let carried = ["a/B.c", "java/lang/VirtualThread.run", "jdk/internal/vm/Continuation.enterSpecial"];
        assert_eq!(mixed(&carried), Err(Broken::JavaEnd));
        assert_eq!(mixed(&[&carried[..], &entry].concat()), Ok(Root::Virtual));
        // A marking producer has no excuse either.
        let unfinished = stack(&["a.B.c", "java.lang.Thread.run"]);
        let verdict = classify(&unfinished, Ends::Marked, StackWalker::Vmx);
        assert_eq!(verdict, Verdict::Broken(Broken::JavaEnd, "java.lang.Thread.run"));
    }

    #[test]
    fn a_thread_without_java_frames_is_whole_where_native_ones_are_left_out() {
        assert_eq!(walked_by(StackWalker::No, &["[no_Java_frame]"]), Ok(Root::Native));
        assert_eq!(walked_by(StackWalker::No, &["[no_Java_frame]", "[GC tid=17]"]), Ok(Root::Native));
        assert_eq!(walked_by(StackWalker::Vm, &["[no_Java_frame]"]), Err(Broken::NativeEnd));
    }
}

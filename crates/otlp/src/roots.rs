//! Decides whether a sample's stack reaches its root. This is the one definition, for our profiles and for
//! those of other producers.
//!
//! A stack reaches its root if it ends where its thread began:
//!
//! - a Java thread at its outermost Java entry;
//! - a virtual thread at `VirtualThread.run`; before and after this method runs, at the entry of the thread's
//!   continuation;
//! - a native thread at its native entry.
//!
//! A raw address, a marker of an unfinished walk or a truncation breaks a stack, wherever it stands.
//!
//! The walker `vmx` walks the whole mixed stack, so every thread ends at its native entry, a virtual thread
//! at its carrier's. The walker `no` omits native frames, so `[no_java_frame]` stands for the whole stack of
//! a thread without Java frames.
//!
//! If a stack ends in a Java method that is not a known entry, its frames alone do not distinguish an upcall
//! from a walk that stopped without a marker. otlpprof puts a marker on every stack that it could not finish,
//! so its stacks without a marker are complete ([`Ends::Marked`]). In stacks of other producers such an end
//! counts as broken ([`Ends::Unmarked`]). To compare two producers, apply [`Ends::Unmarked`] to both.

use otlpprof_core::stack_walker::StackWalker;
use otlpprof_model::{Scope, markers};

use super::frames::{Frame, Naming};

/// The scope name of profiles whose unfinished stacks all have a marker.
pub const MARKING_SCOPE: &str = Scope::OWN_NAME;

/// The conclusion that the absence of a marker allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Every unfinished walk left a marker.
    Marked,
    /// Some unfinished walks left no marker, so only known entries are roots.
    Unmarked,
}

impl Ends {
    /// The way to read the profiles of this scope.
    pub fn of_scope(name: &str) -> Self {
        match name == MARKING_SCOPE {
            true => Self::Marked,
            false => Self::Unmarked,
        }
    }
}

/// The kind of thread that a stack belongs to.
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

/// The reason why a stack does not reach its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Broken {
    /// The stack has no frame.
    Empty,
    /// The stack has a marker of a walk that was unfinished or truncated.
    Marker,
    /// The stack has a frame with an address and no name.
    RawAddress,
    /// The stack ends in a Java method that is not an entry of a thread.
    JavaEnd,
    /// The stack ends in a native function that is not an entry of a thread.
    NativeEnd,
    /// The stack passes from a virtual thread's frames to its carrier's and lacks the frames between.
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

/// The judgement of a stack, and the name of the frame that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'f> {
    /// The stack reaches its root.
    Reached(Root, &'f str),
    /// The stack does not reach its root.
    Broken(Broken, &'f str),
}

/// Judges a stack that `walker` walked; `frames` are leaf first.
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
    // The stack has no `VirtualThread.run`, and `missing_middle` did not object: the thread is beginning or
    // ending.
    if is_method(last, CONTINUATION_ENTER) && walker != StackWalker::Vmx {
        return Verdict::Reached(Root::Virtual, &last.text);
    }
    let (root, known, broken) = match is_java(last) {
        true => (Root::Java, is_java_entry(last), Broken::JavaEnd),
        false => (Root::Native, is_native_entry(last), Broken::NativeEnd),
    };
    let (root, known, ends) = match walker {
        // `vmx` continues below every Java frame, so a stack that ends in one is unfinished.
        StackWalker::Vmx if root == Root::Java => (root, false, Ends::Unmarked),
        StackWalker::Vmx if virtual_root.is_some() => (Root::Virtual, known, ends),
        StackWalker::Vmx if frames.iter().any(is_java) => (Root::Java, known, ends),
        StackWalker::Vm if is_entering_java(frames) => (Root::Java, true, ends),
        StackWalker::No if markers::is_no_java_frame(&last.text) => (Root::Native, true, ends),
        // AsyncGetCallTrace leaves no marker if it cannot continue.
        StackWalker::Fp | StackWalker::Dwarf if root == Root::Java => (root, known, Ends::Unmarked),
        _ => (root, known, ends),
    };
    match known || ends == Ends::Marked {
        true => Verdict::Reached(root, &last.text),
        false => Verdict::Broken(broken, &last.text),
    }
}

/// Whether the only frame is the stub at a Java entry, or an adapter between this stub and the called method.
/// A thread that is beginning or ending may be there. The adapter may take long if it is the first code to
/// touch a page of the stack.
fn is_entering_java(frames: &[Frame<'_>]) -> bool {
    const WAYS: [&str; 2] = ["call_stub", "I2C/C2I adapters"];
    matches!(frames, [frame] if WAYS.contains(&&*frame.text))
}

/// Whether a frame marks an unfinished walk. `markers` recognises ours; async-profiler's are recognised by
/// name (`Profiler::asgctError`, `StackWalker::walkVM`, `FrameName::name` in version 4.5).
pub fn is_marker(text: &str) -> bool {
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
        || markers::is_of_broken_stack(text)
        || text.starts_with("[jvmtiError ")
        || ASYNC_PROFILER.contains(&text)
}

/// Whether this is the outermost frame that async-profiler writes with option `threads`: `[main tid=17]`.
fn is_thread_name(text: &str) -> bool {
    text.starts_with('[') && text.ends_with(']') && text.contains("tid=")
}

/// Whether the frame is this method. The frame's text may have slashes in place of dots.
fn is_method(frame: &Frame<'_>, name: &str) -> bool {
    frame.text.len() == name.len()
        && frame
            .text
            .bytes()
            .zip(name.bytes())
            .all(|(found, one)| found == one || (found == b'/' && one == b'.'))
}

/// The method that runs a virtual thread's task.
const VIRTUAL_RUN: &str = "java.lang.VirtualThread.run";

/// The entry of a continuation. A virtual thread runs in a continuation.
const CONTINUATION_ENTER: &str = "jdk.internal.vm.Continuation.enter";

/// The frame at which a virtual thread's frames pass into its carrier's without `VirtualThread.run`: the
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

/// The methods that notify the VM where a virtual thread begins and ends: from 26 on (JDK-8364343). Until 25
/// their names begin with `notifyJvmti`.
const NOTIFICATIONS: &[&str] = match cfg!(without_rules_of_26) {
    true => &[],
    false => &["java.lang.VirtualThread.endFirstTransition", "java.lang.VirtualThread.startFinalTransition"],
};

/// Whether the frames above a continuation's entry belong to a virtual thread that has not reached
/// `VirtualThread.run` yet, or has left it. Such frames are `VThreadContinuation`'s, which notifies the VM
/// when the thread begins and ends (java.lang.VirtualThread, JDK 24 and later), and the methods that the
/// entry itself calls at the end. Threads that do little spend much of their time there while an agent has
/// events of virtual threads enabled.
fn is_own_of_continuation(inner: &[Frame<'_>]) -> bool {
    let names = inner.iter().rev().filter(|frame| is_java(frame)).map(|frame| frame.text.replace('/', "."));
    let mut names = names.skip_while(|name| name.starts_with("java.lang.VirtualThread$VThreadContinuation"));
    match names.next() {
        None => true,
        Some(name) => {
            let is_notification =
                name.starts_with("java.lang.VirtualThread.notifyJvmti") || NOTIFICATIONS.contains(&&*name);
            (is_notification || name == "jdk.internal.vm.Continuation.finish") && names.next().is_none()
        }
    }
}

/// Whether the frame is a Java method: by its type or, if it has none, by the form of its name. Names of
/// files, and the suffixes that compilers append to parts of functions, contain dots too.
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

/// Methods other than `main` and `run` that the VM calls on a thread whose stack is otherwise empty.
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

/// Methods that this agent calls by JNI, on threads of its own as well. Walkers of Java frames alone end
/// there.
const AGENT_CALLS: [&str; 3] =
    ["io.otlpprof.NativeBinding.bind", "java.lang.System.getProperty", "java.lang.Thread.currentThread"];

/// Classes whose `run` belongs to a task, never to a thread.
const TASKS: [&str; 5] = [
    "java.util.concurrent.ThreadPoolExecutor$Worker",
    "java.util.concurrent.FutureTask",
    "java.util.concurrent.CompletableFuture$",
    "java.util.concurrent.ForkJoinTask$",
    "java.util.concurrent.Executors$",
];

/// Whether a Java thread can begin in this frame: `main`, a method that the VM itself or this agent calls, or
/// the `run` of a Thread. Any class may be a Thread, except lambdas and the library's tasks.
fn is_java_entry(frame: &Frame<'_>) -> bool {
    let name = frame.text.replace('/', ".");
    let Some((class, method)) = name.rsplit_once('.') else { return false };
    match method {
        "main" => true,
        "run" => !class.contains("$$Lambda") && !TASKS.iter().any(|task| class.starts_with(task)),
        _ => VM_CALLS.contains(&&*name) || AGENT_CALLS.contains(&&*name),
    }
}

/// Whether a native thread can begin in this frame: the thread and process entries of glibc and musl,
/// HotSpot's thread entry, or libc itself if its private symbols are stripped.
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
    const LIBC: [&str; 6] = [
        "libc.so.6",
        "libpthread.so.0",
        "ld-linux-x86-64.so.2",
        "ld-linux-aarch64.so.1",
        "ld-musl-x86_64.so.1",
        "ld-musl-aarch64.so.1",
    ];
    let name = frame.text.split(['@', '(']).next().unwrap_or_default();
    let object = name.trim_start_matches('[').split(['+', ']']).next().unwrap_or_default();
    let object = object.rsplit('/').next().unwrap_or_default();
    ENTRIES.contains(&name) || LIBC.contains(&object) || object.starts_with("libc-2.")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames without a type, leaf first, as async-profiler writes them.
    fn stack<'a>(names: &[&'a str]) -> Vec<Frame<'a>> {
        let frame = |&name: &&'a str| {
            let naming = if name.starts_with("0x") { Naming::RawAddress } else { Naming::Function };
            let text = name.into();
            Frame { text, naming, frame_type: "", is_stub: false, mapping_index: 0, file: "", line: 0 }
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
        // musl's entries have no symbols.
        for object in ["ld-musl-x86_64.so.1", "ld-musl-aarch64.so.1"] {
            assert_eq!(unmarked(&["spin", &format!("[{object}+0x69bde]")]), Ok(Root::Native), "{object}");
        }
    }

    /// Regression: samples of the agent's own calls at the start counted as broken.
    #[test]
    fn methods_that_the_agent_calls_are_roots() {
        for called in AGENT_CALLS {
            assert_eq!(unmarked(&["a.B.c", called]), Ok(Root::Java), "{called}");
        }
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

    /// Regression: up to a fifth of the samples of 50,000 virtual threads were judged to end at
    /// `Continuation.enter0`.
    #[test]
    fn a_virtual_thread_that_begins_or_ends_is_at_its_root() {
        let entry = [
            "java/lang/VirtualThread$VThreadContinuation$1.run",
            "jdk/internal/vm/Continuation.enter0",
            "jdk/internal/vm/Continuation.enter",
        ];
        for notification in [
            "java/lang/VirtualThread.notifyJvmtiStart",
            "java/lang/VirtualThread.notifyJvmtiEnd",
            "java/lang/VirtualThread.endFirstTransition",
            "java/lang/VirtualThread.startFinalTransition",
        ] {
            let stack = [&["JVM_VirtualThreadEnd", notification][..], &entry].concat();
            assert_eq!(unmarked(&stack), Ok(Root::Virtual), "{notification}");
            assert_eq!(walked_by(StackWalker::Vmx, &stack), Err(Broken::JavaEnd), "{notification}");
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
            "[no_stack]",
            "[no stack]",
            "[unknown_object]",
            "[unknown object]",
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

    /// Regression: on a machine with slow page faults, more than 0.5 % of the stacks of short-lived threads
    /// were judged broken here.
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
        // The rule also holds for producers that mark their unfinished stacks.
        let unfinished = stack(&["a.B.c", "java.lang.Thread.run"]);
        let verdict = classify(&unfinished, Ends::Marked, StackWalker::Vmx);
        assert_eq!(verdict, Verdict::Broken(Broken::JavaEnd, "java.lang.Thread.run"));
    }

    #[test]
    fn a_thread_without_java_frames_is_whole_where_native_ones_are_left_out() {
        for marker in ["[no_java_frame]", "[no_Java_frame]"] {
            assert_eq!(walked_by(StackWalker::No, &[marker]), Ok(Root::Native), "{marker}");
            assert_eq!(walked_by(StackWalker::No, &[marker, "[GC tid=17]"]), Ok(Root::Native), "{marker}");
            assert_eq!(walked_by(StackWalker::Vm, &[marker]), Err(Broken::NativeEnd), "{marker}");
        }
    }
}

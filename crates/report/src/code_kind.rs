//! The kinds of code of a JVM's samples. Each sample has one kind, so the sums of all kinds add up to that of
//! all samples.

use super::call_tree::{CallTree, NodeId, RunOfNodes};
use super::frame_code::{FrameCode, FrameCodes};
use super::frame_table::FrameTable;
use super::thread_role::ThreadRole;

/// The kind of code of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CodeKind {
    /// The program and its libraries in languages of the JVM.
    Program,
    /// The JDK.
    Jdk,
    /// The VM's JIT compilers.
    JitCompiler,
    /// The VM's garbage collector.
    GarbageCollection,
    /// Other parts of the VM.
    OtherVm,
    /// Native libraries other than those of the VM and of the JDK.
    NativeLibraries,
    /// The kernel.
    Kernel,
    /// Code in other languages, and stacks that do not show any code.
    Other,
}

impl CodeKind {
    /// All kinds, in the order in which they are shown.
    pub const ALL: [Self; 8] = [
        Self::Program,
        Self::Jdk,
        Self::JitCompiler,
        Self::GarbageCollection,
        Self::OtherVm,
        Self::NativeLibraries,
        Self::Kernel,
        Self::Other,
    ];

    /// Whether a sample of this kind, of a thread with this role, is of one of the VM's own threads.
    pub fn is_of_vm_thread(self, role: ThreadRole) -> bool {
        role != ThreadRole::Other && !matches!(self, Self::Program | Self::Jdk)
    }

    /// The kind of a sample of a thread with this role, whose stack has this code. Compilers may be written
    /// in Java. A thread of the program may have the name of another thread of the VM.
    pub(super) fn of(role: ThreadRole, stack: FrameCode) -> Self {
        match (role, stack) {
            (ThreadRole::Compiler, _) => Self::JitCompiler,
            (_, FrameCode::Program) => Self::Program,
            (_, FrameCode::Jdk) => Self::Jdk,
            (_, FrameCode::Collection) | (ThreadRole::Collector, _) => Self::GarbageCollection,
            (_, FrameCode::Vm) | (ThreadRole::Vm, _) => Self::OtherVm,
            (ThreadRole::Other, FrameCode::CLibrary | FrameCode::Native) => Self::NativeLibraries,
            (ThreadRole::Other, FrameCode::Kernel) => Self::Kernel,
            (ThreadRole::Other, FrameCode::OtherLanguage | FrameCode::Nothing) => Self::Other,
        }
    }
}

/// The code of the stacks of a tree.
#[derive(Debug)]
pub struct StackCodes {
    /// By node.
    codes: Vec<FrameCode>,
    /// Whether a frame shows that a JVM runs.
    has_jvm: bool,
}

impl StackCodes {
    /// The code of each node's stack.
    pub fn of(tree: &CallTree, frames: &FrameTable) -> Self {
        let FrameCodes { codes: of_frames, has_jvm } = FrameCodes::of(frames);
        let mut codes = vec![FrameCode::Nothing; tree.len()];
        // A parent's number is lower than its children's.
        for RunOfNodes { parent, first, frames } in tree.runs() {
            let mut callers = codes[parent as usize];
            for (code, &frame) in codes[first as usize..].iter_mut().zip(frames) {
                callers = of_frames[frame as usize].called_by(callers);
                *code = callers;
            }
        }
        Self { codes, has_jvm }
    }

    /// The kind of the samples of a stack, on a thread with this role.
    pub fn kind(&self, role: ThreadRole, node: NodeId) -> CodeKind {
        CodeKind::of(role, self.codes[node as usize])
    }
}

/// Values summed by kind of code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindSums([i64; CodeKind::ALL.len()]);

impl KindSums {
    /// Sums the values of stacks, each with its thread's role. `None` if no frame and no thread is a JVM's.
    pub fn of(
        stacks: &StackCodes,
        values: impl IntoIterator<Item = (ThreadRole, NodeId, i64)>,
    ) -> Option<Self> {
        let (mut sums, mut has_jvm) = (Self::default(), stacks.has_jvm);
        for (role, node, value) in values {
            let kind = stacks.kind(role, node);
            has_jvm |= matches!(kind, CodeKind::JitCompiler | CodeKind::GarbageCollection);
            let sum = &mut sums.0[kind as usize];
            *sum = sum.saturating_add(value);
        }
        has_jvm.then_some(sums)
    }

    /// The sum of a kind.
    pub fn get(&self, kind: CodeKind) -> i64 {
        self.0[kind as usize]
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_otlp::frames::{Frame, Naming};

    use super::*;
    use crate::call_tree::ROOT;
    use crate::frame_origin::FrameOrigin;

    /// A frame of a stack in a test: `jvm`, `native`, `kernel`, `go` or nothing, and a name; of a native
    /// function an object before it.
    fn frame(text: &str) -> (Frame<'_>, FrameOrigin) {
        let (frame_type, name) = text.split_once(' ').unwrap();
        let (origin, name) = match name.split_once('!') {
            None if frame_type == "jvm" => (FrameOrigin::Jvm, name),
            None => (FrameOrigin::Unknown, name),
            Some(("libjvm", name)) => (FrameOrigin::VmLibrary, name),
            Some(("libc", name)) => (FrameOrigin::CLibrary, name),
            Some(("libnio", name)) => (FrameOrigin::JdkLibrary, name),
            Some((_, name)) => (FrameOrigin::Object, name),
        };
        let frame = Frame {
            text: name.into(),
            naming: Naming::Function,
            frame_type: if frame_type == "stub" { "native" } else { frame_type },
            is_stub: frame_type == "stub",
            mapping_index: 0,
            file: "",
            line: 0,
        };
        (frame, origin)
    }

    /// The kind of a sample; `None` if nothing in it is a JVM's. The stack begins with its root.
    fn kind(thread: &str, stack: &[&str]) -> Option<CodeKind> {
        let (mut frames, mut tree) = (FrameTable::default(), CallTree::default());
        let node = stack.iter().fold(ROOT, |node, text| {
            let (frame, origin) = frame(text);
            let frame = frames.intern(&frame, false, 0, origin);
            tree.child(node, frame)
        });
        let stacks = StackCodes::of(&tree, &frames);
        let sums = KindSums::of(&stacks, [(ThreadRole::of(thread), node, 7)])?;
        let mut kinds = CodeKind::ALL.into_iter().filter(|&kind| sums.get(kind) == 7);
        let kind = kinds.next().unwrap();
        assert_eq!(sums, KindSums::default().with(kind, 7));
        Some(kind)
    }

    impl KindSums {
        fn with(mut self, kind: CodeKind, value: i64) -> Self {
            self.0[kind as usize] = value;
            self
        }
    }

    const THREAD: &str = "jvm java.lang.Thread.run";
    const CART: &str = "jvm shop.Cart.sum";

    #[test]
    fn the_youngest_java_method_decides_on_threads_of_java() {
        for (stack, expected) in [
            (&[THREAD, CART][..], CodeKind::Program),
            (&[THREAD, CART, "jvm java.util.HashMap.get"], CodeKind::Jdk),
            (&[THREAD, CART, "jvm com.sun.proxy.$Proxy3.get"], CodeKind::Jdk),
            (&[THREAD, "jvm javax.servlet.http.HttpServlet.service"], CodeKind::Program),
            (&[THREAD, "jvm com.sun.jna.Native.invoke"], CodeKind::Program),
            (&[THREAD, "jvm javafx.Scene.draw"], CodeKind::Program),
            (&[THREAD, CART, "jvm io.otlpprof.ContextSetter.set"], CodeKind::Program),
            // The VM, its stubs and the C library work for the method that calls them.
            (&[THREAD, CART, "stub arrayof_oop_arraycopy"], CodeKind::Program),
            (
                &[THREAD, CART, "native libjvm!OptoRuntime::new_array_C", "native libc!memset"],
                CodeKind::Program,
            ),
            (&[THREAD, CART, "native libc!strlen"], CodeKind::Program),
            (&[CART, "jvm java.lang.Object.wait0", "native libjvm!JVM_MonitorWait"], CodeKind::Jdk),
            (
                &[CART, "jvm sun.nio.ch.EPoll.wait", "native libnio!Java_wait", "native libc!epoll_wait"],
                CodeKind::Jdk,
            ),
            (&[THREAD, CART, "native libjvm!VM_G1CollectForAllocation::doit_prologue()"], CodeKind::Program),
            // Other native code and the kernel work for themselves.
            (
                &[THREAD, CART, "native libzstd!ZSTD_compress", "native libc!memcpy"],
                CodeKind::NativeLibraries,
            ),
            (&[THREAD, CART, "native [0x7f12a4001c20+0x0]"], CodeKind::NativeLibraries),
            (&[THREAD, CART, "native libzstd!f", "native libjvm!jni_GetArrayLength"], CodeKind::OtherVm),
            (&[THREAD, CART, "native libc!write", "kernel vfs_write"], CodeKind::Kernel),
            // A mark is no code.
            (&[THREAD, CART, "native [truncated]"], CodeKind::Program),
            (&["native libc!start_thread", "native libjvm!JavaThread::run", THREAD, CART], CodeKind::Program),
            (&[THREAD, "go main.main"], CodeKind::Other),
        ] {
            for thread in ["main", "", "GC Thread#0", "VM Thread"] {
                let is_of_vm = ThreadRole::of(thread) != ThreadRole::Other;
                if is_of_vm && !matches!(expected, CodeKind::Program | CodeKind::Jdk) {
                    continue;
                }
                assert_eq!(kind(thread, stack), Some(expected), "{thread} {stack:?}");
            }
        }
    }

    #[test]
    fn the_name_decides_on_threads_of_the_vm() {
        let (start, run) = ("native libc!start_thread", "native libjvm!Thread::call_run");
        let collect = "native libjvm!VM_GenCollectForAllocation::doit()";
        for (thread, stack, expected) in [
            (
                "C2 CompilerThre",
                &[start, run, "native libjvm!PhaseChaitin::Split"][..],
                CodeKind::JitCompiler,
            ),
            ("C1 CompilerThre", &["native [no_java_frame]"], CodeKind::JitCompiler),
            (
                "JVMCI CompilerThread0",
                &["jvm jdk.graal.compiler.core.GraalCompiler.compile"],
                CodeKind::JitCompiler,
            ),
            (
                "JVMCI CompilerThread0",
                &["jvm org.graalvm.compiler.core.GraalCompiler.compile"],
                CodeKind::JitCompiler,
            ),
            (
                "G1 Conc#0",
                &[start, run, "native libc!sched_yield", "kernel schedule"],
                CodeKind::GarbageCollection,
            ),
            ("ZWorkerOld#1", &[], CodeKind::GarbageCollection),
            ("VM Thread", &[start, run, "native libjvm!VM_Operation::evaluate"], CodeKind::OtherVm),
            ("VM Thread", &[start, run, "kernel futex_wait"], CodeKind::OtherVm),
            // With the serial collector.
            (
                "VM Thread",
                &[start, run, collect, "native libjvm!DefNewGeneration::collect", "native libc!memcpy"],
                CodeKind::GarbageCollection,
            ),
            ("VM Periodic Tas", &[start, run], CodeKind::OtherVm),
            // A thread that has no name yet.
            ("", &[start, run, "native libc!prctl"], CodeKind::OtherVm),
        ] {
            assert_eq!(kind(thread, stack), Some(expected), "{thread} {stack:?}");
        }
    }

    #[test]
    fn profiles_of_other_programs_have_no_kinds() {
        for stack in [
            &["go main.main", "go runtime.mallocgc"][..],
            &["native libc!start_thread", "native program!work", "kernel vfs_read"],
            // A function of an unknown language.
            &[" main", " work"],
            &["native main", "native [unknown]"],
            &[],
        ] {
            assert_eq!(kind("main", stack), None, "{stack:?}");
        }
        assert_eq!(kind("main", &[" java.lang.Thread.run", " shop.Cart.sum"]), Some(CodeKind::Program));
    }
}

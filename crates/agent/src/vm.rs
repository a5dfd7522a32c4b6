//! The agent's knowledge of the JVM that it was loaded into.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use jni::sys::{JNIEnv, JavaVM};
use otlpprof_core::memory::Memory;
use otlpprof_core::method_ids::MethodIds;
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::thread::current_os_tid;
use otlpprof_core::vm_layout::VmLayout;
use otlpprof_jvm::flags;
use otlpprof_jvm::java_threads;
use otlpprof_jvm::jvmti::Jvmti;
use otlpprof_jvm::layout::{self, Found, Gap, LayoutError, Learnt, Release};
use otlpprof_jvm::libjvm::Libjvm;
use otlpprof_jvm::live_phase;
use otlpprof_jvm::method_ids;
use otlpprof_jvm::method_names::MethodNames;
use otlpprof_jvm::stubs::StubTable;
use otlpprof_jvm::system_properties::system_property;
use otlpprof_jvm::thread_names::ThreadNames;
use otlpprof_jvm::vm_structs::VmStructs;
use otlpprof_model::markers;
use otlpprof_sampling::threads;
use otlpprof_signal::safe_load::ProcessMemory;
use otlpprof_signal::sample::SETUP;

use super::resource::JvmProperties;
use super::stack_check::{self, Agreed};

/// The stubs that the VM has reported.
pub(super) static STUBS: StubTable = StubTable::new();

/// The JVM, of which a process has one at most.
pub(super) struct Vm {
    pub(super) jvmti: Jvmti,
    java_vm: *mut JavaVM,
    structs: Option<VmStructs>,
    /// AsyncGetCallTrace's address.
    async_get_call_trace: Option<u64>,
    layout: OnceLock<Option<&'static VmLayout>>,
    names: OnceLock<Option<ThreadNames>>,
    runtime: OnceLock<JavaRuntime>,
}

/// Describes, for the log, where Java frames come from if the layout is unknown.
const fn without_layout(async_get_call_trace: Option<u64>) -> &'static str {
    match async_get_call_trace {
        Some(_) => "Java frames come from AsyncGetCallTrace, without line numbers",
        None => "no Java frames",
    }
}

/// The name and version of the Java runtime.
struct JavaRuntime {
    name: Option<String>,
    version: Option<String>,
}

// SAFETY: a JavaVM and a JVMTI environment may be used from any thread.
unsafe impl Send for Vm {}
// SAFETY: a JavaVM and a JVMTI environment may be used from any thread.
unsafe impl Sync for Vm {}

static VM: OnceLock<Vm> = OnceLock::new();

/// The VM, once [`Vm::keep`] has been called.
pub(super) fn vm() -> Option<&'static Vm> {
    VM.get()
}

/// Reports that frozen frames are left out.
fn warn_of_frozen_frames(error: &LayoutError) {
    log::warn!(
        "frozen frames of virtual threads cannot be read ({error}): a {} marker stands for them",
        markers::frozen("…")
    );
}

impl Vm {
    /// Keeps what is known of the VM for the life of the process. Later calls return the VM of the first.
    ///
    /// # Safety
    /// `java_vm` is the JavaVM that was passed to the agent, and `jvmti` is an environment of it.
    pub(super) unsafe fn keep(java_vm: *mut JavaVM, jvmti: Jvmti) -> &'static Self {
        // SAFETY: the contract requires the JavaVM that was passed to the agent.
        VM.get_or_init(|| unsafe { Self::new(java_vm, jvmti) })
    }

    /// # Safety
    /// `java_vm` is the JavaVM that was passed to the agent.
    unsafe fn new(java_vm: *mut JavaVM, jvmti: Jvmti) -> Self {
        // SAFETY: the contract requires the JavaVM that was passed to the agent.
        let libjvm = unsafe { Libjvm::of(java_vm) }.map_err(|error| error.to_string());
        let async_get_call_trace = libjvm.as_ref().ok().and_then(|libjvm| libjvm.symbol("AsyncGetCallTrace"));
        let structs = libjvm
            .and_then(|libjvm| {
                VmStructs::read(&ProcessMemory, |name| libjvm.symbol(name)).map_err(|error| error.to_string())
            })
            .inspect_err(|error| {
                let otherwise = without_layout(async_get_call_trace);
                // Other JVMs than HotSpot, such as OpenJ9, have no descriptions.
                let name = jvmti.system_property(c"java.vm.name").ok().flatten();
                let name = name.as_deref().unwrap_or("unnamed");
                log::warn!("this JVM ({name}) does not describe its structures ({error}): {otherwise}");
            })
            .ok();
        Self {
            jvmti,
            java_vm,
            structs,
            async_get_call_trace,
            layout: OnceLock::new(),
            names: OnceLock::new(),
            runtime: OnceLock::new(),
        }
    }

    /// Makes the compilers record lines between safepoints too, for all methods that are compiled from now
    /// on. Returns `true` if they did not before, and now do.
    pub(super) fn record_all_lines(&self) -> bool {
        // Without `VmStructs` there are no lines, which has already been logged.
        let Some(structs) = &self.structs else { return false };
        let flag = flags::address_of(structs, &ProcessMemory, "DebugNonSafepoints");
        match flag.map(|address| (address, ProcessMemory.load_u8(address))) {
            Some((address, Some(0))) => {
                // SAFETY: the address leads to a boolean flag in libjvm's writable data, which holds a
                // boolean.
                unsafe { (address as *mut u8).write_volatile(1) };
                true
            }
            Some((_, Some(1))) => false,
            _ => {
                log::warn!(
                    "DebugNonSafepoints cannot be switched on: compiled code has lines at safepoints only"
                );
                false
            }
        }
    }

    /// Reads the layout and the runtime's name, once, in the live phase. If Java frames cannot be walked, one
    /// line in the log says what is missing.
    ///
    /// # Safety
    /// `env` belongs to the current thread.
    pub(super) unsafe fn learn(&self, env: *mut JNIEnv) {
        self.layout.get_or_init(|| {
            if let Err(error) = StubTable::replay(self.jvmti) {
                log::log!(self.level_of_details(), "the VM does not report the names of its stubs: {error}");
            }
            let structs = self.structs.as_ref()?;
            // SAFETY: the contract gives the current thread's `env`.
            let learnt = unsafe { layout::learn(env, structs, &ProcessMemory, &STUBS) };
            let checked = learnt.map(|Learnt { layout, gaps, found }| {
                for Gap { effect, reason } in gaps {
                    log::warn!("{effect}: {reason}");
                }
                // SAFETY: the contract gives the current thread's `env`.
                let continuation =
                    unsafe { layout::frozen_frames(env, structs, &ProcessMemory, &STUBS, &layout) };
                let continuation = continuation.inspect_err(warn_of_frozen_frames);
                let mut layout =
                    VmLayout { continuation: continuation.unwrap_or(layout.continuation), ..layout };
                // SAFETY: the contract gives the current thread's `env`.
                let mounted = unsafe { layout::mounted_thread(env, structs, &ProcessMemory, &layout) };
                let mounted = mounted.inspect_err(|error| {
                    log::warn!(
                        "the mounted virtual thread is known from the VM's events only ({error}): samples \
                         between these events have no context"
                    )
                });
                if let Some(continuation) = &mut layout.continuation {
                    continuation.mounted = mounted.ok().flatten();
                }
                (layout, found)
            });
            let compare = |(layout, found): (_, Vec<_>)| {
                // SAFETY: the contract gives the current thread's `env`.
                unsafe { self.compare_stacks(env, layout, &found) }
            };
            let checked = checked.and_then(compare);
            let layout = checked
                .inspect_err(|error| {
                    let otherwise = without_layout(self.async_get_call_trace);
                    log::warn!("the stacks of this JVM cannot be walked ({error}): {otherwise}");
                })
                .ok()?;
            Some(&*Box::leak(Box::new(layout)))
        });
        // SAFETY: the contract gives the current thread's `env`.
        let property = |name| unsafe { system_property(env, name) };
        self.runtime.get_or_init(|| JavaRuntime {
            name: property(c"java.runtime.name"),
            version: property(c"java.runtime.version"),
        });
        self.names.get_or_init(|| {
            // SAFETY: the contract gives the current thread's `env`.
            unsafe { ThreadNames::new(env) }
                .inspect_err(|error| {
                    log::log!(self.level_of_details(), "names of threads cannot be read: {error}");
                })
                .ok()
        });
    }

    /// Compares walks with the VM's description: many, if the walker was not tried on the JVM's release, or
    /// if the layout has fields that a search has found; otherwise one.
    ///
    /// # Safety
    /// `env` belongs to the current thread.
    unsafe fn compare_stacks(
        &self,
        env: *mut JNIEnv,
        mut layout: VmLayout,
        found: &[Found],
    ) -> Result<VmLayout, LayoutError> {
        let release = self.jvmti.version_number().map(Release::of_jvmti);
        let untried = release.ok().filter(|release| !release.is_known());
        if untried.is_none() && found.is_empty() {
            // SAFETY: the contract gives the current thread's `env`.
            return unsafe { stack_check::check_one(self.jvmti, env, &layout) }.map(|()| layout);
        }
        // SAFETY: the contract gives the current thread's `env`.
        let Agreed { frames, compiled, of_virtual_thread } =
            unsafe { stack_check::check(self.java_vm, self.jvmti, env, &layout) }?;
        let frozen = of_virtual_thread.as_ref().copied().unwrap_or(0);
        let agreed = format!(
            "{frames} Java frames were walked as the VM describes them ({compiled} compiled), and {frozen} \
             of a virtual thread"
        );
        for Found { structure, field, offset } in found {
            log::info!(
                "libjvm does not describe {structure}::{field}, which a search has found at {offset}: \
                 {agreed}"
            );
        }
        if let Some(release) = untried {
            log::info!(
                "HotSpot {release} is read as it describes itself: this version of the agent was tried on \
                 {}. {agreed}",
                Release::known_list()
            );
        }
        if let (Err(error), Some(continuation)) = (of_virtual_thread, &mut layout.continuation) {
            warn_of_frozen_frames(&error);
            continuation.frozen = None;
        }
        Ok(layout)
    }

    /// Returns the system properties that describe the JVM.
    pub(super) fn properties(&self) -> JvmProperties {
        let property = |name| self.jvmti.system_property(name).ok().flatten();
        JvmProperties {
            runtime_name: self.runtime.get().and_then(|runtime| runtime.name.clone()),
            runtime_version: self.runtime.get().and_then(|runtime| runtime.version.clone()),
            vm_vendor: property(c"java.vm.vendor"),
            vm_name: property(c"java.vm.name"),
            vm_version: property(c"java.vm.version"),
            java_command: property(c"sun.java.command"),
            class_path: property(c"java.class.path"),
        }
    }

    /// Returns the layout, if it is known and has passed its checks.
    pub(super) fn layout(&self) -> Option<&'static VmLayout> {
        self.layout.get().copied().flatten()
    }

    pub(super) fn names(&self) -> Option<&ThreadNames> {
        self.names.get()?.as_ref()
    }

    /// Returns the JavaThread that has this JNI environment.
    pub(super) fn java_thread(&self, env: *mut JNIEnv) -> Option<u64> {
        (self.layout().is_some() || self.names_by_ids())
            .then(|| (env as u64).wrapping_sub(self.jni_environment()))
    }

    /// The offset of the JNI environment in a JavaThread. Without a layout it is 0, and the environment's
    /// address identifies the thread.
    fn jni_environment(&self) -> u64 {
        self.layout().map_or(0, |layout| u64::from(layout.thread.jni_environment))
    }

    /// Whether the VM is HotSpot, which describes its structures.
    pub(super) fn is_hotspot(&self) -> bool {
        self.structs.is_some()
    }

    /// The level at which the log reports what this VM lacks besides its structures. If the VM is not
    /// HotSpot, one line has already said so.
    pub(super) fn level_of_details(&self) -> log::Level {
        if self.is_hotspot() { log::Level::Warn } else { log::Level::Debug }
    }

    /// Whether Java frames are jmethodIDs, because AsyncGetCallTrace is their only source.
    pub(super) fn names_by_ids(&self) -> bool {
        self.layout().is_none() && self.async_get_call_trace.is_some()
    }

    /// Returns the names of methods by jmethodID, if Java frames are jmethodIDs.
    pub(super) fn method_names(&self) -> Option<MethodNames> {
        // SAFETY: the VM is the one that loaded the agent.
        self.names_by_ids().then(|| unsafe { MethodNames::new(self.jvmti, self.java_vm) })
    }

    /// Returns the walker that replaces the requested one: without a layout, one that uses AsyncGetCallTrace,
    /// if available.
    pub(super) fn walker(&self, wanted: StackWalker) -> StackWalker {
        match wanted {
            StackWalker::Vm | StackWalker::Vmx if self.names_by_ids() => StackWalker::Dwarf,
            wanted => wanted,
        }
    }

    /// Makes handlers use AsyncGetCallTrace if the walker needs it, and the VM make the method ids that it
    /// requires.
    pub(super) fn set_call_trace(&self, walker: StackWalker) {
        SETUP.jni_environment.store(self.jni_environment(), Ordering::Relaxed);
        if !walker.asks_the_vm() && !self.names_by_ids() {
            return;
        }
        // Its frames have jmethodIDs. Where only the VM resolves these, a drain at a safepoint could not.
        if self.layout().is_some_and(|layout| layout.method.ids == MethodIds::Opaque) {
            log::info!("cstack={}: Java frames are read from the JVM's structures", walker.name());
            return;
        }
        let (Some(function), Some(env)) = (self.async_get_call_trace, self.attach_as_daemon(c"otlpprof"))
        else {
            // Without a layout, a line in the log has already said so.
            if self.layout().is_some() {
                log::warn!(
                    "this JVM has no AsyncGetCallTrace: Java frames are read from the JVM's structures"
                );
            }
            return;
        };
        // SAFETY: `env` belongs to the current thread.
        if let Err(error) = unsafe { method_ids::make_all_ids(self.jvmti, env) } {
            log::warn!("the VM does not create ids of all methods: {error}");
        }
        SETUP.async_get_call_trace.store(function as *mut c_void, Ordering::Release);
    }

    /// Undoes [`Vm::set_call_trace`].
    pub(super) fn unset_call_trace(&self) {
        let function = SETUP.async_get_call_trace.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !function.is_null()
            && let Err(error) = method_ids::make_no_more_ids(self.jvmti)
        {
            log::debug!("the VM still creates ids of methods: {error}");
        }
    }

    /// Registers all existing Java threads with the sampling engine.
    pub(super) fn note_existing_threads(&self) {
        let Some(layout) = self.layout() else {
            // Registers at least the current thread, which at the JVM's start is the main thread. Other
            // threads are registered when they start.
            let env = self.attach_as_daemon(c"otlpprof").filter(|_| self.names_by_ids());
            if let Some(env) = env {
                threads::note_java_thread(current_os_tid(), env as u64);
            }
            return;
        };
        for thread in java_threads::list(&ProcessMemory, &layout.thread) {
            threads::note_java_thread(thread.os_tid, thread.address);
        }
    }

    /// Returns the JNI environment of the current thread, which is attached as a daemon if it was not
    /// attached. `None` if the VM refuses, or is ending.
    pub(super) fn attach_as_daemon(&self, name: &std::ffi::CStr) -> Option<*mut JNIEnv> {
        if live_phase::has_ended() {
            return None;
        }
        let mut env = std::ptr::null_mut();
        let mut arguments = jni::sys::JavaVMAttachArgs {
            version: jni::sys::JNI_VERSION_1_8,
            name: name.as_ptr().cast_mut(),
            group: std::ptr::null_mut(),
        };
        // SAFETY: the VM is the one that loaded the agent; the arguments live for the call.
        let result = unsafe {
            ((**self.java_vm).v1_4.AttachCurrentThreadAsDaemon)(
                self.java_vm,
                &mut env,
                (&raw mut arguments).cast(),
            )
        };
        (result == jni::sys::JNI_OK).then_some(env.cast())
    }

    /// Undoes [`Vm::attach_as_daemon`].
    pub(super) fn detach(&self) {
        // SAFETY: the VM is the one that loaded the agent; the current thread has no Java frame.
        unsafe { ((**self.java_vm).v1_1.DetachCurrentThread)(self.java_vm) };
    }
}

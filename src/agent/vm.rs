//! What is known of the JVM that the agent was loaded into.

use std::sync::OnceLock;

use jni::sys::{JNIEnv, JavaVM};

use super::resource::JvmProperties;
use crate::core::memory::Memory;
use crate::core::vm_layout::VmLayout;
use crate::jvm::flags;
use crate::jvm::java_threads;
use crate::jvm::jvmti::Jvmti;
use crate::jvm::layout::{self, Probe};
use crate::jvm::libjvm::Libjvm;
use crate::jvm::stubs::StubTable;
use crate::jvm::system_properties::system_property;
use crate::jvm::thread_names::ThreadNames;
use crate::jvm::vm_structs::VmStructs;
use crate::sampling::threads;
use crate::signal::safe_load::ProcessMemory;

/// The stubs that the VM has told of.
pub(super) static STUBS: StubTable = StubTable::new();

/// One JVM: a process has one at most.
pub(super) struct Vm {
    pub(super) jvmti: Jvmti,
    java_vm: *mut JavaVM,
    structs: Option<VmStructs>,
    layout: OnceLock<Option<&'static VmLayout>>,
    names: OnceLock<Option<ThreadNames>>,
    runtime: OnceLock<JavaRuntime>,
}

/// What Java calls itself.
struct JavaRuntime {
    name: Option<String>,
    version: Option<String>,
}

// SAFETY: a JavaVM and a JVMTI environment may be used from any thread.
unsafe impl Send for Vm {}
// SAFETY: as above.
unsafe impl Sync for Vm {}

impl Vm {
    /// # Safety
    /// `java_vm` is the JavaVM that was passed to the agent.
    pub(super) unsafe fn new(java_vm: *mut JavaVM, jvmti: Jvmti) -> Self {
        // SAFETY: by the contract.
        let structs = unsafe { Libjvm::of(java_vm) }
            .map_err(|error| error.to_string())
            .and_then(|libjvm| {
                VmStructs::read(&ProcessMemory, |name| libjvm.symbol(name)).map_err(|error| error.to_string())
            })
            .inspect_err(|error| log::warn!("this JVM does not describe itself ({error}): no Java frames"))
            .ok();
        Self {
            jvmti,
            java_vm,
            structs,
            layout: OnceLock::new(),
            names: OnceLock::new(),
            runtime: OnceLock::new(),
        }
    }

    /// Has the compilers record lines between safepoints too; effective for what is compiled from now on.
    /// Returns whether they did not before, and the VM let us.
    pub(super) fn record_all_lines(&self) -> bool {
        // Without them there are no Java frames, of which there is a word already.
        let Some(structs) = &self.structs else { return false };
        let flag = flags::address_of(structs, &ProcessMemory, "DebugNonSafepoints");
        match flag.map(|address| (address, ProcessMemory.load_u8(address))) {
            Some((address, Some(0))) => {
                // SAFETY: the address of a boolean flag in libjvm's writable data, which holds a boolean.
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

    /// Learns the layout and what Java calls itself, once; live phase only. One line says what is missing if Java
    /// frames cannot be walked.
    ///
    /// # Safety
    /// `env` is the current thread's.
    pub(super) unsafe fn learn(&self, env: *mut JNIEnv) {
        self.layout.get_or_init(|| {
            if let Err(error) = StubTable::replay(self.jvmti) {
                log::warn!("the VM does not name its stubs: {error}");
            }
            let structs = self.structs.as_ref()?;
            // SAFETY: by the contract; only versions before 26 are known.
            let checked = layout::build(structs, &ProcessMemory, &STUBS).and_then(|layout| unsafe {
                let probe = Probe::of_current_thread(env)?;
                layout::check(&layout, &ProcessMemory, &probe).map(|()| layout)
            });
            let layout = checked
                .inspect_err(|error| {
                    log::warn!("this JVM is not one that can be walked ({error}): no Java frames")
                })
                .ok()?;
            Some(&*Box::leak(Box::new(layout)))
        });
        // SAFETY: by the contract.
        let property = |name| unsafe { system_property(env, name) };
        self.runtime.get_or_init(|| JavaRuntime {
            name: property(c"java.runtime.name"),
            version: property(c"java.runtime.version"),
        });
        self.names.get_or_init(|| {
            // SAFETY: by the contract.
            unsafe { ThreadNames::new(env) }
                .inspect_err(|error| log::warn!("threads cannot be named: {error}"))
                .ok()
        });
    }

    /// The system properties that describe the JVM.
    pub(super) fn properties(&self) -> JvmProperties {
        let property = |name| self.jvmti.system_property(name).ok().flatten();
        JvmProperties {
            runtime_name: self.runtime.get().and_then(|runtime| runtime.name.clone()),
            runtime_version: self.runtime.get().and_then(|runtime| runtime.version.clone()),
            vm_vendor: property(c"java.vm.vendor"),
            vm_name: property(c"java.vm.name"),
            vm_version: property(c"java.vm.version"),
        }
    }

    /// The layout, if it is known and trusted.
    pub(super) fn layout(&self) -> Option<&'static VmLayout> {
        self.layout.get().copied().flatten()
    }

    pub(super) fn names(&self) -> Option<&ThreadNames> {
        self.names.get()?.as_ref()
    }

    /// The JavaThread behind a thread's JNI environment.
    pub(super) fn java_thread(&self, env: *mut JNIEnv) -> Option<u64> {
        let layout = self.layout()?;
        Some((env as u64).wrapping_sub(u64::from(layout.thread.jni_environment)))
    }

    /// Tells the sampling engine of all Java threads that exist.
    pub(super) fn note_existing_threads(&self) {
        let Some(layout) = self.layout() else { return };
        for thread in java_threads::list(&ProcessMemory, &layout.thread) {
            threads::note_java_thread(thread.os_tid, thread.address);
        }
    }

    /// The JNI environment of the current thread; attached as a daemon if it was not. `None` if the VM refuses.
    pub(super) fn attach_as_daemon(&self, name: &std::ffi::CStr) -> Option<*mut JNIEnv> {
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
        // SAFETY: as above; the current thread has no Java frame.
        unsafe { ((**self.java_vm).v1_1.DetachCurrentThread)(self.java_vm) };
    }
}

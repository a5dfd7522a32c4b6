//! The function table of a JVMTI environment, in the JVM's layout (JVM Tool Interface 11-25, `jvmti.h`).
//!
//! The table's 156 slots are the interface's ABI and never change. Only the functions that the agent calls
//! have types here.

use std::ffi::{c_char, c_int, c_uchar, c_void};

use jni::sys::{JNIEnv, jboolean, jint, jlong, jmethodID, jobject};

use super::jvmti_env::{Interface, RawEnv, SLOTS};
use super::jvmti_events::{EventCallbacks, ExtensionCallback, RawExtensionEvent};

/// `jvmtiCapabilities`: 128 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Capabilities(pub [u32; 4]);

/// `jvmtiThreadInfo`.
#[derive(Debug)]
#[repr(C)]
pub struct RawThreadInfo {
    /// Modified UTF-8, allocated by JVMTI.
    pub name: *mut c_char,
    /// The thread's priority.
    pub priority: jint,
    /// Whether the thread is a daemon.
    pub is_daemon: jboolean,
    /// A local reference.
    pub thread_group: jobject,
    /// A local reference.
    pub context_class_loader: jobject,
}

/// `jvmtiFrameInfo`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawFrame {
    /// The method.
    pub method: jmethodID,
    /// The bytecode index; -1 for a native method.
    pub location: jlong,
}

/// `jvmtiStartFunction`: the main function of an agent thread.
pub type AgentThreadMain = unsafe extern "system" fn(*mut RawEnv, *mut JNIEnv, *mut c_void);

/// The functions of a table that may wait for a thread, stop the VM or run Java code; [`Jvmti::live_table`]
/// returns it.
///
/// [`Jvmti::live_table`]: super::jvmti::Jvmti
#[derive(Clone, Copy, Debug)]
pub(super) struct LiveInterface<'a>(pub(super) &'a Interface);

/// Names and slots of the functions for which the agent puts its own into the table.
pub const REPLACED: [(&str, usize); 2] = [("RedefineClasses", 87), ("RetransformClasses", 152)];

impl Interface {
    /// The function in a slot, numbered from 1.
    const fn slot(&self, slot: usize) -> *const c_void {
        self.slots[slot - 1]
    }
}

impl LiveInterface<'_> {
    const fn slot(&self, slot: usize) -> *const c_void {
        self.0.slot(slot)
    }
}

macro_rules! functions {
    ($($table:ty {
        $($slot:literal $name:ident $accessor:ident ($($arg:ty),* $(,)?) $(, $variadic:tt)?;)*
    })*) => {
        /// Names and slots of the functions typed here. Slots are numbered from 1, as in the specification.
        pub const FUNCTIONS: &[(&str, usize)] = &[$($((stringify!($name), $slot),)*)*];

        $(impl $table {
            $(
                #[doc = concat!("The function `", stringify!($name), "`.")]
                pub(super) fn $accessor(
                    &self,
                ) -> unsafe extern "C" fn(*mut RawEnv, $($arg),* $(, $variadic)?) -> c_int {
                    const { assert!($slot >= 1 && $slot <= SLOTS) };
                    // SAFETY: the specification assigns this function, with these parameters, to the slot.
                    unsafe { std::mem::transmute(self.slot($slot)) }
                }
            )*
        })*
    };
}

functions! {
    Interface {
        4 GetAllThreads get_all_threads(*mut jint, *mut *mut jobject);
        9 GetThreadInfo get_thread_info(jobject, *mut RawThreadInfo);
        18 GetCurrentThread get_current_thread(*mut jobject);
        45 IsModifiableClass is_modifiable_class(jobject, *mut jboolean);
        46 Allocate allocate(jlong, *mut *mut c_uchar);
        47 Deallocate deallocate(*mut c_uchar);
        48 GetClassSignature get_class_signature(jobject, *mut *mut c_char, *mut *mut c_char);
        49 GetClassStatus get_class_status(jobject, *mut jint);
        52 GetClassMethods get_class_methods(jobject, *mut jint, *mut *mut jmethodID);
        64 GetMethodName get_method_name(jmethodID, *mut *mut c_char, *mut *mut c_char, *mut *mut c_char);
        65 GetMethodDeclaringClass get_method_declaring_class(jmethodID, *mut jobject);
        78 GetLoadedClasses get_loaded_classes(*mut jint, *mut *mut jobject);
        88 GetVersionNumber get_version_number(*mut jint);
        89 GetCapabilities get_capabilities(*mut Capabilities);
        104 GetStackTrace get_stack_trace(jobject, jint, jint, *mut RawFrame, *mut jint);
        125 GetExtensionEvents get_extension_events(*mut jint, *mut *mut RawExtensionEvent);
        127 DisposeEnvironment dispose_environment();
        131 GetSystemProperty get_system_property(*const c_char, *mut *mut c_char);
        133 GetPhase get_phase(*mut jint);
        140 GetPotentialCapabilities get_potential_capabilities(*mut Capabilities);
        142 AddCapabilities add_capabilities(*const Capabilities);
        147 GetEnvironmentLocalStorage get_environment_local_storage(*mut *mut c_void);
        148 SetEnvironmentLocalStorage set_environment_local_storage(*const c_void);
        156 SetHeapSamplingInterval set_heap_sampling_interval(jint);
    }
    LiveInterface<'_> {
        2 SetEventNotificationMode set_event_notification_mode(jint, jint, jobject), ...;
        12 RunAgentThread run_agent_thread(jobject, AgentThreadMain, *const c_void, jint);
        94 AddModuleReads add_module_reads(jobject, jobject);
        122 SetEventCallbacks set_event_callbacks(*const EventCallbacks, jint);
        123 GenerateEvents generate_events(jint);
        126 SetExtensionEventCallback set_extension_event_callback(jint, ExtensionCallback);
        152 RetransformClasses retransform_classes(jint, *const jobject);
    }
}

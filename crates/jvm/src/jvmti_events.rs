//! JVMTI's events and their callbacks (JVM Tool Interface 11-25, `jvmti.h`).

use std::ffi::{c_char, c_uchar, c_uint, c_void};

use jni::sys::{JNIEnv, jboolean, jint, jlong, jmethodID, jobject};

use super::jvmti_env::RawEnv;

/// `jvmtiEvent`: the events that the agent may enable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum JvmtiEvent {
    /// The VM is initialised; the live phase begins.
    VmInit = 50,
    /// The VM ends.
    VmDeath = 51,
    /// A Java thread starts; sent on that thread.
    ThreadStart = 52,
    /// A Java thread ends; sent on that thread.
    ThreadEnd = 53,
    /// The VM is about to parse the bytes of a class.
    ClassFileLoadHook = 54,
    /// A class is loaded.
    ClassLoad = 55,
    /// A class is prepared: its methods can be queried.
    ClassPrepare = 56,
    /// The VM can run JNI calls; the start phase begins.
    VmStart = 57,
    /// An exception is thrown; sent on the thread that throws it.
    Exception = 58,
    /// A native method is bound to its function. Sent on the calling thread, before the first call.
    NativeMethodBind = 67,
    /// The VM generated code that is not a method.
    DynamicCodeGenerated = 70,
    /// The process received SIGQUIT.
    DataDumpRequest = 71,
    /// A thread begins to wait in `Object.wait`. Sent on that thread.
    MonitorWait = 73,
    /// A thread has finished waiting in `Object.wait`. Sent on that thread.
    MonitorWaited = 74,
    /// A thread begins to wait for a monitor that another thread owns. Sent on the waiting thread.
    MonitorContendedEnter = 75,
    /// A thread has entered the monitor that it waited for. Sent on that thread.
    MonitorContendedEntered = 76,
    /// A stop-the-world pause of a garbage collection begins. Sent at a safepoint.
    GarbageCollectionStart = 81,
    /// A stop-the-world pause of a garbage collection ends.
    GarbageCollectionFinish = 82,
    /// A thread allocated an object that the VM chose as a sample. Sent on that thread.
    SampledObjectAlloc = 86,
    /// A virtual thread ends. Sent on its carrier (21 on).
    VirtualThreadEnd = 88,
}

/// A callback with the environment, the JNI environment and a thread.
pub type ThreadCallback = unsafe extern "system" fn(*mut RawEnv, *mut JNIEnv, jobject);

/// A callback with the environment, the JNI environment, a thread and a class.
pub type ClassCallback = unsafe extern "system" fn(*mut RawEnv, *mut JNIEnv, jobject, jobject);

/// A callback with the environment and the JNI environment.
pub type VmCallback = unsafe extern "system" fn(*mut RawEnv, *mut JNIEnv);

/// A callback that gets only the environment.
pub type PlainCallback = unsafe extern "system" fn(*mut RawEnv);

/// The callback of [`JvmtiEvent::Exception`]: thread, method, bytecode index, exception, catching method and
/// its bytecode index.
pub type ExceptionCallback =
    unsafe extern "system" fn(*mut RawEnv, *mut JNIEnv, jobject, jmethodID, jlong, jobject, jmethodID, jlong);

/// A callback with a thread and an object.
pub type ObjectCallback = unsafe extern "system" fn(*mut RawEnv, *mut JNIEnv, jobject, jobject);

/// The callback of [`JvmtiEvent::MonitorWait`]: thread, object, timeout in milliseconds.
pub type MonitorWaitCallback = unsafe extern "system" fn(*mut RawEnv, *mut JNIEnv, jobject, jobject, jlong);

/// The callback of [`JvmtiEvent::MonitorWaited`]: thread, object, whether the wait timed out.
pub type MonitorWaitedCallback =
    unsafe extern "system" fn(*mut RawEnv, *mut JNIEnv, jobject, jobject, jboolean);

/// The callback of [`JvmtiEvent::SampledObjectAlloc`]: thread, object, the object's class, the object's size
/// in bytes.
pub type ObjectAllocCallback =
    unsafe extern "system" fn(*mut RawEnv, *mut JNIEnv, jobject, jobject, jobject, jlong);

/// The callback of [`JvmtiEvent::DynamicCodeGenerated`]: name, address, length.
pub type DynamicCodeCallback = unsafe extern "system" fn(*mut RawEnv, *const c_char, *const c_void, jint);

/// The callback of [`JvmtiEvent::ClassFileLoadHook`]: the class that is redefined or retransformed, or null;
/// loader, name, protection domain, length and bytes of the class file, and out parameters for length and
/// bytes of a replacement.
pub type ClassFileLoadHookCallback = unsafe extern "system" fn(
    *mut RawEnv,
    *mut JNIEnv,
    jobject,
    jobject,
    *const c_char,
    jobject,
    jint,
    *const c_uchar,
    *mut jint,
    *mut *mut c_uchar,
);

/// The callback of [`JvmtiEvent::NativeMethodBind`]: thread, method, function, and an out parameter for a
/// replacement.
pub type NativeMethodBindCallback =
    unsafe extern "system" fn(*mut RawEnv, *mut JNIEnv, jobject, jmethodID, *mut c_void, *mut *mut c_void);

/// `jvmtiExtensionEvent`: a callback with the JVMTI environment, the JNI environment and a thread. HotSpot
/// declares it with variable arguments, which both ABIs pass like fixed ones.
pub type ExtensionCallback = unsafe extern "system" fn(*mut RawEnv, *mut JNIEnv, jobject);

/// `jvmtiExtensionEventInfo`.
#[derive(Debug)]
#[repr(C)]
pub struct RawExtensionEvent {
    pub(super) index: jint,
    pub(super) id: *mut c_char,
    pub(super) short_description: *mut c_char,
    pub(super) parameter_count: jint,
    pub(super) parameters: *mut RawParameter,
}

/// `jvmtiParamInfo`.
#[derive(Debug)]
#[repr(C)]
pub struct RawParameter {
    pub(super) name: *mut c_char,
    pub(super) kind: c_uint,
    pub(super) base_type: c_uint,
    pub(super) null_ok: jboolean,
}

/// The callback of an event that the agent never enables.
pub type Unused = *const c_void;

/// `jvmtiEventCallbacks`: one pointer for each event from 50 to 88. JVMs before 21 know only the first 37 and
/// ignore the rest.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[expect(missing_docs, reason = "each field is the callback of the event of its name")]
pub struct EventCallbacks {
    pub vm_init: Option<ThreadCallback>,
    pub vm_death: Option<VmCallback>,
    pub thread_start: Option<ThreadCallback>,
    pub thread_end: Option<ThreadCallback>,
    pub class_file_load_hook: Option<ClassFileLoadHookCallback>,
    pub class_load: Option<ClassCallback>,
    pub class_prepare: Option<ClassCallback>,
    pub vm_start: Option<VmCallback>,
    pub exception: Option<ExceptionCallback>,
    pub unused59: [Unused; 8],
    pub native_method_bind: Option<NativeMethodBindCallback>,
    pub unused68: [Unused; 2],
    pub dynamic_code_generated: Option<DynamicCodeCallback>,
    pub data_dump_request: Option<PlainCallback>,
    pub unused72: Unused,
    pub monitor_wait: Option<MonitorWaitCallback>,
    pub monitor_waited: Option<MonitorWaitedCallback>,
    pub monitor_contended_enter: Option<ObjectCallback>,
    pub monitor_contended_entered: Option<ObjectCallback>,
    pub unused77: [Unused; 4],
    pub garbage_collection_start: Option<PlainCallback>,
    pub garbage_collection_finish: Option<PlainCallback>,
    pub unused83: [Unused; 3],
    pub sampled_object_alloc: Option<ObjectAllocCallback>,
    pub unused87: Unused,
    pub virtual_thread_end: Option<ThreadCallback>,
}

impl Default for EventCallbacks {
    fn default() -> Self {
        Self {
            vm_init: None,
            vm_death: None,
            thread_start: None,
            thread_end: None,
            class_file_load_hook: None,
            class_load: None,
            class_prepare: None,
            vm_start: None,
            exception: None,
            unused59: [std::ptr::null(); 8],
            native_method_bind: None,
            unused68: [std::ptr::null(); 2],
            dynamic_code_generated: None,
            data_dump_request: None,
            unused72: std::ptr::null(),
            monitor_wait: None,
            monitor_waited: None,
            monitor_contended_enter: None,
            monitor_contended_entered: None,
            unused77: [std::ptr::null(); 4],
            garbage_collection_start: None,
            garbage_collection_finish: None,
            unused83: [std::ptr::null(); 3],
            sampled_object_alloc: None,
            unused87: std::ptr::null(),
            virtual_thread_end: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn every_callback_is_at_its_events_number() {
        let at = |event: JvmtiEvent| (event as usize - JvmtiEvent::VmInit as usize) * 8;
        assert_eq!(size_of::<EventCallbacks>(), 39 * 8);
        assert_eq!(offset_of!(EventCallbacks, vm_init), at(JvmtiEvent::VmInit));
        assert_eq!(offset_of!(EventCallbacks, vm_death), at(JvmtiEvent::VmDeath));
        assert_eq!(offset_of!(EventCallbacks, thread_start), at(JvmtiEvent::ThreadStart));
        assert_eq!(offset_of!(EventCallbacks, thread_end), at(JvmtiEvent::ThreadEnd));
        assert_eq!(offset_of!(EventCallbacks, class_file_load_hook), at(JvmtiEvent::ClassFileLoadHook));
        assert_eq!(offset_of!(EventCallbacks, class_load), at(JvmtiEvent::ClassLoad));
        assert_eq!(offset_of!(EventCallbacks, class_prepare), at(JvmtiEvent::ClassPrepare));
        assert_eq!(offset_of!(EventCallbacks, vm_start), at(JvmtiEvent::VmStart));
        assert_eq!(offset_of!(EventCallbacks, exception), at(JvmtiEvent::Exception));
        assert_eq!(offset_of!(EventCallbacks, monitor_wait), at(JvmtiEvent::MonitorWait));
        assert_eq!(offset_of!(EventCallbacks, monitor_waited), at(JvmtiEvent::MonitorWaited));
        assert_eq!(
            offset_of!(EventCallbacks, monitor_contended_enter),
            at(JvmtiEvent::MonitorContendedEnter)
        );
        assert_eq!(
            offset_of!(EventCallbacks, monitor_contended_entered),
            at(JvmtiEvent::MonitorContendedEntered)
        );
        assert_eq!(offset_of!(EventCallbacks, sampled_object_alloc), at(JvmtiEvent::SampledObjectAlloc));
        assert_eq!(offset_of!(EventCallbacks, native_method_bind), at(JvmtiEvent::NativeMethodBind));
        assert_eq!(offset_of!(EventCallbacks, dynamic_code_generated), at(JvmtiEvent::DynamicCodeGenerated));
        assert_eq!(offset_of!(EventCallbacks, data_dump_request), at(JvmtiEvent::DataDumpRequest));
        assert_eq!(
            offset_of!(EventCallbacks, garbage_collection_start),
            at(JvmtiEvent::GarbageCollectionStart)
        );
        assert_eq!(
            offset_of!(EventCallbacks, garbage_collection_finish),
            at(JvmtiEvent::GarbageCollectionFinish)
        );
        assert_eq!(offset_of!(EventCallbacks, virtual_thread_end), at(JvmtiEvent::VirtualThreadEnd));
    }
}

//! The stack in which the VM prepares a class.
//!
//! `Class.forName` makes the VM prepare a class, of which JVMTI sends an event on the same thread, within the
//! call. On top of the stack is a native method, and the Java methods that have called it are below.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use jni::sys::{JNIEnv, JavaVM, jobject, jvalue};
use otlpprof_core::thread::current_os_tid;
use otlpprof_core::vm_layout::VmLayout;
use otlpprof_jvm::java_calls::{Java, in_frame};
use otlpprof_jvm::jvmti::Jvmti;
use otlpprof_jvm::jvmti_env::RawEnv;
use otlpprof_jvm::jvmti_error::JvmtiError;
use otlpprof_jvm::jvmti_events::{EventCallbacks, JvmtiEvent};
use parking_lot::Mutex;

use super::comparison::compare;

/// Classes of java.base that programs seldom use. The VM sends no event of a class that it has prepared
/// before.
const CLASSES: [&str; 4] = [
    "java.text.ChoiceFormat",
    "java.util.zip.Adler32",
    "java.io.PipedReader",
    "java.util.PropertyPermission",
];

/// The check that is running: its thread, its layout, and its result, once the event has been sent.
struct Running {
    os_tid: i32,
    layout: VmLayout,
    result: Option<Result<usize, String>>,
}

static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

/// Checks a walk of the current thread. Returns the number of Java frames that the walk and the VM agree on;
/// 0 if the VM describes no stack, because all the classes were in use.
///
/// # Errors
/// The first difference, or the reason why the VM describes no stack.
///
/// # Safety
/// `env` belongs to the current thread, which has no pending exception, and `java_vm` is the VM of this
/// process.
pub(super) unsafe fn check(
    java_vm: *mut JavaVM,
    env: *mut JNIEnv,
    layout: &VmLayout,
) -> Result<usize, String> {
    *RUNNING.lock() = Some(Running { os_tid: current_os_tid(), layout: *layout, result: None });
    // SAFETY: the contract gives the current thread's `env` and its VM.
    let prepared = unsafe { prepare_classes(java_vm, env) };
    let result = RUNNING.lock().take().and_then(|running| running.result);
    match (result, prepared) {
        (Some(Ok(frames)), _) => Ok(frames),
        (Some(Err(reason)), _) => Err(reason),
        (None, Ok(())) => Ok(0),
        (None, Err(error)) => Err(error.to_string()),
    }
}

/// Makes the VM prepare the classes, until an event has been compared.
///
/// # Safety
/// As for [`check`].
unsafe fn prepare_classes(java_vm: *mut JavaVM, env: *mut JNIEnv) -> Result<(), JvmtiError> {
    let callbacks = EventCallbacks { class_prepare: Some(on_class_prepare), ..Default::default() };
    // SAFETY: `java_vm` is the VM of this process. This function has made the environment, and disposes of
    // it.
    unsafe {
        let jvmti = Jvmti::new(java_vm)?;
        let enabled = jvmti
            .set_event_callbacks(&callbacks)
            .and_then(|()| jvmti.set_event_enabled(JvmtiEvent::ClassPrepare, true));
        if enabled.is_ok() {
            for class in CLASSES {
                in_frame(env, |java| load(java, class));
                if RUNNING.lock().as_ref().is_none_or(|running| running.result.is_some()) {
                    break;
                }
            }
        }
        let disabled = jvmti.set_event_enabled(JvmtiEvent::ClassPrepare, false);
        let disposed = jvmti.dispose();
        enabled.and(disabled).and(disposed)
    }
}

/// Calls `Class.forName`. A class that does not exist is no error: another follows.
fn load(java: Java, class: &str) {
    const FOR_NAME: (&CStr, &CStr) = (c"forName", c"(Ljava/lang/String;)Ljava/lang/Class;");
    let name = java.string(class);
    if let (Ok(of_classes), Ok(name)) = (java.class(c"java/lang/Class"), name) {
        // SAFETY: the argument is a string, as the signature has it; both references are live.
        let _ = unsafe { java.call_static(of_classes, FOR_NAME, &[jvalue { l: name }]) };
    }
}

unsafe extern "system" fn on_class_prepare(jvmti: *mut RawEnv, env: *mut JNIEnv, _: jobject, _: jobject) {
    // A panic that reaches a C frame ends the process. Without a result the stack counts as not described.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let mut running = RUNNING.lock();
        let running = running.as_mut().filter(|running| running.os_tid == current_os_tid());
        if let Some(running) = running.filter(|running| running.result.is_none())
            && let Some(jvmti) = NonNull::new(jvmti)
        {
            // SAFETY: JVMTI passes its environment and the current thread's.
            let compared = unsafe { compare(Jvmti::from_raw(jvmti), env, &running.layout, None) };
            running.result = Some(compared.map(|same| same.frames));
        }
    }));
}

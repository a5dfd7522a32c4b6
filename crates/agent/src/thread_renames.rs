//! Follows the names of Java threads while they run: a sample has the name that its thread had at that time.
//!
//! The VM has no event of renaming. `Thread.setName` calls `Thread.setNativeName`, a native method, if a
//! platform thread renames itself, and before 21 also if another thread does. A function of ours takes its
//! place, and calls the VM's function. From then on the thread is sampled as another life (`thread_names`). A
//! virtual thread's samples have the name of its carrier, which is not renamed.

use std::ffi::c_void;
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use jni::sys::{JNIEnv, jobject, jstring};
use otlpprof_jvm::java_threads;
use otlpprof_jvm::live_phase::LivePhaseMutex;
use otlpprof_jvm::native_binding::{Binding, NativeMethod};
use otlpprof_sampling::threads;
use otlpprof_signal::safe_load::ProcessMemory;
use otlpprof_signal::thread_table::record_of_tid;

use super::guarded::guarded;
use super::thread_names::THREAD_NAMES;
use super::thread_names::ThreadLabel;
use super::vm::Vm;

/// `JVM_SetNativeThreadName` (java.base's Thread.c, 11-25).
const SET_NATIVE_NAME: NativeMethod =
    NativeMethod { class: c"java/lang/Thread", name: c"setNativeName", descriptor: c"(Ljava/lang/String;)V" };

type SetNativeName = unsafe extern "system" fn(*mut JNIEnv, jobject, jstring);

/// The most of a name that is read, in UTF-16 units: labels are cut at as many bytes.
const LONGEST: i32 = 1024;

/// The VM's function. Never null once ours has taken its place.
static ORIGINAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// Whether renaming is followed.
static IS_FOLLOWING: AtomicBool = AtomicBool::new(false);
/// The binding of `Thread.setNativeName` that a session has replaced.
static CHANGED: LivePhaseMutex<Option<Binding>> = LivePhaseMutex::new(None);

/// Starts to follow renaming.
pub(super) fn start(vm: &Vm) {
    let Some(env) = vm.attach_as_daemon(c"otlpprof") else { return };
    let Some(mut changed) = CHANGED.lock() else { return };
    THREAD_NAMES.clear();
    // SAFETY: `env` belongs to the current thread.
    match unsafe { take_over(vm, env) } {
        Ok(binding) => *changed = Some(binding),
        Err(reason) => {
            log::debug!("renamed threads are reported by their names at an interval's end: {reason}");
            return;
        }
    }
    IS_FOLLOWING.store(true, Ordering::Release);
    let (Some(names), Some(layout)) = (vm.names(), vm.layout()) else { return };
    // SAFETY: `env` belongs to the current thread.
    let present = unsafe { names.list(vm.jvmti, env, &ProcessMemory, &layout.thread) };
    for thread in present.unwrap_or_default() {
        if let Some(record) = record_of_tid(thread.os_tid) {
            let incarnation = record.java_incarnation.load(Ordering::Relaxed);
            THREAD_NAMES.insert(incarnation, ThreadLabel { name: thread.name, id: thread.thread_id });
        }
    }
}

/// Stops following. In a VM that is ending, [`set_native_name`] stays in its place and only passes calls on.
pub(super) fn stop(vm: &Vm) {
    IS_FOLLOWING.store(false, Ordering::Release);
    let Some(binding) = CHANGED.lock().and_then(|mut changed| changed.take()) else { return };
    let Some(env) = vm.attach_as_daemon(c"otlpprof") else { return };
    // SAFETY: `env` belongs to the current thread; `set_native_name` stays loaded, since calls may still be
    // in it.
    if let Err(error) = unsafe { binding.unbind(env, &ProcessMemory, set_native_name as *mut c_void) } {
        log::debug!("Thread.setNativeName still calls the agent, which passes each call on: {error}");
    }
}

/// Replaces the VM's function by [`set_native_name`].
///
/// # Safety
/// `env` belongs to the current thread, which has no pending exception.
unsafe fn take_over(vm: &Vm, env: *mut JNIEnv) -> Result<Binding, String> {
    let layout = vm.layout().ok_or("this JVM's layout is not known")?;
    // SAFETY: the contract gives the current thread's `env`, and the layout describes this VM.
    let binding = unsafe { Binding::find(env, &ProcessMemory, &layout.method, SET_NATIVE_NAME) };
    let binding = binding.map_err(|error| error.to_string())?;
    ORIGINAL.store(binding.original() as *mut c_void, Ordering::Release);
    // SAFETY: the contract gives the current thread's `env`. The function has this method's signature, and
    // this library stays loaded.
    let bound = unsafe { binding.bind(env, &ProcessMemory, set_native_name as *mut c_void) };
    bound.map_err(|error| error.to_string())?;
    Ok(binding)
}

/// Stores the name of the current thread, which has just started.
///
/// # Safety
/// `env` belongs to the current thread, and `thread` is a live reference to it.
pub(super) unsafe fn thread_started(vm: &Vm, env: *mut JNIEnv, thread: jobject) {
    if !IS_FOLLOWING.load(Ordering::Acquire) {
        return;
    }
    let (Some(names), threads::CurrentThread::Known(record)) = (vm.names(), threads::current()) else {
        return;
    };
    // SAFETY: the contract gives `env` and a live `thread`. The references to group and loader in the VM's
    // answer are local ones, which are released when the event's callback returns.
    let (info, id) = unsafe { (vm.jvmti.thread_info(thread), names.thread_id(env, thread)) };
    if let Ok(info) = info {
        let incarnation = record.java_incarnation.load(Ordering::Relaxed);
        THREAD_NAMES.insert(incarnation, ThreadLabel { name: info.name, id });
    }
}

/// Replaces `Thread.setNativeName`: calls the VM's function, and notes the new name.
unsafe extern "system" fn set_native_name(env: *mut JNIEnv, thread: jobject, name: jstring) {
    let original = ORIGINAL.load(Ordering::Acquire);
    // SAFETY: `ORIGINAL` was set before this function took its place, to the VM's function of this type.
    unsafe { transmute::<*mut c_void, SetNativeName>(original)(env, thread, name) };
    if IS_FOLLOWING.load(Ordering::Acquire) {
        // SAFETY: the VM has called this function with the current thread's environment, and live references.
        guarded("Thread.setNativeName", |vm| unsafe { renamed(vm, env, thread, name) });
    }
}

/// # Safety
/// `env` belongs to the current thread, which has no pending exception. The references are live, to a thread
/// and a string.
unsafe fn renamed(vm: &Vm, env: *mut JNIEnv, thread: jobject, name: jstring) {
    let (Some(names), Some(layout)) = (vm.names(), vm.layout()) else { return };
    // SAFETY: the contract gives the current thread's `env` and a live `thread`.
    let java_thread = unsafe { names.java_thread(env, thread) };
    let os_tid = java_threads::os_tid(&ProcessMemory, &layout.thread, java_thread);
    let Some(record) = os_tid.and_then(record_of_tid) else { return };
    if record.java_thread.load(Ordering::Relaxed) == java_thread {
        // SAFETY: the contract gives the current thread's `env` and live references to a thread and a string.
        let (id, name) = unsafe { (names.thread_id(env, thread), text_of(env, name)) };
        THREAD_NAMES.renamed(record, ThreadLabel { name, id });
    }
}

/// # Safety
/// `env` belongs to the current thread. `string` is a live reference to a string.
unsafe fn text_of(env: *mut JNIEnv, string: jstring) -> String {
    let mut units = [0; LONGEST as usize];
    // SAFETY: the contract gives `env` and a live string; the region is within the string and the buffer.
    let length = unsafe {
        let length = ((**env).v1_1.GetStringLength)(env, string).clamp(0, LONGEST);
        ((**env).v1_2.GetStringRegion)(env, string, 0, length, units.as_mut_ptr());
        length
    };
    String::from_utf16_lossy(&units[..length as usize])
}

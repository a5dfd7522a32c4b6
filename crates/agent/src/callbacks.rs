//! JVMTI's event callbacks. Each stops panics before they reach the VM, and does little itself.

use std::ffi::{c_char, c_void};

use jni::sys::{JNIEnv, jint, jmethodID, jobject};
use otlpprof_context::threads as contexts;
use otlpprof_core::collections::COLLECTIONS;
use otlpprof_jvm::jvmti_env::RawEnv;
use otlpprof_jvm::jvmti_events::EventCallbacks;
use otlpprof_jvm::live_phase;
use otlpprof_jvm::method_ids;
use otlpprof_sampling::threads;

use super::engines;
use super::event_cost::counted;
use super::guarded::guarded;
use super::lifecycle::{self, Agent, VmCallbacks};
use super::mounts::MountCallbacks;
use super::session::ProfilingSession;
use super::thread_names::ThreadLabel;
use super::thread_renames;
use super::virtual_contexts::{self, virtual_thread_end};
use super::vm::STUBS;

/// The callbacks of the agent's JVMTI environment.
pub(super) fn callbacks() -> VmCallbacks {
    let events = engines::add_callbacks(EventCallbacks {
        vm_init: Some(vm_init),
        vm_death: Some(vm_death),
        class_load: Some(class_load),
        class_prepare: Some(class_prepare),
        thread_start: Some(thread_start),
        thread_end: Some(thread_end),
        native_method_bind: Some(native_method_bind),
        dynamic_code_generated: Some(dynamic_code_generated),
        garbage_collection_start: Some(garbage_collection_start),
        garbage_collection_finish: Some(garbage_collection_finish),
        virtual_thread_end: Some(virtual_thread_end),
        ..EventCallbacks::default()
    });
    let mounts = MountCallbacks { mounted: virtual_thread_mounted, unmounts: virtual_thread_unmounts };
    VmCallbacks { events, mounts, redefinition: classes_are_redefined }
}

/// Calls `body` with the agent, as [`guarded`] does.
fn agent_guarded(what: &str, body: impl FnOnce(&'static Agent)) {
    guarded(what, |_| lifecycle::agent().map_or((), body));
}

unsafe extern "system" fn vm_init(_: *mut RawEnv, env: *mut JNIEnv, _thread: jobject) {
    // SAFETY: the VM passes the current thread's environment.
    agent_guarded("VMInit", |agent| unsafe { agent.vm_is_live(env) });
}

unsafe extern "system" fn vm_death(_: *mut RawEnv, env: *mut JNIEnv) {
    agent_guarded("VMDeath", |agent| {
        // This comes first: from here on no thread waits for a thread that may itself wait for this one.
        live_phase::end();
        // SAFETY: the VM passes the current thread's environment.
        unsafe { agent.vm_ends(env) }
    });
}

unsafe extern "system" fn thread_start(_: *mut RawEnv, env: *mut JNIEnv, thread: jobject) {
    agent_guarded("ThreadStart", |agent| {
        if let Some(java_thread) = agent.vm.java_thread(env) {
            threads::java_thread_started(java_thread);
        }
        // SAFETY: the VM passes the current thread's environment and a live reference to its thread object.
        unsafe { thread_renames::thread_started(agent.vm, env, thread) };
    });
}

unsafe extern "system" fn thread_end(_: *mut RawEnv, env: *mut JNIEnv, thread: jobject) {
    agent_guarded("ThreadEnd", |agent| {
        contexts::platform_thread_ended();
        let Some(incarnation) = threads::java_thread_ended() else { return };
        let Some(names) = agent.vm.names() else { return };
        agent.with_session(|session| {
            // SAFETY: the VM passes live references. The references to group and loader in the answer are
            // local ones, which are released when this callback returns.
            let (info, id) = unsafe { (agent.vm.jvmti.thread_info(thread), names.thread_id(env, thread)) };
            if let Ok(info) = info {
                session.thread_ended(incarnation, ThreadLabel { name: info.name, id });
            }
        });
    });
}

/// Does nothing: AsyncGetCallTrace requires this event to be enabled.
unsafe extern "system" fn class_load(_: *mut RawEnv, _: *mut JNIEnv, _thread: jobject, _class: jobject) {}

/// Enabled where AsyncGetCallTrace is used, and where methods are traced.
unsafe extern "system" fn class_prepare(_: *mut RawEnv, _: *mut JNIEnv, _thread: jobject, class: jobject) {
    agent_guarded("ClassPrepare", |agent| {
        // SAFETY: the VM passes a live reference.
        unsafe {
            if method_ids::are_wanted() {
                method_ids::make_ids_of(agent.vm.jvmti, class);
            }
            engines::class_prepared(agent.vm, class);
        }
    });
}

unsafe extern "system" fn native_method_bind(
    _: *mut RawEnv,
    _: *mut JNIEnv,
    _thread: jobject,
    _method: jmethodID,
    _address: *mut c_void,
    _new_address: *mut *mut c_void,
) {
    agent_guarded("NativeMethodBind", |agent| agent.with_session(ProfilingSession::native_method_is_bound));
}

unsafe extern "system" fn dynamic_code_generated(
    _: *mut RawEnv,
    name: *const c_char,
    address: *const c_void,
    length: jint,
) {
    // SAFETY: the VM passes a C string, and the address and length of the code.
    guarded("DynamicCodeGenerated", |_| unsafe { STUBS.insert_event(name, address, length) });
}

unsafe extern "system" fn garbage_collection_start(_: *mut RawEnv) {
    agent_guarded("GarbageCollectionStart", |agent| {
        COLLECTIONS.begin();
        agent.with_draining_session(|session| session.collection_starts());
    });
}

/// Drains before and after classes are redefined: their former methods are freed without an event.
pub(super) fn classes_are_redefined() {
    agent_guarded("RedefineClasses", |agent| {
        agent.with_draining_session(|session| session.collection_starts());
    });
}

unsafe extern "system" fn garbage_collection_finish(_: *mut RawEnv) {
    guarded("GarbageCollectionFinish", |_| {
        COLLECTIONS.end();
        engines::collection_ended();
    });
}

unsafe extern "system" fn virtual_thread_mounted(_: *mut RawEnv, env: *mut JNIEnv, thread: jobject) {
    // SAFETY: the VM passes the current thread's environment and a live reference.
    guarded("VirtualThreadMount", |vm| unsafe {
        counted(|| virtual_contexts::mounted(vm, env, thread));
        engines::virtual_thread_mounted(vm, env, thread);
    });
}

unsafe extern "system" fn virtual_thread_unmounts(_: *mut RawEnv, env: *mut JNIEnv, thread: jobject) {
    // SAFETY: the VM passes the current thread's environment and a live reference.
    guarded("VirtualThreadUnmount", |vm| unsafe {
        counted(|| {
            virtual_contexts::unmounts();
            engines::virtual_thread_unmounts(vm, env, thread);
        });
    });
}

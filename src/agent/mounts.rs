//! Notifies listeners when virtual threads are mounted and unmounted. The VM's events are enabled while there
//! is at least one listener; the agent has one callback for each of the two.
//!
//! The VM sends the mount event when the virtual thread has become the current thread, and the unmount event
//! while it still is, also before it ends (prims/jvmtiThreadState.cpp,
//! `JvmtiVTMSTransitionDisabler::VTMS_vthread_{start,mount,unmount,end}`, JDK 21 and 25). So all code that
//! runs between the two events runs in the virtual thread.

use jni::sys::{JNIEnv, jobject};

use super::callbacks::with_agent;
use super::event_cost::counted;
use super::{engines, virtual_contexts};
use crate::jvm::extension_events::{VIRTUAL_THREAD_MOUNT, VIRTUAL_THREAD_UNMOUNT};
use crate::jvm::jvmti::Jvmti;
use crate::jvm::jvmti_error::JvmtiError;
use crate::jvm::jvmti_table::RawEnv;
use crate::jvm::live_phase::LivePhaseMutex;

/// The number of listeners.
static LISTENERS: LivePhaseMutex<usize> = LivePhaseMutex::new(0);

/// Registers one more listener, and enables the events for the first.
pub(super) fn listen(jvmti: Jvmti) -> Result<(), JvmtiError> {
    let Some(mut listeners) = LISTENERS.lock() else { return Ok(()) };
    if *listeners == 0 {
        // SAFETY: the callbacks are functions of this library, which stays loaded; they catch panics.
        unsafe {
            jvmti.enable_extension_event(VIRTUAL_THREAD_UNMOUNT, unmount)?;
            let mounts = jvmti.enable_extension_event(VIRTUAL_THREAD_MOUNT, mount);
            if mounts.is_err() {
                // Unmount events alone are of no use, and cost time at each unmount.
                let _ = jvmti.disable_extension_event(VIRTUAL_THREAD_UNMOUNT);
            }
            mounts?;
        }
    }
    *listeners += 1;
    Ok(())
}

/// Unregisters one listener, and disables the events after the last.
pub(super) fn unlisten(jvmti: Jvmti) {
    let Some(mut listeners) = LISTENERS.lock() else { return };
    *listeners -= 1;
    if *listeners == 0 {
        for event in [VIRTUAL_THREAD_UNMOUNT, VIRTUAL_THREAD_MOUNT] {
            if let Err(error) = jvmti.disable_extension_event(event) {
                log::debug!("the VM still sends events of virtual threads: {error}");
            }
        }
    }
}

unsafe extern "system" fn mount(_: *mut RawEnv, env: *mut JNIEnv, thread: jobject) {
    // SAFETY: the VM passes the current thread's environment and a live reference.
    with_agent("VirtualThreadMount", |agent| unsafe {
        counted(|| virtual_contexts::mounted(agent, env, thread));
        engines::virtual_thread_mounted(agent.vm, env, thread);
    });
}

unsafe extern "system" fn unmount(_: *mut RawEnv, env: *mut JNIEnv, thread: jobject) {
    // SAFETY: the VM passes the current thread's environment and a live reference.
    with_agent("VirtualThreadUnmount", |agent| unsafe {
        counted(|| {
            virtual_contexts::unmounts();
            engines::virtual_thread_unmounts(agent.vm, env, thread);
        });
    });
}

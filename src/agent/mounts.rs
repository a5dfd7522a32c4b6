//! Who is told when virtual threads are mounted and unmounted. The VM sends it while anybody wants to know, and has one
//! callback of each for the agent.
//!
//! Mount is sent when the virtual thread has become the current thread, unmount while it still is, and unmount also before
//! its end (jvmtiThreadState.cpp, `JvmtiVTMSTransitionDisabler::VTMS_vthread_{start,mount,unmount,end}`, JDK 21 and
//! 25). So whatever runs between the two is the virtual thread's.

use jni::sys::{JNIEnv, jobject};

use super::callbacks::guarded;
use super::event_cost::counted;
use super::{engines, virtual_contexts};
use crate::jvm::extension_events::{VIRTUAL_THREAD_MOUNT, VIRTUAL_THREAD_UNMOUNT};
use crate::jvm::jvmti::Jvmti;
use crate::jvm::jvmti_error::JvmtiError;
use crate::jvm::jvmti_table::RawEnv;
use crate::jvm::live_phase::LivePhaseMutex;

/// The number of those who want to know.
static LISTENERS: LivePhaseMutex<usize> = LivePhaseMutex::new(0);

/// One more wants to know.
pub(super) fn listen(jvmti: Jvmti) -> Result<(), JvmtiError> {
    let Some(mut listeners) = LISTENERS.lock() else { return Ok(()) };
    if *listeners == 0 {
        // SAFETY: functions of this library, which stays loaded; panics are stopped in them.
        unsafe {
            jvmti.enable_extension_event(VIRTUAL_THREAD_UNMOUNT, unmount)?;
            let mounts = jvmti.enable_extension_event(VIRTUAL_THREAD_MOUNT, mount);
            if mounts.is_err() {
                // One without the other is of no use, and costs each virtual thread something.
                let _ = jvmti.disable_extension_event(VIRTUAL_THREAD_UNMOUNT);
            }
            mounts?;
        }
    }
    *listeners += 1;
    Ok(())
}

/// One less wants to know.
pub(super) fn ignore(jvmti: Jvmti) {
    let Some(mut listeners) = LISTENERS.lock() else { return };
    *listeners -= 1;
    if *listeners == 0 {
        for event in [VIRTUAL_THREAD_UNMOUNT, VIRTUAL_THREAD_MOUNT] {
            if let Err(error) = jvmti.disable_extension_event(event) {
                log::debug!("the VM goes on telling of virtual threads: {error}");
            }
        }
    }
}

unsafe extern "system" fn mount(_: *mut RawEnv, env: *mut JNIEnv, thread: jobject) {
    // SAFETY: the VM passes the current thread's environment and a live reference.
    guarded("VirtualThreadMount", |agent| unsafe {
        counted(|| virtual_contexts::mounted(agent, env, thread));
        engines::virtual_thread_mounted(agent, env, thread);
    });
}

unsafe extern "system" fn unmount(_: *mut RawEnv, env: *mut JNIEnv, thread: jobject) {
    // SAFETY: as above.
    guarded("VirtualThreadUnmount", |agent| unsafe {
        counted(|| {
            virtual_contexts::unmounts();
            engines::virtual_thread_unmounts(agent, env, thread);
        });
    });
}

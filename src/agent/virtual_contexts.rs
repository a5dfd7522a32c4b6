//! Virtual threads and the VM: their end, which gives their blocks back, and, where the thread's own state does not tell
//! which one is mounted, the events of mounting and unmounting. All are enabled when the first of them sets a context; before
//! that nothing is paid.
//!
//! What those events say nothing of, the transitions, has no context where they are all that is known.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use jni::sys::{JNIEnv, jobject};

use super::callbacks::guarded;
use super::lifecycle::Agent;
use super::mounts;
use super::vm::Vm;
use crate::context::threads;
use crate::jvm::jvmti::{Capability, Jvmti};
use crate::jvm::jvmti_error::JvmtiError;
use crate::jvm::jvmti_events::Event;
use crate::jvm::jvmti_table::{Capabilities, RawEnv};

/// Whether virtual threads may have contexts from now on. Waits for whoever is just asking the VM.
pub(super) fn enable(vm: &Vm) -> bool {
    static ENABLED: OnceLock<bool> = OnceLock::new();
    *ENABLED.get_or_init(|| {
        try_enable(vm.jvmti, !is_told_by_every_thread(vm))
            .inspect_err(|error| {
                log::warn!("the VM does not tell of virtual threads ({error}): they have no context")
            })
            .is_ok()
    })
}

/// Whether a handler can tell by itself which virtual thread it has interrupted.
fn is_told_by_every_thread(vm: &Vm) -> bool {
    vm.layout().is_some_and(|layout| layout.continuation.is_some_and(|layout| layout.mounted.is_some()))
}

fn try_enable(jvmti: Jvmti, with_mounts: bool) -> Result<(), JvmtiError> {
    jvmti.add_capabilities(Capabilities::default().with(Capability::SupportVirtualThreads))?;
    jvmti.set_event_enabled(Event::VirtualThreadEnd, true)?;
    log::debug!("the VM tells of virtual threads' ends from now on");
    if with_mounts {
        mounts::listen(jvmti)?;
        threads::mounts_are_told();
        ARE_TOLD.store(true, Ordering::Release);
    }
    Ok(())
}

fn id_of(agent: &Agent, env: *mut JNIEnv, thread: jobject) -> Option<i64> {
    // SAFETY: the VM passes the current thread's environment and a live reference.
    agent.vm.names().map(|names| unsafe { names.thread_id(env, thread) })
}

/// Whether the VM's events have the word on who is mounted.
static ARE_TOLD: AtomicBool = AtomicBool::new(false);

/// The virtual thread is the current thread now.
///
/// # Safety
/// `env` is the current thread's, `thread` a live reference to a thread.
pub(super) unsafe fn mounted(agent: &Agent, env: *mut JNIEnv, thread: jobject) {
    if !ARE_TOLD.load(Ordering::Acquire) {
        return;
    }
    if let Some(id) = id_of(agent, env, thread) {
        threads::virtual_thread_mounted(id);
    }
}

/// The virtual thread that is the current thread is about not to be.
pub(super) fn unmounts() {
    if ARE_TOLD.load(Ordering::Acquire) {
        threads::virtual_thread_unmounts();
    }
}

/// For the agent's callbacks.
pub(super) unsafe extern "system" fn virtual_thread_end(_: *mut RawEnv, env: *mut JNIEnv, thread: jobject) {
    guarded("VirtualThreadEnd", |agent| {
        if let Some(id) = id_of(agent, env, thread) {
            threads::virtual_thread_ended(id);
        }
    });
}

//! Enables the VM's events of virtual threads: their end, at which their blocks are released, and their
//! mounts and unmounts. The latter are needed if the thread's own state does not say which virtual thread is
//! mounted, or if outside readers are to find the contexts. The events are enabled when the first virtual
//! thread sets a context; until then they cost nothing.
//!
//! Where these events are the only source, samples taken during the transitions between them have no context.

use std::sync::atomic::{AtomicBool, Ordering};

use jni::sys::{JNIEnv, jobject};
use otlpprof_context::{published_threads, threads};
use otlpprof_jvm::jvmti::{Capability, Jvmti};
use otlpprof_jvm::jvmti_env::RawEnv;
use otlpprof_jvm::jvmti_error::JvmtiError;
use otlpprof_jvm::jvmti_events::JvmtiEvent;
use otlpprof_jvm::jvmti_table::Capabilities;
use otlpprof_jvm::live_phase::LivePhaseMutex;

use super::guarded::guarded;
use super::mounts;
use super::vm::Vm;

/// The state of the VM's events of virtual threads.
struct EventState {
    /// Whether virtual threads may have contexts; `None` if none has set one yet.
    are_enabled: Option<bool>,
    /// Whether outside readers are to find the contexts of virtual threads.
    are_shown: bool,
    /// Whether mount events are enabled for outside readers.
    is_showing: bool,
}

static EVENT_STATE: LivePhaseMutex<EventState> =
    LivePhaseMutex::new(EventState { are_enabled: None, are_shown: false, is_showing: false });

/// Enables contexts of virtual threads. Returns whether they may have contexts from now on. Waits while
/// another thread does so.
pub(super) fn enable(vm: &Vm) -> bool {
    static ARE_ENABLED: AtomicBool = AtomicBool::new(false);
    if ARE_ENABLED.load(Ordering::Acquire) {
        return true;
    }
    let Some(mut asked) = EVENT_STATE.lock() else { return false };
    if let Some(are_enabled) = asked.are_enabled {
        return are_enabled;
    }
    let are_enabled = try_enable(vm.jvmti, !is_in_thread_state(vm))
        .inspect_err(|error| {
            log::warn!("virtual threads have no context: the VM does not send their events ({error})")
        })
        .is_ok();
    asked.are_enabled = Some(are_enabled);
    asked.show(vm.jvmti);
    ARE_ENABLED.store(are_enabled, Ordering::Release);
    are_enabled
}

/// Starts or stops showing the contexts of mounted virtual threads to outside readers.
pub(super) fn show_outside(vm: &Vm, is_wanted: bool) {
    let Some(mut asked) = EVENT_STATE.lock() else { return };
    asked.are_shown = is_wanted;
    asked.show(vm.jvmti);
}

impl EventState {
    fn show(&mut self, jvmti: Jvmti) {
        let is_wanted = self.are_shown && self.are_enabled == Some(true);
        if is_wanted == self.is_showing {
            return;
        }
        if is_wanted {
            if let Err(error) = mounts::listen(jvmti) {
                log::warn!("other processes see no context of virtual threads: {error}");
                return;
            }
            // From now on a virtual thread that is found on a carrier is withdrawn when it leaves the
            // carrier.
            IS_SHOWING.store(true, Ordering::SeqCst);
            published_threads::show_carried(true);
            log::debug!(
                "the VM now sends mount events of virtual threads, for contexts that other processes can read"
            );
        } else {
            published_threads::show_carried(false);
            IS_SHOWING.store(false, Ordering::SeqCst);
            mounts::unlisten(jvmti);
        }
        self.is_showing = is_wanted;
    }
}

/// Whether a handler can find out by itself which virtual thread it has interrupted.
fn is_in_thread_state(vm: &Vm) -> bool {
    vm.layout().is_some_and(|layout| layout.continuation.is_some_and(|layout| layout.mounted.is_some()))
}

fn try_enable(jvmti: Jvmti, with_mounts: bool) -> Result<(), JvmtiError> {
    jvmti.add_capabilities(Capabilities::default().with(Capability::SupportVirtualThreads))?;
    jvmti.set_event_enabled(JvmtiEvent::VirtualThreadEnd, true)?;
    log::debug!("the VM now sends end events of virtual threads");
    if with_mounts {
        mounts::listen(jvmti)?;
        threads::events_report_mounts();
        EVENTS_REPORT_MOUNTS.store(true, Ordering::Release);
    }
    Ok(())
}

fn id_of(vm: &Vm, env: *mut JNIEnv, thread: jobject) -> Option<i64> {
    // SAFETY: the VM passes the current thread's environment and a live reference.
    vm.names().map(|names| unsafe { names.thread_id(env, thread) })
}

/// Whether the VM's events are the source for which virtual thread is mounted.
static EVENTS_REPORT_MOUNTS: AtomicBool = AtomicBool::new(false);

/// Whether outside readers find the mounted virtual thread.
static IS_SHOWING: AtomicBool = AtomicBool::new(false);

fn are_mounts_of_use() -> bool {
    EVENTS_REPORT_MOUNTS.load(Ordering::Acquire) || IS_SHOWING.load(Ordering::Acquire)
}

/// Notes that a virtual thread has become the current thread.
///
/// # Safety
/// `env` belongs to the current thread. `thread` is a live reference to a thread.
pub(super) unsafe fn mounted(vm: &Vm, env: *mut JNIEnv, thread: jobject) {
    if !are_mounts_of_use() {
        return;
    }
    if let Some(id) = id_of(vm, env, thread) {
        threads::virtual_thread_mounted(id);
    }
}

/// Notes that the current virtual thread is about to leave its carrier.
pub(super) fn unmounts() {
    if are_mounts_of_use() {
        threads::virtual_thread_unmounts();
    }
}

/// The callback for VirtualThreadEnd: releases the thread's block.
pub(super) unsafe extern "system" fn virtual_thread_end(_: *mut RawEnv, env: *mut JNIEnv, thread: jobject) {
    guarded("VirtualThreadEnd", |vm| {
        if let Some(id) = id_of(vm, env, thread) {
            threads::virtual_thread_ended(id);
        }
    });
}

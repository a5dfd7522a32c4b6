//! The VM's events of virtual threads that are mounted and unmounted. They are enabled while at least one
//! part of the agent needs them; the agent has one callback for each of the two.
//!
//! The VM sends the mount event when the virtual thread has become the current thread, and the unmount event
//! while it still is, also before it ends (prims/jvmtiThreadState.cpp,
//! `JvmtiVTMSTransitionDisabler::VTMS_vthread_{start,mount,unmount,end}`, JDK 21 and 25). So all code that
//! runs between the two events runs in the virtual thread.

use std::sync::OnceLock;

use otlpprof_jvm::extension_events::{VIRTUAL_THREAD_MOUNT, VIRTUAL_THREAD_UNMOUNT};
use otlpprof_jvm::jvmti::Jvmti;
use otlpprof_jvm::jvmti_error::JvmtiError;
use otlpprof_jvm::jvmti_events::ExtensionCallback;
use otlpprof_jvm::live_phase::LivePhaseMutex;

/// The callbacks of both events. They catch panics.
#[derive(Clone, Copy)]
pub(super) struct MountCallbacks {
    pub(super) mounted: ExtensionCallback,
    pub(super) unmounts: ExtensionCallback,
}

static CALLBACKS: OnceLock<MountCallbacks> = OnceLock::new();

/// The number of listeners.
static LISTENERS: LivePhaseMutex<usize> = LivePhaseMutex::new(0);

/// Registers the callbacks, before the first listener. Later calls have no effect.
pub(super) fn set_callbacks(callbacks: MountCallbacks) {
    let _ = CALLBACKS.set(callbacks);
}

/// Registers one more listener, and enables the events for the first.
pub(super) fn listen(jvmti: Jvmti) -> Result<(), JvmtiError> {
    let (Some(mut listeners), Some(callbacks)) = (LISTENERS.lock(), CALLBACKS.get()) else { return Ok(()) };
    if *listeners == 0 {
        // SAFETY: the callbacks are functions of this library, which stays loaded; they catch panics.
        unsafe {
            jvmti.enable_extension_event(VIRTUAL_THREAD_UNMOUNT, callbacks.unmounts)?;
            let mounts = jvmti.enable_extension_event(VIRTUAL_THREAD_MOUNT, callbacks.mounted);
            if mounts.is_err() {
                // Unmount events without mount events are of no use, and cost time at each unmount.
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

//! The VM's live phase as the agent has it: it ends where VMDeath begins, and nothing that may wait for a
//! thread is asked of the VM from then on.
//!
//! The thread that ends the VM may hold what another thread waits for, and that thread may be what the VM
//! waits for. On 21 `SetEventNotificationMode` waits until no virtual thread is on its way to a carrier or
//! from one (`JvmtiVTMSTransitionDisabler` in prims/jvmtiThreadState.cpp), RetransformClasses waits for other
//! threads' redefinitions and for a safepoint, and Java code waits for whatever it locks. An ending VM sends
//! no more events and needs nothing restored, so that all of them can be left out.
//!
//! The gate is here and nowhere else: [`Jvmti`](super::jvmti::Jvmti) refuses such functions as the VM itself
//! does in the wrong phase, and a [`LivePhaseMutex`], which threads hold while they call such a function, is
//! not waited for.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::jvmti_error::{JvmtiError, WRONG_PHASE};

/// Never cleared: a process has one VM, once.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// Ends the phase; to be called first of all in VMDeath.
pub fn end() {
    HAS_ENDED.store(true, Ordering::SeqCst);
}

/// Whether VMDeath has begun.
pub fn has_ended() -> bool {
    HAS_ENDED.load(Ordering::SeqCst)
}

/// The refusal of a function once the phase has ended.
pub(super) fn check(function: &'static str) -> Result<(), JvmtiError> {
    if has_ended() { Err(JvmtiError { function, code: WRONG_PHASE }) } else { Ok(()) }
}

/// A mutex that is held while the VM is asked for what may wait for a thread.
#[derive(Debug, Default)]
pub struct LivePhaseMutex<T>(Mutex<T>);

impl<T> LivePhaseMutex<T> {
    /// An unlocked one.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Locks it; `None` once VMDeath has begun, since its holder may never come back from the VM.
    pub fn lock(&self) -> Option<MutexGuard<'_, T>> {
        if has_ended() { None } else { Some(self.0.lock()) }
    }
}

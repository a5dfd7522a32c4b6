//! The end of the VM's live phase for the agent: once VMDeath has begun, the agent calls no VM function that
//! may wait for another thread.
//!
//! The thread that ends the VM may hold a lock that another thread waits for, and the VM may wait for that
//! other thread. On 21 and 25 `SetEventNotificationMode` waits until no virtual thread is being mounted or
//! unmounted (`JvmtiVTMSTransitionDisabler` in prims/jvmtiThreadState.cpp). RetransformClasses waits for
//! redefinitions by other threads and for a safepoint, and Java code waits for whatever it locks. An ending
//! VM sends no more events and needs nothing restored, so all these calls can be skipped.
//!
//! This module is the only gate. [`Jvmti`](super::jvmti::Jvmti) refuses such functions with the error that
//! the VM returns in a wrong phase. A [`LivePhaseMutex`], which threads hold while they call such a function,
//! can no longer be locked.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::jvmti_error::{JvmtiError, WRONG_PHASE};

/// Never cleared: a process has only one VM in its life.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// Ends the phase. The VMDeath callback must call this before anything else.
pub fn end() {
    HAS_ENDED.store(true, Ordering::SeqCst);
}

/// Whether VMDeath has begun.
pub fn has_ended() -> bool {
    HAS_ENDED.load(Ordering::SeqCst)
}

/// Refuses `function` if the phase has ended.
pub(super) fn check(function: &'static str) -> Result<(), JvmtiError> {
    if has_ended() { Err(JvmtiError { function, code: WRONG_PHASE }) } else { Ok(()) }
}

/// A mutex that a thread holds while it calls VM functions that may wait for another thread.
#[derive(Debug, Default)]
pub struct LivePhaseMutex<T>(Mutex<T>);

impl<T> LivePhaseMutex<T> {
    /// A new, unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Locks the mutex; `None` once VMDeath has begun, because the holder may never return from the VM.
    pub fn lock(&self) -> Option<MutexGuard<'_, T>> {
        if has_ended() { None } else { Some(self.0.lock()) }
    }
}

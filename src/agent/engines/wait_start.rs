//! When a thread began to wait, and for what: kept in JVMTI's storage of the thread, since a virtual thread may go on on another
//! carrier. A thread waits for one thing at a time.
//!
//! What was noted in an earlier session counts no more: nobody has seen whether that wait has ended.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::core::record::Owner;
use crate::jvm::jvmti::Jvmti;
use crate::signal::sample::monotonic_ns;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitKind {
    /// A monitor, or a notification of one.
    Monitor,
    /// Whatever it is parked for.
    Parking,
}

/// A wait that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) since_ns: u64,
    kind: WaitKind,
    /// Who had then what is waited for.
    pub(super) owner: Owner,
}

/// What is noted before is an earlier session's.
static STARTED_NS: AtomicU64 = AtomicU64::new(0);

/// A session begins.
pub(super) fn begin_session() {
    STARTED_NS.store(monotonic_ns(), Ordering::Relaxed);
}

/// What was noted last of the current thread: its own, since nobody else comes by its storage.
fn noted(jvmti: Jvmti) -> Option<NonNull<Wait>> {
    jvmti.thread_local_storage().ok()?.map(NonNull::cast)
}

fn is_of_session(wait: &Wait) -> bool {
    wait.since_ns >= STARTED_NS.load(Ordering::Relaxed)
}

/// The current thread begins to wait; what it waited for before is forgotten.
pub(super) fn note(jvmti: Jvmti, kind: WaitKind, owner: Owner) {
    let wait = Wait { since_ns: monotonic_ns(), kind, owner };
    if let Some(mut before) = noted(jvmti) {
        // SAFETY: the storage holds what this function has put there, which `take` alone frees.
        unsafe { *before.as_mut() = wait };
        return;
    }
    let wait = NonNull::from(Box::leak(Box::new(wait)));
    if let Err(error) = jvmti.set_thread_local_storage(Some(wait.cast())) {
        log::debug!("the VM does not remember when a thread began to wait: {error}");
        // SAFETY: just made, and nobody else's.
        drop(unsafe { Box::from_raw(wait.as_ptr()) });
    }
}

/// Whether the current thread was seen to begin to wait for this, and not to end.
pub(super) fn is_noted(jvmti: Jvmti, kind: WaitKind) -> bool {
    // SAFETY: as above.
    noted(jvmti)
        .map(|wait| unsafe { *wait.as_ref() })
        .is_some_and(|wait| wait.kind == kind && is_of_session(&wait))
}

/// The wait for this that the current thread was seen to begin; forgets it.
pub(super) fn take(jvmti: Jvmti, kind: WaitKind) -> Option<Wait> {
    let wait = noted(jvmti)?;
    // SAFETY: as above.
    if unsafe { wait.as_ref() }.kind != kind {
        return None;
    }
    jvmti.set_thread_local_storage(None).ok()?;
    // SAFETY: nobody refers to it any more.
    Some(*unsafe { Box::from_raw(wait.as_ptr()) }).filter(is_of_session)
}

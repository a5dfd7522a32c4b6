//! When a thread began to wait, and for what: kept in JVMTI's storage of the thread, since a virtual thread may go on on another
//! carrier. A thread waits for one thing at a time.
//!
//! What was noted in an earlier session counts no more: nobody has seen whether that wait has ended.

use std::ptr::{NonNull, without_provenance_mut};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::jvm::jvmti::Jvmti;
use crate::signal::sample::monotonic_ns;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum WaitKind {
    /// A monitor, or a notification of one.
    Monitor = 0,
    /// Whatever it is parked for.
    Parking = 1,
}

/// The bit of a time that says the kind.
const KIND: u64 = 1;

/// What is noted before is an earlier session's.
static STARTED_NS: AtomicU64 = AtomicU64::new(0);

/// A session begins.
pub(super) fn begin_session() {
    STARTED_NS.store(monotonic_ns(), Ordering::Relaxed);
}

fn noted(jvmti: Jvmti) -> Option<(WaitKind, u64)> {
    let value = jvmti.thread_local_storage().ok()??.as_ptr() as u64;
    let kind = if value & KIND == 0 { WaitKind::Monitor } else { WaitKind::Parking };
    let since_ns = value & !KIND;
    (since_ns >= STARTED_NS.load(Ordering::Relaxed)).then_some((kind, since_ns))
}

/// The current thread begins to wait; what it waited for before is forgotten.
pub(super) fn note(jvmti: Jvmti, kind: WaitKind) {
    let value = monotonic_ns() & !KIND | kind as u64;
    if let Err(error) = jvmti.set_thread_local_storage(NonNull::new(without_provenance_mut(value as usize))) {
        log::debug!("the VM does not remember when a thread began to wait: {error}");
    }
}

/// Whether the current thread was seen to begin to wait for this, and not to end.
pub(super) fn is_noted(jvmti: Jvmti, kind: WaitKind) -> bool {
    noted(jvmti).is_some_and(|(noted, _)| noted == kind)
}

/// When the current thread was seen to begin to wait for this; forgets that.
pub(super) fn take(jvmti: Jvmti, kind: WaitKind) -> Option<u64> {
    let (_, since_ns) = noted(jvmti).filter(|(noted, _)| *noted == kind)?;
    jvmti.set_thread_local_storage(None).ok()?;
    Some(since_ns)
}

//! Since when, and for what, each thread waits. Waits are keyed by Java's thread id, since a virtual thread
//! may continue on another carrier. A thread waits for one thing at a time.
//!
//! JVMTI's thread-local storage is unsuitable. On 21 `SetThreadLocalStorage` waits until no virtual thread is
//! being mounted or unmounted, and prevents all others from starting to, even if a thread sets its own
//! storage (prims/jvmtiEnv.cpp, `JvmtiVTMSTransitionDisabler`; not so on 25). That can deadlock: the virtual
//! thread in transition may wait for a lock that is held by the thread that sets its storage.
//!
//! Waits noted in an earlier session do not count, since their end may have been missed. They are freed when
//! the next session begins, as are the waits of threads whose end of waiting is never seen.

use std::collections::BTreeMap;

use jni::sys::{JNIEnv, jobject};
use otlpprof_core::record::Owner;
use otlpprof_signal::clock::monotonic_ns;
use parking_lot::Mutex;

use crate::vm::Vm;

/// The kind of object that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitKind {
    /// A monitor, or its notification.
    Monitor,
    /// Any object that the thread is parked for.
    Parking,
}

/// A wait that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) since_ns: u64,
    kind: WaitKind,
    /// The owner of the lock when the wait began.
    pub(super) owner: Owner,
}

/// The number of parts of the table, each with its own lock: threads that begin or end a wait at the same
/// time seldom need the same part.
const PARTS: usize = 64;

/// The waits of a session, by thread id.
struct Waits([Mutex<BTreeMap<i64, Wait>>; PARTS]);

static WAITS: Waits = Waits::new();

impl Waits {
    const fn new() -> Self {
        Self([const { Mutex::new(BTreeMap::new()) }; PARTS])
    }

    fn part(&self, thread_id: i64) -> &Mutex<BTreeMap<i64, Wait>> {
        &self.0[thread_id as usize % PARTS]
    }

    fn begin_session(&self) {
        for part in &self.0 {
            part.lock().clear();
        }
    }

    /// Records a wait. It replaces the thread's earlier wait, if there is one.
    fn note(&self, thread_id: i64, wait: Wait) {
        self.part(thread_id).lock().insert(thread_id, wait);
    }

    fn is_noted(&self, thread_id: i64, kind: WaitKind) -> bool {
        self.part(thread_id).lock().get(&thread_id).is_some_and(|wait| wait.kind == kind)
    }

    fn take(&self, thread_id: i64, kind: WaitKind) -> Option<Wait> {
        let mut part = self.part(thread_id).lock();
        part.get(&thread_id).filter(|wait| wait.kind == kind)?;
        part.remove(&thread_id)
    }
}

/// Forgets the waits of the previous session.
pub(super) fn begin_session() {
    WAITS.begin_session();
}

/// # Safety
/// As for [`note`].
unsafe fn id_of(vm: &Vm, env: *mut JNIEnv, thread: jobject) -> Option<i64> {
    // SAFETY: the contract gives the current thread's `env`, without a pending exception, and a live
    // `thread`.
    vm.names().map(|names| unsafe { names.thread_id(env, thread) })
}

/// Records that the current thread begins to wait. An earlier wait of the thread is forgotten.
///
/// # Safety
/// `env` belongs to the current thread, which has no pending exception. `thread` is a live reference to it.
pub(super) unsafe fn note(vm: &Vm, env: *mut JNIEnv, thread: jobject, kind: WaitKind, owner: Owner) {
    let wait = Wait { since_ns: monotonic_ns(), kind, owner };
    // SAFETY: the contract gives the current thread's `env`, without a pending exception, and a live
    // `thread`.
    if let Some(id) = unsafe { id_of(vm, env, thread) } {
        WAITS.note(id, wait);
    }
}

/// Whether a wait of this kind that the current thread began is recorded, and its end is not.
///
/// # Safety
/// As for [`note`].
pub(super) unsafe fn is_noted(vm: &Vm, env: *mut JNIEnv, thread: jobject, kind: WaitKind) -> bool {
    // SAFETY: the contract gives the current thread's `env`, without a pending exception, and a live
    // `thread`.
    unsafe { id_of(vm, env, thread) }.is_some_and(|id| WAITS.is_noted(id, kind))
}

/// Removes and returns the current thread's recorded wait of this kind.
///
/// # Safety
/// As for [`note`].
pub(super) unsafe fn take(vm: &Vm, env: *mut JNIEnv, thread: jobject, kind: WaitKind) -> Option<Wait> {
    // SAFETY: the contract gives the current thread's `env`, without a pending exception, and a live
    // `thread`.
    WAITS.take(unsafe { id_of(vm, env, thread) }?, kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(since_ns: u64) -> Wait {
        Wait { since_ns, kind: WaitKind::Monitor, owner: Owner::NONE }
    }

    #[test]
    fn a_thread_has_one_wait_which_ends_with_its_session() {
        let waits = Waits::new();
        // Both ids are in the same part.
        let [first, second] = [3, 3 + PARTS as i64];
        waits.note(first, wait(1));
        waits.note(second, wait(2));
        waits.note(first, wait(3));
        assert!(waits.is_noted(first, WaitKind::Monitor) && !waits.is_noted(first, WaitKind::Parking));
        assert_eq!(waits.take(first, WaitKind::Parking), None);
        assert_eq!(waits.take(first, WaitKind::Monitor), Some(wait(3)));
        assert_eq!(waits.take(first, WaitKind::Monitor), None);
        assert_eq!(waits.take(second, WaitKind::Monitor), Some(wait(2)));
        waits.note(second, wait(4));
        waits.begin_session();
        assert_eq!(waits.take(second, WaitKind::Monitor), None);
    }
}

//! When a thread began to wait, and for what, by the number that Java gives it: a virtual thread may go on on another carrier. A
//! thread waits for one thing at a time.
//!
//! JVMTI's storage of the thread is no place for it. On 21 `SetThreadLocalStorage` waits until no virtual thread is on its way
//! to a carrier or from one, and keeps all others from setting out, even where a thread asks for its own (prims/jvmtiEnv.cpp,
//! `JvmtiVTMSTransitionDisabler`; not so on 25): one on its way may wait for what the thread has that is about to wait.
//!
//! What was noted in an earlier session counts no more: nobody has seen whether that wait has ended. Its room goes with the
//! session, and so does that of threads that are never seen to end their wait.

use std::collections::BTreeMap;

use jni::sys::{JNIEnv, jobject};
use parking_lot::Mutex;

use crate::agent::lifecycle::Agent;
use crate::core::record::Owner;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) since_ns: u64,
    kind: WaitKind,
    /// Who had then what is waited for.
    pub(super) owner: Owner,
}

/// Threads that begin or end a wait at once seldom ask for the same part.
const PARTS: usize = 64;

/// The waits of a session, by their threads' ids.
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

    /// Puts down a wait, in place of the one that the thread had, if it had one.
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

/// A session begins.
pub(super) fn begin_session() {
    WAITS.begin_session();
}

/// # Safety
/// As for [`note`].
unsafe fn id_of(agent: &Agent, env: *mut JNIEnv, thread: jobject) -> Option<i64> {
    // SAFETY: by the contract.
    agent.vm.names().map(|names| unsafe { names.thread_id(env, thread) })
}

/// The current thread begins to wait; what it waited for before is forgotten.
///
/// # Safety
/// `env` is the current thread's, without a pending exception; `thread` a live reference to it.
pub(super) unsafe fn note(agent: &Agent, env: *mut JNIEnv, thread: jobject, kind: WaitKind, owner: Owner) {
    let wait = Wait { since_ns: monotonic_ns(), kind, owner };
    // SAFETY: by the contract.
    if let Some(id) = unsafe { id_of(agent, env, thread) } {
        WAITS.note(id, wait);
    }
}

/// Whether the current thread was seen to begin to wait for this, and not to end.
///
/// # Safety
/// As for [`note`].
pub(super) unsafe fn is_noted(agent: &Agent, env: *mut JNIEnv, thread: jobject, kind: WaitKind) -> bool {
    // SAFETY: by the contract.
    unsafe { id_of(agent, env, thread) }.is_some_and(|id| WAITS.is_noted(id, kind))
}

/// The wait for this that the current thread was seen to begin; forgets it.
///
/// # Safety
/// As for [`note`].
pub(super) unsafe fn take(agent: &Agent, env: *mut JNIEnv, thread: jobject, kind: WaitKind) -> Option<Wait> {
    // SAFETY: by the contract.
    WAITS.take(unsafe { id_of(agent, env, thread) }?, kind)
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
        // One part has both.
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

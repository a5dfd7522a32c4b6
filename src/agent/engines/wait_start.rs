//! When a thread began to wait, and for what: kept by a number in JVMTI's storage of the thread, since a virtual thread may go
//! on on another carrier. A thread waits for one thing at a time.
//!
//! What was noted in an earlier session counts no more: nobody has seen whether that wait has ended. Its room goes with the
//! session, and so does that of threads that are never seen to end their wait.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use parking_lot::Mutex;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) since_ns: u64,
    kind: WaitKind,
    /// Who had then what is waited for.
    pub(super) owner: Owner,
}

/// The waits of a session.
struct Waits {
    /// The session's number, so that a thread's storage says which it is of.
    session: u32,
    waits: Vec<Wait>,
    /// The places of those that have ended.
    free: Vec<u32>,
}

static WAITS: Mutex<Waits> = Mutex::new(Waits { session: 0, waits: Vec::new(), free: Vec::new() });

/// A thread's place among its session's, as its storage has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    session: u32,
    index: u32,
}

impl Place {
    fn from_storage(stored: NonNull<c_void>) -> Self {
        let stored = stored.addr().get() as u64;
        Self { session: (stored >> 32) as u32, index: stored as u32 }
    }

    /// `None` for none: sessions are numbered from 1.
    fn to_storage(self) -> Option<NonNull<c_void>> {
        let stored = u64::from(self.session) << 32 | u64::from(self.index);
        NonNull::new(ptr::without_provenance_mut(stored as usize))
    }
}

impl Waits {
    fn begin_session(&mut self) {
        self.session = self.session.wrapping_add(1).max(1);
        self.waits = Vec::new();
        self.free = Vec::new();
    }

    /// Puts down a wait, in place of the one that the thread had, if it had one.
    fn note(&mut self, place: Option<Place>, wait: Wait) -> Place {
        let index = match place.filter(|place| place.session == self.session) {
            Some(place) => place.index,
            None => self.free.pop().unwrap_or_else(|| {
                self.waits.push(wait);
                (self.waits.len() - 1) as u32
            }),
        };
        self.waits[index as usize] = wait;
        Place { session: self.session, index }
    }

    fn at(&self, place: Place, kind: WaitKind) -> Option<Wait> {
        let wait = self.waits.get(place.index as usize).filter(|_| place.session == self.session)?;
        (wait.kind == kind).then_some(*wait)
    }

    fn end(&mut self, place: Place) {
        if place.session == self.session {
            self.free.push(place.index);
        }
    }
}

/// A session begins.
pub(super) fn begin_session() {
    WAITS.lock().begin_session();
}

/// The place of the current thread's wait: its own, since nobody else comes by its storage.
fn place(jvmti: Jvmti) -> Option<Place> {
    jvmti.thread_local_storage().ok()?.map(Place::from_storage)
}

/// The current thread begins to wait; what it waited for before is forgotten.
pub(super) fn note(jvmti: Jvmti, kind: WaitKind, owner: Owner) {
    let wait = Wait { since_ns: monotonic_ns(), kind, owner };
    let before = place(jvmti);
    let noted = WAITS.lock().note(before, wait);
    if before == Some(noted) {
        return;
    }
    if let Err(error) = jvmti.set_thread_local_storage(noted.to_storage()) {
        log::debug!("the VM does not remember when a thread began to wait: {error}");
        WAITS.lock().end(noted);
    }
}

/// Whether the current thread was seen to begin to wait for this, and not to end.
pub(super) fn is_noted(jvmti: Jvmti, kind: WaitKind) -> bool {
    place(jvmti).is_some_and(|place| WAITS.lock().at(place, kind).is_some())
}

/// The wait for this that the current thread was seen to begin; forgets it.
pub(super) fn take(jvmti: Jvmti, kind: WaitKind) -> Option<Wait> {
    let place = place(jvmti)?;
    let wait = WAITS.lock().at(place, kind)?;
    jvmti.set_thread_local_storage(None).ok()?;
    WAITS.lock().end(place);
    Some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(since_ns: u64) -> Wait {
        Wait { since_ns, kind: WaitKind::Monitor, owner: Owner::NONE }
    }

    #[test]
    fn places_are_used_again_and_end_with_their_session() {
        let mut waits = Waits { session: u32::MAX, waits: Vec::new(), free: Vec::new() };
        waits.begin_session();
        let first = waits.note(None, wait(1));
        assert_eq!(first.to_storage().map(Place::from_storage), Some(first));
        let second = waits.note(None, wait(2));
        assert_eq!(waits.note(Some(first), wait(3)), first);
        assert_eq!(
            [first, second].map(|place| waits.at(place, WaitKind::Monitor)),
            [Some(wait(3)), Some(wait(2))]
        );
        assert_eq!(waits.at(first, WaitKind::Parking), None);
        waits.end(first);
        assert_eq!(waits.note(None, wait(4)), first);
        waits.begin_session();
        assert_eq!(waits.at(second, WaitKind::Monitor), None);
        // What was noted in the last session is not where this one's first is.
        let third = waits.note(Some(second), wait(5));
        assert_eq!((third.index, waits.waits.len()), (0, 1));
        waits.end(second);
        assert!(waits.free.is_empty());
    }
}

//! The contexts that outside readers find. For a thread that is its own block, or with attributes a record
//! beside it; for a carrier the context of the virtual thread that it carries, or nothing.
//!
//! A reader reads while the thread is stopped, so only changes by other threads can mislead it. Other threads
//! change only where the pointer points, from one representation of the same context to the other. The
//! previous target stays as it is until the thread itself has run again.
//!
//! Attributes are published for a time, a *publication*, which has a number. Setters check the number after
//! each change (`Published::notices` in the dictionary). A setter that finds a number other than its own
//! requests the thread's record, and writes to that record from then on. So a record may be found only while
//! all setters of the thread's context will see that number. [`open`] writes the records of threads that have
//! a context after all threads have passed a barrier, and [`close`] points all threads to their blocks before
//! it withdraws the number. While a record is written here, at most one change by its thread can intervene,
//! since that change ends by waiting for the lock: a block that reads the same twice was not being changed.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use otlpprof_core::context::ContextBlock;
use parking_lot::Mutex;

use super::dictionary::DICTIONARY;
use super::process_barrier;
use super::published_records::{PublishedRecord, Records};
use super::thread_pointer::ThreadPointer;

/// A kernel thread, as outside readers find it.
#[derive(Debug)]
pub(super) struct PublishedThread(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The thread's own pointer; `None` once the thread has ended.
    pointer: Option<ThreadPointer>,
    /// The block of the platform thread.
    own: Option<&'static ContextBlock>,
    /// Whether the thread carries virtual threads. Its own context is then hidden, since it could be mistaken
    /// for theirs.
    is_carrier: bool,
    records: Records,
}

/// All values that were ever made. One whose thread has ended is reused for another thread.
static THREADS: Mutex<Threads> = Mutex::new(Threads { all: Vec::new(), free: Vec::new() });

struct Threads {
    all: Vec<&'static PublishedThread>,
    free: Vec<&'static PublishedThread>,
}

/// The publication in which records may be found; 0 if there is none.
static OPEN: AtomicU32 = AtomicU32::new(0);

/// Whether the contexts of carried virtual threads may be found.
static IS_CARRIED_SHOWN: AtomicBool = AtomicBool::new(false);

/// The number of the current publication; 0 if there is none.
pub(super) fn publication_number() -> u32 {
    OPEN.load(Ordering::SeqCst)
}

/// The context of a virtual thread that readers may find, if carried threads are shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    /// The virtual thread's block.
    pub(super) block: &'static ContextBlock,
    /// The virtual thread's record, and its publication.
    pub(super) record: Option<(&'static PublishedRecord, u32)>,
}

/// Starts to publish attributes.
pub fn open() {
    static LAST: AtomicU32 = AtomicU32::new(0);
    // The number has 31 bits, since one bit of the setters' word is taken.
    let number = (LAST.fetch_add(1, Ordering::Relaxed) + 1) & u32::MAX >> 1;
    let number = number.max(1);
    OPEN.store(number, Ordering::SeqCst);
    DICTIONARY.published().set_publication(number);
    if !process_barrier::pass() {
        // Threads join with their next change.
        return;
    }
    for thread in all() {
        thread.0.lock().write_record(number);
    }
}

/// Ends the publication that [`open`] began.
pub fn close() {
    if OPEN.swap(0, Ordering::SeqCst) == 0 {
        return;
    }
    for thread in all() {
        let state = thread.0.lock();
        match state.is_carrier {
            // The context of a carried thread is found again once the next virtual thread has been mounted.
            true => state.point_to(ptr::null()),
            false => state.point_to_own(),
        }
    }
    DICTIONARY.published().set_publication(0);
}

/// Sets whether carriers show the contexts of the virtual threads that they carry. The callers of
/// `PublishedThread::carries` keep these up to date.
pub fn show_carried(is_shown: bool) {
    IS_CARRIED_SHOWN.store(is_shown, Ordering::SeqCst);
    if !is_shown {
        for thread in all() {
            let state = thread.0.lock();
            if state.is_carrier {
                state.point_to(ptr::null());
            }
        }
    }
}

/// Whether carriers show these contexts.
pub(super) fn is_carried_shown() -> bool {
    IS_CARRIED_SHOWN.load(Ordering::SeqCst)
}

fn all() -> Vec<&'static PublishedThread> {
    THREADS.lock().all.clone()
}

impl PublishedThread {
    /// The value for the current thread, of which nothing is found yet. [`PublishedThread::ends`] must be
    /// called at the thread's end.
    pub(super) fn of_current() -> &'static Self {
        let pointer = Some(ThreadPointer::of_current_thread());
        let mut threads = THREADS.lock();
        if let Some(thread) = threads.free.pop() {
            thread.0.lock().pointer = pointer;
            return thread;
        }
        let state = State { pointer, own: None, is_carrier: false, records: Records::default() };
        let thread = Box::leak(Box::new(Self(Mutex::new(state))));
        threads.all.push(thread);
        thread
    }

    /// Points readers to the current thread's block.
    pub(super) fn begins(&self, own: &'static ContextBlock, is_carrier: bool) {
        let mut state = self.0.lock();
        state.own = Some(own);
        state.is_carrier |= is_carrier;
        state.point_to_own();
    }

    /// Hides the current thread, which is no longer the Java thread that it was.
    pub(super) fn hide(&self) {
        let mut state = self.0.lock();
        state.point_to(ptr::null());
        state.own = None;
        state.is_carrier = false;
        state.records.release_all();
    }

    /// Releases this value at the end of the current thread.
    pub(super) fn ends(&'static self) {
        self.hide();
        self.0.lock().pointer = None;
        THREADS.lock().free.push(self);
    }

    /// Returns the current thread's record, which readers find from now on; `None` if there is no
    /// publication, or if the thread is hidden. The caller holds the record, and passes it as `earlier` with
    /// its next request, after which it must not write to it.
    pub(super) fn record(&self, earlier: *const c_void) -> Option<&'static PublishedRecord> {
        let mut state = self.0.lock();
        state.records.release(earlier);
        let number = publication_number();
        if number == 0 || state.own.is_none() || state.is_carrier {
            // A refused caller writes only to the block, while another may still write a record of the
            // publication that ends.
            state.point_to_own();
            return None;
        }
        let record = state.records.hold(number);
        state.point_to(record.as_ptr());
        Some(record)
    }

    /// Points readers to the context of the virtual thread that the current thread carries; to nothing if it
    /// has none.
    pub(super) fn carries(&self, carried: Option<Carried>) {
        let mut state = self.0.lock();
        state.is_carrier = true;
        let shown = carried.filter(|_| is_carried_shown()).map(|carried| {
            let record = carried.record.filter(|&(_, publication)| publication == publication_number());
            record.map_or(ptr::from_ref(carried.block).cast(), |(record, _)| record.as_ptr())
        });
        state.point_to(shown.unwrap_or(ptr::null()));
    }
}

impl State {
    fn point_to(&self, record: *const c_void) {
        if let Some(pointer) = self.pointer {
            pointer.point_to(record);
        }
    }

    fn point_to_own(&self) {
        if !self.is_carrier {
            self.point_to(self.own.map_or(ptr::null(), |own| ptr::from_ref(own).cast()));
        }
    }

    /// Writes the block's context to the record, unless the thread holds the record already, or is in the
    /// middle of a change.
    fn write_record(&mut self, number: u32) {
        let Some(own) = self.own.filter(|_| !self.is_carrier) else { return };
        let Some(context) = own.read_of_another_thread() else { return };
        let values = DICTIONARY.values();
        let texts = context.slots.map(|slot| values.get(slot));
        // If a value has been reclaimed, the thread is about to notice, and nothing is written.
        let is_whole = context.slots.iter().zip(&texts).all(|(slot, text)| slot.0 == 0 || text.is_some());
        if is_whole && let Some(record) = self.records.unheld(number) {
            record.write(&context, &texts);
            self.point_to(record.as_ptr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While one class loader's setters write a record and another's still write what was there before,
    /// readers find the block.
    #[test]
    fn a_thread_is_found_by_its_record_while_attributes_are_published_and_else_by_its_block() {
        let own: &'static ContextBlock = Box::leak(Box::default());
        let block: *const c_void = ptr::from_ref(own).cast();
        own.clear();
        let thread = PublishedThread::of_current();
        let target = || thread.0.lock().pointer.expect("it has not ended").target();
        thread.begins(own, false);
        assert_eq!(target(), block);

        open();
        let written = target();
        assert_ne!(written, block);
        let record = thread.record(ptr::null()).expect("there is a publication");
        assert_eq!((record.as_ptr(), target()), (written, written));
        close();
        assert_eq!(target(), block);
        assert!(thread.record(written).is_none());

        open();
        assert_eq!(thread.record(ptr::null()).map(PublishedRecord::as_ptr), Some(target()));
        OPEN.store(0, Ordering::SeqCst);
        assert!(thread.record(ptr::null()).is_none());
        assert_eq!(target(), block, "it was refused while the publication ends");
        DICTIONARY.published().set_publication(0);

        thread.carries(Some(Carried { block: own, record: None }));
        assert!(target().is_null(), "nobody asked for what is carried");
        open();
        assert!(thread.record(ptr::null()).is_none() && target().is_null(), "a carrier has none of its own");
        show_carried(true);
        thread.carries(Some(Carried { block: own, record: None }));
        assert_eq!(target(), block);
        thread.carries(Some(Carried { block: own, record: Some((record, publication_number())) }));
        assert_eq!(target(), record.as_ptr());
        close();
        assert!(target().is_null());
        thread.carries(None);
        assert!(target().is_null());
        thread.carries(Some(Carried { block: own, record: None }));
        show_carried(false);
        assert!(target().is_null());
        thread.ends();
    }
}

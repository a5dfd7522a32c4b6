//! Whether the signals of an engine's session make samples, and what takes them.

use std::marker::PhantomData;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// Open while the session lasts. `F` is the function that takes a sample of the current thread.
#[derive(Debug)]
pub(super) struct SampleGate<F> {
    is_open: AtomicBool,
    /// The function, which stays when the gate is closed; null before it was open.
    sample: AtomicPtr<()>,
    of: PhantomData<F>,
}

impl<F: Copy> SampleGate<F> {
    /// Not open yet.
    ///
    /// # Safety
    /// `F` is a type of function pointers.
    pub(super) const unsafe fn closed() -> Self {
        Self { is_open: AtomicBool::new(false), sample: AtomicPtr::new(ptr::null_mut()), of: PhantomData }
    }

    /// From now on signals make samples, by this function.
    pub(super) fn open(&self, sample: F) {
        // SAFETY: `F` is a function pointer, as the maker says: it has the size of this one, which is never dereferenced.
        let sample = unsafe { mem::transmute_copy::<F, *mut ()>(&sample) };
        self.sample.store(sample, Ordering::Release);
        self.is_open.store(true, Ordering::SeqCst);
    }

    /// From now on they are stale. Whoever closes waits then for the handlers that are at work.
    pub(super) fn close(&self) {
        self.is_open.store(false, Ordering::SeqCst);
    }

    /// Whether signals make samples.
    pub(super) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::SeqCst)
    }

    /// The function, if the gate was ever open.
    pub(super) fn sample_fn(&self) -> Option<F> {
        let sample = self.sample.load(Ordering::Acquire);
        // SAFETY: `open` alone stores there, and an `F`.
        (!sample.is_null()).then(|| unsafe { mem::transmute_copy::<*mut (), F>(&sample) })
    }
}

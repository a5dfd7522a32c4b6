//! The gate of an engine's session: whether signals result in samples, and the function that takes them.

use std::marker::PhantomData;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// Open while the session lasts. `F` is the type of the function that takes a sample of the current thread.
#[derive(Debug)]
pub(super) struct SampleGate<F> {
    is_open: AtomicBool,
    /// The function, which stays when the gate is closed. Null until the gate is first opened.
    sample: AtomicPtr<()>,
    of: PhantomData<F>,
}

impl<F: Copy> SampleGate<F> {
    /// Returns a gate that has not been opened.
    ///
    /// # Safety
    /// `F` is a type of function pointers.
    pub(super) const unsafe fn closed() -> Self {
        Self { is_open: AtomicBool::new(false), sample: AtomicPtr::new(ptr::null_mut()), of: PhantomData }
    }

    /// Opens the gate: from now on signals result in samples, taken by `sample`.
    pub(super) fn open(&self, sample: F) {
        // SAFETY: `F` is a function pointer by the contract of `closed`, so it has the size of this pointer,
        // which is never dereferenced.
        let sample = unsafe { mem::transmute_copy::<F, *mut ()>(&sample) };
        self.sample.store(sample, Ordering::Release);
        self.is_open.store(true, Ordering::SeqCst);
    }

    /// Closes the gate: from now on signals are stale. The caller then waits for the handlers that are at
    /// work.
    pub(super) fn close(&self) {
        self.is_open.store(false, Ordering::SeqCst);
    }

    /// Whether signals result in samples.
    pub(super) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::SeqCst)
    }

    /// The function, if the gate was ever opened.
    pub(super) fn sample_fn(&self) -> Option<F> {
        let sample = self.sample.load(Ordering::Acquire);
        // SAFETY: only `open` stores to this field, and it stores an `F`.
        (!sample.is_null()).then(|| unsafe { mem::transmute_copy::<*mut (), F>(&sample) })
    }
}

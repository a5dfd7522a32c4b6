//! Records for outside readers that have attributes: beside the blocks, whose slots only this process can read.
//!
//! A record is what OTEP 4947 describes ("Thread-Local Context Record"): the header of 28 bytes that a block has too, then
//! the attributes' bytes. Java writes it (`PublishedRecord` in java/api), its thread's pointer leads to it, and readers look
//! while the thread is stopped.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

/// A record's bytes: readers need not take more (OTEP 4947, "attrs-data-size").
pub const RECORD_BYTES: usize = 640;

const WORDS: usize = RECORD_BYTES / 8;
const RECORDS_PER_CHUNK: usize = 64;

/// A record.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct PublishedRecord {
    words: [AtomicU64; WORDS],
}

impl PublishedRecord {
    const fn new() -> Self {
        Self { words: [const { AtomicU64::new(0) }; WORDS] }
    }

    /// Where it begins.
    pub fn as_ptr(&self) -> *const c_void {
        ptr::from_ref(self).cast()
    }

    /// For one that no reader finds. What begins with zeros is no record, whatever follows.
    fn clear(&self) {
        self.words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

/// Whether threads that set a context for the first time from now on have a record beside their block.
pub static IS_WANTED: AtomicBool = AtomicBool::new(false);

static FREE: Mutex<Vec<&'static PublishedRecord>> = Mutex::new(Vec::new());

/// An empty record that nobody else has. They are never freed, and no more are made than threads have them at once.
pub(super) fn take() -> &'static PublishedRecord {
    let mut free = FREE.lock();
    if free.is_empty() {
        let chunk: Box<[PublishedRecord]> = (0..RECORDS_PER_CHUNK).map(|_| PublishedRecord::new()).collect();
        free.extend(Box::leak(chunk).iter());
    }
    // SANITY: there are some now.
    free.pop().expect("a record")
}

/// Takes back a record that no reader finds and nobody writes any longer.
pub(super) fn give_back(record: &'static PublishedRecord) {
    record.clear();
    FREE.lock().push(record);
}

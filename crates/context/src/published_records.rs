//! Records with attributes for outside readers. They exist beside the blocks, whose slots only this process
//! can resolve.
//!
//! A record has the form of OTEP 4947 ("Thread-Local Context Record"): the same header of 28 bytes as a
//! block, then the attributes' bytes. Java writes it (`PublishedRecord` in java/api), the thread's pointer
//! points to it, and readers read it while the thread is stopped. The last eight bytes identify the writer;
//! 0: no writer will write to the record again.

use std::ffi::c_void;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use otlpprof_core::context::{ContextRecord, SLOTS};

/// A record's size in bytes: readers need not read more (OTEP 4947, "attrs-data-size").
pub const RECORD_BYTES: usize = 640;

const WORDS: usize = RECORD_BYTES / 8;
const RECORDS_PER_CHUNK: usize = 64;

/// The word with `valid`, the trace flags, the attributes' size and their first bytes.
const STATE_WORD: usize = 3;
/// The offset of the attributes. They end before [`WRITER`].
const ATTRIBUTES: usize = 28;
const WRITER: usize = RECORD_BYTES - 8;

/// A record for outside readers.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct PublishedRecord {
    words: [AtomicU64; WORDS],
}

impl PublishedRecord {
    const fn new() -> Self {
        Self { words: [const { AtomicU64::new(0) }; WORDS] }
    }

    /// The address of the record.
    pub fn as_ptr(&self) -> *const c_void {
        ptr::from_ref(self).cast()
    }

    /// Clears a record that no reader finds. A record that begins with zeros is invalid, whatever follows.
    fn clear(&self) {
        self.words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Writes a context with its values, in the order of their slots, leaving out values for which there is
    /// no room. No other thread may write the record.
    pub(super) fn write(&self, context: &ContextRecord, values: &[Option<&str>; SLOTS]) {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..16].copy_from_slice(&context.trace_id);
        bytes[16..24].copy_from_slice(&context.span_id);
        bytes[24] = 1;
        bytes[25] = context.trace_flags;
        let mut end = ATTRIBUTES;
        for (key, value) in (0..).zip(values) {
            let Some(value) = value.map(str::as_bytes) else { continue };
            let after = end + 2 + value.len();
            if after <= WRITER {
                bytes[end] = key;
                // SANITY: no value is longer than 255 bytes.
                bytes[end + 1] = u8::try_from(value.len()).expect("a short value");
                bytes[end + 2..after].copy_from_slice(value);
                end = after;
            }
        }
        // SANITY: `end` is within the record.
        let size = u16::try_from(end - ATTRIBUTES).expect("a record's size");
        bytes[26..28].copy_from_slice(&size.to_ne_bytes());
        let word_at = |index: usize| {
            // SANITY: the range is eight bytes within the record.
            u64::from_ne_bytes(bytes[8 * index..8 * index + 8].try_into().expect("a word"))
        };
        self.words[STATE_WORD].store(0, Ordering::Release);
        for (index, word) in self.words.iter().enumerate().filter(|&(index, _)| index != STATE_WORD) {
            word.store(word_at(index), Ordering::Release);
        }
        self.words[STATE_WORD].store(word_at(STATE_WORD), Ordering::Release);
    }
}

static FREE: Mutex<Vec<&'static PublishedRecord>> = Mutex::new(Vec::new());

/// Returns an empty record that no thread has. Records are never freed, and reused before new ones are made.
fn take() -> &'static PublishedRecord {
    let mut free = FREE.lock();
    if free.is_empty() {
        let chunk: Box<[PublishedRecord]> = (0..RECORDS_PER_CHUNK).map(|_| PublishedRecord::new()).collect();
        free.extend(Box::leak(chunk).iter());
    }
    // SANITY: the list has just been filled if it was empty.
    free.pop().expect("a record")
}

/// Takes back a record that no reader finds and no thread writes any longer.
fn free_record(record: &'static PublishedRecord) {
    record.clear();
    FREE.lock().push(record);
}

/// The records of a thread, of which readers find one at most. Java's classes, once for each class loader
/// that has its own copy, write the record that they have until they request another. So a record of an
/// earlier publication is kept until then.
#[derive(Debug, Default)]
pub(super) struct Records {
    latest: Option<Record>,
    earlier: Vec<Record>,
}

#[derive(Debug)]
struct Record {
    memory: &'static PublishedRecord,
    publication: u32,
    /// The number of writers that hold the record.
    holders: usize,
}

impl Records {
    /// The latest record, and its publication.
    pub(super) fn latest(&self) -> Option<(&'static PublishedRecord, u32)> {
        self.latest.as_ref().map(|record| (record.memory, record.publication))
    }

    /// Returns the record of a publication for one more writer. It is empty until a writer has written it.
    /// Called by the thread itself.
    pub(super) fn hold(&mut self, publication: u32) -> &'static PublishedRecord {
        let record = self.renew(publication);
        if record.holders == 0 {
            record.memory.clear();
        }
        record.holders += 1;
        record.memory
    }

    /// Returns the record of a publication, to be written once by the caller; `None` if a writer holds it.
    pub(super) fn unheld(&mut self, publication: u32) -> Option<&'static PublishedRecord> {
        let record = self.renew(publication);
        (record.holders == 0).then_some(record.memory)
    }

    fn renew(&mut self, publication: u32) -> &mut Record {
        let mut memory = None;
        if let Some(latest) = self.latest.take_if(|record| record.publication != publication) {
            match latest.holders {
                // A reader of the thread may still read this record, so the thread keeps it.
                0 => memory = Some(latest.memory),
                _ => self.earlier.push(latest),
            }
        }
        self.latest.get_or_insert_with(|| Record {
            memory: memory.unwrap_or_else(take),
            publication,
            holders: 0,
        })
    }

    /// Releases one writer's hold on this record. Called by the thread itself.
    pub(super) fn release(&mut self, record: *const c_void) {
        let is_it = |other: &Record| ptr::eq(other.memory.as_ptr(), record);
        if let Some(held) = self.latest.iter_mut().chain(&mut self.earlier).find(|other| is_it(other)) {
            held.holders = held.holders.saturating_sub(1);
        }
        self.earlier
            .extract_if(.., |record| record.holders == 0)
            .for_each(|record| free_record(record.memory));
    }

    /// Releases all records of a thread that has ended. No reader finds them, and no thread writes them any
    /// longer.
    pub(super) fn release_all(&mut self) {
        let records = mem::take(self);
        records.latest.into_iter().chain(records.earlier).for_each(|record| free_record(record.memory));
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_core::context::ValueRef;

    use super::*;

    fn bytes(record: &PublishedRecord) -> Vec<u8> {
        record.words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect()
    }

    #[test]
    fn a_record_has_as_many_values_as_fit_in_the_order_of_the_slots() {
        let context = ContextRecord {
            trace_id: [0xa1; 16],
            span_id: [0xb2; 8],
            valid: 1,
            trace_flags: 3,
            attributes_size: 0,
            slots: [ValueRef::NONE; SLOTS],
        };
        let long = "x".repeat(255);
        let values =
            [None, Some("one"), Some(long.as_str()), Some(&long), Some(&long), Some(""), None, None, None];
        let record = PublishedRecord::new();
        record.write(&context, &values);
        let bytes = bytes(&record);
        assert_eq!(
            (&bytes[..16], &bytes[16..24], &bytes[24..26]),
            (&[0xa1; 16][..], &[0xb2; 8][..], &[1, 3][..])
        );
        let size = usize::from(u16::from_ne_bytes([bytes[26], bytes[27]]));
        let expected =
            [b"\x01\x03one", &[2, 255][..], long.as_bytes(), &[3, 255], long.as_bytes(), &[5, 0]].concat();
        assert_eq!((size, &bytes[28..28 + size]), (expected.len(), &expected[..]));
        assert_eq!(bytes[WRITER..], [0; 8]);
    }

    #[test]
    fn a_record_has_no_new_owner_until_its_writer_releases_it() {
        let mut records = Records::default();
        let first = records.hold(1);
        assert!(ptr::eq(first, records.hold(1)), "of another class loader's");
        assert!(records.unheld(1).is_none());
        let second = records.unheld(2).unwrap();
        assert!(!ptr::eq(first, second) && ptr::eq(second, records.unheld(2).unwrap()));
        assert!(ptr::eq(second, records.unheld(3).unwrap()), "nobody writes it");
        assert!(ptr::eq(second, records.hold(3)));
        assert!(records.latest().is_some_and(|(record, number)| ptr::eq(second, record) && number == 3));
        records.release(first.as_ptr());
        assert_eq!(records.earlier.len(), 1, "one of two still writes it");
        records.release(ptr::null());
        assert_eq!(records.earlier.len(), 1);
        records.release(first.as_ptr());
        assert!(records.earlier.is_empty());
        records.release(second.as_ptr());
        assert!(ptr::eq(second, records.hold(4)));
        records.release_all();
        assert!(records.latest().is_none());
    }
}

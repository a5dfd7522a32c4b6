//! Records for outside readers that have attributes: beside the blocks, whose slots only this process can read.
//!
//! A record is what OTEP 4947 describes ("Thread-Local Context Record"): the header of 28 bytes that a block has too, then
//! the attributes' bytes. Java writes it (`PublishedRecord` in java/api), its thread's pointer leads to it, and readers look
//! while the thread is stopped. Its last eight bytes say who wrote it, 0 for nobody who goes on writing.

use std::ffi::c_void;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::core::context::{ContextRecord, SLOTS};

/// A record's bytes: readers need not take more (OTEP 4947, "attrs-data-size").
pub const RECORD_BYTES: usize = 640;

const WORDS: usize = RECORD_BYTES / 8;
const RECORDS_PER_CHUNK: usize = 64;

/// The word with `valid`, trace flags, the attributes' size and their first bytes.
const STATE_WORD: usize = 3;
/// Where the attributes begin, and how far they go.
const ATTRIBUTES: usize = 28;
const WRITER: usize = RECORD_BYTES - 8;

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

    /// Writes a context with its values, in the order of their slots as far as there is room. For one that nobody else writes.
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
        // SANITY: within the record.
        let size = u16::try_from(end - ATTRIBUTES).expect("a record's size");
        bytes[26..28].copy_from_slice(&size.to_ne_bytes());
        let word_at = |index: usize| {
            // SANITY: eight bytes within the record.
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

/// An empty record that nobody else has. They are never freed, and no more are made than are in use at once.
fn take() -> &'static PublishedRecord {
    let mut free = FREE.lock();
    if free.is_empty() {
        let chunk: Box<[PublishedRecord]> = (0..RECORDS_PER_CHUNK).map(|_| PublishedRecord::new()).collect();
        free.extend(Box::leak(chunk).iter());
    }
    // SANITY: there are some now.
    free.pop().expect("a record")
}

/// Takes back a record that no reader finds and nobody writes any longer.
fn give_back(record: &'static PublishedRecord) {
    record.clear();
    FREE.lock().push(record);
}

/// A thread's records, of which readers find one at most. Java's classes, of each class loader that has its own, write the one
/// that they have until they come for another: so one of an earlier publication is kept until then.
#[derive(Debug, Default)]
pub(super) struct Records {
    latest: Option<Record>,
    earlier: Vec<Record>,
}

#[derive(Debug)]
struct Record {
    memory: &'static PublishedRecord,
    publication: u32,
    /// How many write it.
    holders: usize,
}

impl Records {
    /// The latest, and of which publication it is.
    pub(super) fn latest(&self) -> Option<(&'static PublishedRecord, u32)> {
        self.latest.as_ref().map(|record| (record.memory, record.publication))
    }

    /// The record of a publication, for one more who writes it; empty until one has written it. For the thread itself.
    pub(super) fn hold(&mut self, publication: u32) -> &'static PublishedRecord {
        let record = self.renew(publication);
        if record.holders == 0 {
            record.memory.clear();
        }
        record.holders += 1;
        record.memory
    }

    /// The same for one who writes it once; `None` if another writes it.
    pub(super) fn unheld(&mut self, publication: u32) -> Option<&'static PublishedRecord> {
        let record = self.renew(publication);
        (record.holders == 0).then_some(record.memory)
    }

    fn renew(&mut self, publication: u32) -> &mut Record {
        let mut memory = None;
        if let Some(latest) = self.latest.take_if(|record| record.publication != publication) {
            match latest.holders {
                // Who looks at the thread may still look at it: it stays the thread's.
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

    /// One who wrote this record will not write to it any longer. For the thread itself.
    pub(super) fn release(&mut self, record: *const c_void) {
        let is_it = |other: &Record| ptr::eq(other.memory.as_ptr(), record);
        if let Some(held) = self.latest.iter_mut().chain(&mut self.earlier).find(|other| is_it(other)) {
            held.holders = held.holders.saturating_sub(1);
        }
        self.earlier.extract_if(.., |record| record.holders == 0).for_each(|record| give_back(record.memory));
    }

    /// The thread is over: no reader finds any, and nobody writes any longer.
    pub(super) fn give_back(&mut self) {
        let records = mem::take(self);
        records.latest.into_iter().chain(records.earlier).for_each(|record| give_back(record.memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::context::ValueRef;

    fn bytes(record: &PublishedRecord) -> Vec<u8> {
        record.words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect()
    }

    #[test]
    fn a_record_has_what_it_has_room_for_in_the_order_of_the_slots() {
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
    fn a_record_that_is_still_written_is_nobodys_until_it_is_let_go() {
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
        records.give_back();
        assert!(records.latest().is_none());
    }
}

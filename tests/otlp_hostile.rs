//! Files of profiles crafted to cost more than they should: the memory for finding payloads is bounded.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use otlpprof_otlp::found_payloads::{PayloadError, PayloadPlace};
use otlpprof_otlp::payload::{copy_payload, find_payloads};
use otlpprof_testkit::peak_memory::{Counting, MIB, SERIAL, peak_of};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A file that is generated while it is read: `head`, then `unit` repeated, then `tail`.
struct Repeated<'a> {
    head: &'a [u8],
    unit: &'a [u8],
    times: u64,
    tail: &'a [u8],
    at: u64,
}

impl Repeated<'_> {
    fn length(&self) -> u64 {
        (self.head.len() + self.tail.len()) as u64 + self.unit.len() as u64 * self.times
    }

    fn byte(&self, at: u64) -> Option<u8> {
        let Some(at) = at.checked_sub(self.head.len() as u64) else {
            return Some(self.head[at as usize]);
        };
        match at.checked_sub(self.unit.len() as u64 * self.times) {
            Some(at) => self.tail.get(at as usize).copied(),
            None => Some(self.unit[(at % self.unit.len() as u64) as usize]),
        }
    }
}

impl Read for Repeated<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        while let Some(byte) = self.byte(self.at).filter(|_| count < into.len()) {
            into[count] = byte;
            (count, self.at) = (count + 1, self.at + 1);
        }
        Ok(count)
    }
}

impl Seek for Repeated<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = to.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// The number of repeated bytes.
const LENGTH: u64 = 16 * MIB as u64;

/// The payloads found in a file, and the peak of memory in bytes for finding and copying them.
fn taken(head: &[u8], unit: &[u8], tail: &[u8]) -> (usize, Result<Vec<PayloadPlace>, PayloadError>) {
    let times = LENGTH / unit.len() as u64;
    let mut file = BufReader::new(Repeated { head, unit, times, tail, at: 0 });
    peak_of(|| {
        let places = find_payloads(&mut file)?;
        places.iter().try_for_each(|place| copy_payload(&mut file, place, &mut io::sink()))?;
        Ok(places)
    })
}

const PROFILES: &[u8] = br#"{"resourceProfiles":[{"scopeProfiles":[{"profiles":["#;
const END: &[u8] = b"]}]}]}";

/// The text of one profile with these keys, before and after the repeated part.
fn profile(before: &str, after: &str) -> [Vec<u8>; 2] {
    [[PROFILES, b"{", before.as_bytes()].concat(), [after.as_bytes(), b"}", END].concat()]
}

#[test]
fn json_of_any_length_and_depth_is_looked_through_in_little_memory() {
    let _serial = SERIAL.lock();
    let [deep, deep_end] = profile(r#""x":"#, "");
    let [key, key_end] = profile("\"", "\":1");
    let [text, text_end] = profile(r#""x":""#, "\"");
    let [format, format_end] = profile(r#""originalPayload":"AA==","originalPayloadFormat":""#, "\"");
    let [payload, payload_end] = profile(r#""originalPayload":""#, "\"");
    let [number, number_end] = profile(r#""x":1"#, "");
    let [others, others_end] = profile(r#""x":["#, "0]");
    let [again, again_end] = profile(r#""y":0"#, "");
    let [empty, empty_end] = profile("", "}, {");
    for (what, head, unit, tail, payloads) in [
        ("levels of arrays", &deep, &b"["[..], &deep_end, None),
        ("levels of objects", &deep, br#"{"x":"#, &deep_end, None),
        ("a key", &key, b"k", &key_end, Some(0)),
        ("a text", &text, b"k", &text_end, Some(0)),
        ("escapes", &text, br"\u006b", &text_end, Some(0)),
        ("a format", &format, b"k", &format_end, Some(1)),
        ("a payload", &payload, b"Rkx\\/", &payload_end, Some(1)),
        ("digits", &number, b"1", &number_end, Some(0)),
        ("space", &number, b" ", &number_end, Some(0)),
        ("payloads elsewhere", &others, br#"{"originalPayload":"AA=="},"#, &others_end, Some(0)),
        ("payloads of one profile", &again, br#","originalPayload":"AA==""#, &again_end, Some(1)),
        ("empty payloads", &empty, br#""originalPayload":""},{"#, &empty_end, Some(0)),
        ("payloads", &empty, br#""originalPayload":"AA=="},{"#, &empty_end, None),
    ] {
        let (peak, found) = taken(head, unit, tail);
        assert_eq!(found.map(|found| found.len()).ok(), payloads, "{what}");
        // Each payload has a record, up to the maximum number of payloads.
        assert!(peak < if what == "payloads" { 16 * MIB } else { MIB / 2 }, "{what}: {peak} bytes");
    }
    let (peak, found) = taken(b"{}", b"\n{}", b"");
    assert!(found.is_ok_and(|found| found.is_empty()) && peak < MIB / 2, "documents: {peak} bytes");
}

/// Regression: a record was kept for each message and each payload, however many and small they were.
#[test]
fn messages_and_payloads_of_few_bytes_take_little_memory_however_many_they_are() {
    let _serial = SERIAL.lock();
    let (peak, found) = taken(b"", &[0; 4], b"");
    assert!(found.is_ok_and(|found| found.is_empty()) && peak < MIB / 2, "{peak} bytes");
    // Each message contains resource_profiles, scope_profiles, profiles and original_payload, one within the
    // other.
    let message = [&[0, 0, 0, 9][..], &[0x0a, 7, 0x12, 5, 0x12, 3, 0x52, 1, 7]].concat();
    let (peak, found) = taken(b"", &message, b"");
    assert!(found.unwrap_err().to_string().contains("payloads") && peak < 16 * MIB, "{peak} bytes");
}

//! Rings as the kernel writes them, and malformed rings.

use otlpprof_core::memory::RecordedMemory;
use otlpprof_core::record::{FrameKind, FrameRecord};
use proptest::prelude::*;

use super::*;

const PAGE: u64 = 4096;
const RING: RingPlace = RingPlace { address: 0x7000_0000, page_bytes: PAGE };
const SP: u64 = 0x7ffe_0000;
const PC: u64 = 0x40_1000;
const USER_MARK: u64 = (-512_i64).cast_unsigned();

/// Returns a sample of a thread that was at `pc`, with these entries of its call chain.
fn sample(pc: u64, entries: &[u64]) -> Vec<u64> {
    let words = [&[entries.len() as u64][..], entries, &[REGISTERS_OF_64_BITS, SP, pc]].concat();
    record(SAMPLE, &words)
}

fn record(kind: u32, words: &[u64]) -> Vec<u64> {
    let bytes = 8 * (words.len() as u64 + 1);
    [&[u64::from(kind) | bytes << 48], words].concat()
}

/// Returns a ring into which these words were written after `tail` bytes had been written and read.
fn ring(tail: u64, words: &[u64]) -> RecordedMemory {
    let mut data = vec![0_u64; PAGE as usize / 8];
    for (at, word) in (tail / 8..).zip(words) {
        data[at as usize % (PAGE as usize / 8)] = *word;
    }
    let mut memory = RecordedMemory::default();
    memory
        .put_u64(RING.address + DATA_HEAD, tail + 8 * words.len() as u64)
        .put_u64(RING.address + DATA_TAIL, tail)
        .put(RING.address + PAGE, data.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>());
    memory
}

fn registers() -> Registers {
    let mut registers = Registers { pc: PC, ..Registers::default() };
    let number = if cfg!(target_arch = "x86_64") { 7 } else { 31 };
    registers.general[number] = SP;
    registers
}

/// Returns the addresses of the frames that are put into the sink.
fn frames(memory: &RecordedMemory, random: u64) -> Vec<u64> {
    let empty = FrameRecord { value: 0, aux: 0, kind: FrameKind::Truncated, level: 0, reserved: 0 };
    let mut records = [empty; 200];
    let mut sink = FrameSink::new(&mut records, None);
    put(memory, RING, &registers(), random, &mut sink);
    let len = sink.len();
    assert!(records[..len].iter().all(|frame| frame.kind == FrameKind::Kernel));
    records[..len].iter().map(|frame| frame.value).collect()
}

const LEAF: u64 = 0xffff_ffff_8100_1000;
const CALLER: u64 = 0xffff_ffff_8100_2000;

#[test]
fn callers_are_looked_up_by_their_calls_and_marks_are_no_frames() {
    let memory = ring(0, &sample(PC, &[KERNEL_MARK, LEAF, CALLER, USER_MARK, 0x1234]));
    assert_eq!(frames(&memory, 0), [LEAF, CALLER - 1]);
    // A thread that was not in the kernel: no frame is put.
    assert!(frames(&ring(0, &sample(PC, &[])), 0).is_empty());
    // A system call that is restarted.
    let after_call = PC + Registers::SYSTEM_CALL_BYTES;
    assert_eq!(frames(&ring(0, &sample(after_call, &[KERNEL_MARK, LEAF])), 0), [LEAF]);
}

#[test]
fn a_record_lies_across_the_rings_end() {
    for words_before_end in 0..8 {
        let tail = 5 * PAGE - 8 * words_before_end;
        let memory = ring(tail, &sample(PC, &[KERNEL_MARK, LEAF, CALLER]));
        assert_eq!(frames(&memory, 0), [LEAF, CALLER - 1], "{words_before_end}");
    }
}

#[test]
fn of_several_stacks_each_is_chosen_and_none_of_elsewhere() {
    let other_place = record(SAMPLE, &[1, CALLER, REGISTERS_OF_64_BITS, SP + 16, PC]);
    let words = [
        sample(PC, &[KERNEL_MARK, LEAF]),
        record(LOST, &[1, 3]),
        sample(PC + 64, &[KERNEL_MARK, CALLER]),
        other_place,
        record(77, &[]),
        sample(PC, &[KERNEL_MARK, LEAF + 64]),
    ]
    .concat();
    let memory = ring(PAGE - 24, &words);
    let lost = COUNTS.records_lost.load(Ordering::Relaxed);
    let chosen: Vec<_> = (0..4).map(|random| frames(&memory, random)).collect();
    assert_eq!(chosen, [[LEAF], [LEAF + 64], [LEAF], [LEAF + 64]]);
    assert!(COUNTS.records_lost.load(Ordering::Relaxed) >= lost + 4 * 3);
    let elsewhere = COUNTS.elsewhere.load(Ordering::Relaxed);
    assert!(frames(&ring(0, &sample(PC + 64, &[KERNEL_MARK, LEAF])), 0).is_empty());
    assert!(COUNTS.elsewhere.load(Ordering::Relaxed) > elsewhere);
}

/// No length is trusted, whether of a record, of its chain, or of the unread part; nor is the position of the
/// unread part.
#[test]
fn a_malformed_record_ends_the_ring() {
    let whole = sample(PC, &[KERNEL_MARK, LEAF]);
    for (at, word) in [
        (0, u64::from(SAMPLE)),
        (0, u64::from(SAMPLE) | 4 << 48),
        (0, u64::from(SAMPLE) | 9 << 48),
        (0, u64::from(SAMPLE) | 0xfff8 << 48),
        (1, 3),
        (1, 1),
        (1, u64::MAX),
        (1, u64::MAX - 3),
        (1, u64::MAX / 8),
        (4, 1),
    ] {
        let mut words = whole.clone();
        words[at] = word;
        assert!(frames(&ring(0, &words), 0).is_empty(), "{at}: {word:#x}");
    }
    let more_than_the_ring = vec![0; PAGE as usize / 8 + 1];
    assert!(frames(&ring(0, &more_than_the_ring), 0).is_empty());
    assert!(frames(&RecordedMemory::default(), 0).is_empty());
    for tail in [1, u64::MAX - 3] {
        let mut memory = RecordedMemory::default();
        memory.put_u64(RING.address + DATA_HEAD, 64).put_u64(RING.address + DATA_TAIL, tail);
        assert!(frames(&memory, 0).is_empty());
    }
}

#[test]
fn a_chain_has_no_more_frames_than_chains_may_have() {
    let entries: Vec<u64> = std::iter::once(KERNEL_MARK).chain((0..400).map(|i| LEAF + 16 * i)).collect();
    let frames = frames(&ring(0, &sample(PC, &entries)), 0);
    assert_eq!(frames.len() as u64, MOST_FRAMES);
}

#[test]
fn the_space_of_read_records_is_returned_to_the_kernel() {
    let mut pages = vec![0_u64; 2 * PAGE as usize / 8];
    pages[DATA_HEAD as usize / 8] = 4711 * 8;
    let ring = RingPlace { address: pages.as_mut_ptr() as u64, page_bytes: PAGE };
    // SAFETY: the pages exist, and nothing else refers to them.
    unsafe { empty(ring) };
    assert_eq!(std::hint::black_box(&pages)[DATA_TAIL as usize / 8], 4711 * 8);
}

proptest! {
    #[test]
    fn any_words_are_read_in_bounds(
        tail in (0..4 * PAGE / 8).prop_map(|words| 8 * words),
        words in prop::collection::vec(
            prop_oneof![
                any::<u64>(),
                0..20_u64,
                Just(record(SAMPLE, &[0; 6])[0]),
                Just(SP),
                Just(PC),
                Just(KERNEL_MARK),
            ],
            0..100,
        ),
        random: u64,
    ) {
        let found = frames(&ring(tail, &words), random);
        prop_assert!(found.len() as u64 <= MOST_FRAMES);
    }
}

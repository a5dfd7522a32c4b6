//! Kernel stacks: reads the kernel's own frames from the records that the kernel has written for a thread's
//! perf event.
//!
//! A signal reports an event some time after it, when the thread is about to return to the program, and one
//! signal can report several events. Each record says where in the program the thread was (its program
//! counter and stack pointer). Records of other places are no part of the stack that is about to be walked.
//! Of the remaining records one is chosen at random: over many samples each place in the kernel gets its
//! share.
//!
//! The kernel does not overwrite a record that has not been read, so no record changes while it is being
//! read. Records that do not fit are dropped, and a later record gives their number. The ring is parsed as
//! untrusted input nevertheless.
//!
//! Layout: include/uapi/linux/perf_event.h (`struct perf_event_mmap_page`, `enum perf_event_type`),
//! arch/*/include/uapi/asm/ perf_regs.h. Unchanged since Linux 3.7.

use std::sync::atomic::{AtomicU64, Ordering};

use otlpprof_core::counts::counts;
use otlpprof_core::event_ring::RingPlace;
use otlpprof_core::memory::Memory;

use super::walk::registers::Registers;
use super::walk::sink::FrameSink;

/// `perf_event_mmap_page.data_head`: the number of bytes that the kernel has written since the ring was made.
pub const DATA_HEAD: u64 = 0x400;
/// `perf_event_mmap_page.data_tail`: the number of these bytes that have been read.
pub const DATA_TAIL: u64 = 0x408;
/// `PERF_RECORD_LOST`.
const LOST: u32 = 2;
/// `PERF_RECORD_SAMPLE`.
const SAMPLE: u32 = 9;
/// `PERF_SAMPLE_REGS_ABI_64`.
const REGISTERS_OF_64_BITS: u64 = 2;
/// `PERF_CONTEXT_MAX`: an entry of a call chain from this value on is a mark, which gives the kind of code of
/// the entries after it.
const FIRST_MARK: u64 = (-4095_i64).cast_unsigned();
/// `PERF_CONTEXT_KERNEL`.
const KERNEL_MARK: u64 = (-128_i64).cast_unsigned();
/// The largest number of frames in a kernel stack: sysctl kernel.perf_event_max_stack is 127 unless it is set
/// higher.
const MOST_FRAMES: u64 = 127;
/// The size of a record's header, in bytes. Record sizes are multiples of it.
const WORD: u64 = 8;

counts! {
    /// Counts of kernel stacks since the process began.
    KernelStackCounts {
        /// Samples with kernel frames.
        stacks,
        /// Samples for which the kernel had written records of other places of the program only.
        elsewhere,
        /// Records that did not fit into rings.
        records_lost,
        /// Rings that contained something other than records.
        malformed,
        /// Threads for which no ring could be mapped.
        threads_without,
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// Puts the kernel frames of a thread that was interrupted with these registers into the sink, leaf first.
/// `random` chooses among several stacks.
#[inline(never)] // Not inlined: its part of the stack, which may be small, is free before the walk.
pub fn put<M: Memory>(
    memory: &M,
    ring: RingPlace,
    registers: &Registers,
    random: u64,
    sink: &mut FrameSink<'_>,
) {
    let mut records = Records::unread(memory, ring);
    let (mut here, mut lost, mut is_written) = (0_u64, 0_u64, false);
    for record in &mut records {
        is_written |= record.kind == SAMPLE;
        lost = lost.wrapping_add(record.lost());
        here = here.wrapping_add(u64::from(record.stack_at(registers).is_some()));
    }
    add(&COUNTS.records_lost, lost);
    add(&COUNTS.malformed, u64::from(records.is_malformed));
    let Some(chosen) = random.checked_rem(here) else {
        return add(&COUNTS.elsewhere, u64::from(is_written));
    };
    let before = sink.len();
    let mut stacks = Records::unread(memory, ring).filter_map(|record| record.stack_at(registers));
    if let Some(stack) = stacks.nth(chosen as usize) {
        stack.put(sink);
    }
    add(&COUNTS.stacks, u64::from(sink.len() > before));
}

/// Reports to the kernel that all that it has written has been read.
///
/// # Safety
/// The ring is mapped for reading and writing, and no other code reads it.
pub unsafe fn empty(ring: RingPlace) {
    let at = |offset: u64| ring.address.wrapping_add(offset) as *const AtomicU64;
    // SAFETY: both are aligned words of the ring's first page, which the kernel changes atomically.
    unsafe {
        let head = (*at(DATA_HEAD)).load(Ordering::Acquire);
        (*at(DATA_TAIL)).store(head, Ordering::Release);
    }
}

/// The records that have not been read.
struct Records<'a, M> {
    memory: &'a M,
    ring: RingPlace,
    /// The number of bytes that were written before the next record.
    at: u64,
    end: u64,
    is_malformed: bool,
}

impl<'a, M: Memory> Records<'a, M> {
    fn unread(memory: &'a M, ring: RingPlace) -> Self {
        let load = |offset: u64| memory.load_u64(ring.address.wrapping_add(offset));
        let (head, tail) = (load(DATA_HEAD).unwrap_or(0), load(DATA_TAIL).unwrap_or(0));
        // Pairs with the kernel's `smp_wmb` between records and head.
        std::sync::atomic::fence(Ordering::Acquire);
        let is_sound = ring.page_bytes.is_power_of_two()
            && head.wrapping_sub(tail) <= ring.page_bytes
            && tail.is_multiple_of(WORD);
        Self { memory, ring, at: tail, end: if is_sound { head } else { tail }, is_malformed: !is_sound }
    }
}

/// Reads the word that was written after `at` bytes. Records are multiples of words, so no word wraps around
/// the ring's end.
fn word<M: Memory>(memory: &M, ring: RingPlace, at: u64) -> Option<u64> {
    let offset = at & ring.page_bytes.wrapping_sub(1);
    memory.load_u64(ring.address.wrapping_add(ring.page_bytes).wrapping_add(offset))
}

impl<'a, M: Memory> Iterator for Records<'a, M> {
    type Item = Record<'a, M>;

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.end.wrapping_sub(self.at);
        if left == 0 {
            return None;
        }
        let header = word(self.memory, self.ring, self.at).unwrap_or(0);
        // `struct perf_event_header`: u32 type, u16 misc, u16 size; the type is in the low bits.
        let bytes = header >> 48;
        if bytes < WORD || bytes > left || !bytes.is_multiple_of(WORD) {
            self.is_malformed = true;
            self.at = self.end;
            return None;
        }
        let words = (bytes >> 3).wrapping_sub(1);
        let (memory, ring) = (self.memory, self.ring);
        let record = Record { memory, ring, kind: header as u32, body: self.at.wrapping_add(WORD), words };
        self.at = self.at.wrapping_add(bytes);
        Some(record)
    }
}

/// One record.
struct Record<'a, M> {
    memory: &'a M,
    ring: RingPlace,
    kind: u32,
    /// The byte at which the words after the header begin, and their number.
    body: u64,
    words: u64,
}

impl<'a, M: Memory> Record<'a, M> {
    fn word(&self, index: u64) -> Option<u64> {
        let word = || word(self.memory, self.ring, self.body.wrapping_add(index.wrapping_mul(WORD)));
        (index < self.words).then(word).flatten()
    }

    /// Returns the number of lost records that this record reports. Its words are an id and that number.
    fn lost(&self) -> u64 {
        if self.kind == LOST { self.word(1).unwrap_or(0) } else { 0 }
    }

    /// Returns the call chain, if the record is a sample that was taken at the place where the thread now
    /// continues. The words of a sample: the number of the chain's entries, the entries, the kind of the
    /// registers, and the two registers that were asked for, in the order of their numbers. The kernel may
    /// have moved the program counter back to the system call's instruction, to restart the call.
    fn stack_at(self, registers: &Registers) -> Option<Stack<'a, M>> {
        let entries = self.word(0).filter(|_| self.kind == SAMPLE)?;
        let [kind, sp, pc] = [1, 2, 3].map(|place| self.word(entries.checked_add(place)?));
        let after_call = registers.pc.wrapping_add(Registers::SYSTEM_CALL_BYTES);
        let is_here = kind? == REGISTERS_OF_64_BITS
            && sp? == registers.sp()
            && (pc? == registers.pc || pc? == after_call);
        is_here.then_some(Stack { record: self, entries })
    }
}

/// The call chain of a sample.
struct Stack<'a, M> {
    record: Record<'a, M>,
    entries: u64,
}

impl<M: Memory> Stack<'_, M> {
    fn put(&self, sink: &mut FrameSink<'_>) {
        let (mut is_kernel, mut put) = (false, 0_u64);
        for index in 1..=self.entries {
            let Some(pc) = self.record.word(index).filter(|_| put < MOST_FRAMES) else { return };
            if pc >= FIRST_MARK {
                is_kernel = pc == KERNEL_MARK;
            } else if is_kernel {
                // A return address belongs to the call before it.
                sink.kernel(if put == 0 { pc } else { pc.wrapping_sub(1) });
                put = put.wrapping_add(1);
            }
        }
    }
}

#[cfg(test)]
mod tests;

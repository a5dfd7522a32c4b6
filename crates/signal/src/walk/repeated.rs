//! Return addresses that a walk has met before. Recursion meets the same compiled frames again and again, and
//! the meaning of a return address cannot change while its frame is on the stack.

use std::ops::Range;

/// The number of slots: a few times the calls of one turn of a usual recursion.
const SLOTS: usize = 32;
const SLOT_BITS: u32 = SLOTS.trailing_zeros();

/// The frames that a compiled frame with the return address `pc` stands for.
#[derive(Clone, Copy, Debug, Default)]
struct CachedFrames {
    pc: u64,
    first: usize,
    count: usize,
    frame_bytes: i64,
}

/// The return addresses that the walk has met last, one for each slot.
#[derive(Debug, Default)]
pub(super) struct Repeated {
    slots: [CachedFrames; SLOTS],
}

impl Repeated {
    /// The places in the sink of the Java frames that `pc` stands for, and the size of its frame in bytes, if
    /// `pc` is known.
    pub(super) fn get(&self, pc: u64) -> Option<(Range<usize>, i64)> {
        let seen = self.slots.get(slot_of(pc)).filter(|seen| seen.pc == pc && pc != 0)?;
        Some((seen.first..seen.first.wrapping_add(seen.count), seen.frame_bytes))
    }

    /// Remembers that `pc` stands for the frames at `frames` of the sink. An empty range is not remembered.
    pub(super) fn put(&mut self, pc: u64, frames: Range<usize>, frame_bytes: i64) {
        if let Some(seen) = self.slots.get_mut(slot_of(pc)).filter(|_| !frames.is_empty()) {
            *seen = CachedFrames { pc, first: frames.start, count: frames.len(), frame_bytes };
        }
    }
}

/// The slot of `pc`. Return addresses are near each other, so they are spread (Fibonacci hashing).
const fn slot_of(pc: u64) -> usize {
    (pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOT_BITS)) as usize
}

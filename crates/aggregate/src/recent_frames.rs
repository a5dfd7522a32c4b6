//! Cache: the ids of recently resolved frames, so that most frames of a record cost a look at one place.

use otlpprof_model::FrameId;

use super::keys::RawFrame;

const SETS: usize = 512;
const SET_BITS: u32 = SETS.trailing_zeros();

/// A frame in two words: comparing frames field by field would take most of the time here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packed {
    value: u64,
    /// The kind in the upper half, and `aux` in the lower.
    rest: u64,
}

impl Packed {
    /// No frame: there is no kind 0.
    const NONE: Self = Self { value: 0, rest: 0 };

    fn new(frame: &RawFrame) -> Self {
        Self { value: frame.value, rest: (frame.kind as u64) << 32 | u64::from(frame.aux) }
    }

    /// Returns the index of the frame's set. Addresses and indices are close to each other, so they are
    /// spread by Fibonacci hashing.
    fn set(self) -> usize {
        let key = self.value ^ self.rest.rotate_right(24);
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SET_BITS)) as usize
    }
}

#[derive(Clone, Copy, Debug)]
struct CachedFrame {
    frame: Packed,
    id: FrameId,
}

const NOTHING: CachedFrame = CachedFrame { frame: Packed::NONE, id: FrameId(0) };

/// For each set its two most recently resolved frames, the later first.
pub(super) struct RecentFrames {
    sets: Box<[[CachedFrame; 2]; SETS]>,
}

impl RecentFrames {
    pub(super) fn new() -> Self {
        Self { sets: Box::new([[NOTHING; 2]; SETS]) }
    }

    /// Returns the id of `frame`, from `find` if it is not cached.
    #[inline]
    pub(super) fn get_or(&mut self, frame: RawFrame, find: impl FnOnce() -> FrameId) -> FrameId {
        let packed = Packed::new(&frame);
        let set = &mut self.sets[packed.set()];
        if let Some(known) = set.iter().find(|known| known.frame == packed) {
            return known.id;
        }
        let id = find();
        *set = [CachedFrame { frame: packed, id }, set[0]];
        id
    }

    /// Forgets all frames.
    pub(super) fn clear(&mut self) {
        self.sets.fill([NOTHING; 2]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use otlpprof_core::record::FrameKind;

    use super::*;

    #[test]
    fn a_cached_frame_always_matches_the_frame_that_was_looked_up() {
        let mut recent = RecentFrames::new();
        let mut found = HashMap::new();
        let kinds = [FrameKind::Interpreted, FrameKind::Compiled, FrameKind::Native];
        let mut state = 1_u64;
        for round in 0..100_000 {
            // More frames than places, so that many share a place. Numbers are from Knuth's MMIX linear
            // congruential generator.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = state >> 33;
            let frame = RawFrame {
                kind: kinds[(number % 3) as usize],
                aux: ((number >> 2) % 8) as u32,
                value: 0x7f00_0000_0000 + ((number >> 5) % 300) * 8,
            };
            let next = FrameId(found.len() as u32);
            let expected = *found.entry(frame).or_insert(next);
            assert_eq!(recent.get_or(frame, || expected), expected, "{frame:?} in round {round}");
        }
        recent.clear();
        for frame in found.keys() {
            assert_eq!(recent.get_or(*frame, || FrameId(u32::MAX)), FrameId(u32::MAX), "{frame:?}");
            recent.clear();
        }
    }
}

//! How much more seldom engines sample than was asked for, so that the profiler keeps to its budget.
//!
//! What comes by a clock is put off: a thread's periods add up until there are as many as the stretch, and one sample stands
//! for all (`signal::cpu`, `sampling::wall`). Of what comes one by one, an allocation or a contended monitor, one in so many
//! is sampled, at random, and stands for the others.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::core::record::Engine;

/// The stretch of each engine; 1: as was asked for.
pub struct Stretches([AtomicU32; Engine::COUNT]);

/// Those of this process.
pub static STRETCHES: Stretches = Stretches([const { AtomicU32::new(1) }; Engine::COUNT]);

impl Stretches {
    /// The stretch of an engine.
    pub fn of(&self, engine: Engine) -> u32 {
        self.0.get(engine as usize).map_or(1, |stretch| stretch.load(Ordering::Relaxed)).max(1)
    }

    /// From now on the engine samples so much more seldom.
    pub fn set(&self, engine: Engine, stretch: u32) {
        if let Some(place) = self.0.get(engine as usize) {
            place.store(stretch.max(1), Ordering::Relaxed);
        }
    }
}

/// Whether one event in `stretch` is this one, told by numbers that differ from event to event.
pub fn is_chosen(stretch: u32, monotonic_ns: u64, os_tid: i32) -> bool {
    // Splitmix64's finish (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): neighbouring
    // times must not be chosen alike.
    let mut mixed = monotonic_ns ^ u64::from(os_tid.cast_unsigned()).rotate_left(40);
    mixed = (mixed ^ mixed.wrapping_shr(30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed.wrapping_shr(27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed.wrapping_shr(31);
    mixed.checked_rem(u64::from(stretch)).unwrap_or(0) == 0
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    #[test]
    fn one_in_so_many_is_chosen() {
        for stretch in [1, 2, 7, 64] {
            for step_ns in [1, 1_000, 100_003] {
                let chosen = (0..100_000_u64).filter(|i| is_chosen(stretch, i * step_ns, 4_711)).count();
                let expected = 100_000.0 / f64::from(stretch);
                let ratio = chosen as f64 / expected;
                // Five deviations of the smallest number.
                assert!((ratio - 1.0).abs() < 0.13, "{stretch} {step_ns}: {ratio}");
            }
        }
    }

    #[test]
    fn an_engine_has_its_own_stretch() {
        let stretches = Stretches([const { AtomicU32::new(1) }; Engine::COUNT]);
        stretches.set(Engine::Lock, 8);
        stretches.set(Engine::Wait, 0);
        assert_eq!(
            Engine::ALL.map(|engine| stretches.of(engine)).iter().sum::<u32>(),
            7 + Engine::COUNT as u32
        );
        assert_eq!(stretches.of(Engine::Lock), 8);
    }
}

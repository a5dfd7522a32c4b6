//! Converts CPU time to periods: the arithmetic of a thread's account, by which samples add up to the CPU
//! time that the threads used.
//!
//! **Ordinary threads.** A thread with account `(base, phase)`, phase uniform in `0..T`, is due
//! `floor((x - base + phase) / T)` periods when its CPU clock shows `x`. The mean over the phase is exactly
//! `(x - base) / T`, for any `x` and any behaviour of the thread: a clock that fires on time is unbiased even
//! for threads that live less than an interval.
//!
//! **Clocks bound to the tick.** POSIX CPU timers expire on scheduler ticks only. So the time between a
//! thread's last tick and its end is lost, and a thread that meets no tick has no sample: threads that live
//! half a tick would keep a quarter of their time. Therefore every thread's timer first expires at the
//! thread's first tick, at CPU clock `a`. That tick is credited whole; from there on the thread is credited
//! with the CPU time by which its clock advances. A thread of CPU time `C` that runs in one piece, beginning
//! at a random moment, meets its last tick at `x`:
//!
//! - `C < tick`: the thread meets a tick with probability `C / tick` and is then credited with `tick`: mean
//!   `C`.
//! - `C >= tick`: the thread is credited with `tick + x - a`; `a` and `C - x` are both uniform in `0..tick`,
//!   so the mean is `tick + (C - tick / 2) - tick / 2 = C`.
//!
//! The account implements this by its epoch: `epoch = a - tick - phase`, due `floor((x - epoch) / T)`.
//!
//! **The balance of ended threads.** Three effects remain: threads that sleep between short bursts break the
//! premise of the argument, a signal may be blocked when its thread ends, and the random phases have a
//! variance. So a thread that ends leaves the difference between its CPU time and its credit, of either sign,
//! to the balance of ended threads. The first samples of later threads are paid from that balance (or pay
//! into it) in whole periods. Under the premises above its mean is 0, so it shifts no thread's share. The
//! balance keeps the error of the sum within its own last fraction of a period and the open periods of the
//! threads that are alive.

use std::sync::atomic::{AtomicI64, Ordering};

/// Returns the number of periods that are due at CPU clock `now_ns`. Never negative. 0 if there is no
/// interval.
pub fn due_periods(now_ns: i64, epoch_ns: i64, interval_ns: i64) -> i64 {
    now_ns.saturating_sub(epoch_ns).checked_div_euclid(interval_ns).unwrap_or(0).max(0)
}

/// Returns the epoch of a thread whose first tick was handled when its CPU clock showed `now_ns`.
///
/// `overrun` is the number of intervals by which the first signal was delayed. If it is not 0, `now_ns` is
/// not the time of the first tick, which on average was half a tick after `base_ns`.
pub fn epoch_at_first_tick(now_ns: i64, base_ns: i64, phase_ns: i64, tick_ns: i64, overrun: i64) -> i64 {
    let first_tick = if overrun == 0 { now_ns } else { base_ns.saturating_add(tick_ns.wrapping_shr(1)) };
    first_tick.saturating_sub(tick_ns).saturating_sub(phase_ns)
}

/// Returns the CPU clock, in ns, at which the period after `credited` periods is complete.
pub fn next_due_ns(epoch_ns: i64, credited: i64, interval_ns: i64) -> i64 {
    epoch_ns.saturating_add(credited.saturating_add(1).saturating_mul(interval_ns))
}

/// Returns the number of periods that a thread is owed. The thread's CPU clock showed `now_ns` at some
/// moment; before that moment the thread had been credited with `credited_before` periods, after it with
/// `credited_after`. The result is positive when signals did not report periods that ended at least
/// `slack_ns` ago (the signal of a later one may still be on its way), and negative when they reported too
/// many.
pub fn owed_periods(
    now_ns: i64,
    epoch_ns: i64,
    interval_ns: i64,
    slack_ns: i64,
    credited_before: i64,
    credited_after: i64,
) -> i64 {
    let surely_due = due_periods(now_ns.saturating_sub(slack_ns), epoch_ns, interval_ns);
    let missed = surely_due.saturating_sub(credited_after).max(0);
    let excess = due_periods(now_ns, epoch_ns, interval_ns).saturating_sub(credited_before).min(0);
    missed.saturating_add(excess)
}

/// Settles `owed` with the next sample, when `due` periods are due. Returns the number of periods that the
/// sample is to stand for (0: no sample), and how many of them were owed.
///
/// `merged` is the number of due periods that the signal reports besides its own. A delayed signal reports
/// periods that may meanwhile have been noted as owed, so only the excess over `merged` is still owed.
pub fn settle(owed: &AtomicI64, due: i64, merged: i64) -> (i64, i64) {
    if owed.load(Ordering::Relaxed) == 0 {
        return (due, 0);
    }
    let debt = match owed.swap(0, Ordering::Relaxed) {
        debt @ 1.. => debt.saturating_sub(merged).max(0),
        excess => excess,
    };
    let total = due.saturating_add(debt);
    if total < 0 {
        owed.fetch_add(total, Ordering::Relaxed);
    }
    (total.max(0), debt.max(0))
}

/// Takes whole periods from the balance of ended threads for a thread that is due `due` periods. Takes all
/// that the balance has; if the balance is negative, at most `due` periods are paid into it, and the result
/// is negative.
pub fn settle_ended(ended_balance_ns: &AtomicI64, due: i64, interval_ns: i64) -> i64 {
    let mut balance = ended_balance_ns.load(Ordering::Relaxed);
    loop {
        let periods = balance.checked_div(interval_ns).unwrap_or(0).max(due.saturating_neg());
        if periods == 0 {
            return 0;
        }
        let rest = balance.saturating_sub(periods.saturating_mul(interval_ns));
        match ended_balance_ns.compare_exchange_weak(balance, rest, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return periods,
            Err(seen) => balance = seen,
        }
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used)]
mod tests {
    use super::*;

    const INTERVAL: i64 = 10_000;
    const TICK: i64 = 4_000;

    /// Returns the mean credit, in units of time, of a thread with CPU time `life` that runs in one piece,
    /// over all phases and all positions of the ticks.
    fn mean_credit_of_one_piece(life: i64) -> f64 {
        let mut credited = 0;
        let mut cases = 0;
        for first_tick in (0..TICK).step_by(50) {
            for phase in (0..INTERVAL).step_by(50) {
                cases += 1;
                if first_tick >= life {
                    continue;
                }
                let last_tick = first_tick + (life - 1 - first_tick) / TICK * TICK;
                let epoch = epoch_at_first_tick(first_tick, 0, phase, TICK, 0);
                credited += due_periods(last_tick, epoch, INTERVAL) * INTERVAL;
            }
        }
        credited as f64 / cases as f64
    }

    #[test]
    fn crediting_the_first_tick_whole_is_unbiased_for_any_length_of_life() {
        for life in [500, 2_000, 3_950, 4_000, 6_500, 10_000, 25_000, 123_450] {
            let mean = mean_credit_of_one_piece(life);
            assert!((mean / life as f64 - 1.0).abs() < 0.01, "life {life}: mean credit {mean}");
        }
    }

    #[test]
    fn a_random_phase_alone_would_lose_the_tail_of_short_lives() {
        // The reason for crediting the first tick whole: the sum of the test above with the epoch of an
        // ordinary clock is too low.
        let life = 2_000;
        let mut credited = 0;
        let mut cases = 0;
        for tick in (0..TICK).step_by(50) {
            for phase in (0..INTERVAL).step_by(50) {
                cases += 1;
                credited += if tick < life { due_periods(tick, -phase, INTERVAL) * INTERVAL } else { 0 };
            }
        }
        assert!(f64::from(cases) * life as f64 * 0.3 > credited as f64);
    }

    #[test]
    fn a_delayed_first_signal_counts_the_whole_time() {
        let mut credited = 0;
        let mut cases = 0;
        for phase in (0..INTERVAL).step_by(10) {
            let epoch = epoch_at_first_tick(95_000, 0, phase, TICK, 9);
            credited += due_periods(95_000, epoch, INTERVAL) * INTERVAL;
            cases += 1;
        }
        assert_eq!(credited / cases, 95_000 + TICK / 2);
    }

    #[test]
    fn the_next_period_is_due_at_its_time() {
        let epoch = epoch_at_first_tick(1_234, 0, 7_777, TICK, 0);
        for now in (0..100_000).step_by(777) {
            let due = due_periods(now, epoch, INTERVAL);
            let next = next_due_ns(epoch, due, INTERVAL);
            assert!(now < next);
            assert_eq!(due_periods(next, epoch, INTERVAL), due + 1);
        }
    }

    #[test]
    fn periods_that_ended_long_enough_ago_are_owed() {
        let owed = |now, before, after| owed_periods(now, 0, INTERVAL, 5_000, before, after);
        assert_eq!(owed(52_000, 4, 4), 0, "the fifth may be on its way");
        assert_eq!(owed(52_000, 4, 5), 0, "it came in between");
        assert_eq!(owed(56_000, 4, 4), 1);
        assert_eq!(owed(156_000, 4, 4), 11);
        assert_eq!(owed(52_000, 6, 6), -1, "too many were reported");
    }

    #[test]
    fn debts_of_either_sign_are_settled_by_samples() {
        let owed = AtomicI64::new(0);
        assert_eq!(settle(&owed, 1, 0), (1, 0));
        owed.store(3, Ordering::Relaxed);
        assert_eq!(settle(&owed, 1, 0), (4, 3));
        assert_eq!(settle(&owed, 1, 0), (1, 0));
        owed.store(-2, Ordering::Relaxed);
        assert_eq!(settle(&owed, 1, 0), (0, 0));
        assert_eq!(settle(&owed, 1, 0), (0, 0));
        assert_eq!(settle(&owed, 1, 0), (1, 0));
    }

    #[test]
    fn a_delayed_signal_is_not_credited_twice() {
        // A blocked signal of 150 periods. At the 107th period they were noted as owed.
        let owed = AtomicI64::new(107);
        assert_eq!(settle(&owed, 150, 149), (150, 0));
        // One signal was lost before (to a sigwait); each expiry merges three periods.
        owed.store(50, Ordering::Relaxed);
        assert_eq!(settle(&owed, 4, 3), (51, 47));
    }

    #[test]
    fn the_balance_pays_whole_periods_and_takes_at_most_the_periods_due() {
        let balance = AtomicI64::new(25_000);
        assert_eq!(settle_ended(&balance, 0, INTERVAL), 2);
        assert_eq!(balance.load(Ordering::Relaxed), 5_000);
        assert_eq!(settle_ended(&balance, 1, INTERVAL), 0);
        balance.store(-35_000, Ordering::Relaxed);
        assert_eq!(settle_ended(&balance, 0, INTERVAL), 0);
        assert_eq!(settle_ended(&balance, 2, INTERVAL), -2);
        assert_eq!(balance.load(Ordering::Relaxed), -15_000);
    }

    #[test]
    fn no_value_overflows() {
        for extreme in [i64::MIN, -1, 0, 1, i64::MAX] {
            due_periods(extreme, i64::MIN, 1);
            due_periods(i64::MIN, extreme, -1);
            next_due_ns(extreme, i64::MAX, i64::MAX);
            epoch_at_first_tick(extreme, i64::MAX, i64::MAX, i64::MAX, 1);
            owed_periods(extreme, i64::MIN, 1, i64::MAX, i64::MIN, i64::MAX);
            settle_ended(&AtomicI64::new(extreme), i64::MIN, extreme);
            settle(&AtomicI64::new(extreme), i64::MIN, i64::MAX);
        }
    }
}

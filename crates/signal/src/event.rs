//! Signals of perf events: how many periods a sample stands for, by the count of the thread's event.
//!
//! A thread whose event has counted `n`, of which the profiler itself caused `own`, is due
//! `floor((n - own + phase) / period)` periods, phase uniform in `0..period`: the mean over the phase is
//! exactly `(n - own) / period`. The handler reads the count, so nothing is lost by signals that were merged,
//! or that arrived when no period was due.
//!
//! When the engine is stretched (`signal::stretch`) a thread's periods become longer, and so does the
//! kernel's period. After the periods that have been credited the formula applies to the longer periods, with
//! a new phase, so sums stay right across the change.
//!
//! An event that is counted while its thread goes to sleep (a context switch, the entry of a system call)
//! wakes the thread by its signal. The thread then goes to sleep once more, and the event is counted once
//! more. That count is the profiler's own.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use otlpprof_core::byte_sampling::mix;
use otlpprof_core::counts::counts;
use otlpprof_core::engine::Engine;
use otlpprof_core::thread::{EventAccount, RecordState, ThreadRecord};

use super::clock::monotonic_ns;
use super::interruption::Interruption;
use super::kernel_stack;
use super::perf_ioctl::PERF_EVENT_IOC_PERIOD;
use super::safe_load::ProcessMemory;
use super::sample;
use super::stretch::STRETCHES;

/// The shortest part of a thread's first period, where the whole period is longer. Until the first signal is
/// handled the event keeps overflowing at that shorter period.
pub const SHORTEST_FIRST_PERIOD: u64 = 1_000;

/// Parameters of a session of the event engine, for the handler.
#[derive(Debug)]
pub struct EventSession {
    /// Whether signals result in samples.
    is_open: AtomicBool,
    /// The signal that the events send, or sent last; 0 before the first session.
    signal: AtomicI32,
    period: AtomicU64,
    /// The count from one signal of the kernel to the next.
    kernel_period: AtomicU64,
    /// Whether a signal can wake its thread from an operation that the thread then repeats, so that the event
    /// is counted again.
    wakes: AtomicBool,
}

/// The session of this process.
pub static SESSION: EventSession = EventSession {
    is_open: AtomicBool::new(false),
    signal: AtomicI32::new(0),
    period: AtomicU64::new(1),
    kernel_period: AtomicU64::new(1),
    wakes: AtomicBool::new(false),
};

counts! {
    /// Counts of the engine's signals since the process began.
    EventCounts {
        /// Samples taken.
        samples,
        /// The periods that the samples stand for.
        periods,
        /// Signals that resulted in no sample, since no period was due.
        surplus_signals,
        /// Events that the profiler itself caused, and that no sample stands for.
        own,
        /// Threads for which no event could be opened.
        threads_unsampled,
        /// Times that a foreign handler was found in place of ours.
        handler_replaced,
    }
}

impl EventSession {
    /// Opens the session: from now on this signal results in samples. `wakes` says whether the signal can
    /// wake its thread from an operation that is then counted again.
    pub fn open(&self, signal: i32, period: u64, kernel_period: u64, wakes: bool) {
        self.signal.store(signal, Ordering::Release);
        self.period.store(period, Ordering::Release);
        self.kernel_period.store(kernel_period, Ordering::Release);
        self.wakes.store(wakes, Ordering::Release);
        self.is_open.store(true, Ordering::SeqCst);
    }

    /// Closes the session: from now on its signals are stale. A handler that is still at work is visible in
    /// [`EventAccount::busy`].
    pub fn close(&self) {
        self.is_open.store(false, Ordering::SeqCst);
    }

    /// Whether `signal` is the events' signal. One may still arrive when the session has ended.
    pub fn sends(&self, signal: i32) -> bool {
        self.signal.load(Ordering::Acquire) == signal
    }
}

/// Takes the sample of an overflow of the thread's event, if there is a session and any period is due.
pub(super) fn take_sample(interruption: &Interruption<'_>) {
    let record = interruption.thread();
    let account = &record.event;
    // The order matters: a thread that closes the session first changes its state and then waits for `busy`
    // to become false.
    account.busy.store(true, Ordering::SeqCst);
    let live = SESSION.is_open.load(Ordering::SeqCst)
        && matches!(record.state(), RecordState::Arming | RecordState::Armed);
    if live && let Some(descriptor) = account.descriptor() {
        start(account, descriptor);
        let counted = count_of(descriptor);
        let weight = counted.map_or(0, |counted| credit(account, counted));
        if weight > 0 {
            add(&COUNTS.samples, 1);
            add(&COUNTS.periods, weight);
            sample::take_event(interruption, weight);
            follow_stretch(account, descriptor, STRETCHES.of(Engine::Event), scattered(record));
        } else {
            add(&COUNTS.surplus_signals, 1);
        }
        let is_woken = SESSION.wakes.load(Ordering::Relaxed)
            && interruption.registers().is_in_waiting_system_call(&ProcessMemory);
        if let (Some(before), Some(after)) = (counted, count_of(descriptor)) {
            let own = after.wrapping_sub(before).wrapping_add(u64::from(is_woken));
            account.own.fetch_add(own, Ordering::Relaxed);
            add(&COUNTS.own, own);
        }
        if let Some(ring) = account.ring.place() {
            // SAFETY: the ring stays mapped while the account is busy; only this thread's handlers read it.
            unsafe { kernel_stack::empty(ring) };
        }
    }
    account.busy.store(false, Ordering::Release);
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// Handles the first signal of an event that was opened with the rest of the thread's first period. From here
/// on the event runs a whole period at a time.
fn start(account: &EventAccount, descriptor: i32) {
    if !account.started.swap(true, Ordering::Relaxed) && account.phase.load(Ordering::Relaxed) != 0 {
        set_kernel_period(descriptor, period_of(account));
    }
}

/// The length of the thread's periods, in counts.
fn period_of(account: &EventAccount) -> u64 {
    let stretch = account.stretch.load(Ordering::Relaxed).max(1);
    SESSION.period.load(Ordering::Relaxed).saturating_mul(stretch.into())
}

/// Sets the kernel's period, so that it signals each time it has counted `period` events plus the events that
/// a signal causes to be counted again.
fn set_kernel_period(descriptor: i32, period: u64) {
    let extra = SESSION.kernel_period.load(Ordering::Relaxed);
    let extra = extra.saturating_sub(SESSION.period.load(Ordering::Relaxed));
    let period = period.saturating_add(extra);
    // SAFETY: the descriptor is the thread's event while it is armed; the kernel reads one u64.
    unsafe { libc::ioctl(descriptor, PERF_EVENT_IOC_PERIOD, &raw const period) };
}

/// Returns a pseudorandom number.
fn scattered(record: &ThreadRecord) -> u64 {
    mix(monotonic_ns() ^ (record.os_tid.load(Ordering::Relaxed) as u64).rotate_left(32))
}

/// Adapts the thread's periods to the engine's stretch, if they have another length. Called when a sample has
/// just been taken.
fn follow_stretch(account: &EventAccount, descriptor: i32, stretch: u32, random: u64) {
    if let Some(first) = restretch(account, stretch, random) {
        // The kernel begins a new period when its length is set.
        set_kernel_period(descriptor, first);
    }
}

/// Begins periods of another length after the periods that have been credited. Returns the count until the
/// first end of such a period; `None` if the length is unchanged.
fn restretch(account: &EventAccount, stretch: u32, random: u64) -> Option<u64> {
    if account.stretch.load(Ordering::Relaxed).max(1) == stretch.max(1) {
        return None;
    }
    let credited = account.credited.load(Ordering::Relaxed).saturating_mul(period_of(account));
    // The first of the credited periods was credited whole, although a part of it, `ahead`, lay before the
    // first count. So `ahead` has been credited but not counted yet.
    let ahead = account.phase.load(Ordering::Relaxed);
    account.stretch.store(stretch.max(1), Ordering::Relaxed);
    let period = period_of(account);
    let phase = random.checked_rem(period).unwrap_or(0);
    account.base.fetch_add(credited, Ordering::Relaxed);
    account.phase.store(phase, Ordering::Relaxed);
    account.credited.store(0, Ordering::Relaxed);
    account.started.store(false, Ordering::Relaxed);
    let first = ahead.saturating_add(period.saturating_sub(phase));
    Some(first.max(SHORTEST_FIRST_PERIOD.min(period)))
}

/// Reads the event's count.
fn count_of(descriptor: i32) -> Option<u64> {
    let mut count = 0_u64;
    // SAFETY: the kernel writes the 8 bytes of a count (perf_event_open(2), "Reading results").
    let read = unsafe { libc::read(descriptor, (&raw mut count).cast(), size_of::<u64>()) };
    (read == 8).then_some(count)
}

/// Returns the periods that are due and for which no sample has stood, in the length that was asked for, and
/// credits them.
fn credit(account: &EventAccount, counted: u64) -> u64 {
    let before = account.own.load(Ordering::Relaxed).saturating_add(account.base.load(Ordering::Relaxed));
    let due = due_periods(counted, before, account.phase.load(Ordering::Relaxed), period_of(account));
    let credited = account.credited.load(Ordering::Relaxed);
    account.credited.store(due.max(credited), Ordering::Relaxed);
    let stretch = account.stretch.load(Ordering::Relaxed).max(1);
    due.saturating_sub(credited).saturating_mul(stretch.into())
}

/// Returns the number of periods that are due when the event has counted `counted`. 0 if there is no period.
pub fn due_periods(counted: u64, own: u64, phase: u64, period: u64) -> u64 {
    counted.saturating_sub(own).saturating_add(phase).checked_div(period).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All tests share the one session's period.
    static SERIAL: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

    #[test]
    fn periods_over_all_phases_equal_the_count() {
        for (counted, own, period) in [(1, 0, 1), (7, 0, 10), (1234, 34, 100), (10, 20, 7)] {
            let due: u64 = (0..period).map(|phase| due_periods(counted, own, phase, period)).sum();
            assert_eq!(due, counted.saturating_sub(own), "{counted} {own} {period}");
        }
        assert_eq!(due_periods(5, 0, 0, 0), 0);
    }

    #[test]
    fn merged_signals_lose_nothing_and_surplus_ones_add_nothing() {
        let _serial = SERIAL.lock();
        let account = EventAccount::default();
        SESSION.period.store(10, Ordering::Relaxed);
        account.begin(3);
        let credits: Vec<u64> = [7, 16, 17, 60, 61].map(|counted| credit(&account, counted)).into();
        SESSION.period.store(1, Ordering::Relaxed);
        assert_eq!(credits, [1, 0, 1, 4, 0]);
    }

    /// However often periods become longer and shorter again, each count is credited, on average over the
    /// phases.
    #[test]
    fn a_change_of_the_periods_length_neither_loses_nor_adds() {
        let _serial = SERIAL.lock();
        let mut random = 1_u64;
        let (mut credited, rounds) = (0, 4_000);
        for round in 0..rounds {
            let account = EventAccount::default();
            random = mix(random);
            account.begin(0);
            for counted in 1..=500_u64 {
                random = mix(random.wrapping_add(counted));
                // Some signals are handled late.
                if random.is_multiple_of(3) || counted == 500 {
                    let weight = credit(&account, counted);
                    credited += weight;
                    if weight > 0 && random.is_multiple_of(5) {
                        restretch(&account, 1 << ((random >> 20) % 7), mix(random ^ round));
                    }
                }
            }
        }
        let ratio = credited as f64 / (rounds * 500) as f64;
        assert!((ratio - 1.0).abs() < 0.005, "{ratio}");
    }
}

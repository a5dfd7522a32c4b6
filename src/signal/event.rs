//! Signals of perf events: what a sample stands for, by what the thread's event has counted.
//!
//! A thread whose event has counted `n`, of which the profiler itself made `own`, is due
//! `floor((n - own + phase) / period)` periods, phase uniform in `0..period`: the mean over the phase is exactly
//! `(n - own) / period`. The handler reads the count, so that signals that were merged, or came when the thread had none to
//! spare, lose nothing.
//!
//! When the engine is stretched (`signal::stretch`) a thread's periods become longer, and the kernel's with them: behind what has
//! been credited the same is true of the longer ones, with a new phase, so sums stay right at the change too.
//!
//! An event that is counted while its thread goes to sleep (a context switch, the entry of a system call) wakes the thread
//! with its signal: the thread goes to sleep once more, and has the event counted once more. That one is the profiler's own.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use crate::core::byte_sampling::mix;
use crate::core::counts::counts;
use crate::core::record::Engine;
use crate::core::thread::{EventAccount, RecordState, ThreadRecord};

use super::cpu::PERF_EVENT_IOC_PERIOD;
use super::kernel_stack;
use super::safe_load::ProcessMemory;
use super::sample::monotonic_ns;
use super::sample_gate::SampleGate;
use super::stretch::STRETCHES;
use super::walk::registers::Registers;

/// The shortest part of a thread's first period, where the whole is longer: until the signal is handled the event goes on
/// at that pace.
pub const SHORTEST_FIRST_PERIOD: u64 = 1_000;

/// What takes a sample of the current thread: its record, the interrupted `ucontext_t`, and the number of periods that the
/// sample stands for, at least 1.
///
/// # Safety
/// It is called inside a signal handler and keeps to the zone's rules; the context is valid until it returns.
pub type EventSampleFn = unsafe fn(&ThreadRecord, *mut libc::c_void, u64);

/// What a session of the engine tells the handler.
#[derive(Debug)]
pub struct EventSession {
    gate: SampleGate<EventSampleFn>,
    /// What the events send, or sent last; 0 before.
    signal: AtomicI32,
    period: AtomicU64,
    /// What the kernel counts from one signal to the next.
    kernel_period: AtomicU64,
    /// Whether a signal can wake its thread from what is then counted again.
    wakes: AtomicBool,
}

/// The one session.
pub static SESSION: EventSession = EventSession {
    // SAFETY: it is a function pointer.
    gate: unsafe { SampleGate::closed() },
    signal: AtomicI32::new(0),
    period: AtomicU64::new(1),
    kernel_period: AtomicU64::new(1),
    wakes: AtomicBool::new(false),
};

counts! {
    /// What has happened to the engine's signals since the process began.
    EventCounts {
        /// Samples taken.
        samples,
        /// The periods that they stand for.
        periods,
        /// Signals that made no sample, since no period was due.
        surplus_signals,
        /// Events that the profiler itself has made, and that no sample stands for.
        own,
        /// Threads that no event could be had for.
        threads_unsampled,
        /// Times that somebody else's handler was found in the place of ours.
        handler_replaced,
    }
}

impl EventSession {
    /// From now on this signal makes samples. `wakes` says that it can wake its thread from what is then counted again.
    pub fn open(&self, signal: i32, period: u64, kernel_period: u64, wakes: bool, sample: EventSampleFn) {
        self.signal.store(signal, Ordering::Release);
        self.period.store(period, Ordering::Release);
        self.kernel_period.store(kernel_period, Ordering::Release);
        self.wakes.store(wakes, Ordering::Release);
        self.gate.open(sample);
    }

    /// From now on they are stale. Handlers at work show in [`EventAccount::busy`].
    pub fn close(&self) {
        self.gate.close();
    }

    /// Whether it is the events' signal, of which one may still come when the session has ended.
    pub fn sends(&self, signal: i32) -> bool {
        self.signal.load(Ordering::Acquire) == signal
    }
}

/// Takes the sample that an overflow of the thread's event asks for, if any period is due. `false` if there is no session.
///
/// # Safety
/// Called in a signal handler of the thread of `record`, with that handler's `ucontext`.
pub unsafe fn take_sample(record: &'static ThreadRecord, ucontext: *mut libc::c_void) -> bool {
    let account = &record.event;
    // The order matters: whoever closes the session says so first and then waits for `busy` to be false.
    account.busy.store(true, Ordering::SeqCst);
    let live = SESSION.gate.is_open() && matches!(record.state(), RecordState::Arming | RecordState::Armed);
    if live && let Some(descriptor) = account.descriptor() {
        start(account, descriptor);
        let counted = count_of(descriptor);
        let weight = counted.map_or(0, |counted| credit(account, counted));
        match (weight, SESSION.gate.sample_fn()) {
            (1.., Some(sample)) => {
                add(&COUNTS.samples, 1);
                add(&COUNTS.periods, weight);
                // SAFETY: `open` was given a function for exactly this, and the context is the caller's.
                unsafe { sample(record, ucontext, weight) };
                follow_stretch(account, descriptor, STRETCHES.of(Engine::Event), scattered(record));
            }
            _ => add(&COUNTS.surplus_signals, 1),
        }
        // SAFETY: by the contract the context is the kernel's.
        let registers = unsafe { Registers::from_context(ucontext) };
        let is_woken =
            SESSION.wakes.load(Ordering::Relaxed) && registers.is_in_waiting_system_call(&ProcessMemory);
        if let (Some(before), Some(after)) = (counted, count_of(descriptor)) {
            let own = after.wrapping_sub(before).wrapping_add(u64::from(is_woken));
            account.own.fetch_add(own, Ordering::Relaxed);
            add(&COUNTS.own, own);
        }
        if let Some(ring) = account.ring.place() {
            // SAFETY: it stays mapped for as long as the account is busy; this thread's handlers alone read it.
            unsafe { kernel_stack::empty(ring) };
        }
    }
    account.busy.store(false, Ordering::Release);
    live
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// The event was opened with what is left of the thread's first period. From here on it runs a whole period at a time.
fn start(account: &EventAccount, descriptor: i32) {
    if !account.started.swap(true, Ordering::Relaxed) && account.phase.load(Ordering::Relaxed) != 0 {
        set_kernel_period(descriptor, period_of(account));
    }
}

/// The length of the thread's periods.
fn period_of(account: &EventAccount) -> u64 {
    let stretch = account.stretch.load(Ordering::Relaxed).max(1);
    SESSION.period.load(Ordering::Relaxed).saturating_mul(stretch.into())
}

/// Has the kernel signal each time that it has counted so many, and what a signal has it count once more.
fn set_kernel_period(descriptor: i32, period: u64) {
    let extra = SESSION.kernel_period.load(Ordering::Relaxed);
    let extra = extra.saturating_sub(SESSION.period.load(Ordering::Relaxed));
    let period = period.saturating_add(extra);
    // SAFETY: the descriptor is the thread's event while it is armed; the kernel reads one u64.
    unsafe { libc::ioctl(descriptor, PERF_EVENT_IOC_PERIOD, &raw const period) };
}

/// A number as if at random.
fn scattered(record: &ThreadRecord) -> u64 {
    mix(monotonic_ns() ^ (record.os_tid.load(Ordering::Relaxed) as u64).rotate_left(32))
}

/// A sample has just been taken: has the thread's periods be so many times as long as was asked for, if they are not.
fn follow_stretch(account: &EventAccount, descriptor: i32, stretch: u32, random: u64) {
    if let Some(first) = restretch(account, stretch, random) {
        // The kernel begins a period anew when it is told of another length.
        set_kernel_period(descriptor, first);
    }
}

/// Begins with periods of another length behind those that have been credited. Returns how long it is until the
/// first border of theirs; `None` if their length is the same.
fn restretch(account: &EventAccount, stretch: u32, random: u64) -> Option<u64> {
    if account.stretch.load(Ordering::Relaxed).max(1) == stretch.max(1) {
        return None;
    }
    let credited = account.credited.load(Ordering::Relaxed).saturating_mul(period_of(account));
    // The first of the periods was credited whole, of which `ahead` had been before they began: so much has been credited
    // and not been counted yet.
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

/// What the event has counted.
fn count_of(descriptor: i32) -> Option<u64> {
    let mut count = 0_u64;
    // SAFETY: the kernel writes the 8 bytes of a count (perf_event_open(2), "Reading results").
    let read = unsafe { libc::read(descriptor, (&raw mut count).cast(), size_of::<u64>()) };
    (read == 8).then_some(count)
}

/// The periods that are due and that no sample has stood for, in the length that was asked for; from now on one does.
fn credit(account: &EventAccount, counted: u64) -> u64 {
    let before = account.own.load(Ordering::Relaxed).saturating_add(account.base.load(Ordering::Relaxed));
    let due = due_periods(counted, before, account.phase.load(Ordering::Relaxed), period_of(account));
    let credited = account.credited.load(Ordering::Relaxed);
    account.credited.store(due.max(credited), Ordering::Relaxed);
    let stretch = account.stretch.load(Ordering::Relaxed).max(1);
    due.saturating_sub(credited).saturating_mul(stretch.into())
}

/// How many periods are due when so much has been counted. 0 if there is no period.
pub fn due_periods(counted: u64, own: u64, phase: u64, period: u64) -> u64 {
    counted.saturating_sub(own).saturating_add(phase).checked_div(period).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The session's period is one for all.
    static SERIAL: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

    #[test]
    fn over_all_phases_periods_are_what_was_counted() {
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

    /// Whenever periods become longer and shorter again, what is counted is credited, on average over the phases.
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
                // Signals are handled late at times.
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

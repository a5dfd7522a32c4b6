//! CPU signals: decides how many periods a signal stands for, and takes the sample.
//!
//! System calls per sample: none with perf events and timers, one (`gettid`) with the process's timer. A
//! thread's first signal makes two more, which synchronise its clock with its account, and so does a sample
//! that follows a long one (`signal::fair_share`). `pthread_self` reads a
//! register.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use otlpprof_core::engine::Engine;
use otlpprof_core::thread::{RecordState, ThreadRecord};

use super::clock::thread_cpu_ns;
use super::cpu_account::{due_periods, epoch_at_first_tick, next_due_ns, settle, settle_ended};
use super::cpu_counters::{COUNTERS, add};
use super::fair_share::Handling;
use super::interruption::Interruption;
use super::kernel_stack;
use super::occasion::Occasion;
use super::perf_ioctl::PERF_EVENT_IOC_PERIOD;
use super::sample;
use super::stretch::STRETCHES;

/// Parameters of a session of the CPU engine, for the handler.
#[derive(Debug)]
pub struct CpuSession {
    /// Whether signals result in samples.
    is_open: AtomicBool,
    interval_ns: AtomicI64,
    tick_ns: AtomicI64,
    /// The number of periods that each signal of the process's timer stands for. 0 until a session uses that
    /// timer, `ITIMER_STOPPED` after it has been stopped.
    itimer_periods: AtomicI64,
    /// CPU time, in ns, that ended threads were not credited with; negative if they were credited with too
    /// much. See `cpu_account`.
    pub ended_balance_ns: AtomicI64,
}

/// The session of this process.
pub static SESSION: CpuSession = CpuSession {
    is_open: AtomicBool::new(false),
    interval_ns: AtomicI64::new(0),
    tick_ns: AtomicI64::new(0),
    itimer_periods: AtomicI64::new(0),
    ended_balance_ns: AtomicI64::new(0),
};

impl CpuSession {
    /// Opens the session: from now on signals result in samples.
    pub fn open(&self, interval_ns: i64, tick_ns: i64) {
        self.interval_ns.store(interval_ns, Ordering::Release);
        self.tick_ns.store(tick_ns, Ordering::Release);
        self.ended_balance_ns.store(0, Ordering::Release);
        self.is_open.store(true, Ordering::SeqCst);
    }

    /// Closes the session: from now on signals are stale. A handler that is still at work is visible in
    /// [`ThreadRecord::busy`].
    pub fn close(&self) {
        self.is_open.store(false, Ordering::SeqCst);
    }

    /// Whether a session is open.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::SeqCst)
    }

    /// The interval in CPU time, in ns.
    pub fn interval_ns(&self) -> i64 {
        self.interval_ns.load(Ordering::Acquire)
    }

    /// The length of the scheduler's tick, to which timers are bound, in ns.
    pub fn tick_ns(&self) -> i64 {
        self.tick_ns.load(Ordering::Acquire)
    }

    /// Announces that the process's timer is ours and that each of its signals stands for `periods` periods.
    /// From then on signals with the code `SI_KERNEL` are attributed to that timer.
    pub fn expect_itimer(&self, periods: i64) {
        self.itimer_periods.store(periods, Ordering::Release);
    }

    /// The state of the process's timer.
    pub(super) fn process_timer(&self) -> ProcessTimer {
        match self.itimer_periods.load(Ordering::Acquire) {
            0 => ProcessTimer::Unused,
            ITIMER_STOPPED => ProcessTimer::Stopped,
            periods => ProcessTimer::Ours { periods },
        }
    }

    /// Announces that the process's timer is stopped. Its last signal may still be pending, and cannot be
    /// distinguished from signals of a timer that other code sets from now on.
    pub fn forget_itimer(&self) {
        self.itimer_periods.store(ITIMER_STOPPED, Ordering::Release);
    }
}

/// Stored in place of a number of periods by [`CpuSession::forget_itimer`].
const ITIMER_STOPPED: i64 = -1;

/// The state of the process's timer.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProcessTimer {
    /// No session has used the timer.
    Unused,
    /// The timer belongs to a session. Each of its signals stands for `periods` periods.
    Ours {
        /// The number of periods.
        periods: i64,
    },
    /// The last session that used the timer has stopped it.
    Stopped,
}

/// Takes the sample of a signal of ours, if at least one period is due. Returns `false` if the clock is gone.
pub(super) fn take_sample(interruption: &Interruption<'_>, occasion: Occasion) -> bool {
    let record = interruption.thread();
    // The order matters: a thread that closes the session or retires the record first changes the state and
    // then waits for `busy` to become false.
    record.busy.store(true, Ordering::SeqCst);
    let live = SESSION.is_open() && matches!(record.state(), RecordState::Arming | RecordState::Armed);
    if live {
        let account = &record.account;
        let least = account.least_weight.load(Ordering::Relaxed).max(STRETCHES.of(Engine::Cpu).into());
        let weight = postpone(&account.postponed, weigh(record, occasion), least);
        if weight > 0 {
            add(&COUNTERS.samples, 1);
            add(&COUNTERS.periods, weight.cast_unsigned());
            let handling = Handling::begin(account);
            sample::take_cpu(interruption, weight.cast_unsigned());
            handling.end(account, SESSION.interval_ns());
        }
        if let Some(ring) = record.clock.ring.place() {
            // SAFETY: the ring stays mapped while the record is busy; only this thread's handlers read it.
            unsafe { kernel_stack::empty(ring) };
        }
    }
    record.busy.store(false, Ordering::Release);
    live
}

/// Adds `weight` periods to the ones that wait. Returns all of them once there are at least `least`, else 0.
fn postpone(waiting: &AtomicI64, weight: i64, least: i64) -> i64 {
    let total = waiting.load(Ordering::Relaxed).saturating_add(weight.max(0));
    let is_due = total >= least;
    waiting.store(if is_due { 0 } else { total }, Ordering::Relaxed);
    if is_due { total } else { 0 }
}

/// Returns the number of periods that the sample stands for. At 0 or less there is no sample.
fn weigh(record: &ThreadRecord, occasion: Occasion) -> i64 {
    let account = &record.account;
    let interval = SESSION.interval_ns();
    let (due, is_first) = if account.started.load(Ordering::Relaxed) {
        (
            match occasion {
                Occasion::Overflow => 1,
                Occasion::Expiry { overrun } => overrun.saturating_add(1),
                Occasion::Itimer { periods } => periods,
                Occasion::WallRequest | Occasion::EventOverflow => 0,
            },
            false,
        )
    } else {
        account.started.store(true, Ordering::Relaxed);
        (
            match occasion {
                Occasion::Overflow => first_overflow(record, interval),
                Occasion::Expiry { overrun } => first_expiry(record, interval, overrun),
                Occasion::Itimer { periods } => periods,
                Occasion::WallRequest | Occasion::EventOverflow => 0,
            },
            true,
        )
    };
    let merged = if let Occasion::Expiry { overrun } = occasion { overrun } else { 0 };
    add(&COUNTERS.overrun_periods, merged.cast_unsigned());
    let (credit, owed) = settle(&account.owed, due, merged);
    account.credited.fetch_add(credit, Ordering::Relaxed);
    add(&COUNTERS.owed_periods, owed.cast_unsigned());
    if !is_first {
        if credit == 0 {
            add(&COUNTERS.surplus_signals, 1);
        }
        return credit;
    }
    let settled = settle_ended(&SESSION.ended_balance_ns, credit, interval);
    add(&COUNTERS.estate_periods, settled.max(0).cast_unsigned());
    let weight = credit.saturating_add(settled);
    if weight == 0 {
        add(&COUNTERS.phased_out, 1);
    }
    weight
}

/// Handles the first overflow of the thread's event, which was opened with the thread's random part of an
/// interval as its period. From here on the event runs freely, with a whole interval as its period.
fn first_overflow(record: &ThreadRecord, interval_ns: i64) -> i64 {
    // SAFETY: the descriptor is the record's event while the record is armed; the kernel reads one u64.
    unsafe { libc::ioctl(record.clock.handle(), PERF_EVENT_IOC_PERIOD, &raw const interval_ns) };
    1
}

/// Handles the first expiry of the thread's timer, which was set to expire at the thread's first tick.
/// Credits that tick, and sets the timer to expire at the ends of the thread's periods.
fn first_expiry(record: &ThreadRecord, interval_ns: i64, overrun: i64) -> i64 {
    let account = &record.account;
    let now_ns = thread_cpu_ns();
    let epoch_ns = epoch_at_first_tick(
        now_ns,
        account.base_ns.load(Ordering::Relaxed),
        account.phase_ns.load(Ordering::Relaxed),
        SESSION.tick_ns(),
        overrun,
    );
    account.epoch_ns.store(epoch_ns, Ordering::Relaxed);
    account.owed.store(0, Ordering::Relaxed);
    let due = due_periods(now_ns, epoch_ns, interval_ns);
    let credited = account.credited.load(Ordering::Relaxed);
    let next = TimerStart::At(next_due_ns(epoch_ns, due, interval_ns));
    set_timer(record.clock.handle(), next, interval_ns);
    due.saturating_sub(credited).max(0)
}

/// The moment at which a timer first expires, on its own clock.
#[derive(Clone, Copy, Debug)]
pub enum TimerStart {
    /// After this many ns.
    After(i64),
    /// When the clock shows this many ns; at once if the clock has passed that time.
    At(i64),
}

/// Sets the timer with the kernel's id `timer_id` to expire at `start`, and from then on every `interval_ns`.
pub fn set_timer(timer_id: i32, start: TimerStart, interval_ns: i64) -> bool {
    let timespec = |ns: i64| libc::timespec {
        tv_sec: ns.wrapping_div(1_000_000_000),
        tv_nsec: ns.wrapping_rem(1_000_000_000),
    };
    let (flags, first_ns) = match start {
        TimerStart::After(ns) => (0, ns),
        TimerStart::At(ns) => (libc::TIMER_ABSTIME, ns),
    };
    let setting = libc::itimerspec { it_interval: timespec(interval_ns), it_value: timespec(first_ns) };
    // The raw system call, since a timer that was made by the raw call has an id that the C library's
    // functions may not accept.
    // SAFETY: the kernel reads one itimerspec.
    let result = unsafe {
        libc::syscall(
            libc::SYS_timer_settime,
            timer_id,
            flags,
            &raw const setting,
            ptr::null_mut::<libc::itimerspec>(),
        )
    };
    result == 0
}

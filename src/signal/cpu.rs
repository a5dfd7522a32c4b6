//! CPU signals: whose is it, what does it stand for, and the sample.
//!
//! System calls per sample: none with perf events and timers, one (`gettid`) with the process's timer. A thread's
//! first signal makes two more, which put its clock into step. `pthread_self` is a register.

use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::core::record::Engine;
use crate::core::thread::{ClockKind, RecordState, ThreadRecord, current_os_tid};

use super::cpu_account::{due_periods, epoch_at_first_tick, inherit, next_due_ns, settle};
use super::cpu_counters::{COUNTERS, add};
use super::sample_gate::SampleGate;
use super::stretch::STRETCHES;
use super::thread_table::{FdOwner, SignalToken, fd_owner, record_of_tid};
use super::{event, kernel_stack, wall};

/// What takes a sample of the current thread: its record, the interrupted `ucontext_t`, and the number of
/// periods that the sample stands for, at least 1.
///
/// # Safety
/// It is called inside a signal handler and keeps to the zone's rules; the context is valid until it returns.
pub type SampleFn = unsafe fn(&ThreadRecord, *mut libc::c_void, u64);

/// What a session of the CPU engine tells the handler.
#[derive(Debug)]
pub struct CpuSession {
    /// Whether signals make samples.
    gate: SampleGate<SampleFn>,
    interval_ns: AtomicI64,
    tick_ns: AtomicI64,
    /// Periods of one signal of the process's timer; 0 while no session has used it.
    itimer_periods: AtomicI64,
    /// What ended threads left: see `cpu_account`.
    pub estate_ns: AtomicI64,
}

/// The one session.
pub static SESSION: CpuSession = CpuSession {
    // SAFETY: it is a function pointer.
    gate: unsafe { SampleGate::closed() },
    interval_ns: AtomicI64::new(0),
    tick_ns: AtomicI64::new(0),
    itimer_periods: AtomicI64::new(0),
    estate_ns: AtomicI64::new(0),
};

impl CpuSession {
    /// Opens the handler to signals.
    pub fn open(&self, sample: SampleFn, interval_ns: i64, tick_ns: i64) {
        self.interval_ns.store(interval_ns, Ordering::Release);
        self.tick_ns.store(tick_ns, Ordering::Release);
        self.estate_ns.store(0, Ordering::Release);
        self.gate.open(sample);
    }

    /// Closes the handler to signals: from now on they are stale. Handlers at work show in
    /// [`ThreadRecord::busy`].
    pub fn close(&self) {
        self.gate.close();
    }

    /// Whether a session is open.
    pub fn is_open(&self) -> bool {
        self.gate.is_open()
    }

    /// The interval in CPU time.
    pub fn interval_ns(&self) -> i64 {
        self.interval_ns.load(Ordering::Acquire)
    }

    /// The scheduler's tick, to which timers are bound.
    pub fn tick_ns(&self) -> i64 {
        self.tick_ns.load(Ordering::Acquire)
    }

    /// Says that the process's timer is ours and how many periods each of its signals stands for: from then on,
    /// signals of the kernel's own are taken for that timer's.
    pub fn expect_itimer(&self, periods: i64) {
        self.itimer_periods.store(periods, Ordering::Release);
    }

    /// Says that the timer is stopped. Its last signal may still be pending, and looks like those of a timer that
    /// somebody else sets from now on.
    pub fn forget_itimer(&self) {
        self.itimer_periods.store(ITIMER_STOPPED, Ordering::Release);
    }
}

/// In place of a number of periods: see [`CpuSession::forget_itimer`].
const ITIMER_STOPPED: i64 = -1;

/// Whose a signal is.
#[derive(Debug)]
pub enum SignalOwner {
    /// A clock of ours, of this thread.
    Own(&'static ThreadRecord, Occasion),
    /// It was a clock of ours, or is one that gives no sample here.
    Stale,
    /// Somebody else's.
    Foreign,
    /// Somebody else's, or the last one of our process timer.
    PerhapsForeign,
}

/// What the signal says of itself.
#[derive(Clone, Copy, Debug)]
pub enum Occasion {
    /// An overflow of the thread's event.
    Overflow,
    /// An expiry of the thread's timer, and how many more were merged into it.
    Expiry {
        /// `si_overrun`.
        overrun: i64,
    },
    /// The wall-clock sampler has asked for a sample: not of this engine.
    Asked,
    /// An overflow of the event that the thread is sampled by: not of this engine either.
    Counted,
    /// An expiry of the process's timer.
    Itimer {
        /// How many periods it stands for.
        periods: i64,
    },
}

/// `siginfo_t`'s fields as the kernel lays them out on 64-bit machines (include/uapi/asm-generic/siginfo.h).
#[repr(C)]
struct SigInfo {
    signo: i32,
    errno: i32,
    code: i32,
    _pad: i32,
    /// `_timer._tid`; `_kill._pid`; the low half of `_sigpoll._band`.
    _timer_id: i32,
    /// `_timer._overrun`.
    overrun: i32,
    /// `_timer._sigval`; `_sigpoll._fd` is its low half.
    value: u64,
}

const SI_TIMER: i32 = -2;
const SI_QUEUE: i32 = -1;
const SI_USER: i32 = 0;
const SI_TKILL: i32 = -6;
const SI_KERNEL: i32 = 0x80;
/// The first and last of SIGIO's codes, which F_SETSIG keeps for other signals.
const POLL_CODES: std::ops::RangeInclusive<i32> = 1..=6;

/// Whose signal it is.
///
/// # Safety
/// `info` is what the kernel handed to a signal handler.
pub unsafe fn owner_of(info: *const libc::siginfo_t) -> SignalOwner {
    // SAFETY: a siginfo_t is 128 bytes, of which SigInfo names the first 32; all of them are initialised.
    let info = unsafe { &*info.cast::<SigInfo>() };
    match info.code {
        SI_TIMER => {
            let token = SignalToken(info.value);
            if !token.is_ours() {
                return SignalOwner::Foreign;
            }
            own(token.record(), Occasion::Expiry { overrun: i64::from(info.overrun).max(0) })
        }
        SI_QUEUE => {
            let token = SignalToken(info.value);
            if !token.is_ours() {
                return SignalOwner::Foreign;
            }
            own(token.record(), Occasion::Asked)
        }
        SI_TKILL if wall::SESSION.asks_by_kill() && wall::SESSION.sends(info.signo) => {
            owner_of_kill(info._timer_id)
        }
        // The kernel had no memory, or no leave, to queue what came with it (kernel/signal.c, `__send_signal_locked`,
        // `collect_signal`): others in this PID namespace say who they are.
        SI_USER
            if info._timer_id == 0
                && (wall::SESSION.sends(info.signo) || event::SESSION.sends(info.signo)) =>
        {
            SignalOwner::PerhapsForeign
        }
        code if POLL_CODES.contains(&code) => match fd_owner(info.value as i32) {
            FdOwner::Foreign => SignalOwner::Foreign,
            FdOwner::Closed => SignalOwner::Stale,
            FdOwner::Event(token) => {
                let record = token.record();
                let descriptor = record.and_then(|record| record.event.descriptor());
                let is_counted = descriptor == Some(info.value as i32);
                own(record, if is_counted { Occasion::Counted } else { Occasion::Overflow })
            }
        },
        SI_KERNEL => match SESSION.itimer_periods.load(Ordering::Acquire) {
            0 => SignalOwner::Foreign,
            ITIMER_STOPPED => SignalOwner::PerhapsForeign,
            periods => owner_of_itimer(periods),
        },
        _ => SignalOwner::Foreign,
    }
}

fn own(record: Option<&'static ThreadRecord>, occasion: Occasion) -> SignalOwner {
    match record {
        Some(record) if is_current(record) => SignalOwner::Own(record, occasion),
        _ => SignalOwner::Stale,
    }
}

/// The owner of a signal by `tgkill`, which the sampler may have sent; `sender` is the process that the signal names.
fn owner_of_kill(sender: i32) -> SignalOwner {
    // SAFETY: getpid takes nothing and cannot fail.
    if sender != unsafe { libc::getpid() } {
        return SignalOwner::Foreign;
    }
    match record_of_tid(current_os_tid()) {
        Some(record) if record.wall.owes_sample() => SignalOwner::Own(record, Occasion::Asked),
        _ => SignalOwner::PerhapsForeign,
    }
}

fn owner_of_itimer(periods: i64) -> SignalOwner {
    if !SESSION.is_open() {
        return SignalOwner::Stale;
    }
    // The thread's id is asked for and no thread-local is trusted: threads made by a raw clone may share their
    // creator's.
    match record_of_tid(current_os_tid()) {
        None => {
            add(&COUNTERS.itimer_unknown_thread, 1);
            SignalOwner::Stale
        }
        Some(record) if record.clock.kind() == Some(ClockKind::Itimer) => {
            SignalOwner::Own(record, Occasion::Itimer { periods })
        }
        Some(_) => {
            add(&COUNTERS.itimer_elsewhere, 1);
            SignalOwner::Stale
        }
    }
}

/// Whether `record` is this thread's. The first time costs a system call, unless the thread armed itself.
fn is_current(record: &ThreadRecord) -> bool {
    // SAFETY: pthread_self takes nothing, cannot fail and reads a register.
    let thread_pointer = unsafe { libc::pthread_self() } as u64;
    if record.thread_pointer.load(Ordering::Relaxed) == thread_pointer {
        return true;
    }
    let is_current = current_os_tid() == record.os_tid.load(Ordering::Relaxed);
    if is_current {
        record.thread_pointer.store(thread_pointer, Ordering::Relaxed);
    }
    is_current
}

/// Takes the sample that a signal of ours asks for, if it stands for any period. `false` if the clock is gone.
///
/// # Safety
/// Called in a signal handler of the thread of `record`, with that handler's `ucontext`.
pub unsafe fn take_sample(
    record: &'static ThreadRecord,
    occasion: Occasion,
    ucontext: *mut libc::c_void,
) -> bool {
    // The order matters: whoever closes the session or retires the record first says so and then waits for
    // `busy` to be false.
    record.busy.store(true, Ordering::SeqCst);
    let live = SESSION.is_open() && matches!(record.state(), RecordState::Arming | RecordState::Armed);
    if live {
        let weight = put_off(&record.account.put_off, weigh(record, occasion), STRETCHES.of(Engine::Cpu));
        if let (1.., Some(sample)) = (weight, SESSION.gate.sample_fn()) {
            add(&COUNTERS.samples, 1);
            add(&COUNTERS.periods, weight.cast_unsigned());
            // SAFETY: `open` was given a function for exactly this, and the context is the caller's.
            unsafe { sample(record, ucontext, weight.cast_unsigned()) };
        }
        if let Some(ring) = record.clock.ring.place() {
            // SAFETY: it stays mapped for as long as the record is busy; this thread's handlers alone read it.
            unsafe { kernel_stack::empty(ring) };
        }
    }
    record.busy.store(false, Ordering::Release);
    live
}

/// The periods that a sample is to stand for, when there are `weight` more; 0 until there are as many as `stretch`.
fn put_off(waiting: &AtomicI64, weight: i64, stretch: u32) -> i64 {
    let total = waiting.load(Ordering::Relaxed).saturating_add(weight.max(0));
    let is_due = total >= i64::from(stretch);
    waiting.store(if is_due { 0 } else { total }, Ordering::Relaxed);
    if is_due { total } else { 0 }
}

/// How many periods the sample stands for; 0 or less: none, and there is no sample.
fn weigh(record: &ThreadRecord, occasion: Occasion) -> i64 {
    let account = &record.account;
    let interval = SESSION.interval_ns();
    let (due, is_first) = if account.started.load(Ordering::Relaxed) {
        (
            match occasion {
                Occasion::Overflow => 1,
                Occasion::Expiry { overrun } => overrun.saturating_add(1),
                Occasion::Itimer { periods } => periods,
                Occasion::Asked | Occasion::Counted => 0,
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
                Occasion::Asked | Occasion::Counted => 0,
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
    let inherited = inherit(&SESSION.estate_ns, credit, interval);
    add(&COUNTERS.estate_periods, inherited.max(0).cast_unsigned());
    let weight = credit.saturating_add(inherited);
    if weight == 0 {
        add(&COUNTERS.phased_out, 1);
    }
    weight
}

/// `PERF_EVENT_IOC_PERIOD` (include/uapi/linux/perf_event.h): `_IOW('$', 4, __u64)`.
pub const PERF_EVENT_IOC_PERIOD: libc::Ioctl = 0x4008_2404;

/// The event was opened with the thread's random part of an interval as its period. From here on it runs freely,
/// a whole interval at a time.
fn first_overflow(record: &ThreadRecord, interval_ns: i64) -> i64 {
    // SAFETY: the descriptor is the record's event while the record is armed; the kernel reads one u64.
    unsafe { libc::ioctl(record.clock.handle(), PERF_EVENT_IOC_PERIOD, &raw const interval_ns) };
    1
}

/// The timer was set to expire at the thread's first tick. Credits that tick, and sets the timer to expire when
/// the thread's periods end.
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

/// The current thread's CPU clock.
pub fn thread_cpu_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

/// When a timer first expires, on its own clock.
#[derive(Clone, Copy, Debug)]
pub enum TimerStart {
    /// That many nanoseconds from now.
    After(i64),
    /// When the clock shows that many nanoseconds; at once if it does already.
    At(i64),
}

/// Sets a timer, by the kernel's id, to expire once and from then on every `interval_ns`.
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
    // The raw call, since a timer made by the raw call has an id that the C library's functions may not take.
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

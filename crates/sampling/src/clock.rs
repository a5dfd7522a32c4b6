//! The clocks of a thread: arms, synchronises and disarms them.
//!
//! | kind | system calls to arm | to disarm | bound to the tick | reports merged expiries |
//! |---|---|---|---|---|
//! | perf | 6 | 2 | no | no |
//! | timer | 2 | 1 | yes | yes (`si_overrun`) |
//! | itimer | none | none | yes | no |

use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;
use std::{io, mem, ptr};

use parking_lot::Mutex;
use perf_event_open_sys as perf;

use otlpprof_core::thread::{ClockKind, ThreadRecord, current_os_tid};
use otlpprof_signal::cpu::{SESSION, TimerStart, set_timer};
use otlpprof_signal::cpu_counters::{COUNTERS, add};
use otlpprof_signal::delivery::install_handler;
use otlpprof_signal::thread_table::SignalToken;

use super::config::ArmedConfig;
use super::kernel_rings::KernelFramesRefusal;
use super::{exec, kernel_rings, perf_descriptor};

/// The shortest first period of an event, in ns. The kernel would not honour a shorter one, and until the
/// first signal is handled the event keeps overflowing at that period.
const SHORTEST_FIRST_PERIOD_NS: i64 = 100_000;

/// The period, in ns, of an event that is opened only to find out whether it can be opened.
const PROBED_PERIOD_NS: i64 = 1_000_000_000;

/// Arms `record`'s clock: of the kind `first`, or of the next kind that is still available. Sets the record's
/// clock before its first signal can arrive. The account's base, phase and epoch must be set.
pub(super) fn arm(record: &ThreadRecord, config: ArmedConfig, first: ClockKind) -> bool {
    let signal = config.signal;
    if first == ClockKind::Perf && arm_perf(record, config).is_ok() {
        return true;
    }
    if first != ClockKind::Itimer && arm_timer(record, signal).is_ok() {
        if first != ClockKind::Timer {
            add(&COUNTERS.fallback_to_timer, 1);
        }
        return true;
    }
    if ITIMER.lock().start().is_ok() {
        if first != ClockKind::Itimer {
            add(&COUNTERS.fallback_to_itimer, 1);
        }
        record.clock.set(ClockKind::Itimer, -1);
        return true;
    }
    false
}

/// Takes the record's clock down. One of the clock's signals may still be pending in the thread.
pub(super) fn disarm(record: &ThreadRecord) {
    let handle = record.clock.handle();
    match record.clock.kind() {
        Some(ClockKind::Perf) => perf_descriptor::close(handle),
        Some(ClockKind::Timer) => delete_timer(handle),
        Some(ClockKind::Itimer) | None => {}
    }
    record.clock.clear();
}

fn check(result: i64) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// Opens a disabled event that counts a thread's CPU time, including time in the kernel. The kernel has two
/// software clocks, which count the same for an event of one thread, by the same timer (kernel/events/core.c,
/// cpu_clock_event_add and task_clock_event_add). This one is the one that other profilers use.
fn open_event(tid: i32, period_ns: i64, kernel_frames: bool) -> io::Result<i32> {
    let mut attr = perf::bindings::perf_event_attr {
        type_: perf::bindings::PERF_TYPE_SOFTWARE,
        size: size_of::<perf::bindings::perf_event_attr>() as u32,
        config: u64::from(perf::bindings::PERF_COUNT_SW_CPU_CLOCK),
        ..Default::default()
    };
    attr.__bindgen_anon_1.sample_period = period_ns.cast_unsigned();
    attr.__bindgen_anon_2.wakeup_events = 1;
    attr.set_disabled(1);
    if kernel_frames {
        kernel_rings::ask_for(&mut attr);
    }
    perf_descriptor::open(&attr, tid)
}

/// Checks whether this process may count its threads' CPU time, including time in the kernel.
pub(super) fn probe_perf() -> io::Result<()> {
    // SAFETY: the descriptor was opened by this function.
    open_event(0, PROBED_PERIOD_NS, false).map(|fd| unsafe { libc::close(fd) }).map(drop)
}

/// Checks whether such events can record the kernel's frames.
pub(super) fn check_kernel_frames() -> Result<(), KernelFramesRefusal> {
    kernel_rings::check(|| open_event(0, PROBED_PERIOD_NS, true))
}

/// Checks whether the process may have a POSIX timer on a thread's CPU clock.
pub(super) fn probe_timer(signal: i32) -> io::Result<()> {
    create_timer(current_os_tid(), signal, SignalToken(0)).map(delete_timer)
}

fn arm_perf(record: &ThreadRecord, config: ArmedConfig) -> io::Result<()> {
    let tid = record.os_tid.load(Ordering::Relaxed);
    let interval = SESSION.interval_ns();
    let shortest = SHORTEST_FIRST_PERIOD_NS.min(interval / 4);
    let first_period = (interval - record.account.phase_ns.load(Ordering::Relaxed)).max(shortest);
    let fd = open_event(tid, first_period, config.kernel_frames)?;
    if config.kernel_frames {
        kernel_rings::give(fd, &record.clock.ring);
    }
    let set = || record.clock.set(ClockKind::Perf, fd);
    perf_descriptor::start_signals(fd, tid, config.signal, SignalToken::of(record), set).inspect_err(|_| {
        record.clock.clear();
        perf_descriptor::close(fd);
        kernel_rings::take(&record.clock.ring);
    })
}

/// Sets the ordinary period of a thread's event whose first signal has not been handled to do so.
pub(super) fn set_event_period(record: &ThreadRecord, interval_ns: i64) {
    // SAFETY: the caller owns the record's clock, and the descriptor is that clock's event.
    unsafe { perf::ioctls::PERIOD(record.clock.handle(), interval_ns.cast_unsigned()) };
}

/// Returns the id of another thread's CPU clock (include/linux/posix-timers.h): CPUCLOCK_PERTHREAD |
/// CPUCLOCK_SCHED.
pub(super) fn cpu_clock_of(tid: i32) -> libc::clockid_t {
    (!tid) << 3 | 6
}

/// Reads a thread's CPU clock, in ns; `None` if the thread has ended.
pub(super) fn cpu_time_of(tid: i32) -> Option<i64> {
    clock_ns(cpu_clock_of(tid))
}

/// Reads the process's CPU clock, in ns.
pub(super) fn process_cpu_ns() -> i64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

fn clock_ns(id: libc::clockid_t) -> Option<i64> {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the kernel writes one timespec if the call succeeds.
    unsafe {
        (libc::clock_gettime(id, time.as_mut_ptr()) == 0).then(|| {
            let time = time.assume_init();
            time.tv_sec * 1_000_000_000 + time.tv_nsec
        })
    }
}

/// Creates a timer by the raw system call: the C library's ids may differ from the kernel's, and the handler
/// needs the kernel's.
fn create_timer(tid: i32, signal: i32, token: SignalToken) -> io::Result<i32> {
    // SAFETY: all zeroes is a valid sigevent.
    let mut event: libc::sigevent = unsafe { mem::zeroed() };
    event.sigev_value.sival_ptr = token.0 as *mut libc::c_void;
    event.sigev_signo = signal;
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_notify_thread_id = tid;
    let mut id = 0_i32;
    // SAFETY: the kernel reads one sigevent and writes one int.
    let result =
        unsafe { libc::syscall(libc::SYS_timer_create, cpu_clock_of(tid), &raw const event, &raw mut id) };
    check(result).map(|_| id)
}

fn delete_timer(id: i32) {
    // SAFETY: the id belongs to a timer that the caller owns.
    unsafe { libc::syscall(libc::SYS_timer_delete, id) };
}

fn arm_timer(record: &ThreadRecord, signal: i32) -> io::Result<()> {
    let tid = record.os_tid.load(Ordering::Relaxed);
    let id = create_timer(tid, signal, SignalToken::of(record))?;
    record.clock.set(ClockKind::Timer, id);
    // A relative time, so that the timer first expires at the first tick (a time that is past when it is set
    // expires at once). With an interval, so that a delayed first signal carries the length of the delay.
    if set_timer(id, TimerStart::After(1), SESSION.interval_ns()) {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    record.clock.clear();
    delete_timer(id);
    Err(error)
}

/// The process's only ITIMER_PROF.
pub(super) struct Itimer {
    running: bool,
}

pub(super) static ITIMER: Mutex<Itimer> = Mutex::new(Itimer { running: false });

impl Itimer {
    /// Starts the timer, unless it runs already. Fails if the application uses the timer.
    pub(super) fn start(&mut self) -> io::Result<()> {
        if self.running {
            return Ok(());
        }
        let mut present = MaybeUninit::<libc::itimerval>::uninit();
        // SAFETY: the kernel writes one itimerval.
        check(i64::from(unsafe { libc::getitimer(libc::ITIMER_PROF, present.as_mut_ptr()) }))?;
        // SAFETY: the call has succeeded.
        let present = unsafe { present.assume_init() };
        if present.it_value.tv_sec != 0 || present.it_value.tv_usec != 0 {
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        }
        install_handler(libc::SIGPROF).map_err(|_| io::Error::from_raw_os_error(libc::EBUSY))?;
        // The timer cannot expire more often than the tick, and does not report merged expiries.
        let periods = (SESSION.tick_ns() / SESSION.interval_ns()).max(1);
        SESSION.expect_itimer(periods);
        self.set(periods * SESSION.interval_ns() / 1_000)?;
        self.running = true;
        exec::begin();
        Ok(())
    }

    /// Stops the timer, if it is ours.
    pub(super) fn stop(&mut self) {
        if mem::take(&mut self.running) {
            exec::end();
            let _ = self.set(0);
            SESSION.forget_itimer();
        }
    }

    fn set(&self, interval_us: i64) -> io::Result<()> {
        let time = libc::timeval { tv_sec: interval_us / 1_000_000, tv_usec: interval_us % 1_000_000 };
        let setting = libc::itimerval { it_interval: time, it_value: time };
        // SAFETY: the kernel reads one itimerval.
        let result = unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const setting, ptr::null_mut()) };
        check(i64::from(result)).map(drop)
    }
}

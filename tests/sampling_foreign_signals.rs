//! Signals of other code, and signals of ours that arrive too late.
//!
//! Every scenario runs in a forked child of this process, which is itself never profiled. So the chain of
//! handlers belongs only to the child, and the child may be killed.

use std::ffi::{CStr, CString, c_void};
use std::io::ErrorKind;
use std::mem::{self, MaybeUninit};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use otlpprof_core::thread::ClockKind;
use otlpprof_sampling::config::Config;
use otlpprof_sampling::cpu;
use otlpprof_signal::call_trace::CallTrace;
use otlpprof_testkit::sampling_session::*;
use otlpprof_testkit::stolen_time::{Measured, Verdict, measure};

static FOREIGN: AtomicU32 = AtomicU32::new(0);
static FOREIGN_CODE: AtomicI32 = AtomicI32::new(0);
static FOREIGN_BLOCKED: AtomicU32 = AtomicU32::new(0);

fn is_blocked(signal: i32) -> bool {
    let mut set = MaybeUninit::uninit();
    // SAFETY: pthread_sigmask initialises the set, and a null new set is allowed.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), set.as_mut_ptr());
        libc::sigismember(set.as_ptr(), signal) == 1
    }
}

fn note_mask() {
    let own = u32::from(is_blocked(libc::SIGVTALRM));
    let other = u32::from(is_blocked(libc::SIGUSR1));
    FOREIGN_BLOCKED.store(own << 1 | other, Ordering::SeqCst);
}

extern "C" fn foreign_with_info(_: i32, info: *mut libc::siginfo_t, ucontext: *mut c_void) {
    // SAFETY: the kernel passes a valid siginfo_t.
    FOREIGN_CODE.store(unsafe { (*info).si_code }, Ordering::SeqCst);
    note_mask();
    FOREIGN.fetch_add(u32::from(!ucontext.is_null()), Ordering::SeqCst);
}

extern "C" fn foreign_plain(_: i32) {
    note_mask();
    FOREIGN.fetch_add(1, Ordering::SeqCst);
}

fn set_handler(signal: i32, handler: usize, flags: i32, masked: Option<i32>) {
    // SAFETY: an all-zero sigaction is valid, and the pointers refer to live values.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        if let Some(masked) = masked {
            action.sa_mask = set_of(masked);
        }
        assert_eq!(libc::sigaction(signal, &raw const action, ptr::null_mut()), 0);
    }
}

/// The exit code of a forked child that runs `body`; if a signal ended it, the signal's number, negated.
fn in_child(body: impl FnOnce()) -> i32 {
    // SAFETY: the child ends by _exit and so runs no destructor or exit handler of the parent's.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            body();
            libc::_exit(0);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) }
    }
}

fn raise(signal: i32) {
    // SAFETY: raise accesses no memory of ours.
    assert_eq!(unsafe { libc::raise(signal) }, 0);
}

fn must(holds: bool, code: i32) {
    if !holds {
        // SAFETY: _exit ends only the child.
        unsafe { libc::_exit(code) }
    }
}

/// Foreign signals reach the handler that was installed before ours, in the form that it requested, during
/// and after a session.
#[test]
fn foreign_signals_go_to_the_handler_that_was_there() {
    let _guard = serially();
    let signal = libc::SIGVTALRM;
    let config = Config { signal, ..config(ClockKind::Timer) };
    let cases = [
        (foreign_with_info as *const () as usize, libc::SA_SIGINFO, 0b11),
        (foreign_plain as *const () as usize, 0, 0b11),
        (foreign_with_info as *const () as usize, libc::SA_SIGINFO | libc::SA_NODEFER, 0b01),
    ];
    for (handler, flags, blocked) in cases {
        let code = in_child(|| {
            set_handler(signal, handler, flags, Some(libc::SIGUSR1));
            let session = start(&config);
            let before = cpu::counts();
            raise(signal);
            must(FOREIGN.load(Ordering::SeqCst) == 1, 11);
            must(FOREIGN_BLOCKED.load(Ordering::SeqCst) == blocked, 12);
            must(!is_blocked(signal) && !is_blocked(libc::SIGUSR1), 13);
            must(flags & libc::SA_SIGINFO == 0 || FOREIGN_CODE.load(Ordering::SeqCst) == libc::SI_TKILL, 14);
            must(cpu::counts().since(&before).foreign_signals == 1, 15);
            session.stop();
            raise(signal);
            must(FOREIGN.load(Ordering::SeqCst) == 2, 16);
        });
        assert_eq!(code, 0, "flags {flags:x}");
    }
}

/// After a session with the process timer has stopped, the timer belongs to the application again.
#[test]
fn an_application_s_timer_after_ours_reaches_the_application_s_handler() {
    let _guard = serially();
    let code = in_child(|| {
        set_handler(libc::SIGPROF, foreign_plain as *const () as usize, 0, None);
        let session = start(&config(ClockKind::Itimer));
        burn(3 * INTERVAL);
        must(FOREIGN.load(Ordering::SeqCst) == 0, 11);
        session.stop();
        let tick = libc::timeval { tv_sec: 0, tv_usec: 10_000 };
        let setting = libc::itimerval { it_interval: tick, it_value: tick };
        // SAFETY: the kernel reads `setting`, and a null old value is allowed.
        must(unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const setting, ptr::null_mut()) } == 0, 12);
        // The process's timer counts whole ticks of the scheduler, of which a busy machine charges few.
        must(burns_until(|| FOREIGN.load(Ordering::SeqCst) > 5), 13);
    });
    assert_eq!(code, 0);
}

/// Computes until a condition holds. Returns whether it does before [`PATIENCE`] is at its end.
fn burns_until(condition: impl Fn() -> bool) -> bool {
    let give_up = Instant::now() + PATIENCE;
    while !condition() {
        if Instant::now() > give_up {
            return false;
        }
        burn(Duration::from_millis(1));
    }
    true
}

/// Whether samples account for the CPU time that the thread uses in at least `time` from now on.
fn is_sampled_for(kind: ClockKind, time: Duration) -> bool {
    if kind == ClockKind::Itimer {
        // The process's timer is charged a whole tick of the scheduler for the thread that the tick
        // interrupts. On a busy machine its sum over a short time may be far from the time that the thread
        // used.
        let end = sampled() + time;
        return burns_until(|| sampled() >= end);
    }
    let tolerance = 2.0 * INTERVAL.as_secs_f64() / time.as_secs_f64();
    let verdict = measure(kind == ClockKind::Perf, tolerance, kind.name(), || {
        let (since, sampled_before) = (thread_cpu(), sampled());
        burn(time);
        let used = burn_until_within(2 * INTERVAL, since, || sampled() - sampled_before);
        Measured { sampled: sampled() - sampled_before, used }
    });
    verdict == Verdict::Holds
}

/// Without a session the signal ends the process. It still does during and after a session.
#[test]
fn a_signal_without_a_handler_keeps_its_default_action() {
    let _guard = serially();
    let during = in_child(|| {
        let _session = start(&config(ClockKind::Timer));
        raise(libc::SIGPROF);
    });
    assert_eq!(during, -libc::SIGPROF);
    let after = in_child(|| {
        start(&config(ClockKind::Timer)).stop();
        raise(libc::SIGPROF);
    });
    assert_eq!(after, -libc::SIGPROF);
    let ignored_by_default = in_child(|| {
        let _session = start(&Config { signal: libc::SIGURG, ..config(ClockKind::Timer) });
        raise(libc::SIGURG);
    });
    assert_eq!(ignored_by_default, 0);
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let _guard = serially();
    let code = in_child(|| {
        set_handler(libc::SIGPROF, libc::SIG_IGN, 0, None);
        let session = start(&config(ClockKind::Timer));
        raise(libc::SIGPROF);
        must(is_sampled_for(ClockKind::Timer, Duration::from_millis(100)), 21);
        session.stop();
        raise(libc::SIGPROF);
    });
    assert_eq!(code, 0);
}

#[test]
fn a_one_shot_handler_is_called_once() {
    let _guard = serially();
    let code = in_child(|| {
        set_handler(libc::SIGPROF, foreign_plain as *const () as usize, libc::SA_RESETHAND, None);
        let _session = start(&config(ClockKind::Timer));
        raise(libc::SIGPROF);
        must(FOREIGN.load(Ordering::SeqCst) == 1, 31);
        raise(libc::SIGPROF);
    });
    assert_eq!(code, -libc::SIGPROF);
}

/// The application's own timers that use our signal.
#[test]
fn timers_of_others_are_foreign() {
    let _guard = serially();
    let code = in_child(|| {
        set_handler(libc::SIGPROF, foreign_with_info as *const () as usize, libc::SA_SIGINFO, None);
        let _session = start(&config(ClockKind::Timer));
        // SAFETY: an all-zero sigevent and itimerspec are valid. The timer lives until the child ends.
        unsafe {
            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_notify = libc::SIGEV_SIGNAL;
            event.sigev_signo = libc::SIGPROF;
            event.sigev_value.sival_ptr = ptr::from_mut(&mut event).cast();
            let mut timer = ptr::null_mut();
            must(libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) == 0, 41);
            let mut setting: libc::itimerspec = mem::zeroed();
            setting.it_value.tv_nsec = 1_000_000;
            must(libc::timer_settime(timer, 0, &raw const setting, ptr::null_mut()) == 0, 42);
        }
        burn(Duration::from_millis(50));
        must(FOREIGN.load(Ordering::SeqCst) == 1, 43);
        must(FOREIGN_CODE.load(Ordering::SeqCst) == libc::SI_TIMER, 44);
    });
    assert_eq!(code, 0);
}

static OVER_OURS: AtomicUsize = AtomicUsize::new(0);
/// The signals in `chaining` that a thread has raised. The others come from the session's timers.
static RAISED: AtomicU32 = AtomicU32::new(0);

/// A handler that is installed over ours and calls the handler that it replaced, as handlers should.
extern "C" fn chaining(signal: i32, info: *mut libc::siginfo_t, ucontext: *mut c_void) {
    FOREIGN.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the kernel passes a valid siginfo_t.
    let code = unsafe { (*info).si_code };
    RAISED.fetch_add(u32::from(code == libc::SI_TKILL), Ordering::SeqCst);
    // SAFETY: `install_chaining` stored the address of our handler, which has SA_SIGINFO and so this
    // signature.
    let next: extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) =
        unsafe { mem::transmute(OVER_OURS.load(Ordering::SeqCst)) };
    next(signal, info, ucontext);
}

/// Each session finds another handler over ours and is installed on top of it. No signal is passed in a
/// circle.
#[test]
fn handlers_over_ours_make_no_circle() {
    let _guard = serially();
    let code = in_child(|| {
        set_handler(libc::SIGPROF, libc::SIG_IGN, 0, None);
        start(&config(ClockKind::Timer)).stop();
        install_chaining();
        // Our signals pass through the other handler.
        let session = start(&config(ClockKind::Timer));
        must(is_sampled_for(ClockKind::Timer, Duration::from_millis(100)), 51);
        must(FOREIGN.load(Ordering::SeqCst) == 0, 52);
        raise(libc::SIGPROF);
        must(FOREIGN.load(Ordering::SeqCst) == 1, 53);
        session.stop();
    });
    assert_eq!(code, 0);
}

/// A session's last signals may still be pending after it has ended. The default action would end the
/// process.
#[test]
fn signals_that_come_too_late_are_swallowed() {
    let _guard = serially();
    for kind in [ClockKind::Timer, ClockKind::Perf, ClockKind::Itimer] {
        let code = in_child(|| {
            let Ok(session) = cpu::start(&config(kind)) else {
                // Perf events are not granted on this machine; the other tests report that.
                must(kind == ClockKind::Perf && std::env::var_os("CI").is_none(), 60);
                return;
            };
            // SAFETY: `set_of` returns an initialised set, and a null old set is allowed.
            must(
                unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set_of(libc::SIGPROF), ptr::null_mut()) }
                    == 0,
                61,
            );
            burn(Duration::from_millis(100));
            session.stop();
            // The next session reuses the descriptor's number, the timer's id and the record.
            let next = start(&config(kind));
            // SAFETY: `set_of` returns an initialised set, and a null old set is allowed.
            must(
                unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &set_of(libc::SIGPROF), ptr::null_mut()) }
                    == 0,
                62,
            );
            must(is_sampled_for(kind, Duration::from_millis(100)), 63);
            next.stop();
            burn(Duration::from_millis(50));
        });
        assert_eq!(code, 0, "{}", kind.name());
    }
}

/// Installs a chaining handler over ours. It calls ours.
fn install_chaining() {
    // SAFETY: an all-zero sigaction is valid, and sigaction writes to `action`. A null new action is allowed.
    let ours = unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        libc::sigaction(libc::SIGPROF, ptr::null(), &raw mut action);
        action.sa_sigaction
    };
    OVER_OURS.store(ours, Ordering::SeqCst);
    set_handler(libc::SIGPROF, chaining as *const () as usize, libc::SA_SIGINFO, None);
}

/// Regression: if a program's own handler called ours, which it had replaced, ours applied the default action
/// of the handler before it, which ended the process. This also covers a session that installs our handler
/// over the program's again.
#[test]
fn a_handler_over_ours_that_calls_ours_does_not_end_the_process() {
    let _guard = serially();
    let code = in_child(|| {
        let session = start(&config(ClockKind::Timer));
        install_chaining();
        raise(libc::SIGPROF);
        must(RAISED.load(Ordering::SeqCst) == 1, 71);
        session.stop();
        raise(libc::SIGPROF);
        must(RAISED.load(Ordering::SeqCst) == 2, 72);
        // This session's handler is installed over the program's.
        let _session = start(&config(ClockKind::Timer));
        raise(libc::SIGPROF);
        must(RAISED.load(Ordering::SeqCst) == 3, 73);
    });
    assert_eq!(code, 0);
}

/// All signals that the current thread blocks: bit `n - 1` for signal `n`.
fn blocked() -> u64 {
    (1..=64).map(|signal| u64::from(is_blocked(signal)) << (signal - 1)).sum()
}

static SEEN_BLOCKED: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn note_blocked(_: *mut CallTrace, _: i32, _: *mut c_void) {
    SEEN_BLOCKED.store(blocked() | 1 << 63, Ordering::SeqCst);
}

/// Regression: the signals of two engines were nested on one small alternate stack.
#[test]
fn handlers_block_the_signals_of_all_engines_and_no_fault() {
    let _guard = serially();
    let code = in_child(|| {
        let _session = start(&config(ClockKind::Timer));
        call_in_samples(note_blocked);
        while SEEN_BLOCKED.load(Ordering::SeqCst) == 0 {
            burn(Duration::from_millis(1));
        }
        let is_blocked = |signal: i32| SEEN_BLOCKED.load(Ordering::SeqCst) & 1 << (signal - 1) != 0;
        for (_, signal) in Config::NAMED_SIGNALS {
            must(is_blocked(signal), 80);
        }
        must((libc::SIGRTMIN()..libc::SIGRTMAX()).all(is_blocked), 81);
        for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS] {
            must(!is_blocked(fault), 82);
        }
        must(blocked() == 0, 83);
    });
    assert_eq!(code, 0);
}

extern "C" fn note_all_blocked(_: i32) {
    SEEN_BLOCKED.store(blocked(), Ordering::SeqCst);
}

/// A handler finds the same signals blocked with and without a session.
#[test]
fn a_foreign_handler_has_the_mask_that_it_would_have_without_us() {
    let _guard = serially();
    for flags in [0, libc::SA_NODEFER] {
        let code = in_child(|| {
            let handler = note_all_blocked as *const () as usize;
            set_handler(libc::SIGPROF, handler, flags, Some(libc::SIGUSR1));
            // SAFETY: `set_of` returns an initialised set, and a null old set is allowed.
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set_of(libc::SIGWINCH), ptr::null_mut()) };
            raise(libc::SIGPROF);
            let without = SEEN_BLOCKED.swap(0, Ordering::SeqCst);
            must(without & 1 << (libc::SIGWINCH - 1) != 0, 84);
            let _session = start(&config(ClockKind::Timer));
            raise(libc::SIGPROF);
            must(SEEN_BLOCKED.load(Ordering::SeqCst) == without, 85);
        });
        assert_eq!(code, 0, "flags {flags:x}");
    }
}

/// A function of the sample library.
fn library_function(name: &CStr) -> *mut c_void {
    let path = CString::new(otlpprof_testkit::products::DDPROFTEST).unwrap();
    // SAFETY: both names are C strings. The library is never closed, so the address stays valid.
    let found = unsafe { libc::dlsym(libc::dlopen(path.as_ptr(), libc::RTLD_NOW), name.as_ptr()) };
    assert!(!found.is_null(), "{name:?}");
    found
}

/// A handler that does not return leaves the same signals blocked as without us, and no signal of the
/// engines.
#[test]
fn a_foreign_handler_that_leaves_by_siglongjmp_leaves_none_of_our_signals_blocked() {
    let _guard = serially();
    let install = library_function(c"ddprof_install_leaving_handler");
    let leave = library_function(c"ddprof_leave_handler");
    // SAFETY: native/ddproftest/ddproftest.h declares the functions with these types.
    let (install, leave) = unsafe {
        let install = mem::transmute::<*mut c_void, extern "C" fn(i32) -> i32>(install);
        (install, mem::transmute::<*mut c_void, extern "C" fn(i32) -> u64>(leave))
    };
    let code = in_child(|| {
        let signal = libc::SIGVTALRM;
        must(install(signal) == 0, 91);
        let without = leave(signal);
        must(without == 1 << (signal - 1), 92);
        let _session = start(&Config { signal, ..config(ClockKind::Timer) });
        must(leave(signal) == without, 93);
        must(is_sampled_for(ClockKind::Timer, Duration::from_millis(100)), 94);
    });
    assert_eq!(code, 0);
}

/// The remaining time of the process timer, in microseconds; 0 if it does not run.
fn itimer_us() -> i64 {
    let mut itimer = MaybeUninit::<libc::itimerval>::zeroed();
    // SAFETY: the kernel writes one itimerval.
    let itimer = unsafe {
        libc::getitimer(libc::ITIMER_PROF, itimer.as_mut_ptr());
        itimer.assume_init()
    };
    itimer.it_value.tv_sec * 1_000_000 + itimer.it_value.tv_usec
}

/// Regression: unlike the other clocks, the process timer survives exec, and its first signal ended the new
/// program. If exec fails, the timer stays as it was.
#[test]
fn a_program_that_the_process_replaces_itself_by_gets_no_signal_of_ours() {
    let _guard = serially();
    for kind in [ClockKind::Itimer, ClockKind::Timer] {
        let code = in_child(|| {
            let _session = start(&config(kind));
            let error = Command::new("/no/such/program").exec();
            must(error.kind() == ErrorKind::NotFound, 101);
            must((itimer_us() > 0) == (kind == ClockKind::Itimer), 102);
            // The new program computes for many periods.
            let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 7";
            let _ = Command::new("/bin/sh").args(["-c", work]).exec();
            must(false, 103);
        });
        assert_eq!(code, 7, "{}", kind.name());
    }
}

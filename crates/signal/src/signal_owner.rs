//! Decides whose a signal is, by its `siginfo_t`: a clock of ours, one that no longer exists, or other
//! code's.

use std::sync::atomic::Ordering;

use otlpprof_core::thread::{ClockKind, ThreadRecord, current_os_tid};

use super::cpu::{self, ProcessTimer};
use super::cpu_counters::{COUNTERS, add};
use super::occasion::Occasion;
use super::thread_table::{FdOwner, SignalToken, fd_owner, record_of_tid};
use super::{event, wall};

/// The owner of a signal.
#[derive(Debug)]
pub(super) enum SignalOwner {
    /// A clock of ours that belongs to this thread.
    Own(&'static ThreadRecord, Occasion),
    /// A clock of ours that no longer exists, or one that results in no sample in this thread.
    Stale,
    /// Other code.
    Foreign,
    /// Other code, or a signal of ours that cannot be recognised any more, such as the last one of our
    /// process timer.
    PerhapsForeign,
}

/// The fields of `siginfo_t` as the kernel lays them out on 64-bit machines
/// (include/uapi/asm-generic/siginfo.h).
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
/// The first and last of SIGIO's codes, which F_SETSIG also uses for other signals.
const POLL_CODES: std::ops::RangeInclusive<i32> = 1..=6;

/// Returns the owner of the signal that `info` describes.
///
/// # Safety
/// `info` is the one that the kernel passed to a signal handler.
pub(super) unsafe fn owner_of(info: *const libc::siginfo_t) -> SignalOwner {
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
            own(token.record(), Occasion::WallRequest)
        }
        SI_TKILL if wall::SESSION.signals_by_tgkill() && wall::SESSION.sends(info.signo) => {
            // SAFETY: getpid takes nothing and cannot fail.
            let is_of_this_process = info._timer_id == unsafe { libc::getpid() };
            if is_of_this_process { owner_without_token() } else { SignalOwner::Foreign }
        }
        // `SI_USER` with process id 0: the kernel lacked memory, or room below RLIMIT_SIGPENDING, to queue
        // the signal's data (kernel/signal.c, `__send_signal_locked`, `collect_signal`). Signals that
        // processes of this PID namespace send carry the id of their sender.
        SI_USER if info._timer_id == 0 && wall::SESSION.sends(info.signo) => owner_without_token(),
        SI_USER if info._timer_id == 0 && event::SESSION.sends(info.signo) => SignalOwner::PerhapsForeign,
        code if POLL_CODES.contains(&code) => match fd_owner(info.value as i32) {
            FdOwner::Foreign => SignalOwner::Foreign,
            FdOwner::Closed => SignalOwner::Stale,
            FdOwner::Event(token) => {
                let record = token.record();
                let descriptor = record.and_then(|record| record.event.descriptor());
                let is_counted = descriptor == Some(info.value as i32);
                own(record, if is_counted { Occasion::EventOverflow } else { Occasion::Overflow })
            }
        },
        SI_KERNEL => match cpu::SESSION.process_timer() {
            ProcessTimer::Unused => SignalOwner::Foreign,
            ProcessTimer::Stopped => SignalOwner::PerhapsForeign,
            ProcessTimer::Ours { periods } => owner_of_itimer(periods),
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

/// Returns the owner of a signal that carries no token, perhaps one of the wall-clock sampler.
fn owner_without_token() -> SignalOwner {
    match record_of_tid(current_os_tid()) {
        Some(record) if record.wall.owes_sample() => SignalOwner::Own(record, Occasion::WallRequest),
        _ => SignalOwner::PerhapsForeign,
    }
}

fn owner_of_itimer(periods: i64) -> SignalOwner {
    if !cpu::SESSION.is_open() {
        return SignalOwner::Stale;
    }
    // The kernel's thread id is asked for, and no thread-local is trusted: threads made by a raw clone may
    // share their creator's thread-local storage.
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

/// Whether `record` belongs to this thread. The first check costs a system call, unless the thread armed
/// itself.
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

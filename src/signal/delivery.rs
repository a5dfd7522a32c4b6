//! The signal handler itself.

use crate::core::record::Engine;
use crate::core::thread::ThreadRecord;

use super::chain::{
    ChainError, HandlerOf, MAX_LINKS, forward, has_handler, has_other_handler, install, is_ours,
};
use super::counters::COUNTERS as SAMPLE_COUNTERS;
use super::cpu::{Occasion, SignalOwner, owner_of, take_sample};
use super::cpu_counters::{COUNTERS, add};
use super::handler_stack::with_room;
use super::{event, wall};

type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// One function for each link of the chain.
static HANDLERS: [Handler; MAX_LINKS] =
    [handle::<0>, handle::<1>, handle::<2>, handle::<3>, handle::<4>, handle::<5>, handle::<6>, handle::<7>];

const HANDLER_OF: HandlerOf = |link| HANDLERS.get(link).map(|handler| *handler as usize);

/// Sees to it that `signal` comes to us first. One caller at a time; not in a handler.
pub fn install_handler(signal: i32) -> Result<(), ChainError> {
    install(signal, HANDLER_OF)
}

/// Whether `signal` comes to us first.
pub fn handler_is_installed(signal: i32) -> bool {
    is_ours(signal, HANDLER_OF)
}

/// Whether `signal` comes to a handler that is not ours.
pub fn is_held_by_another(signal: i32) -> bool {
    has_other_handler(signal, HANDLER_OF)
}

/// The interrupted code must find everything as it was: `errno` is the one thing that the kernel does not save.
extern "C" fn handle<const LINK: usize>(
    signal: i32,
    info: *mut libc::siginfo_t,
    ucontext: *mut libc::c_void,
) {
    // SAFETY: the C library's own location, always valid.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let saved = unsafe { *errno };
    // SAFETY: `info` is the kernel's.
    match unsafe { owner_of(info) } {
        SignalOwner::Own(record, occasion) => {
            // SAFETY: the record is this thread's, the context this handler's.
            let sample = || unsafe { take_sample_of(record, occasion, ucontext) };
            if with_room(record, ucontext, sample).is_none() {
                SAMPLE_COUNTERS.has_no_stack(engine_of(occasion));
            }
        }
        SignalOwner::Stale => add(&COUNTERS.stale_signals, 1),
        SignalOwner::Foreign => {
            add(&COUNTERS.foreign_signals, 1);
            // SAFETY: these are this handler's own arguments.
            unsafe { forward(LINK, HANDLER_OF, signal, info, ucontext) };
        }
        // A handler bears one signal too many; the default action would end the process for it.
        SignalOwner::PerhapsForeign if has_handler(LINK) => {
            add(&COUNTERS.foreign_signals, 1);
            // SAFETY: as above.
            unsafe { forward(LINK, HANDLER_OF, signal, info, ucontext) };
        }
        SignalOwner::PerhapsForeign => add(&COUNTERS.stale_signals, 1),
    }
    // SAFETY: as above.
    unsafe { *errno = saved };
}

const fn engine_of(occasion: Occasion) -> Engine {
    match occasion {
        Occasion::Asked => Engine::Wall,
        Occasion::Counted => Engine::Event,
        Occasion::Overflow | Occasion::Expiry { .. } | Occasion::Itimer { .. } => Engine::Cpu,
    }
}

/// Has the engine whose signal it is take its sample.
///
/// # Safety
/// The record is this thread's, and `ucontext` its handler's.
unsafe fn take_sample_of(record: &'static ThreadRecord, occasion: Occasion, ucontext: *mut libc::c_void) {
    let engine = engine_of(occasion);
    SAMPLE_COUNTERS.signal_has_come(engine);
    // SAFETY: by the contract.
    unsafe {
        match engine {
            Engine::Wall => drop(wall::take_sample(record, ucontext)),
            Engine::Event => drop(event::take_sample(record, ucontext)),
            _ => {
                let live = take_sample(record, occasion, ucontext);
                add(if live { &COUNTERS.own_signals } else { &COUNTERS.stale_signals }, 1);
            }
        }
    }
}

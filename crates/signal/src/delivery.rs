//! The signal handler itself.

use otlpprof_core::engine::Engine;

use super::chain::{
    ChainError, HandlerOf, MAX_LINKS, forward, has_handler, has_other_handler, install, is_ours,
};
use super::counters::COUNTERS as SAMPLE_COUNTERS;
use super::cpu_counters::{COUNTERS, add};
use super::handler_stack::with_room;
use super::interruption::Interruption;
use super::occasion::Occasion;
use super::signal_owner::{SignalOwner, owner_of};
use super::{cpu, event, wall};

type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// One handler function for each link of the chain.
static HANDLERS: [Handler; MAX_LINKS] =
    [handle::<0>, handle::<1>, handle::<2>, handle::<3>, handle::<4>, handle::<5>, handle::<6>, handle::<7>];

const HANDLER_OF: HandlerOf = |link| HANDLERS.get(link).map(|handler| *handler as usize);

/// Installs a handler of ours as the first receiver of `signal`. One caller at a time; not in a handler.
pub fn install_handler(signal: i32) -> Result<(), ChainError> {
    install(signal, HANDLER_OF)
}

/// Whether `signal` is delivered to a handler of ours first.
pub fn handler_is_installed(signal: i32) -> bool {
    is_ours(signal, HANDLER_OF)
}

/// Whether `signal` is delivered to a handler that is not ours.
pub fn is_held_by_another(signal: i32) -> bool {
    has_other_handler(signal, HANDLER_OF)
}

/// The signal handler of link `LINK`. Saves and restores `errno`, which is the only state of the interrupted
/// code that the kernel does not save.
extern "C" fn handle<const LINK: usize>(
    signal: i32,
    info: *mut libc::siginfo_t,
    ucontext: *mut libc::c_void,
) {
    // SAFETY: the C library's location of this thread's `errno`, always valid.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the C library's location of this thread's `errno`, always valid.
    let saved = unsafe { *errno };
    // SAFETY: the kernel passed `info` to this handler.
    match unsafe { owner_of(info) } {
        SignalOwner::Own(record, occasion) => {
            let sample = |room| {
                // SAFETY: the record is this thread's (`owner_of`), the context is the one that the kernel
                // passed to this handler, which waits for this call.
                let interruption = unsafe { Interruption::new(record, ucontext, room) };
                take_sample_of(&interruption, occasion);
            };
            if with_room(record, ucontext, sample).is_none() {
                SAMPLE_COUNTERS.count_missing_stack(engine_of(occasion));
            }
        }
        SignalOwner::Stale => add(&COUNTERS.stale_signals, 1),
        SignalOwner::Foreign => {
            add(&COUNTERS.foreign_signals, 1);
            // SAFETY: the arguments are the ones that the kernel passed to this handler.
            unsafe { forward(LINK, HANDLER_OF, signal, info, ucontext) };
        }
        // A foreign handler tolerates a surplus signal of ours, but the default action for such a signal
        // would end the process.
        SignalOwner::PerhapsForeign if has_handler(LINK) => {
            add(&COUNTERS.foreign_signals, 1);
            // SAFETY: the arguments are the ones that the kernel passed to this handler.
            unsafe { forward(LINK, HANDLER_OF, signal, info, ucontext) };
        }
        SignalOwner::PerhapsForeign => add(&COUNTERS.stale_signals, 1),
    }
    // SAFETY: the C library's location of this thread's `errno`, always valid.
    unsafe { *errno = saved };
}

const fn engine_of(occasion: Occasion) -> Engine {
    match occasion {
        Occasion::WallRequest => Engine::Wall,
        Occasion::EventOverflow => Engine::Event,
        Occasion::Overflow | Occasion::Expiry { .. } | Occasion::Itimer { .. } => Engine::Cpu,
    }
}

/// Takes the sample of the engine that caused the signal.
fn take_sample_of(interruption: &Interruption<'_>, occasion: Occasion) {
    let engine = engine_of(occasion);
    SAMPLE_COUNTERS.signal_has_come(engine);
    match engine {
        Engine::Wall => wall::take_sample(interruption),
        Engine::Event => event::take_sample(interruption),
        _ => {
            let is_live = cpu::take_sample(interruption, occasion);
            add(if is_live { &COUNTERS.own_signals } else { &COUNTERS.stale_signals }, 1);
        }
    }
}

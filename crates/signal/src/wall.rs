//! Wall-clock signals: takes the sample of a thread that the sampler has picked, and reports to the sampler.
//!
//! The sampler (`sampling::wall`) stores beforehand for how much time the sample stands, and the sample's
//! number. The handler reports that the sample has been taken, and what the thread's CPU clock showed at that
//! time. A thread whose clock stands still has not moved since, and need not be woken to find that out.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use otlpprof_core::thread::RecordState;

use super::clock::thread_cpu_ns;
use super::interruption::Interruption;
use super::safe_load::ProcessMemory;
use super::sample::{self, NotRecorded};

/// Parameters of a session of the wall-clock engine, for the handler.
#[derive(Debug)]
pub struct WallSession {
    /// Whether signals result in samples.
    is_open: AtomicBool,
    /// The signal that the sampler sends, or sent last; 0 before the first session.
    signal: AtomicI32,
    /// Whether the sampler sends the signal by `tgkill`, without the token of the thread's record.
    by_kill: AtomicBool,
}

/// The session of this process.
pub static SESSION: WallSession = WallSession {
    is_open: AtomicBool::new(false),
    signal: AtomicI32::new(0),
    by_kill: AtomicBool::new(false),
};

impl WallSession {
    /// Opens the session: from now on this signal results in samples.
    pub fn open(&self, signal: i32) {
        self.signal.store(signal, Ordering::Release);
        self.is_open.store(true, Ordering::SeqCst);
    }

    /// Closes the session: from now on its signals are stale. A handler that is still at work is visible in
    /// [`WallAccount::busy`](otlpprof_core::thread::WallAccount).
    pub fn close(&self) {
        self.is_open.store(false, Ordering::SeqCst);
    }

    /// Whether threads are signalled by `tgkill`.
    pub fn signals_by_tgkill(&self) -> bool {
        self.by_kill.load(Ordering::Acquire)
    }

    /// From now on threads are signalled by `tgkill`, for the rest of the process's life.
    pub fn use_tgkill(&self) {
        self.by_kill.store(true, Ordering::Release);
    }

    /// Whether `signal` is the sampler's signal. One may still arrive when the session has ended.
    pub fn sends(&self, signal: i32) -> bool {
        self.signal.load(Ordering::Acquire) == signal
    }
}

/// Takes the sample that the sampler has asked for, if there is a session.
pub(super) fn take_sample(interruption: &Interruption<'_>) {
    let record = interruption.thread();
    let account = &record.wall;
    // The order matters: a thread that closes the session first changes its state and then waits for `busy`
    // to become false.
    account.busy.store(true, Ordering::SeqCst);
    let live = SESSION.is_open.load(Ordering::SeqCst) && record.state() == RecordState::Armed;
    if live {
        let number = account.asked.load(Ordering::Acquire);
        let due_ns = account.due_ns.swap(0, Ordering::AcqRel);
        let recorded = match due_ns {
            0 => Err(NotRecorded::NotReady),
            _ => sample::take_wall(interruption, due_ns, number),
        };
        let is_unwanted = matches!(recorded, Err(NotRecorded::Filtered));
        let is_lost = recorded.is_err() && !is_unwanted;
        if is_lost {
            // The thread's next sample stands for the lost time too.
            account.due_ns.fetch_add(due_ns, Ordering::AcqRel);
        }
        let registers = interruption.registers();
        let waiting_pc = registers.pc_after_waiting_system_call(&ProcessMemory);
        let is_waiting = waiting_pc.is_some();
        let [sp, pc] = &account.waiting_at;
        sp.store(registers.sp(), Ordering::Relaxed);
        pc.store(waiting_pc.unwrap_or(0), Ordering::Relaxed);
        account.was_waiting.store(is_waiting && !is_lost, Ordering::Relaxed);
        account.is_unwanted.store(is_unwanted, Ordering::Relaxed);
        account.cpu_ns.store(thread_cpu_ns(), Ordering::Relaxed);
        account.taken.store(number, Ordering::Release);
    }
    account.busy.store(false, Ordering::Release);
}

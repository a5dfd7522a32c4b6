//! Wall-clock signals: takes the sample of a thread that the sampler has picked, and reports to the sampler.
//!
//! The sampler (`sampling::wall`) stores beforehand for how much time the sample stands, and the sample's
//! number. The handler reports that the sample has been taken, and what the thread's CPU clock showed at that
//! time. A thread whose clock stands still has not moved since, and need not be woken to find that out.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use otlpprof_core::thread::{RecordState, ThreadRecord};

use super::clock::thread_cpu_ns;
use super::safe_load::ProcessMemory;
use super::sample::NotRecorded;
use super::sample_gate::SampleGate;
use super::walk::registers::Registers;

/// A function that takes a sample of the current thread. Its arguments: the thread's record, the interrupted
/// `ucontext_t`, the nanoseconds that the sample stands for, and the sample's number. Returns whether the
/// sample was recorded.
///
/// # Safety
/// The function is called inside a signal handler and keeps to the zone's rules. The context is valid until
/// the function returns.
pub type WallSampleFn = unsafe fn(&ThreadRecord, *mut libc::c_void, u64, u32) -> Result<(), NotRecorded>;

/// Parameters of a session of the wall-clock engine, for the handler.
#[derive(Debug)]
pub struct WallSession {
    gate: SampleGate<WallSampleFn>,
    /// The signal that the sampler sends, or sent last; 0 before the first session.
    signal: AtomicI32,
    /// Whether the sampler sends the signal by `tgkill`, without the token of the thread's record.
    by_kill: AtomicBool,
}

/// The session of this process.
pub static SESSION: WallSession = WallSession {
    // SAFETY: `WallSampleFn` is a type of function pointers.
    gate: unsafe { SampleGate::closed() },
    signal: AtomicI32::new(0),
    by_kill: AtomicBool::new(false),
};

impl WallSession {
    /// Opens the session: from now on this signal results in samples.
    pub fn open(&self, signal: i32, sample: WallSampleFn) {
        self.signal.store(signal, Ordering::Release);
        self.gate.open(sample);
    }

    /// Closes the session: from now on its signals are stale. A handler that is still at work is visible in
    /// [`WallAccount::busy`](otlpprof_core::thread::WallAccount).
    pub fn close(&self) {
        self.gate.close();
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

/// Takes the sample that the sampler has asked for. Returns `false` if there is no session.
///
/// # Safety
/// Called in a signal handler of the thread of `record`, with the `ucontext` of that handler.
pub unsafe fn take_sample(record: &'static ThreadRecord, ucontext: *mut libc::c_void) -> bool {
    let account = &record.wall;
    // The order matters: a thread that closes the session first changes its state and then waits for `busy`
    // to become false.
    account.busy.store(true, Ordering::SeqCst);
    let live = SESSION.gate.is_open() && record.state() == RecordState::Armed;
    if live {
        let number = account.asked.load(Ordering::Acquire);
        let due_ns = account.due_ns.swap(0, Ordering::AcqRel);
        let recorded = match SESSION.gate.sample_fn() {
            // SAFETY: `open` was passed a function for this call; the context is the handler's by this
            // function's contract.
            Some(sample) if due_ns > 0 => unsafe { sample(record, ucontext, due_ns, number) },
            _ => Err(NotRecorded::NotReady),
        };
        let is_unwanted = matches!(recorded, Err(NotRecorded::Filtered));
        let is_lost = recorded.is_err() && !is_unwanted;
        if is_lost {
            // The thread's next sample stands for the lost time too.
            account.due_ns.fetch_add(due_ns, Ordering::AcqRel);
        }
        // SAFETY: by this function's contract the context is the one that the kernel passed to the handler.
        let registers = unsafe { Registers::from_context(ucontext) };
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
    live
}

//! Wall-clock signals: the sample of a thread that the sampler has picked, and what it tells the sampler.
//!
//! The sampler (`sampling::wall`) says beforehand for how much time the sample stands, and which one it is; the handler says
//! when it has been taken, and where the thread's CPU clock stood then: a thread whose clock stands still has not moved from
//! there, and need not be woken to see that.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::core::thread::{RecordState, ThreadRecord};

use super::cpu::thread_cpu_ns;
use super::safe_load::ProcessMemory;
use super::sample::NotRecorded;
use super::sample_gate::SampleGate;
use super::walk::registers::Registers;

/// What takes a sample of the current thread: its record, the interrupted `ucontext_t`, the nanoseconds that the sample
/// stands for, and its number. Returns whether it was recorded.
///
/// # Safety
/// It is called inside a signal handler and keeps to the zone's rules; the context is valid until it returns.
pub type WallSampleFn = unsafe fn(&ThreadRecord, *mut libc::c_void, u64, u32) -> Result<(), NotRecorded>;

/// What a session of the wall-clock engine tells the handler.
#[derive(Debug)]
pub struct WallSession {
    gate: SampleGate<WallSampleFn>,
    /// What the sampler sends, or sent last; 0 before.
    signal: AtomicI32,
    /// Whether it sends that by `tgkill`, without the token of the thread's record.
    by_kill: AtomicBool,
}

/// The one session.
pub static SESSION: WallSession = WallSession {
    // SAFETY: it is a function pointer.
    gate: unsafe { SampleGate::closed() },
    signal: AtomicI32::new(0),
    by_kill: AtomicBool::new(false),
};

impl WallSession {
    /// From now on this signal makes samples.
    pub fn open(&self, signal: i32, sample: WallSampleFn) {
        self.signal.store(signal, Ordering::Release);
        self.gate.open(sample);
    }

    /// From now on they are stale. Handlers at work show in [`WallAccount::busy`](crate::core::thread::WallAccount).
    pub fn close(&self) {
        self.gate.close();
    }

    /// Whether threads are asked by `tgkill`.
    pub fn asks_by_kill(&self) -> bool {
        self.by_kill.load(Ordering::Acquire)
    }

    /// From now on they are, for good.
    pub fn ask_by_kill(&self) {
        self.by_kill.store(true, Ordering::Release);
    }

    /// Whether it is the sampler's signal, of which one may still come when the session has ended.
    pub fn sends(&self, signal: i32) -> bool {
        self.signal.load(Ordering::Acquire) == signal
    }
}

/// Takes the sample that the sampler has asked for. `false` if there is no session.
///
/// # Safety
/// Called in a signal handler of the thread of `record`, with that handler's `ucontext`.
pub unsafe fn take_sample(record: &'static ThreadRecord, ucontext: *mut libc::c_void) -> bool {
    let account = &record.wall;
    // The order matters: whoever closes the session says so first and then waits for `busy` to be false.
    account.busy.store(true, Ordering::SeqCst);
    let live = SESSION.gate.is_open() && record.state() == RecordState::Armed;
    if live {
        let number = account.asked.load(Ordering::Acquire);
        let due_ns = account.due_ns.swap(0, Ordering::AcqRel);
        let recorded = match SESSION.gate.sample_fn() {
            // SAFETY: `open` was given a function for exactly this, and the context is the caller's.
            Some(sample) if due_ns > 0 => unsafe { sample(record, ucontext, due_ns, number) },
            _ => Err(NotRecorded::NotReady),
        };
        let is_unwanted = matches!(recorded, Err(NotRecorded::Filtered));
        let is_lost = recorded.is_err() && !is_unwanted;
        if is_lost {
            // The next one stands for it.
            account.due_ns.fetch_add(due_ns, Ordering::AcqRel);
        }
        // SAFETY: by the contract the context is the kernel's.
        let registers = unsafe { Registers::from_context(ucontext) };
        let waiting_pc = registers.behind_waiting_system_call(&ProcessMemory);
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

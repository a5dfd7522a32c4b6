//! Clocks and timers for every thread.
//!
//! In: the interval, the clock and the signal that were chosen, and a function that takes a sample. Out: that
//! function called in a signal handler on each thread once per interval of the thread's CPU time. `agent` starts
//! and stops it; nobody else calls in, but for [`own_threads::spawn`], by which all threads of the profiler are
//! made.
//!
//! The sum of all weights times the interval is the CPU time that the process used: `signal::cpu_account` says
//! why.
//!
//! | Module | Duty |
//! |---|---|
//! | [`config`] | what can be chosen |
//! | [`cpu`] | a session: start and stop |
//! | [`threads`] | which threads are sampled |
//! | [`thread_records`] | their records |
//! | [`native_memory`] | native memory: start and stop, and what of the objects leads there |
//! | `imports` | leads what objects import to functions of ours |
//! | `thread_start` | catches threads at their birth |
//! | `clock` | perf events, POSIX timers, the process's timer |
//! | [`perf_events`] | sampling by any perf event |
//! | `perf_descriptor` | descriptors of perf events |
//! | `handler_wait` | waits for handlers that are still at work at an end |
//! | `kernel_rings` | where perf events tell of the kernel's own frames |
//! | `handler_watch` | puts our handlers before those that others install over them |
//! | `poller` | the safety net: when to look |
//! | `stoppable_thread` | what the poller and the wall-clock sampler run in |
//! | `reconcile` | the safety net: threads and periods that nothing told of |
//! | `tasks` | the kernel's list of threads |
//! | `foreign_proc` | their ids, where /proc is another PID namespace's |
//! | `process_account` | the process's CPU time against that of its threads |
//! | `run_delay` | how long threads have waited for a processor |
//! | [`wall`] | wall-clock sampling: who is signalled, and who need not be |
//! | [`own_threads`] | threads of the profiler |

mod clock;
pub mod config;
pub mod cpu;
mod exec;
mod foreign_proc;
mod handler_wait;
mod handler_watch;
mod imports;
mod kernel_rings;
pub mod native_memory;
pub mod own_threads;
mod perf_descriptor;
pub mod perf_events;
mod poller;
mod process_account;
mod random;
mod reconcile;
mod run_delay;
mod stoppable_thread;
mod tasks;
pub mod thread_records;
mod thread_start;
pub mod threads;
pub mod wall;

pub use kernel_rings::{KernelFrames, join_readers as join_kernel_readers};

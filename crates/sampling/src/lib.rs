//! Clocks and timers for every thread.
//!
//! Input: the interval, the clock and the signal that were chosen, and a function that takes a sample.
//! Output: calls of that function in a signal handler on each thread, once per interval of the thread's CPU
//! time. Only `agent` starts and stops sampling and calls into this module. The exception is
//! [`own_threads::spawn`], by which all threads of the profiler are made.
//!
//! The sum of all weights times the interval is the CPU time that the process used. `signal::cpu_account`
//! gives the reason.
//!
//! | CPU sampling | Duty |
//! |---|---|
//! | [`config`] | the configuration of CPU sampling |
//! | [`cpu`] | a session: start and stop |
//! | `clock` | perf events, POSIX timers, the process's timer |
//! | `poller` | the safety net: schedule |
//! | `reconcile` | the safety net: threads and periods that were not reported |
//! | `process_account` | the process's CPU time compared with the CPU time of its threads |
//! | `run_delay` | the time that threads have waited for a processor |
//! | `exec` | stops the process's timer before the program is replaced |
//!
//! | Threads | Duty |
//! |---|---|
//! | [`threads`] | arms and disarms threads |
//! | `thread_start` | arms threads when they start |
//! | [`thread_records`] | the threads' records |
//! | `tasks` | the kernel's list of threads |
//! | [`task_file`] | the files in which the kernel describes a thread |
//! | `forked_child` | whether this process is a forked child, which is not profiled |
//! | `ended_threads` | the CPU time of threads that have ended |
//! | `foreign_proc` | the threads' ids if /proc belongs to another PID namespace |
//!
//! | Other engines | Duty |
//! |---|---|
//! | [`wall`] | wall-clock sampling: which threads are signalled, and when |
//! | [`perf_events`] | sampling by any perf event |
//! | `perf_descriptor` | descriptors of perf events |
//! | `kernel_names` | reads the names of the kernel's functions before they are needed |
//! | `kernel_rings` | the rings into which the kernel writes its own frames |
//! | [`native_memory`] | native memory: start and stop, and the choice of redirected imports |
//! | `imports` | redirects imports of objects to functions of ours |
//! | [`refusals`] | the system's refusals that cost an engine samples |
//!
//! | Own threads and handlers | Duty |
//! |---|---|
//! | [`own_threads`] | the profiler's own threads |
//! | `stoppable_thread` | the threads of the poller and the wall-clock sampler |
//! | `handler_wait` | waits for handlers at the end of a session |
//! | `handler_watch` | detects foreign handlers that are installed over ours |
//! | `random` | random numbers |

mod clock;
pub mod config;
pub mod cpu;
mod ended_threads;
mod exec;
mod foreign_proc;
mod forked_child;
mod handler_wait;
mod handler_watch;
mod imports;
mod kernel_names;
mod kernel_rings;
pub mod native_memory;
pub mod own_threads;
mod perf_descriptor;
pub mod perf_events;
mod poller;
mod process_account;
mod random;
mod reconcile;
pub mod refusals;
mod run_delay;
mod stoppable_thread;
pub mod task_file;
mod tasks;
pub mod thread_records;
mod thread_start;
pub mod threads;
pub mod wall;

pub use kernel_names::join_readers as join_kernel_readers;
pub use kernel_rings::KernelFrames;

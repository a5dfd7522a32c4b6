//! The code that runs inside a signal handler, and nothing else.
//!
//! A sampling signal arrives in a thread at any instruction: inside malloc, inside the dynamic linker, with
//! any lock held. Code of this module
//!
//! - imports only `otlpprof_core` and `libc` (`Cargo.toml`);
//! - allocates nothing and blocks on nothing: a strip of the sample buffer is tried, never waited for;
//! - makes no system calls but these:
//!   - `clock_gettime`, by the vDSO where there is one (`clock`), and `futex`, to wake the drainer when a
//!     half of a strip is half full;
//!   - at a thread's first signal `gettid`, `clock_gettime` for the thread's CPU clock, and `timer_settime`
//!     or `ioctl`, to synchronise the thread's timer or event with the thread's account;
//!   - `clock_gettime` for the thread's CPU clock after each wall-clock sample, and around a CPU sample that
//!     follows a long one;
//!   - `read` of the thread's perf event before and after each sample of that event;
//!   - `gettid` where the process's timer is in use;
//!   - `getpid` and `gettid` where wall-clock signals are sent by `tgkill`;
//!   - `rt_sigprocmask`, `rt_sigaction` and `tgkill`, to forward a foreign signal;
//!   - `rt_sigaction` and `sigaltstack` on an alternate stack that may be too small;
//! - asks the dynamic linker about code that is in no known object, by a function that takes no lock
//!   ([`loader`]);
//! - takes a sample on a stack of the handlers' own where the thread's stack may be too small
//!   ([`handler_stack`]);
//! - reads thread-specific data only by `pthread_getspecific` (glibc allocates no block lazily for a key
//!   below 32), never by a `thread_local!`;
//! - reads memory of the JVM and of other objects by fault-tolerant loads ([`safe_load`]);
//! - never panics: no indexing, no unchecked arithmetic, no unwrap. Each failure becomes a counter.
//!
//! Known weak spot: `pthread_getspecific` is not on POSIX's list of async-signal-safe functions. The
//! implementations of glibc and musl only read the thread's own block.
//!
//! The replacements of `malloc` and similar functions in other objects ([`native_memory`]) keep to these
//! rules too, since the code that they call must not allocate. For a sample they also make `rt_sigprocmask`
//! and `gettid`.
//!
//! Input: a `ucontext_t` and a [`ThreadRecord`](otlpprof_core::thread::ThreadRecord). Output: a record in
//! [`buffer`], counters in [`counters`].
//!
//! | Signals | Duty |
//! |---|---|
//! | [`delivery`] | the signal handler itself |
//! | `signal_owner` | whose a signal is: a clock of ours, one that no longer exists, or other code's |
//! | `occasion` | the causes of our signals |
//! | [`chain`] | the handlers that were installed before ours |
//! | `undelivered` | signals for whose frame the thread's alternate stack has no room |
//! | [`interruption`] | a thread that a handler of ours has interrupted |
//! | [`handler_stack`] | stacks of the handlers' own |
//! | [`thread_table`] | the record of a thread, by a timer, a descriptor or the kernel's thread id |
//!
//! | Engines | Duty |
//! |---|---|
//! | [`cpu`] | signals of CPU time: the periods that a signal stands for |
//! | [`cpu_account`] | the arithmetic from CPU time to periods |
//! | [`cpu_counters`] | the CPU engine's counters |
//! | [`event`] | signals of perf events: the periods that a sample stands for |
//! | `perf_ioctl` | requests to the kernel about a perf event |
//! | [`wall`] | wall-clock signals: the sample of a picked thread, and its report to the sampler |
//! | [`native_memory`] | samples of native allocations, by replacements of `malloc` and similar functions |
//! | `fair_share` | time for the thread between its CPU samples |
//! | [`stretch`] | the factor by which an engine samples more seldom than was requested |
//! | [`rate_limit`] | the most samples per second of engines that sample single events |
//!
//! | Samples | Duty |
//! |---|---|
//! | [`sample`] | one sample: holds a strip, walks the stack, writes the record |
//! | [`thread_context`] | the context of a sample |
//! | [`kernel_stack`] | the kernel's own frames |
//! | [`walk`] | the walk of a thread's stack |
//! | [`call_trace`] | AsyncGetCallTrace, HotSpot's own function that walks Java frames |
//! | [`buffer`] | the sample buffer between handlers and drainer |
//! | [`doorbell`] | the call that wakes a thread of the agent |
//! | [`counters`] | the handlers' counters |
//!
//! | Memory, objects and time | Duty |
//! |---|---|
//! | [`safe_load`] | loads that survive a bad address |
//! | [`fault`] | the handler of SIGSEGV and SIGBUS that these loads need |
//! | [`loader`] | the loaded objects as the dynamic linker knows them |
//! | `vdso` | functions of the vDSO |
//! | `clock` | the kernel's clocks, even if the process has replaced `clock_gettime` |
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::todo,
        clippy::unimplemented,
        clippy::unreachable,
        clippy::disallowed_methods,
        clippy::disallowed_types,
        clippy::disallowed_macros
    )
)]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros))]

pub mod buffer;
pub mod call_trace;
pub mod chain;
pub mod clock;
pub mod counters;
pub mod cpu;
pub mod cpu_account;
pub mod cpu_counters;
pub mod delivery;
pub mod doorbell;
pub mod event;
mod fair_share;
pub mod fault;
pub mod handler_stack;
pub mod interruption;
pub mod kernel_stack;
pub mod loader;
pub mod native_memory;
mod occasion;
mod perf_ioctl;
pub mod rate_limit;
pub mod safe_load;
pub mod sample;
mod signal_owner;
pub mod stretch;
pub mod thread_context;
pub mod thread_table;
mod undelivered;
mod vdso;
pub mod walk;
pub mod wall;

//! The code that runs inside a signal handler, and nothing else.
//!
//! A sampling signal arrives in a thread at any instruction: inside malloc, inside the dynamic linker, with any
//! lock held. What runs here
//!
//! - imports `core` and `libc` alone;
//! - allocates nothing, blocks on nothing: a strip of the sample buffer is tried, never waited for;
//! - makes these system calls at most: `clock_gettime` (the vDSO's: [`clock`]), and `futex` to wake the drainer when a
//!   buffer is half full; for a thread's first signal `gettid`, its CPU clock, `timer_settime` or `ioctl`, which
//!   put its clock into step; its CPU clock behind each wall-clock sample;
//!   `read` of the thread's perf event before and behind each sample of it; `gettid` where the process's timer is in use;
//!   `getpid` and `gettid` where wall-clock signals come by `tgkill`; and for a signal that is not ours
//!   those that hand it on (`rt_sigprocmask`, `rt_sigaction`, `tgkill`); on an alternate stack that may be too small
//!   `rt_sigaction` and `sigaltstack`;
//! - takes a sample on a stack of the handlers' own where the thread's may be too small ([`handler_stack`]);
//! - reads thread-specific data by `pthread_getspecific` alone (a key below 32 has no lazily allocated block in
//!   glibc), never a `thread_local!`;
//! - reads memory of the JVM and of other objects by fault-tolerant loads ([`safe_load`]);
//! - never panics: no indexing, no unchecked arithmetic, no unwrap. What fails becomes a counter.
//!
//! Known weak spot: `pthread_getspecific` is not on POSIX's list of async-signal-safe functions. glibc's and
//! musl's only read the thread's own block.
//!
//! What stands in for `malloc` and its like in other objects ([`native_memory`]) keeps to the same rules, since what it calls
//! must not allocate; for a sample it also makes `rt_sigprocmask` and `gettid`.
//!
//! In: a `ucontext_t` and a [`ThreadRecord`](crate::core::thread::ThreadRecord). Out: a record in
//! [`buffer`], counters in [`counters`].
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

pub mod buffer;
pub mod call_trace;
pub mod chain;
mod clock;
pub mod counters;
pub mod cpu;
pub mod cpu_account;
pub mod cpu_counters;
pub mod delivery;
pub mod doorbell;
pub mod event;
pub mod fault;
pub mod handler_stack;
pub mod kernel_stack;
pub mod native_memory;
pub mod rate_limit;
pub mod safe_load;
pub mod sample;
mod sample_gate;
pub mod stretch;
pub mod thread_context;
pub mod thread_table;
mod undelivered;
mod vdso;
pub mod walk;
pub mod wall;

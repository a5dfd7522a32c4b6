//! The profiling context: which thread has which block, and the meaning of the references in blocks.
//!
//! Input, by way of `agent`: from Java's setters, the current thread's request for its block, values to be
//! interned, and names of slots; from the VM's events, threads that end, mount and unmount. Output: blocks
//! that the handler finds by the kernel's thread id ([`core::context`](otlpprof_core::context)), and, at the
//! drain, the strings that a record's slots refer to.
//!
//! | Blocks | Duty |
//! |---|---|
//! | [`blocks`] | the store of blocks |
//! | [`threads`] | which thread has which block |
//! | `thread_end` | the end of threads that the VM does not report |
//! | [`virtual_blocks`] | the blocks of virtual threads, by thread id |
//! | [`changes`] | the log of which thread had which context when |
//! | [`counts`] | counts of failures |
//!
//! | Values | Duty |
//! |---|---|
//! | [`dictionary`] | the values that slots refer to |
//! | [`reclaim`] | frees values that nothing refers to any longer |
//! | [`process_barrier`] | a memory barrier in all threads of the process |
//! | [`slot_names`] | the names of slots |
//!
//! | Outside readers | Duty |
//! |---|---|
//! | [`thread_pointer`] | the variable by which outside readers find a thread's context |
//! | [`published_threads`] | which context each thread's variable points to |
//! | [`published_records`] | the records for outside readers that include attributes |

pub mod blocks;
pub mod changes;
pub mod counts;
pub mod dictionary;
pub mod process_barrier;
pub mod published_records;
pub mod published_threads;
pub mod reclaim;
pub mod slot_names;
mod thread_end;
pub mod thread_pointer;
pub mod threads;
pub mod virtual_blocks;

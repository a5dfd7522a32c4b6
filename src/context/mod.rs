//! The profiling context: who has which block, and what the references in blocks mean.
//!
//! In: from Java's setters, by way of `agent`, "the current thread wants its block", values to be interned and names of
//! slots; from the VM's events, that threads end, mount and unmount. Out: blocks that the handler finds by the kernel's
//! thread id ([`core::context`](crate::core::context)), and at the drain the strings that a record's slots stand for.
//!
//! | Module | Duty |
//! |---|---|
//! | [`blocks`] | the blocks: made, given out, taken back |
//! | [`threads`] | which thread has which block |
//! | `thread_end` | the end of threads that the VM does not tell of |
//! | [`virtual_blocks`] | the same of virtual threads, by their ids |
//! | `thread_pointer` | where outside readers look for a thread's context |
//! | [`published_threads`] | what of it they find |
//! | [`published_records`] | what they find if they are to see attributes too |
//! | [`changes`] | which thread had which context when, while that is noted |
//! | [`dictionary`] | the values that slots refer to |
//! | [`reclaim`] | which values nobody refers to any longer |
//! | [`process_barrier`] | a memory barrier in all threads of the process |
//! | [`slot_names`] | what slots are called |
//! | [`counts`] | what went wrong how often |

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

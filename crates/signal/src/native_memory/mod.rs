//! Samples native allocations: replacements of `malloc` and similar functions for the objects of the process.
//!
//! `sampling::native_memory` redirects the objects' imports to [`AllocationFunction::stand_in`]s, and starts
//! and stops the sampling. A stand-in calls the original function. Then, if one of the points in the stream
//! of allocated bytes (`core::byte_sampling`) lies in the allocation, its thread takes a sample of itself,
//! beginning at the caller. At that time the allocator holds no lock, and no code here waits for a lock. So
//! there is no deadlock, whatever locks the caller holds.
//!
//! For reports of memory that is not freed, sampled blocks and mappings are remembered until they are freed,
//! by the number that their sample carries.
//!
//! | Module | Duty |
//! |---|---|
//! | `functions` | the replaced functions and their addresses |
//! | `stand_ins` | the replacement of each function |
//! | `entry` (the architecture's) | the entry of a stand-in, with the caller's frame |
//! | `countdown` | chooses the allocations that are sampled |
//! | `sampler` | takes the sample |
//! | `blocks`, `mappings` | sampled memory that has not been freed |

mod blocks;
mod countdown;
mod functions;
mod mappings;
mod sampler;
mod stand_ins;

#[cfg(target_arch = "aarch64")]
#[path = "aarch64/entry.rs"]
mod entry;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64/entry.rs"]
mod entry;

pub use blocks::BLOCKS;
pub use functions::AllocationFunction;
pub use mappings::MAPPINGS;
pub use sampler::{COUNTS, SAMPLER};

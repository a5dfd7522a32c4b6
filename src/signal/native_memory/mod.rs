//! Samples native allocations: what stands in for `malloc` and its like in the objects of the process.
//!
//! `sampling::native_memory` leads the objects' imports to [`Function::stand_in`]s, and starts and stops the sampling. A
//! stand-in calls the function that was there before, and then, if one of the points in the stream of allocated bytes
//! (`core::byte_sampling`) lies in what has been allocated, has its thread take a sample of itself, from the caller on. The
//! allocator holds no lock by then, and nothing here waits for one: whatever the caller holds, nobody can come to wait for
//! what it waits for.
//!
//! Where what is not freed is to be told, the blocks and mappings that were sampled are remembered, until they are freed, by
//! the number that their sample carries.
//!
//! | Module | Duty |
//! |---|---|
//! | `functions` | the functions, and what they lead to |
//! | `stand_ins` | what each does |
//! | `entry` (the architecture's) | how they are entered, and with whose frame |
//! | `countdown` | which allocations are sampled |
//! | `sampler` | the sample |
//! | `blocks`, `mappings` | what was sampled and has not been freed |

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
pub use functions::Function;
pub use mappings::MAPPINGS;
pub use sampler::{COUNTS, SAMPLER};

//! Types that every zone may use, including the signal handler.
//!
//! Code of this module does not allocate after construction, takes no lock, and knows no foreign format. It
//! has plain data, names with units and address spaces, and the lookups that a handler makes in the data.
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
        clippy::unreachable
    )
)]

pub mod address;
pub mod attribute_name;
pub mod build_id;
pub mod byte_sampling;
pub mod collections;
pub mod context;
pub mod continuation;
pub mod counts;
pub mod engine;
pub mod event_ring;
pub mod frame_rules;
pub mod interpreter_code;
pub mod java_thread_state;
pub mod memory;
pub mod method_ids;
pub mod object;
pub mod record;
pub mod stack_walker;
pub mod stub_frames;
pub mod thread;
pub mod unsigned5;
pub mod unwind_rule;
pub mod unwind_table;
pub mod virtual_blocks;
pub mod vm_layout;

//! Types that every zone may use, including the signal handler.
//!
//! Code of this module does not allocate after construction, takes no lock, and knows no foreign format. It
//! has plain data, names with units and address spaces, and the lookups that a handler makes in the data.
//!
//! | Addresses and memory | Duty |
//! |---|---|
//! | [`address`] | one type for each address space, and the range of addresses that code takes |
//! | [`memory`] | reads of memory that may not be mapped |
//! | [`build_id`] | GNU build-ids |
//!
//! | Samples | Duty |
//! |---|---|
//! | [`engine`] | the engines that take samples, and their properties, in one table |
//! | [`thread`] | the state of one thread that the engines and the handler share |
//! | [`record`] | the sample record, which a handler writes and the aggregator reads |
//! | [`stack_walker`] | the ways in which a stack is walked |
//! | [`byte_sampling`] | random points in a stream of bytes, by which allocations are sampled |
//! | [`event_ring`] | the ring buffer into which the kernel writes the samples of a perf event |
//! | [`mod@counts`] | groups of counters that only grow, each with a name for reports |
//!
//! | Contexts | Duty |
//! |---|---|
//! | [`context`] | the profiling context of a thread: a block of 64 bytes |
//! | [`attribute_name`] | the form of the name of a context's attribute |
//! | [`virtual_blocks`] | the table of the context blocks of virtual threads |
//!
//! | Native frames | Duty |
//! |---|---|
//! | [`object`] | the map from code addresses to the loaded ELF objects |
//! | [`unwind_rule`] | the rule by which a frame's caller is found |
//! | [`unwind_table`] | an object's unwind rules in flat sorted rows |
//! | [`frame_rules`] | one row of call frame information as an unwind rule |
//!
//! | HotSpot | Duty |
//! |---|---|
//! | [`vm_layout`] | the layout of HotSpot's structures in this process |
//! | [`method_ids`] | the contract by which a jmethodID leads to its `Method*` |
//! | [`java_thread_state`] | the states of Java threads, whose numbers differ between releases |
//! | [`collections`] | stop-the-world garbage collections, as the VM announces them |
//! | [`continuation`] | the layout of the heap objects that hold a virtual thread's frozen frames |
//! | [`interpreter_code`] | the stages of the interpreter's code in which a frame is incomplete |
//! | [`a64_branch`] | the branches of aarch64's instructions, and their distances |
//! | [`deoptimization_handler`] | the code of compiled methods' deoptimisation handlers |
//! | [`stub_frames`] | the VM's stubs that have a frame of their own |
//! | [`unsigned5`] | variable-length integers in HotSpot's compressed tables |
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

pub mod a64_branch;
pub mod address;
pub mod attribute_name;
pub mod build_id;
pub mod byte_sampling;
pub mod collections;
pub mod context;
pub mod continuation;
pub mod counts;
pub mod deoptimization_handler;
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

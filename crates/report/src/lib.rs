//! The read side: profiles become tables of functions, trees of calls, and pages.
//!
//! In: encoded messages of OTLP profiles, in any number. Out: sums by function and by stack of the selected
//! samples, and formats of other tools. Called by the commands that show, export and merge profiles. Memory
//! grows with the number of different stacks, not with the number of messages.
//!
//! | Module | Duty |
//! |---|---|
//! | [`survey`] | the contents of the files in outline |
//! | [`measure`] | the quantity that a profile measures, and its unit |
//! | [`selection`] | which samples are wanted |
//! | `idle_threads` | which samples are of idle threads of the VM and of native code |
//! | [`sample_reader`] | reads the selected samples, and resolves their stacks |
//! | [`frame_table`], [`call_tree`], [`objects`] | frames, stacks and the objects of frames, interned |
//! | `frame_entry`, `known_frames`, [`framed_message`] | frames that several threads resolve |
//! | `frame_origin`, `frame_code`, [`thread_role`], [`code_kind`] | the kind of code of each sample |
//! | `pair_table`, `huge_pages`, `pending_samples`, `message_stacks` | the search of stacks in the tree |
//! | [`summed`] | values by key, states of processes among them |
//! | [`collect`] | collects the samples of one measure |
//! | [`sample_count`] | the number of samples of a profile |
//! | [`whole_sum`] | the sum of all values of a measure |
//! | [`attribute_sums`] | sums by the values of each attribute |
//! | [`known_attributes`] | the attributes that exist, compared with wanted ones |
//! | [`last_states`], [`state_times`] | the last state of each process, and its time |
//! | [`profiled_time`] | the time that profiles cover |
//! | [`function_sums`] | sums by function |
//! | [`sides`] | two sets of profiles side by side |
//! | [`page`] | the flame graph page |
//! | [`export`] | formats of other tools |
//! | [`merge`] | many messages summed into one |

pub mod attribute_sums;
pub mod call_tree;
pub mod code_kind;
pub mod collect;
pub mod export;
mod frame_code;
mod frame_entry;
mod frame_origin;
pub mod frame_table;
pub mod framed_message;
pub mod function_sums;
mod huge_pages;
mod idle_threads;
pub mod known_attributes;
mod known_frames;
pub mod last_states;
pub mod measure;
pub mod merge;
mod message_stacks;
pub mod objects;
pub mod page;
mod pair_table;
mod pending_samples;
pub mod profiled_time;
pub mod resource_survey;
pub mod sample_count;
pub mod sample_reader;
pub mod selection;
pub mod sides;
pub mod state_times;
pub mod summed;
pub mod survey;
pub mod thread_role;
pub mod whole_sum;

//! The read side: profiles become tables of functions, trees of calls, and pages.
//!
//! In: encoded messages of OTLP profiles, in any number. Out: sums by function and by stack of the selected
//! samples, and formats of other tools. Called by the commands that show, export and merge profiles. Memory
//! grows with the number of different stacks, not with the number of messages.
//!
//! | Input | Duty |
//! |---|---|
//! | [`survey`] | the contents of the files in outline |
//! | [`resource_survey`] | the attributes of resources, which tell processes and services apart |
//! | [`measure`] | the quantity that a profile measures, and its unit |
//! | [`profiled_time`] | the time that profiles cover |
//! | [`last_states`] | the last state of each of several things, such as the live heaps of processes |
//! | [`state_times`] | the time of the last state of each process |
//!
//! | Selection | Duty |
//! |---|---|
//! | [`selection`] | which samples are wanted |
//! | [`selected_resources`] | the processes and services that a selection leaves |
//! | `idle_threads` | which samples are of idle threads of the VM and of native code |
//! | [`known_attributes`] | the attributes that exist, compared with wanted ones |
//!
//! | Stacks | Duty |
//! |---|---|
//! | [`sample_reader`] | reads the selected samples, and resolves their stacks |
//! | [`profile_context`] | a profile whose samples are read |
//! | [`observations`] | the values of samples, each with its time |
//! | [`framed_message`] | a message whose frames any thread resolves ahead |
//! | [`frame_table`] | functions or lines that occur in stacks, interned |
//! | `indexed_tables` | the tables of a message, with an index of the attributes of frames |
//! | `frame_entry` | a frame as reports tell it from others: a function, or one of its lines |
//! | `known_frames` | frames that several threads intern at the same time |
//! | [`objects`] | loaded objects that frames are in, interned |
//! | `message_stacks` | the stacks and locations of a message that have been met |
//! | [`call_tree`] | the tree of all stacks |
//! | `pending_samples` | samples whose stacks are searched in the tree together |
//! | `pair_table` | the tree's hash table, from pairs of numbers to numbers |
//! | `huge_pages` | huge pages for large tables that are read at random places |
//!
//! | Kinds of code | Duty |
//! |---|---|
//! | [`code_kind`] | the kind of code of each sample |
//! | `frame_origin` | the origin of a frame's code, as far as a message states it |
//! | `frame_code` | the code in which the leaf of a stack is |
//! | [`thread_role`] | the role of a thread in a JVM, by its name |
//!
//! | Waits | Duty |
//! |---|---|
//! | [`waits`] | the waits of threads, by state and by what is waited for |
//! | `thread_activity` | whether a thread runs or waits, by its state |
//! | `wait_state` | the states of threads that wait |
//! | `wait_operation` | the operation by which a thread entered a wait |
//!
//! | Sums | Duty |
//! |---|---|
//! | [`collect`] | collects the samples of one measure |
//! | [`summed`] | values by key, states of processes among them |
//! | [`whole_sum`] | the sum of all values of a measure |
//! | [`eviction`] | keeps the highest sums and the frames and stacks that they refer to |
//! | [`sample_count`] | the number of samples of a profile |
//! | [`function_sums`] | sums by function |
//! | [`attribute_sums`] | sums by the values of each attribute |
//! | [`sides`] | two sets of profiles side by side |
//!
//! | Output | Duty |
//! |---|---|
//! | [`page`] | the flame graph page |
//! | [`export`] | formats of other tools |
//! | [`parallel_deflate`] | compression by several threads |
//! | [`merge`] | many messages summed into one |

pub mod attribute_sums;
pub mod call_tree;
pub mod code_kind;
pub mod collect;
pub mod eviction;
pub mod export;
mod frame_code;
mod frame_entry;
mod frame_origin;
pub mod frame_table;
pub mod framed_message;
pub mod function_sums;
mod huge_pages;
mod idle_threads;
mod indexed_tables;
pub mod known_attributes;
mod known_frames;
pub mod last_states;
pub mod measure;
pub mod merge;
mod message_stacks;
pub mod objects;
pub mod observations;
pub mod page;
mod pair_table;
pub mod parallel_deflate;
mod pending_samples;
pub mod profile_context;
pub mod profiled_time;
pub mod resource_survey;
pub mod sample_count;
pub mod sample_reader;
pub mod selected_resources;
pub mod selection;
pub mod sides;
pub mod state_times;
pub mod summed;
pub mod survey;
mod thread_activity;
pub mod thread_role;
mod wait_operation;
mod wait_state;
pub mod waits;
pub mod whole_sum;

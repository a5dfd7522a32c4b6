//! The live flow put together, behind the JVMTI entry points. Imports lead from left to right:
//!
//! ```text
//! entry, java_api → callbacks → lifecycle → session → engines → vm
//! ```
//!
//! | Module | Duty |
//! |---|---|
//! | [`resource`] | the resource attributes of the process |
//! | `entry` | `Agent_OnLoad`, `Agent_OnAttach`, `Agent_OnUnload` |
//! | `answer` | the socket on which a command of another process waits for an answer |
//! | `callbacks` | JVMTI's events |
//! | `java_api` | the native methods of the Java API |
//! | `java_strings` | strings and exceptions that cross JNI |
//! | `events` | events that the program reports besides samples |
//! | `mounts` | the VM's events of virtual threads that are mounted and unmounted |
//! | `virtual_contexts` | makes contexts follow virtual threads |
//! | `publication` | publishes contexts to other processes |
//! | `vm` | the agent's knowledge of the JVM |
//! | `guarded` | stops panics before they reach the VM |
//! | `guards` | stop what a session has started |
//! | `lifecycle` | start, stop, flush and status |
//! | `other_copy` | other copies of this library in the process, only one of which is the agent |
//! | `session` | one run of the profiler: sampling, drained and sent at intervals |
//! | `engines` | samples that threads take of themselves: allocations, locks, exceptions, traced methods |
//! | `budget` | limits the profiler's cost by making engines sample less often |
//! | `engine_table` | the options, capabilities, profiles and subjects of all engines |
//! | `engine_profiles` | the profiles that each engine's samples become |
//! | `recording` | events of the JVM's own recorder, with the contexts of their threads |
//! | `objects` | the loaded objects: publishes them to the handlers, and compiles their unwind tables |
//! | `subjects` | the classes that samples are about |
//! | `resolve`, `thread_labels` | names of frames and threads |
//! | `output` | encodes profiles, and passes them to a file and to a collector |
//! | `first_upload` | the time of the first upload |
//! | `counters` | the agent's own counters, as a profile's attributes |
//! | `logging` | lines on standard error |

mod answer;
mod budget;
mod callbacks;
mod counters;
mod engine_profiles;
mod engine_table;
mod engines;
mod entry;
mod event_cost;
mod events;
mod first_upload;
mod guarded;
mod guards;
mod java_api;
mod java_strings;
mod lifecycle;
mod logging;
mod mounts;
mod native_frames;
mod native_roots;
mod native_thread_names;
mod objects;
mod other_copy;
mod output;
mod publication;
mod recording;
mod resolve;
pub mod resource;
mod session;
mod stack_check;
mod subjects;
mod thread_labels;
mod thread_names;
mod thread_renames;
mod virtual_contexts;
mod vm;

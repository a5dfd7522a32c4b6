//! The live flow put together, behind the JVMTI entry points. Imports lead from left to right:
//!
//! ```text
//! entry, java_api → callbacks → lifecycle → session → engines → vm
//! ```
//!
//! | Entry points | Duty |
//! |---|---|
//! | `entry` | `Agent_OnLoad`, `Agent_OnAttach`, `Agent_OnUnload` |
//! | `lifecycle` | start, stop, flush and status |
//! | `answer` | the socket on which a command of another process waits for the agent's answer |
//! | `callbacks` | the callbacks of JVMTI's events |
//! | `java_api` | the native methods of the Java API |
//! | `java_strings` | strings and exceptions that cross JNI |
//! | `events` | events that the program reports besides samples |
//! | `guarded` | stops panics before they reach the VM |
//! | `other_copy` | other copies of this library in the process, only one of which is the agent |
//!
//! | Sessions | Duty |
//! |---|---|
//! | `session` | one run of the profiler: sampling, drained and sent at intervals |
//! | `guards` | values that stop, when they are dropped, what a session has started |
//! | `engines` | the engines, each with its start and its guard |
//! | `engine_profiles` | the profiles that each engine's samples become |
//! | `recording` | events of the JVM's own recorder, with the contexts of their threads |
//! | `budget` | limits the profiler's cost by making engines sample less often |
//! | `event_cost` | the cost of the VM's events in which no sample is taken |
//! | `counters` | the agent's own counters, as a profile's attributes |
//!
//! | Knowledge of the process | Duty |
//! |---|---|
//! | `vm` | the agent's knowledge of the JVM |
//! | `stack_check` | walks compared with the VM's own description of the same stacks |
//! | [`resource`] | the resource attributes of the process |
//! | `objects` | the loaded objects: publishes them to the handlers, and compiles their unwind tables |
//! | `subjects` | the classes that samples are about |
//!
//! | Names | Duty |
//! |---|---|
//! | `resolve` | methods and values of contexts, named before they may become invalid |
//! | `native_frames` | names of native and kernel frames |
//! | `native_roots` | names of the two frames at the root of a native thread |
//! | `thread_labels` | names and ids of threads as labels of samples |
//! | `thread_names` | names of Java threads at each time of their lives |
//! | `thread_renames` | the notice of a Java thread that gets another name |
//! | `native_thread_names` | the kernel's names of threads that are not Java's |
//!
//! | Contexts | Duty |
//! |---|---|
//! | `mounts` | the VM's events of virtual threads that are mounted and unmounted |
//! | `virtual_contexts` | makes contexts follow virtual threads |
//! | `publication` | publishes contexts to other processes |
//!
//! | Output | Duty |
//! |---|---|
//! | `output` | encodes profiles, and passes them to a file and to a collector |
//! | `first_upload` | the time of the first upload |
//! | `logging` | lines on standard error |

mod answer;
mod budget;
mod callbacks;
mod counters;
mod engine_profiles;
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

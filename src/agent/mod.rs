//! The live flow put together, behind the JVMTI entry points.
//!
//! | Module | Duty |
//! |---|---|
//! | [`options`], [`resource`] | what the user asks for; what the process is called |
//! | `entry` | `Agent_OnLoad`, `Agent_OnAttach`, `Agent_OnUnload` |
//! | `callbacks` | JVMTI's events |
//! | `java_api` | what Java calls |
//! | `events` | what the program tells of besides samples |
//! | `mounts` | who is told when virtual threads are mounted and unmounted |
//! | `virtual_contexts` | contexts of virtual threads follow them |
//! | `publication` | what other processes can read of contexts |
//! | `vm` | what is known of the JVM |
//! | `lifecycle` | start, stop, flush and status, whoever asks |
//! | `other_copy` | other copies of this library in the process, of which one is the agent |
//! | `session` | one run of the profiler: sampling, drained and sent at intervals |
//! | `engines` | what the VM tells of by its events: allocations, locks, exceptions |
//! | `budget` | what the profiler may cost, and who samples more seldom to keep to it |
//! | `engine_profiles` | the profiles that each engine's samples become |
//! | `recording` | events of the JVM's own recorder, with what their threads worked for |
//! | `objects` | the loaded objects, published to the handlers, unwind tables compiled behind |
//! | `resolve`, `thread_labels` | what frames and threads are called |
//! | `output` | encoded, to a file and to a collector |
//! | `first_upload` | when the first profile is sent |
//! | `counters` | the agent's own counters, as a profile's attributes |
//! | `logging` | lines on standard error |

mod budget;
mod callbacks;
mod counters;
mod engine_profiles;
mod engines;
mod entry;
mod event_cost;
mod events;
mod first_upload;
mod java_api;
mod lifecycle;
mod logging;
mod mounts;
mod native_frames;
mod native_thread_names;
mod objects;
pub mod options;
mod other_copy;
mod output;
mod publication;
mod recording;
mod resolve;
pub mod resource;
mod session;
mod thread_labels;
mod thread_names;
mod thread_renames;
mod virtual_contexts;
mod vm;

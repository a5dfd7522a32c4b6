//! otlpprof: an OpenTelemetry-native continuous profiler for the JVM.
//!
//! Two flows meet in one neutral [`model`]:
//!
//! ```text
//! live:    sampling (arms clocks) ─ signal (handler → walk → buffer) → aggregate → model → otlp → export
//! offline: file → otlp → print, validate
//! ```
//!
//! | Module | Duty |
//! |---|---|
//! | [`core`] | plain types and lookups that every zone may use |
//! | [`context`] | the profiling context of threads: blocks, and the values in them |
//! | [`signal`] | the only code that runs inside a signal handler |
//! | [`sampling`] | clocks and timers for every thread; detects threads that start and end |
//! | [`elf`] | loaded objects: build-ids, unwind tables, symbols |
//! | [`dwarf`] | debug information: functions, files and lines by address |
//! | [`debug_files`] | finds the files of an object, and keeps a store of them |
//! | [`jfr`] | recordings of JDK Flight Recorder |
//! | [`jvm`] | JVMTI, HotSpot's layouts, method identity |
//! | [`aggregate`] | converts drained records to the model |
//! | [`model`] | profiles, neutral of any format |
//! | [`otlp`] | converts the model to OTLP and back: protobuf, JSON, validation |
//! | [`report`] | selects and sums the samples of OTLP profiles |
//! | [`convert`] | converts recordings to the model |
//! | [`pprof`], [`collapsed`] | converts other tools' profiles to the model |
//! | [`symbolize`] | names for the native frames of OTLP profiles |
//! | [`options`] | the agent's options: their table, and their values from the string and the environment |
//! | `protobuf` | iterates over the fields of protobuf messages |
//! | [`incomplete_file`] | files that get their name when they are complete |
//! | `workers` | threads that work on items for a caller that takes the results in order |
//! | [`export`] | writes encoded messages to files and sends them to collectors |
//! | [`agent`] | puts the live flow together, behind the JVMTI entry points |
//! | [`cli`] | puts the offline flow together, behind the `otlpprof` command |
//!
//! ARCHITECTURE.md says which module may import which; `tests/architecture.rs` checks it.

pub use otlpprof_aggregate as aggregate;
pub use otlpprof_collapsed as collapsed;
pub use otlpprof_convert as convert;
pub use otlpprof_core as core;
pub use otlpprof_dwarf as dwarf;
pub use otlpprof_elf as elf;
pub use otlpprof_incomplete_file as incomplete_file;
pub use otlpprof_jfr as jfr;
pub use otlpprof_model as model;
pub use otlpprof_otlp as otlp;
pub use otlpprof_pprof as pprof;
use otlpprof_protobuf as protobuf;
pub use otlpprof_report as report;
pub use otlpprof_sampling as sampling;
pub use otlpprof_signal as signal;
use otlpprof_workers as workers;

pub mod agent;
pub mod cli;
pub mod context;
pub mod debug_files;
pub mod export;
pub mod jvm;
pub mod options;
pub mod symbolize;

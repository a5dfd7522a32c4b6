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
//! | [`context`] | what threads are working for: blocks, and the values in them |
//! | [`signal`] | the only code that runs inside a signal handler |
//! | [`sampling`] | clocks and timers for every thread; knows when threads come and go |
//! | [`elf`] | loaded objects: build-ids, unwind tables, symbols |
//! | [`jfr`] | recordings of JDK Flight Recorder |
//! | [`jvm`] | JVMTI, HotSpot's layouts, method identity |
//! | [`aggregate`] | drained records to the model |
//! | [`model`] | profiles, neutral of any format |
//! | [`otlp`] | the model to OTLP and back: protobuf, JSON, validation |
//! | [`convert`] | recordings to the model |
//! | [`export`] | encoded messages to files and collectors |
//! | [`agent`] | puts the live flow together, behind the JVMTI entry points |
//! | [`cli`] | puts the offline flow together, behind the `otlpprof` command |
//!
//! ARCHITECTURE.md says who may import whom; `tests/architecture.rs` holds the code to it.

pub mod agent;
pub mod aggregate;
pub mod cli;
pub mod context;
pub mod convert;
pub mod core;
pub mod elf;
pub mod export;
pub mod jfr;
pub mod jvm;
pub mod model;
pub mod otlp;
pub mod sampling;
pub mod signal;

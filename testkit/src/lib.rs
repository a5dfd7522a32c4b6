//! Code that the test programs, benchmarks, examples and fuzz targets share, and the products of `native/`
//! and `java/` that they load ([`products`]).
//!
//! No other package depends on this one, except as a dev-dependency. A crate that this one depends on has no
//! dev-dependency on it, since its unit tests would link that crate twice.
//!
//! | What tests run on | Duty |
//! |---|---|
//! | [`this_build`] | the command, the agent and the libraries of this build, and the project's folder |
//! | [`jdk`] | the JVMs that tests run on |
//! | [`toolchain`] | programs that tests compare with, if they are installed |
//! | [`skipped`] | reports tests that cannot run on this machine |
//!
//! | Processes | Duty |
//! |---|---|
//! | [`commands`] | runs of the command and of other programs, and their output |
//! | [`java_run`] | Java programs under the agent |
//! | [`jvm_in_process`] | a JVM in the test's own process |
//! | [`attach`] | processes that the command attaches to |
//! | [`run_folder`] | runs of `otlpprof run`, and what they leave |
//! | [`environment`] | the environment of programs that no variable configures |
//! | [`heeded_signals`] | programs that heed the signals of a shell |
//! | [`processes`] | other processes: their state by /proc, and signals to them |
//! | [`waiting`] | waits until a condition holds |
//! | [`fault_server`] | an HTTP server that misbehaves |
//! | [`collector`] | a real OpenTelemetry collector |
//!
//! | Inputs | Duty |
//! |---|---|
//! | [`otlp_fixture`] | a message that breaks no rule |
//! | [`pprof_fixture`] | a profile in pprof's format |
//! | [`small_profile`] | a small profile, and the samples of any without indices |
//! | [`profile_files`] | files of profiles for the commands that show profiles |
//! | [`unnamed_frames`] | messages with native frames without names |
//! | [`recordings`] | recordings of JDK Flight Recorder, and their conversion |
//! | [`separate_symbols`] | libraries whose symbols are in other files |
//! | [`elf_objects`] | loaded objects of this process, and libraries to load |
//!
//! | Judges of results | Duty |
//! |---|---|
//! | [`profiles`] | the messages in the agent's files, checked against every rule |
//! | [`stacks`] | the samples of messages with every index resolved |
//! | [`profcheck`] | OpenTelemetry's checker of profiles |
//! | [`python`] | OpenTelemetry's Python package as a reference |
//! | [`binutils`] | names and build-ids of libraries by binutils |
//! | [`debug_information`] | functions and lines of compiled programs by llvm-symbolizer |
//! | [`exported`] | exported files, read by other programs |
//! | [`pages`] | pages of the command, and their readers |
//! | [`warnings`] | warnings of the process under test |
//!
//! | Measures | Duty |
//! |---|---|
//! | [`sampling_session`] | sessions of the CPU sampling engine in the test's own process |
//! | [`wall_sums`] | wall-clock sums of threads that wait and threads that run |
//! | [`stolen_time`] | sums of samples beside the kernel's accounts, where the host steals time |
//! | [`peak_memory`] | the peak of a test's memory |

#![allow(
    clippy::new_without_default,
    reason = "constructors create folders, which nobody expects of a default"
)]

pub mod attach;
pub mod binutils;
pub mod collector;
pub mod commands;
pub mod debug_information;
pub mod elf_objects;
pub mod environment;
pub mod exported;
pub mod fault_server;
pub mod heeded_signals;
pub mod java_run;
pub mod jdk;
pub mod jvm_in_process;
pub mod otlp_fixture;
pub mod pages;
pub mod peak_memory;
pub mod pprof_fixture;
pub mod processes;
pub mod profcheck;
pub mod profile_files;
pub mod profiles;
pub mod python;
pub mod recordings;
pub mod run_folder;
pub mod sampling_session;
pub mod separate_symbols;
pub mod skipped;
pub mod small_profile;
pub mod stacks;
pub mod stolen_time;
pub mod this_build;
pub mod toolchain;
pub mod unnamed_frames;
pub mod waiting;
pub mod wall_sums;
pub mod warnings;

pub use otlpprof_testkit_products as products;

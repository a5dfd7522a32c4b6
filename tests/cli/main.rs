//! The command `otlpprof`, run as its users run it.

#[path = "../../testkit/src/java_run/mod.rs"]
mod agent_support;
#[path = "../../testkit/src/attach.rs"]
mod attach_support;
#[path = "../../testkit/src/debug_information.rs"]
mod dwarf_support;
#[path = "../../testkit/src/exported/mod.rs"]
mod exported_support;
#[path = "../../testkit/src/jdk.rs"]
mod jdk_support;
#[path = "../../testkit/src/recordings/mod.rs"]
mod jfr_support;
#[path = "../../testkit/src/skipped.rs"]
mod loud_support;
#[path = "../../testkit/src/otlp_fixture.rs"]
mod otlp_fixture;
#[path = "packed.rs"]
mod packed_support;
#[path = "../../testkit/src/pages.rs"]
mod page_support;
#[path = "../../testkit/src/pprof_fixture.rs"]
mod pprof_fixture;
#[path = "../../testkit/src/profcheck.rs"]
mod profcheck_support;
#[path = "../../testkit/src/python.rs"]
mod python_support;
#[path = "../../testkit/src/profile_files.rs"]
mod report_support;
#[path = "../../testkit/src/run_folder.rs"]
mod run_support;
#[path = "../../testkit/src/unnamed_frames.rs"]
mod symbolize_support;

mod attach;
mod attach_places;
mod attach_sidecar;
mod bounds;
mod check_stacks;
mod command_line;
mod compare;
mod convert;
mod convert_follow;
mod convert_inputs;
mod convert_messages;
mod convert_output;
mod convert_subjects;
mod equal_sums;
mod export;
mod export_viewers;
mod flamegraph;
mod flamegraph_views;
mod foreign_inputs;
mod idle_threads;
mod inputs;
mod inputs_peers;
mod merge;
mod print;
mod processors;
mod readme;
mod record;
mod report;
mod report_kinds;
mod report_options;
mod run;
mod run_signals;
mod symbolize;
mod terminal;
mod top;
mod validate;
mod waits;

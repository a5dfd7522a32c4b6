//! The command `otlpprof`, run as its users run it.

#[path = "../agent_support/mod.rs"]
mod agent_support;
#[path = "../attach_support/mod.rs"]
mod attach_support;
#[path = "../dwarf_support/mod.rs"]
mod dwarf_support;
#[path = "../exported_support/mod.rs"]
mod exported_support;
#[path = "../jdk_support/mod.rs"]
mod jdk_support;
#[path = "../jfr_support/mod.rs"]
mod jfr_support;
#[path = "../loud_support/mod.rs"]
mod loud_support;
#[path = "../otlp_fixture/mod.rs"]
mod otlp_fixture;
#[path = "../packed_support/mod.rs"]
mod packed_support;
#[path = "../page_support/mod.rs"]
mod page_support;
#[path = "../pprof_fixture/mod.rs"]
mod pprof_fixture;
#[path = "../profcheck_support/mod.rs"]
mod profcheck_support;
#[path = "../python_support/mod.rs"]
mod python_support;
#[path = "../report_support/mod.rs"]
mod report_support;
#[path = "../run_support/mod.rs"]
mod run_support;
#[path = "../symbolize_support/mod.rs"]
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

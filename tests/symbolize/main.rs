//! Symbols: debug files and where they come from, the debug information's readers, and `symbolize`.

#[path = "../../testkit/src/java_run/mod.rs"]
mod agent_support;
#[path = "libraries.rs"]
mod debug_files_support;
#[path = "../../testkit/src/debug_information.rs"]
mod dwarf_support;
#[path = "../../testkit/src/fault_server.rs"]
mod export_support;
#[path = "../../testkit/src/jdk.rs"]
mod jdk_support;
#[path = "../../testkit/src/skipped.rs"]
mod loud_support;
#[path = "../../testkit/src/otlp_fixture.rs"]
mod otlp_fixture;
#[path = "../../testkit/src/profcheck.rs"]
mod profcheck_support;
#[path = "../../testkit/src/python.rs"]
mod python_support;
#[path = "../../testkit/src/profile_files.rs"]
mod report_support;
#[path = "../../testkit/src/unnamed_frames.rs"]
mod symbolize_support;

mod command_exact;
mod debug_files;
mod debuginfod;
mod dwarf_exact;
mod dwarf_hostile;
mod forward;
mod ground_truth;
mod hostile;
mod symbols;

//! Symbols: debug files and where they come from, the debug information's readers, and `symbolize`.

#[path = "../agent_support/mod.rs"]
mod agent_support;
#[path = "../debug_files_support/mod.rs"]
mod debug_files_support;
#[path = "../dwarf_support/mod.rs"]
mod dwarf_support;
#[path = "../export_support/mod.rs"]
mod export_support;
#[path = "../jdk_support/mod.rs"]
mod jdk_support;
#[path = "../loud_support/mod.rs"]
mod loud_support;
#[path = "../otlp_fixture/mod.rs"]
mod otlp_fixture;
#[path = "../profcheck_support/mod.rs"]
mod profcheck_support;
#[path = "../python_support/mod.rs"]
mod python_support;
#[path = "../report_support/mod.rs"]
mod report_support;
#[path = "../symbolize_support/mod.rs"]
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

//! Symbols: debug files and where they come from, the debug information's readers, and `symbolize`.

mod command_exact;
mod debug_files;
mod debuginfod;
mod dwarf_exact;
mod dwarf_hostile;
mod file_server;
mod forward;
mod ground_truth;
mod hostile;
mod libraries;
mod symbols;

//! The parsers of ELF files, and the registry of loaded objects, beside the reference tools.

#[path = "../elf_support/mod.rs"]
mod elf_support;
#[path = "../jdk_support/mod.rs"]
mod jdk_support;
#[path = "../loud_support/mod.rs"]
mod loud_support;
#[path = "../separate_symbols_support/mod.rs"]
mod separate_symbols_support;

mod build_id;
mod objects;
mod relocations;
mod symbols;
mod symbols_beside;
mod unwind;

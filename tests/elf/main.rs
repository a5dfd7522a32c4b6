//! The parsers of ELF files, and the registry of loaded objects, beside the reference tools.

#[path = "../../testkit/src/elf_objects.rs"]
mod elf_support;
#[path = "../../testkit/src/jdk.rs"]
mod jdk_support;
#[path = "../../testkit/src/skipped.rs"]
mod loud_support;
#[path = "../../testkit/src/separate_symbols.rs"]
mod separate_symbols_support;

mod build_id;
mod objects;
mod relocations;
mod symbols;
mod symbols_beside;
mod unwind;

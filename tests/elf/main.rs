//! The parsers of ELF files, and the registry of loaded objects, beside the reference tools.

mod build_id;
mod generated_elf;
mod objects;
mod relocations;
mod symbols;
mod symbols_beside;
mod unwind;

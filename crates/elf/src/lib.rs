//! Loaded ELF objects: build-ids, unwind tables, symbols.
//!
//! In: the dynamic linker's list of objects, their images in memory, their files. Out: the tables that the
//! signal handler looks up ([`otlpprof_core::object`], [`otlpprof_core::unwind_table`]), and names of native
//! frames. This module belongs to the ordinary zone: it allocates, locks and makes system calls, and a
//! handler never calls it.
//!
//! Images are read by system calls that fail on unmapped memory ([`process_memory`]), and files by positioned
//! reads, never through a mapping. An object that is unmapped, truncated or replaced meanwhile causes an
//! error instead of a fault.
//!
//! | Images and files | Duty |
//! |---|---|
//! | [`process_memory`] | reads this process's memory without faulting |
//! | [`loader_list`] | the dynamic linker's list of loaded objects |
//! | [`image`] | one loaded object, and reads from its image |
//! | `read_while_loaded` | reads that are valid only if the object is still loaded afterwards |
//! | [`dynamic`] | an image's dynamic section |
//! | [`source`] | an ELF file's bytes |
//! | [`mod@file`] | the headers of an ELF file |
//! | [`program_header`] | a program header, of a file or an image |
//! | [`notes`] | notes of a segment or section |
//! | [`build_id`] | the build-id among the notes |
//! | [`htlhash`] | a hash that identifies a file's content |
//! | [`arch`] | numbers that differ by architecture |
//!
//! | Objects | Duty |
//! |---|---|
//! | [`objects`] | the loaded objects with their addresses, and the unloaded ones |
//! | [`relocations`] | the GOT slots through which an object calls an imported function |
//! | [`kernel`] | names for the kernel's addresses, and its build-id |
//! | [`unwind`] | compiles call frame information to unwind tables |
//!
//! | Symbols | Duty |
//! |---|---|
//! | [`symbols`] | names of functions by address |
//! | [`mini_debug_info`] | the symbol table that an object carries in compressed form |
//! | [`debug_file_places`] | the places at which debug files are installed |
//! | [`debug_link`] | the name and checksum of an object's separate debug file |

pub mod arch;
pub mod build_id;
pub mod debug_file_places;
pub mod debug_link;
pub mod dynamic;
pub mod file;
pub mod htlhash;
pub mod image;
pub mod kernel;
pub mod loader_list;
pub mod mini_debug_info;
pub mod notes;
pub mod objects;
pub mod process_memory;
pub mod program_header;
mod read_while_loaded;
pub mod relocations;
pub mod source;
pub mod symbols;
pub mod unwind;

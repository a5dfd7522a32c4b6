//! Loaded ELF objects: build-ids, unwind tables, symbols.
//!
//! In: the dynamic linker's list of objects, their images in memory, their files. Out: what the handler looks
//! up ([`crate::core::object`], [`crate::core::unwind`]) and what names a native frame afterwards. Everything
//! here is the ordinary zone: it allocates, locks and makes system calls, and is never entered in a handler.
//!
//! Images are read by system calls that fail where memory does not exist ([`process_memory`]), and files by
//! positioned reads, never through a mapping: an object that is unmapped, truncated or replaced meanwhile
//! costs an error, not the process.
//!
//! | Module | Duty |
//! |---|---|
//! | [`process_memory`] | reads this process's memory without faulting |
//! | [`image`] | one loaded object; iteration over all of them |
//! | [`dynamic`] | an image's dynamic section |
//! | [`source`], [`file`] | an ELF file's bytes and headers |
//! | [`program_header`] | a program header, of a file or an image |
//! | [`notes`], [`build_id`] | notes, and the build-id among them |
//! | [`htlhash`] | the other name of a file's content |
//! | [`relocations`] | the GOT slots through which an object calls an imported function |
//! | [`kernel`] | names for the kernel's addresses, and its build-id |
//! | [`objects`] | who is loaded where, and who was |
//! | [`symbols`] | names for addresses |
//! | [`unwind`] | call frame information to unwind tables |
//! | [`arch`] | numbers that differ by architecture |

pub mod arch;
pub mod build_id;
pub mod dynamic;
pub mod file;
pub mod htlhash;
pub mod image;
pub mod kernel;
pub mod loader_list;
pub mod notes;
pub mod objects;
pub mod process_memory;
pub mod program_header;
pub mod relocations;
pub mod source;
pub mod symbols;
pub mod unwind;

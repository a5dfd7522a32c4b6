//! The index of one object's debug information: answers for addresses without the debug information.
//!
//! ```text
//! header     64 bytes: magic, version, length of the file, place and checksum of the directory
//! blocks     of five tables, each block with a checksum
//! directory  the identity of the files that the index was made from; for each table the place, first key
//!            and checksum of its blocks
//! ```
//!
//! | Table | Key | Entries |
//! |---|---|---|
//! | rows | ELF virtual address | at which the innermost function, file, line or column changes |
//! | functions | number | caller, name, file, line and column of the call; a caller has a lower number |
//! | texts | number | names and paths, sorted, each without the bytes that it shares with the one before |
//! | names | number of the text of a linkage name | number of the text of the demangled name |
//! | symbols | ELF virtual address | length, name, source file |
//!
//! Chains of inlined functions are shared: a row has the number of its innermost function, and functions are
//! linked to their callers. A block has groups of entries; a group can be read alone, and a block begins with
//! the key and the offset of each group. Numbers are LEB128 (`codec`), differences where they are small.
//! Everything else is little-endian.
//!
//! An address is answered by three to six blocks. The checksums (XXH64) of the header, the directory and
//! these blocks are checked, the others are not read. Files are read by positioned reads. No declared size is
//! trusted: a damaged file gives an error, or the answer that its bytes have if a checksum was forged. Files
//! are written beside their place and renamed.
//!
//! | Module | Duty |
//! |---|---|
//! | `write` | the writer of an index |
//! | `names` | the names for people that an index keeps |
//! | `codec` | numbers as LEB128, and the entries of the tables |
//! | `table` | a table's blocks of groups of entries |
//! | `directory` | the header and the directory |
//! | `read` | the reader of an index |

mod codec;
mod directory;
mod names;
mod read;
mod table;
mod write;

pub use directory::{Identity, IndexError, VERSION, reseal};
pub use read::Index;
pub use write::write;

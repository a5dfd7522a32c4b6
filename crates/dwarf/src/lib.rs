//! Debug information of one object: from an ELF virtual address to functions, files, lines and columns.
//!
//! In: the bytes of an object's ELF files ([`Inputs`]); which files belong together is decided elsewhere.
//! Out: for an address, the chain of functions from the innermost inlined one to the function that has the
//! code, each with its linkage name, file, line and column; and an index ([`index`]) that answers the same
//! questions without the debug information. Called only by the command: a debug file may take hundreds of
//! megabytes.
//!
//! The answers are the same as llvm-symbolizer 19 gives (`-f=linkage --no-demangle -i`). Its rules, from
//! llvm/lib/DebugInfo/DWARF and llvm/lib/DebugInfo/Symbolize, are stated where they are followed. Debug
//! information that breaks the format loses the unit that breaks it, and the loss is reported
//! ([`Compiled::problems`]). Sizes that a file declares are checked against [`limits`] before memory is
//! allocated.
//!
//! | Sections | Duty |
//! |---|---|
//! | `object` | the sections of one ELF file, decompressed |
//! | `sections` | gimli's view of the sections of debug information |
//! | `package` | a package of split units (`.dwp`), and its units by their ids |
//! | `split` | units whose functions are in another file (`.dwo`, `.dwp`) |
//! | `split_ids` | the ids by which split units belong to an object |
//!
//! | Units | Duty |
//! |---|---|
//! | `stream` | cuts `.debug_info` into units while it is decompressed |
//! | `heads` | the heads of units, which units may share |
//! | `unit` | one unit: rows at which the chain, file, line or column changes |
//! | `functions` | the functions of a unit and their address ranges |
//! | `ranges` | address ranges of units, and lists of ranges |
//! | `names` | names of functions, through origins and specifications |
//! | `lines` | the line table of a unit |
//! | `elsewhere` | names that are in another unit, or in the supplementary file |
//!
//! | Answers | Duty |
//! |---|---|
//! | `compile` | reads all units, or the units of some addresses, by several threads |
//! | `owners` | the unit that an address belongs to |
//! | `symbols` | symbol tables, which name the outermost function |
//! | `text_list` | texts, one after another |
//! | `texts` | names and paths, each kept once |
//! | `frame` | the answer for an address: a chain of functions with their lines |
//! | [`index`] | the index: its format, writer and reader |
//!
//! | Bounds and errors | Duty |
//! |---|---|
//! | [`limits`] | bounds for hostile files |
//! | `allowance` | bounds for all units of an object together |
//! | `error` | the errors of debug information |

mod allowance;
mod compile;
mod elsewhere;
mod error;
mod frame;
mod functions;
mod heads;
pub mod index;
pub mod limits;
mod lines;
mod names;
mod object;
mod owners;
mod package;
mod ranges;
mod sections;
mod split;
mod split_ids;
mod stream;
mod symbols;
mod text_list;
mod texts;
mod unit;

pub use compile::{Compiled, Inputs, compile};
pub use error::{DwarfError, Problem};
pub use frame::{LookUp, SourceFrame, TextId};
pub use otlpprof_elf::source::{FileSource, Source};
pub use split::SplitFiles;
pub use split_ids::{package_has, split_ids};

/// The code of the README, which is compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! The files of one object, and how much each tells.

use std::fmt;
use std::path::PathBuf;

/// The information that a file has about an object's functions, in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quality {
    /// No symbols at all.
    #[default]
    Nothing,
    /// The exported functions (`.dynsym`).
    DynamicSymbols,
    /// MiniDebugInfo: the functions of a compressed symbol table (`.gnu_debugdata`).
    MiniSymbols,
    /// All functions (`.symtab`).
    SymbolTable,
    /// Functions, files and lines (DWARF).
    DebugInfo,
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "no symbols",
            Self::DynamicSymbols => "exported symbols",
            Self::MiniSymbols => "mini symbols",
            Self::SymbolTable => "symbol table",
            Self::DebugInfo => "debug information",
        })
    }
}

/// The files of an object that stores have. Servers of debuginfod have the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileKind {
    /// The file with debug information.
    DebugInfo,
    /// The executable or library.
    Executable,
    /// The package of split units (`.dwp`), which debuginfod knows nothing of.
    Package,
}

impl FileKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::DebugInfo, Self::Executable, Self::Package];

    /// The name of the file in stores, caches and URLs.
    pub fn name(self) -> &'static str {
        match self {
            Self::DebugInfo => "debuginfo",
            Self::Executable => "executable",
            Self::Package => "dwp",
        }
    }
}

/// The files of one object. Each is the object's by its identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectFiles {
    /// The executable or library itself.
    pub executable: Option<PathBuf>,
    /// The file with debug information, or else a separate file with symbols. May be the executable.
    pub debug: Option<PathBuf>,
    /// The file that `.gnu_debugaltlink` or `.debug_sup` of the debug file names.
    pub supplementary: Option<PathBuf>,
    /// The package of split units (`.dwp`).
    pub package: Option<PathBuf>,
    /// The decompressed ELF file of `.gnu_debugdata`. Only if no file has a symbol table.
    pub mini: Option<Vec<u8>>,
    /// The best quality of these files.
    pub quality: Quality,
    /// Companions that a file names and that were not found, or were others: one line each.
    pub problems: Vec<String>,
}

//! The readers of debug information, beside llvm-symbolizer.

#[path = "../dwarf_support/mod.rs"]
mod dwarf_support;
#[path = "../loud_support/mod.rs"]
mod loud_support;

mod dwarf_exact;
mod dwarf_hostile;

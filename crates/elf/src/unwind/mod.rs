//! Compiles call frame information to [`UnwindTable`](otlpprof_core::unwind_table::UnwindTable)s.
//!
//! In: a loaded image's `.eh_frame`, found through `PT_GNU_EH_FRAME` (so deleted files and the vDSO work
//! too), and the `.debug_frame` of the object's file, if the caller has verified the file. Out: one flat
//! table per object. Compiling takes tens of milliseconds for the largest objects, so it is a step of its
//! own: [`FrameSections::of_image`] copies the bytes while the object is loaded, and
//! [`FrameSections::compile`] needs only the copies.
//!
//! | Module | Duty |
//! |---|---|
//! | [`sections`] | finds and copies the sections |
//! | [`parser_types`] | the types that gimli's parsers are used with |
//! | [`compile`] | iterates over the frame descriptions in order, within a budget |
//! | `entries` | finds the ends of stacks in a C library without call frame information |
//! | [`rows`] | collects rows: gaps, merging, shared rules |
//! | [`rules`] | converts one DWARF row to one [`UnwindRule`](otlpprof_core::unwind_rule::UnwindRule) |
//!
//! Sources: DWARF 5, 6.4; Linux Standard Base 5.0, "Exception Frames"; the processor supplements.

pub mod compile;
mod entries;
pub mod parser_types;
pub mod rows;
pub mod rules;
pub mod sections;

pub use sections::{FrameSections, UnwindError};

//! Call frame information compiled to [`UnwindTable`]s.
//!
//! In: a loaded image's `.eh_frame`, found through `PT_GNU_EH_FRAME` (so no file is needed: deleted files and
//! the vDSO have theirs), and the `.debug_frame` of its file where the caller vouches for that. Out: one flat
//! table per object. Compiling takes tens of milliseconds for the largest objects, so it is split: the bytes
//! are copied while the dynamic linker's lock is held ([`FrameSections::of_image`]), and compiled without it
//! ([`FrameSections::compile`]).
//!
//! | Module | Duty |
//! |---|---|
//! | [`sections`] | finds and copies the sections |
//! | [`compile`] | walks the frame descriptions in order, within a budget |
//! | [`rows`] | collects rows: gaps, merging, shared rules |
//! | [`rules`] | one row of DWARF to one [`UnwindRule`](crate::core::unwind::UnwindRule) |
//!
//! Sources: DWARF 5, 6.4; Linux Standard Base 5.0, "Exception Frames"; the processor supplements.

pub mod compile;
pub mod rows;
pub mod rules;
pub mod sections;

pub use sections::{FrameSections, UnwindError};

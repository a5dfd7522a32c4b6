//! The layout that was learnt from a JVM, and the parts that the JVM lacks.

use otlpprof_core::vm_layout::VmLayout;

use super::error::LayoutError;

/// The layout of this process's JVM, checked, and the parts that it lacks.
#[derive(Debug)]
pub struct Learnt {
    /// The layout.
    pub layout: VmLayout,
    /// The parts that are missing or implausible. The others are used.
    pub gaps: Vec<Gap>,
    /// The fields that libjvm does not describe, and without whose description the layout was learnt.
    pub found: Vec<Found>,
}

/// A field that a search has found in its structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The structure.
    pub structure: &'static str,
    /// The field.
    pub field: &'static str,
    /// The field's place in the structure, in bytes.
    pub offset: u32,
}

/// A part that a JVM's layout lacks.
#[derive(Debug)]
pub struct Gap {
    /// The effect on profiles.
    pub effect: &'static str,
    /// The reason.
    pub reason: LayoutError,
}

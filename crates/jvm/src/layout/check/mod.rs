//! Start-up checks: through the layout, facts must be found that are also known from other sources.
//!
//! | Module | Duty |
//! |---|---|
//! | `probe` | facts about this process that JNI and the kernel tell |
//! | `thread` | the check of the current thread |
//! | `method` | the check of a class's methods |
//! | `code` | the check of all code blobs that exist now |
//! | `blob_reader` | the fields and parts of code blobs, read through the layout |
//! | `nmethod` | the check of one compiled method, down to the methods of its scopes |

mod blob_reader;
mod code;
mod method;
mod nmethod;
mod probe;
mod thread;

pub(super) use blob_reader::{BlobReader, KIND};
pub(super) use code::{
    NATIVE_NMETHOD, NMETHOD, NamedBlob, check as check_code, plausible_blobs, stub_sections,
};
pub(super) use nmethod::{
    COMP_LEVEL, DEOPT_HANDLER, LEVELS, ORIG_PC_OFFSET, SCOPES_DATA_OFFSET, STUB_OFFSET,
};
pub use probe::Probe;

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::error::LayoutError;

/// Checks a layout against the facts in `probe` about the current thread and one method, and against all code
/// that exists now.
pub fn check(layout: &VmLayout, memory: &dyn Memory, probe: &Probe) -> Result<(), LayoutError> {
    thread::check(layout, memory, probe)?;
    method::check(layout, memory, probe)?;
    code::check(layout, memory)
}

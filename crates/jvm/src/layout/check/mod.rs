//! Start-up checks: through the layout, facts must be found that are also known from other sources.
//!
//! | Module | Duty |
//! |---|---|
//! | `probe` | facts about this process that JNI and the kernel tell |
//! | `thread` | the check of the current thread |
//! | `code` | the check of all code blobs that exist now |
//! | `blob_reader` | the fields and parts of code blobs, read through the layout |
//! | `nmethod` | the check of one compiled method, down to the methods of its scopes |

mod blob_reader;
mod code;
mod nmethod;
mod probe;
mod thread;

pub(super) use blob_reader::{BlobReader, KIND};
pub(super) use code::{check as check_code, stub_sections};
pub(super) use nmethod::{DEOPT_HANDLER, ORIG_PC_OFFSET, SCOPES_DATA_OFFSET};
pub use probe::Probe;

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::error::LayoutError;
use crate::arch::archived_entry;
use crate::methods::{MethodTable, MethodTableLimits};

/// Checks a layout against the facts in `probe` about the current thread and one method, and against all code
/// that exists now.
pub fn check(layout: &VmLayout, memory: &dyn Memory, probe: &Probe) -> Result<(), LayoutError> {
    thread::check(layout, memory, probe)?;
    check_method(layout, memory, probe)?;
    code::check(layout, memory)
}

/// Checks the probe's method, `java.lang.Thread.run()`: an ordinary method, with bytecodes and an interpreter
/// entry.
fn check_method(layout: &VmLayout, memory: &dyn Memory, probe: &Probe) -> Result<(), LayoutError> {
    let mut methods = MethodTable::new(layout.method, MethodTableLimits::default());
    let found = methods.resolve(memory, probe.method).ok().and_then(|id| methods.get(id));
    let name = found.map(|method| format!("{}.{}{}", method.class.name, method.name, method.signature));
    if name.as_deref() != Some(probe.method_name) {
        let reason = format!("{} reads as {}", probe.method_name, name.as_deref().unwrap_or("nothing"));
        return Err(LayoutError::implausible("Method", "_constMethod", reason));
    }
    let entry = memory.load_u64(probe.method.wrapping_add(u64::from(layout.method.i2i_entry))).unwrap_or(0);
    let starts_codelet =
        |entry| layout.stubs.codelet_at(entry).is_some_and(|codelet| codelet.code.start == entry);
    // In JDK 11 a method of an archive of classes has an entry there, which jumps to the interpreter's.
    if !starts_codelet(entry) && !archived_entry::target(memory, entry).is_some_and(starts_codelet) {
        let reason = format!("{entry:#x} is not where a codelet of the interpreter begins");
        return Err(LayoutError::implausible("Method", "_i2i_entry", reason));
    }
    Ok(())
}

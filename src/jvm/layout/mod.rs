//! Builds [`VmLayout`] for the JVM of this process, after the JVM's initialisation, and checks the layout.
//!
//! Input: libjvm's own tables ([`VmStructs`]) and the names of the stubs ([`StubTable`]). Everything missing
//! or implausible is a [`LayoutError`] that names the field; the walker then stays off. The facts after each
//! part were checked on Temurin 11.0.13, 17.0.9, 21.0.8, 25.0.2 and 25.0.3 and on Debian's 17.

mod check;
mod code;
mod continuation;
mod error;
mod forwarding;
mod interpreter;
mod method;
mod monitor;
mod mounted_thread;
mod nmethod;
mod release;
mod stubs;
mod thread;
mod vframe_array;

pub use check::{Probe, check};
pub use continuation::frozen_frames;
pub use error::LayoutError;
pub use mounted_thread::mounted_thread;
pub use release::Release;

use super::stubs::StubTable;
use super::vm_structs::VmStructs;
use crate::core::continuation::ContinuationLayout;
use crate::core::memory::Memory;
use crate::core::vm_layout::{InterpreterFrameLayout, VmLayout};

/// The layout of this process's JVM. The JVM must be initialised (JVMTI's live phase), and `stubs` must
/// contain the stubs that [`StubTable::replay`] collects. Callers [`check()`] the layout before use. Reading
/// frozen frames and finding the mounted virtual thread also needs JNI: [`frozen_frames`],
/// [`mounted_thread()`].
pub fn build(
    structs: &VmStructs,
    memory: &dyn Memory,
    stubs: &'static StubTable,
) -> Result<VmLayout, LayoutError> {
    let release = release_of(structs, memory)?;
    if !release.is_known() {
        return Err(LayoutError::UnknownRelease { release });
    }
    Ok(VmLayout {
        java_version: release.feature(),
        has_continuations: release.has_continuations(),
        code_cache: code::code_cache(structs, memory)?,
        code_blob: code::code_blob(structs, release)?,
        nmethod: nmethod::nmethod(structs, release)?,
        method: method::method(structs, release)?,
        thread: thread::thread(structs)?,
        interpreter_frame: InterpreterFrameLayout::IN_SOURCES,
        vframe_array: vframe_array::vframe_array(structs)?,
        monitor: monitor::monitor(structs, release).ok(),
        continuation: thread::cont_entry(structs, release, stubs, memory)?.map(|entry| ContinuationLayout {
            entry,
            mounted: None,
            frozen: None,
        }),
        stubs: stubs::stubs(structs, memory, stubs)?,
    })
}

/// Reads the release of libjvm: `Abstract_VM_Version::_vm_major_version` (`runtime/abstract_vm_version.hpp`).
fn release_of(structs: &VmStructs, memory: &dyn Memory) -> Result<Release, LayoutError> {
    let address = structs.static_address("Abstract_VM_Version", "_vm_major_version")?;
    let unreadable = LayoutError::Unreadable { what: "Abstract_VM_Version::_vm_major_version" };
    memory.load_u32(address).map(Release::new).ok_or(unreadable)
}

/// The pointer in a static variable; an error if the pointer is null.
fn static_pointer(
    structs: &VmStructs,
    memory: &dyn Memory,
    structure: &'static str,
    field: &'static str,
) -> Result<u64, LayoutError> {
    let address = structs.static_address(structure, field)?;
    match memory.load_u64(address) {
        None => Err(LayoutError::implausible(structure, field, "it cannot be read")),
        Some(0) => Err(LayoutError::implausible(structure, field, "it is null: the VM is not initialised")),
        Some(pointer) => Ok(pointer),
    }
}

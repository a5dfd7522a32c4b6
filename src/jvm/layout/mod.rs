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
mod stubs;
mod thread;
mod vframe_array;

pub use check::{Probe, check};
pub use continuation::frozen_frames;
pub use error::LayoutError;
pub use mounted_thread::mounted_thread;

use super::stubs::StubTable;
use super::vm_structs::VmStructs;
use crate::core::continuation::ContinuationLayout;
use crate::core::memory::Memory;
use crate::core::vm_layout::{InterpreterFrameLayout, VmLayout};

/// The major versions whose layouts have been checked.
const KNOWN_VERSIONS: [u32; 4] = [11, 17, 21, 25];

/// The layout of this process's JVM. The JVM must be initialised (JVMTI's live phase), and `stubs` must
/// contain the stubs that [`StubTable::replay`] collects. Callers [`check()`] the layout before use. Reading
/// frozen frames and finding the mounted virtual thread also needs JNI: [`frozen_frames`],
/// [`mounted_thread()`].
pub fn build(
    structs: &VmStructs,
    memory: &dyn Memory,
    stubs: &'static StubTable,
) -> Result<VmLayout, LayoutError> {
    let java_version = version(structs, memory)?;
    if !KNOWN_VERSIONS.contains(&java_version) {
        return Err(LayoutError::UnknownVersion { version: java_version });
    }
    // utilities/unsigned5.hpp excludes the byte 0 from 20 on.
    let unsigned5_excluded = u8::from(java_version >= 20);
    Ok(VmLayout {
        java_version,
        code_cache: code::code_cache(structs, memory)?,
        code_blob: code::code_blob(structs, java_version)?,
        nmethod: nmethod::nmethod(structs, java_version, unsigned5_excluded)?,
        method: method::method(structs, java_version, unsigned5_excluded)?,
        thread: thread::thread(structs)?,
        interpreter_frame: InterpreterFrameLayout::IN_SOURCES,
        vframe_array: vframe_array::vframe_array(structs)?,
        monitor: monitor::monitor(structs).ok(),
        continuation: thread::cont_entry(structs, java_version, stubs, memory)?
            .map(|entry| ContinuationLayout { entry, mounted: None, frozen: None }),
        stubs: stubs::stubs(structs, memory, stubs)?,
    })
}

/// `Abstract_VM_Version::_vm_major_version`: the feature release.
fn version(structs: &VmStructs, memory: &dyn Memory) -> Result<u32, LayoutError> {
    let address = structs.static_address("Abstract_VM_Version", "_vm_major_version")?;
    memory.load_u32(address).ok_or(LayoutError::Unreadable { what: "Abstract_VM_Version::_vm_major_version" })
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

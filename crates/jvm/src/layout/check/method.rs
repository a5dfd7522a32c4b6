//! Checks the methods of java.lang.Thread.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{CodeletKind, VmLayout};

use super::super::error::LayoutError;
use super::probe::Probe;
use crate::arch::archived_entry;
use crate::methods::{MethodTable, MethodTableLimits};

/// An upper bound of the size of a Method, in bytes. Releases have some 100.
const MAX_METHOD_BYTES: u32 = 1 << 10;

/// The field that is refused where bytecodes do not end with a method's end.
const CODE_SIZE: &str = "_code_size";

/// The bytecodes that may be the last of a method: `ireturn` to `return`, and `athrow`. The VM puts
/// bytecodes of its own in the place of some others, and a method may end with a jump backwards, but most
/// methods do not (`interpreter/bytecodes.hpp`).
const RETURNS: std::ops::RangeInclusive<u8> = 0xac..=0xb1;
const ATHROW: u8 = 0xbf;

/// Checks the probe's method, `java.lang.Thread.run()`: an ordinary method, with bytecodes and an interpreter
/// entry.
pub(super) fn check(layout: &VmLayout, memory: &dyn Memory, probe: &Probe) -> Result<(), LayoutError> {
    let mut methods = MethodTable::new(layout.method, MethodTableLimits::default());
    let found = methods.resolve(memory, probe.method).ok().and_then(|id| methods.get(id));
    let name = found.map(|method| format!("{}.{}{}", method.class.name, method.name, method.signature));
    if name.as_deref() != Some(probe.method_name) {
        let reason = format!("{} reads as {}", probe.method_name, name.as_deref().unwrap_or("nothing"));
        return Err(LayoutError::implausible("Method", "_constMethod", reason));
    }
    check_entry(layout, memory, probe.method)?;
    check_bytecodes(layout, memory, probe)
}

/// Checks that the method has a field with the interpreter's entry for methods of its kind. Several fields
/// may have that value, and the walker reads none of them: the entry shows where codelets begin.
fn check_entry(layout: &VmLayout, memory: &dyn Memory, method: u64) -> Result<(), LayoutError> {
    let mut words = vec![0; (layout.method.method_size.min(MAX_METHOD_BYTES) as usize).next_multiple_of(8)];
    let is_readable = memory.read_bytes(method, &mut words);
    let starts_codelet = |entry| {
        let codelet = layout.stubs.codelet_at(entry).filter(|codelet| codelet.code.start == entry);
        codelet.is_some_and(|codelet| codelet.kind == CodeletKind::MethodEntry)
    };
    // In JDK 11 a method of an archive of classes has an entry there, which jumps to the interpreter's.
    let has_entry = words.chunks_exact(8).any(|word| {
        // SANITY: a chunk has eight bytes.
        let entry = u64::from_ne_bytes(word.try_into().unwrap());
        starts_codelet(entry) || archived_entry::target(memory, entry).is_some_and(starts_codelet)
    });
    if is_readable && has_entry {
        return Ok(());
    }
    let reason = format!("no field of {method:#x} is where the codelet of a method's entry begins");
    Err(LayoutError::implausible("InterpreterCodelet", "_size", reason))
}

/// Checks that the bytecodes of most methods end with a return. A method without bytecodes, such as a native
/// one, has the size 0.
fn check_bytecodes(layout: &VmLayout, memory: &dyn Memory, probe: &Probe) -> Result<(), LayoutError> {
    let method = &layout.method;
    let last = |&at: &u64| {
        let const_method = memory.load_u64(at.checked_add(method.const_method.into())?)?;
        let size = memory.load_u16(const_method.checked_add(method.code_size.into())?)?;
        let end = const_method.checked_add(u64::from(method.const_method_size) + u64::from(size))?;
        Some((size, memory.load_u8(end.checked_sub(1)?)?))
    };
    let of_class = probe.class_methods.iter().filter(|&&at| at != 0);
    let ends: Vec<_> = of_class.filter_map(last).filter(|&(size, _)| size != 0).collect();
    let returns = ends.iter().filter(|(_, last)| RETURNS.contains(last) || *last == ATHROW).count();
    let methods = probe.class_methods.iter().filter(|&&at| at != 0).count();
    if methods == 0 || returns * 2 > methods {
        return Ok(());
    }
    let reason = format!("{returns} of {methods} methods end with a return");
    Err(LayoutError::implausible("ConstMethod", CODE_SIZE, reason))
}

//! The template interpreter's codelets (`code/stubs.hpp`, `interpreter/interpreter.hpp`).

use otlpprof_core::address::CodeRange;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{Codelet, CodeletKind};

use super::error::LayoutError;
use crate::arch::interpreter_code::CODE_ENTRY_ALIGNMENT;
use crate::vm_structs::VmStructs;
use crate::{c_string, flags};

/// An upper bound of the number of codelets; HotSpot 11-25 have 270 to 290.
const MAX_CODELETS: usize = 4096;

const MAX_DESCRIPTION: usize = 200;

/// A codelet with the VM's own name for it.
#[derive(Debug)]
pub(super) struct NamedCodelet {
    pub(super) name: String,
    pub(super) code: CodeRange,
}

/// All codelets, ascending, and the range that contains them.
pub(super) fn codelets(
    structs: &VmStructs,
    memory: &dyn Memory,
) -> Result<(CodeRange, Vec<NamedCodelet>), LayoutError> {
    let queue = structs.static_pointer(memory, "AbstractInterpreter", "_code")?;
    let queue_u32 = |field| {
        let offset = structs.offset("StubQueue", field)?;
        let value = memory.load_u32(queue + u64::from(offset));
        value.ok_or_else(|| LayoutError::implausible("StubQueue", field, "it cannot be read"))
    };
    let buffer_offset = structs.offset("StubQueue", "_stub_buffer")?;
    let buffer = memory
        .load_u64(queue + u64::from(buffer_offset))
        .ok_or_else(|| LayoutError::implausible("StubQueue", "_stub_buffer", "it cannot be read"))?;
    let (begin, end) = (queue_u32("_queue_begin")?, queue_u32("_queue_end")?);
    let number = queue_u32("_number_of_stubs")? as usize;
    if begin >= end || number == 0 || number > MAX_CODELETS {
        let reason = format!("{number} codelets between {begin:#x} and {end:#x}");
        return Err(LayoutError::implausible("StubQueue", "_number_of_stubs", reason));
    }
    let range = CodeRange { start: buffer + u64::from(begin), end: buffer + u64::from(end) };
    let codelets = walk(structs, memory, range, number)?;
    Ok((range, codelets))
}

/// Walks the contiguous codelets; `number` of them must end exactly at the range's end.
fn walk(
    structs: &VmStructs,
    memory: &dyn Memory,
    range: CodeRange,
    number: usize,
) -> Result<Vec<NamedCodelet>, LayoutError> {
    let size_offset = u64::from(structs.offset("InterpreterCodelet", "_size")?);
    let description_offset = u64::from(structs.offset("InterpreterCodelet", "_description")?);
    let header = u64::from(structs.size_of("InterpreterCodelet")?);
    let refuse = |field, reason: String| LayoutError::implausible("InterpreterCodelet", field, reason);
    // A codelet's instructions begin at the next multiple of `alignment` after its header.
    let alignment = flags::address_of(structs, memory, "CodeEntryAlignment")
        .and_then(|address| memory.load_u64(address))
        .filter(|alignment| alignment.is_power_of_two())
        .unwrap_or(CODE_ENTRY_ALIGNMENT);
    let mut codelets = Vec::with_capacity(number);
    let mut at = range.start;
    while at < range.end {
        let size = u64::from(memory.load_u32(at + size_offset).unwrap_or(0));
        let start = (at + header).next_multiple_of(alignment);
        let end = at + size;
        if end < start || end > range.end || codelets.len() == number {
            return Err(refuse("_size", format!("{size} at codelet {} of {number}", codelets.len())));
        }
        let name = memory
            .load_u64(at + description_offset)
            .and_then(|name| c_string::read(memory, name, MAX_DESCRIPTION))
            .ok_or_else(|| refuse("_description", "it cannot be read".to_owned()))?;
        codelets.push(NamedCodelet { name, code: CodeRange { start, end } });
        at = end;
    }
    if codelets.len() != number {
        return Err(refuse("_size", format!("{} codelets found of {number}", codelets.len())));
    }
    Ok(codelets)
}

/// Classifies the codelets for the walker, by the names that `interpreter/templateInterpreterGenerator.cpp`
/// and `interpreter/bytecodes.cpp` assign (11-25).
pub(super) fn classify(named: &[NamedCodelet]) -> Result<Vec<Codelet>, LayoutError> {
    let codelets: Vec<_> =
        named.iter().map(|codelet| Codelet { code: codelet.code, kind: kind_of(&codelet.name) }).collect();
    let needed = [
        CodeletKind::MethodEntry,
        CodeletKind::SynchronizedMethodEntry,
        CodeletKind::NativeMethodEntry,
        CodeletKind::SynchronizedNativeMethodEntry,
        CodeletKind::Return,
    ];
    for kind in needed {
        if !codelets.iter().any(|codelet| codelet.kind == kind) {
            let reason = format!("no codelet is a {kind:?}");
            return Err(LayoutError::implausible("InterpreterCodelet", "_description", reason));
        }
    }
    Ok(codelets)
}

fn kind_of(name: &str) -> CodeletKind {
    const RETURNS: [&str; 7] =
        ["ireturn", "lreturn", "freturn", "dreturn", "areturn", "return", "return_register_finalizer"];
    // Since 21 the entries of native methods, intrinsic ones included, have the prefix "native ".
    let entry = name.strip_prefix("native ").unwrap_or(name).strip_prefix("method entry point (kind = ");
    let Some(entry) = entry else {
        let bytecode = name.trim_start_matches('_');
        return if RETURNS.contains(&bytecode) { CodeletKind::Return } else { CodeletKind::Other };
    };
    match entry.trim_end_matches(')') {
        "zerolocals" => CodeletKind::MethodEntry,
        "zerolocals_synchronized" => CodeletKind::SynchronizedMethodEntry,
        "native" => CodeletKind::NativeMethodEntry,
        "native_synchronized" => CodeletKind::SynchronizedNativeMethodEntry,
        _ => CodeletKind::FramelessEntry,
    }
}

//! Learns the stages of the interpreter's entries and exits from its instructions. The architecture's folder
//! decodes the instructions.

use otlpprof_core::interpreter_code::{InterpreterCode, InterpreterEntry};
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{Codelet, CodeletKind};

use super::arch::interpreter_code as arch;

/// The stages of all `codelets`. An entry whose instructions are not recognised is left out. Its frames then
/// count as complete, and the walker's own checks decide.
pub fn learn(memory: &(impl Memory + ?Sized), codelets: &[Codelet]) -> InterpreterCode {
    let mut entries = Vec::new();
    let mut exits = Vec::new();
    let mut throws = Vec::new();
    let mut bytes = Vec::new();
    let mut sender_sp_register = 0;
    for codelet in codelets {
        bytes.resize(codelet.code.end.saturating_sub(codelet.code.start) as usize, 0);
        if !memory.read_bytes(codelet.code.start, &mut bytes) {
            continue;
        }
        match codelet.kind {
            CodeletKind::FramelessEntry => {
                entries.push(InterpreterEntry { code: codelet.code, ..InterpreterEntry::default() });
            }
            CodeletKind::MethodEntry
            | CodeletKind::SynchronizedMethodEntry
            | CodeletKind::NativeMethodEntry
            | CodeletKind::SynchronizedNativeMethodEntry => {
                if let Some((entry, register)) = arch::entry(codelet.code, &bytes) {
                    entries.push(entry);
                    sender_sp_register = register;
                }
            }
            CodeletKind::Return | CodeletKind::Other => {}
        }
        arch::find_exits(codelet.code.start, &bytes, &mut exits);
        arch::find_throws(codelet.code.start, &bytes, &mut throws);
    }
    entries.sort_by_key(|entry| entry.code.start);
    exits.sort_by_key(|exit| exit.return_on_stack.start);
    throws.sort_by_key(|stage| stage.start);
    InterpreterCode {
        entries: entries.leak(),
        exits: exits.leak(),
        throws: throws.leak(),
        sender_sp_register,
    }
}

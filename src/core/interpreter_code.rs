//! The stages of the template interpreter's code at which a frame is not yet, or no longer, what it is in
//! between. `jvm` learns them once, from the codelets' instructions; the walker looks them up.

use super::vm_layout::CodeRange;

/// A method entry codelet. All addresses are run-time addresses of instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterpreterEntry {
    /// The whole codelet.
    pub code: CodeRange,
    /// Where the return address is not on the stack but in a register (x86_64, rax): from after its pop to its push.
    pub return_in_register: CodeRange,
    /// The `push rbp` of the fixed frame (aarch64: `add x29, sp, 80`), up to which the frame pointer is the caller's; 0 for
    /// an intrinsic's entry, which has no frame at all.
    pub push_fp: u64,
    /// The instruction after the one that saves the sender's stack pointer in the frame.
    pub sender_sp_saved: u64,
    /// The instruction after the one that saves the `Method*` in the frame. The frame is complete.
    pub method_saved: u64,
}

/// A place where the interpreter leaves a frame: `leave`, pop of the return address (x86_64), jump to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterpreterExit {
    /// After `leave`, up to and including the pop: the return address is on top of the stack.
    pub return_on_stack: CodeRange,
    /// After the pop, up to and including the jump: the return address is in a register.
    pub return_in_register: CodeRange,
    /// x86_64: a native method's exit keeps the return address in rdi and the sender's stack pointer in r11; the others
    /// in r13 and rbx. aarch64: the return address is in x30, and it and the exits for an exception keep the sender's
    /// stack pointer in x20, the others in x9.
    pub native: bool,
}

/// A place in what the interpreter does between taking a frame off for an exception and the jump to the caller's handler
/// (templateInterpreterGenerator_*.cpp, generate_throw_exception). It holds up to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrowStage {
    /// The run-time address of its first instruction.
    pub start: u64,
    /// Where the caller is; `None` behind the jump.
    pub caller: Option<ThrownTo>,
}

/// Where the frame is that an exception is thrown to. The frame pointer is its own already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrownTo {
    /// Its return address; on the stack it is the word there.
    pub return_address: Kept,
    /// Its stack pointer; on the stack it is the place itself.
    pub sp: Kept,
}

/// Where something is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// In the register with this DWARF number.
    InRegister(u8),
    /// So many bytes above the stack pointer.
    AboveSp(u8),
}

/// What is known of the interpreter's code. Sorted by address.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterpreterCode {
    /// The method entries.
    pub entries: &'static [InterpreterEntry],
    /// The exits.
    pub exits: &'static [InterpreterExit],
    /// What it does with an exception when the frame is gone.
    pub throws: &'static [ThrowStage],
    /// The DWARF number of the register in which an entry is told the sender's stack pointer.
    pub sender_sp_register: u8,
}

impl InterpreterCode {
    /// The entry codelet around `pc`.
    pub fn entry_at(&self, pc: u64) -> Option<&InterpreterEntry> {
        let next = self.entries.partition_point(|entry| entry.code.start <= pc);
        self.entries.get(next.checked_sub(1)?).filter(|entry| entry.code.contains(pc))
    }

    /// The exit around `pc`, if the frame is gone there.
    pub fn exit_at(&self, pc: u64) -> Option<&InterpreterExit> {
        let next = self.exits.partition_point(|exit| exit.return_on_stack.start <= pc);
        self.exits.get(next.checked_sub(1)?).filter(|exit| pc < exit.return_in_register.end)
    }

    /// Whom an exception is thrown to at `pc`, if the frame that it has left is gone there.
    pub fn thrown_to_at(&self, pc: u64) -> Option<ThrownTo> {
        let next = self.throws.partition_point(|stage| stage.start <= pc);
        self.throws.get(next.checked_sub(1)?)?.caller
    }
}

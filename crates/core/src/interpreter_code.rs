//! The stages of the template interpreter's code in which a frame is not complete yet, or no longer complete.
//! `jvm` determines them once, from the instructions of the codelets; the walker looks them up.

use super::address::CodeRange;

/// A method entry codelet. All addresses are run-time addresses of instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterpreterEntry {
    /// The range of the whole codelet.
    pub code: CodeRange,
    /// The range in which the return address is in a register instead of the stack (x86_64, rax): from after
    /// its pop to its push.
    pub return_in_register: CodeRange,
    /// The `push rbp` of the fixed frame (aarch64: `add x29, sp, 80`), up to which the frame pointer is the
    /// caller's. 0 for the entry of an intrinsic, which has no frame at all.
    pub push_fp: u64,
    /// The instruction after the one that saves the sender's stack pointer in the frame.
    pub sender_sp_saved: u64,
    /// The instruction after the one that saves the `Method*` in the frame. From here on the frame is
    /// complete.
    pub method_saved: u64,
}

/// A place where the interpreter leaves a frame: `leave`, pop of the return address (x86_64), jump to the
/// return address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterpreterExit {
    /// The range after `leave`, up to and including the pop: the return address is on top of the stack.
    pub return_on_stack: CodeRange,
    /// The range after the pop, up to and including the jump: the return address is in a register.
    pub return_in_register: CodeRange,
    /// Whether the exit uses the registers of a native method's. x86_64: a native method's exit keeps the
    /// return address in rdi and the sender's stack pointer in r11, other exits in r13 and rbx. aarch64: the
    /// return address is in x30. The sender's stack pointer is in x20 at a native method's exit and at exits
    /// for an exception, and in x9 at other exits.
    pub uses_alternate_registers: bool,
}

/// A stage of the interpreter's code between the removal of a frame for an exception and the jump to the
/// caller's handler (cpu/*/templateInterpreterGenerator_*.cpp, generate_throw_exception). A stage extends to
/// the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrowStage {
    /// The run-time address of its first instruction.
    pub start: u64,
    /// The place of the caller's registers; `None` after the jump.
    pub caller: Option<ThrownTo>,
}

/// The place of the registers of the frame to which an exception is thrown. The frame pointer register
/// already has that frame's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrownTo {
    /// The return address; `AboveSp` refers to a word that holds the address.
    pub return_address: ValueLocation,
    /// The stack pointer; `AboveSp` refers to the stack pointer's value itself, not to a word in memory.
    pub sp: ValueLocation,
}

/// The place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueLocation {
    /// In the register with this DWARF number.
    InRegister(u8),
    /// This many bytes above the stack pointer.
    AboveSp(u8),
}

/// The known stages of the interpreter's code. Each list is sorted by address.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterpreterCode {
    /// The method entries.
    pub entries: &'static [InterpreterEntry],
    /// The exits.
    pub exits: &'static [InterpreterExit],
    /// The stages of an exception's throw after its frame has been removed.
    pub throws: &'static [ThrowStage],
    /// The DWARF number of the register in which a method entry receives the sender's stack pointer.
    pub sender_sp_register: u8,
}

impl InterpreterCode {
    /// Returns the entry codelet that contains `pc`.
    #[inline]
    pub fn entry_at(&self, pc: u64) -> Option<&InterpreterEntry> {
        let next = self.entries.partition_point(|entry| entry.code.start <= pc);
        self.entries.get(next.checked_sub(1)?).filter(|entry| entry.code.contains(pc))
    }

    /// Returns the exit that contains `pc`, if the frame has been removed there.
    #[inline]
    pub fn exit_at(&self, pc: u64) -> Option<&InterpreterExit> {
        let next = self.exits.partition_point(|exit| exit.return_on_stack.start <= pc);
        self.exits.get(next.checked_sub(1)?).filter(|exit| pc < exit.return_in_register.end)
    }

    /// Returns the frame to which an exception is thrown at `pc`, if the frame that it has left has been
    /// removed there.
    #[inline]
    pub fn thrown_to_at(&self, pc: u64) -> Option<ThrownTo> {
        let next = self.throws.partition_point(|stage| stage.start <= pc);
        self.throws.get(next.checked_sub(1)?)?.caller
    }
}

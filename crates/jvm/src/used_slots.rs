//! The frame slots that the interpreter's instructions use.

/// Slots in words from the frame pointer, one element for each instruction that uses the slot.
#[derive(Debug, Default)]
pub(crate) struct UsedSlots {
    /// The slot from which an exit loads the sender's stack pointer.
    pub(crate) sender_sp: Vec<i64>,
    /// The slot that is cleared where a call returns.
    pub(crate) last_sp: Vec<i64>,
    /// The slot whose pointer leads to a ConstMethod and on to that one's constant pool: the Method.
    pub(crate) method: Vec<i64>,
    /// The slot from which the locals register is restored where a call returns.
    pub(crate) locals: Vec<i64>,
    /// The slot from which the bytecode pointer's register is restored where a call returns.
    pub(crate) bcp: Vec<i64>,
}

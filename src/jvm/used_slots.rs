//! The frame slots that the interpreter's instructions use.

/// Slots in words from the frame pointer, one element for each instruction that uses the slot.
#[derive(Debug, Default)]
pub(in crate::jvm) struct UsedSlots {
    /// The slot from which an exit loads the sender's stack pointer.
    pub(in crate::jvm) sender_sp: Vec<i64>,
    /// The slot that is cleared where a call returns.
    pub(in crate::jvm) last_sp: Vec<i64>,
    /// The slot whose pointer leads to a ConstMethod and on to that one's constant pool: the Method.
    pub(in crate::jvm) method: Vec<i64>,
    /// The slot from which the locals register is restored where a call returns.
    pub(in crate::jvm) locals: Vec<i64>,
    /// The slot from which the bytecode pointer's register is restored where a call returns.
    pub(in crate::jvm) bcp: Vec<i64>,
}

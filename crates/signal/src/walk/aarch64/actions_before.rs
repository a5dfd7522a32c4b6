//! The actions of code without a frame of its own (an adapter or an interpreter's entry) before an
//! instruction, read from the preceding instructions.

use super::instructions::{POP_RECORD, PUSH_RECORD};

/// `mov x13, sp` and `mov x19, sp`.
const SET_SENDER_SP: [(u32, u8); 2] = [(0x9100_03ed, 13), (0x9100_03f3, 19)];
/// `stp x10, x, [sp, -16]!` and `ldp x10, x, [sp], 16`, with any other register.
const KEEP_X10: u32 = 0xa9bf_03ea;
const RESTORE_X10: u32 = 0xa8c1_03ea;
/// `mov x19, x13`
const KEEP_SENDER_SP: u32 = 0xaa0d_03f3;
const FP: u32 = 29;

/// For each action that can be done and undone, the one that came last.
#[derive(Clone, Copy, Default)]
pub(super) struct ActionsBefore {
    /// The register in which C2I has saved the sender's SP.
    pub(super) sender_sp: Option<u8>,
    /// Whether a frame record has been pushed (`true`) or popped again (`false`).
    record: Option<bool>,
    /// Whether x10 has been pushed (`true`) or popped again (`false`).
    x10: Option<bool>,
    pub(super) takes_sender_sp: bool,
    /// Whether the sender's SP, which was in x13, is kept in x19.
    pub(super) keeps_sender_sp: bool,
    /// The register that x30 was moved to.
    pub(super) keeps_return: Option<u8>,
}

impl ActionsBefore {
    /// Evaluates these instructions, the last one first.
    pub(super) fn by(instructions: impl Iterator<Item = u32>) -> Self {
        let mut done = Self::default();
        instructions.for_each(|code| done.note(code));
        done
    }

    pub(super) fn has_record(&self) -> bool {
        self.record == Some(true)
    }

    /// The bytes above the record, or above SP if there is no record, that a pair with x10 takes.
    pub(super) fn bytes_kept(&self) -> u64 {
        if self.x10 == Some(true) { 16 } else { 0 }
    }

    fn note(&mut self, code: u32) {
        match code {
            PUSH_RECORD | POP_RECORD => {
                self.record.get_or_insert(code == PUSH_RECORD);
            }
            KEEP_SENDER_SP => self.keeps_sender_sp = true,
            _ => match code & 0xffff_83ff {
                pair @ (KEEP_X10 | RESTORE_X10) => {
                    self.x10.get_or_insert(pair == KEEP_X10);
                }
                _ => {
                    let set = SET_SENDER_SP.iter().find(|(set, _)| *set == code);
                    self.sender_sp = set.map(|&(_, register)| register).or(self.sender_sp);
                    self.takes_sender_sp |= takes_sp(code);
                    self.keeps_return = self.keeps_return.or(kept_return(code));
                }
            },
        }
    }
}

/// Whether the instruction is `mov sp, x` or `and sp, x, -16`, except the one that leaves a frame.
fn takes_sp(code: u32) -> bool {
    matches!(code & 0xffff_fc1f, 0x9100_001f | 0x927c_ec1f) && code >> 5 & 0x1f != FP
}

/// The register of `mov x, x30`.
fn kept_return(code: u32) -> Option<u8> {
    (code & 0xffff_ffe0 == 0xaa1e_03e0).then_some((code & 0x1f) as u8)
}

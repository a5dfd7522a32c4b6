//! Call frame information read in place: the rule for one address, out of a mapped `.eh_frame`.
//!
//! A walk needs this while an object's table is not compiled yet: at the start of a process, and for a moment
//! after a library has been loaded. It is also needed for registers that tables leave out (`kept_at`). A
//! look-up costs about a microsecond; one in a table costs tens of nanoseconds. Both read the same bytes and
//! return the same rules (`tests/elf/unwind.rs` compares them over whole libraries).
//!
//! Descriptions are found through the search table of `.eh_frame_hdr` (Linux Standard Base 5.0, "Exception
//! Frames"), which linkers write sorted, as pairs of 32-bit offsets. A table of another form gives no rule,
//! nor does code without a description.
//!
//! | Module | Duty |
//! |---|---|
//! | `reader` | bounded reading of a section: integers, encoded pointers |
//! | `description` | an address's FDE and its CIE |
//! | `program` | the instructions up to the address |
//! | `expression` | the operations of an expression |

mod description;
mod expression;
mod program;
mod reader;

use otlpprof_core::frame_rules::{Ops, Register, RowCfa, RowRegister, RuleRow, UNSUPPORTED, native};
use otlpprof_core::memory::Memory;
use otlpprof_core::unwind_rule::UnwindRule;

use self::program::{Cfa, Saved, State};

/// The rule at run-time address `pc`, by the `.eh_frame_hdr` at run-time address `header`. `None` if nothing
/// describes `pc`. A description that cannot be followed gives [`UNSUPPORTED`].
///
/// Handlers may run on small stacks of the application. So the parts are not inlined into one large frame.
pub fn rule_at<M: Memory>(memory: &M, header: u64, pc: u64) -> Option<UnwindRule> {
    let description = description::find(memory, header, pc)?;
    let state = program::state_at(&description, pc, None);
    Some(state.map_or(UNSUPPORTED, |state| rule_of(memory, &state, description.common.is_signal_trampoline)))
}

/// The place where the frame at `pc` keeps the value that `register` had in its caller, by the
/// `.eh_frame_hdr` at run-time address `header`: the register itself, or a distance from the CFA. `None` if
/// nothing describes `pc`, or if the value is lost or elsewhere.
pub(super) fn kept_at<M: Memory>(
    memory: &M,
    header: u64,
    pc: u64,
    register: Register,
) -> Option<SavedRegister> {
    let description = description::find(memory, header, pc)?;
    match program::state_at(&description, pc, Some(register))?.asked {
        Saved::Same => Some(SavedRegister::InRegister),
        Saved::AtCfaPlus(offset) => Some(SavedRegister::AtCfaPlus(offset)),
        Saved::Undefined | Saved::AtExpression(_) | Saved::Other => None,
    }
}

/// The place where a frame keeps a register of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SavedRegister {
    InRegister,
    AtCfaPlus(i64),
}

#[inline(never)]
fn rule_of<M: Memory>(memory: &M, state: &State, is_signal_trampoline: bool) -> UnwindRule {
    let (mut cfa_ops, mut fp_ops) = (Ops::EMPTY, Ops::EMPTY);
    let cfa = match state.cfa {
        Cfa::Register(register, offset) => RowCfa::Register(register, offset),
        Cfa::Expression(at) => {
            RowCfa::Expression(expression::read_ops(memory, at, &mut cfa_ops).map(|()| &cfa_ops))
        }
    };
    let fp = match state.fp {
        Saved::AtExpression(at) => {
            RowRegister::AtExpression(expression::read_ops(memory, at, &mut fp_ops).map(|()| &fp_ops))
        }
        other => other.row(),
    };
    let return_address = state.return_address.row();
    native::ARCHITECTURE.rule(&RuleRow { cfa, fp, return_address, is_signal_trampoline })
}

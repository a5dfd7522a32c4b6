//! The waits of threads, summed by the thread's state and by what it waits for.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use otlpprof_model::thread_states::{BLOCKED, RUNNABLE};

use super::call_tree::{CallTree, NodeId};
use super::code_kind::{CodeKind, StackCodes};
use super::frame_table::FrameTable;
use super::thread_role::ThreadRole;
use super::wait_operation::{Operation, Operations};

/// The waits of samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Each pair of a state and what is waited for, with its sum. The highest sums are first.
    pub rows: Vec<Wait>,
    /// The sum of all rows.
    pub total: i64,
}

/// The waits in one state for one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The state, as the attribute has it.
    pub state: String,
    /// The thing that is waited for; `None` if it is a processor, or if it is unknown.
    pub awaited: Option<Awaited>,
    /// The sum.
    pub value: i64,
}

/// The thing that a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// The end of an operation.
    Operation {
        /// The method or function.
        name: String,
        /// The method in which the thread waits, where the operation says little: the program's, or the
        /// JDK's where the stack has none of the program.
        caller: Option<String>,
    },
    /// The next work of one of the VM's own threads.
    WorkOfVm(CodeKind),
}

/// Samples that wait: their state, the role of their thread, their stack and their value.
pub(super) type Waiting<'w> = (&'w str, ThreadRole, NodeId, i64);

/// As [`Awaited`], with borrowed names.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Found<'f> {
    Operation(Operation<'f>),
    WorkOfVm(CodeKind),
}

impl Waits {
    /// Sums waiting samples. `None` if there is none.
    pub(super) fn of<'w>(
        waiting: impl Iterator<Item = Waiting<'w>>,
        tree: &CallTree,
        frames: &FrameTable,
        stacks: &StackCodes,
    ) -> Option<Self> {
        let mut waiting = waiting.peekable();
        waiting.peek()?;
        let operations = Operations::new(tree, frames);
        let find = |state: &str, role, node| {
            let kind = stacks.kind(role, node);
            match state {
                RUNNABLE => None,
                _ if kind.is_of_vm_thread(role) => Some(Found::WorkOfVm(kind)),
                _ => operations.of(node, state == BLOCKED).map(Found::Operation),
            }
        };
        let (mut sums, mut total) = (HashMap::<_, i64, RandomState>::default(), 0_i64);
        for (state, role, node, value) in waiting {
            let sum = sums.entry((state, find(state, role, node))).or_default();
            *sum = sum.saturating_add(value);
            total = total.saturating_add(value);
        }
        let rows = sums.into_iter().map(|((state, found), value)| Wait {
            state: state.to_owned(),
            awaited: found.map(Found::owned),
            value,
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_unstable_by(|one, other| {
            let by_value = other.value.cmp(&one.value);
            by_value.then_with(|| (&one.state, &one.awaited).cmp(&(&other.state, &other.awaited)))
        });
        Some(Self { rows, total })
    }
}

impl Found<'_> {
    fn owned(self) -> Awaited {
        match self {
            Self::WorkOfVm(kind) => Awaited::WorkOfVm(kind),
            Self::Operation(Operation { name, caller }) => {
                Awaited::Operation { name: name.to_owned(), caller: caller.map(str::to_owned) }
            }
        }
    }
}

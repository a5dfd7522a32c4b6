//! The state of a thread when it was sampled, derived from the handler's observations and from the topmost
//! Java method.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use otlpprof_core::java_thread_state::JavaThreadState;
use otlpprof_core::record::{SampleHeader, Subject};
use otlpprof_model::{Frame, StackId, Tables, thread_states};

/// The states of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ThreadState {
    /// Running on a processor.
    Running = 1,
    /// Waiting to enter a monitor, or stopped by the VM.
    Blocked,
    /// In Object.wait.
    Waiting,
    /// In LockSupport.park.
    Parked,
    /// In Thread.sleep.
    Sleeping,
    /// In a system call of native code that waits, for example for a socket.
    InNative,
    /// Ready to run, and waiting for a processor.
    Runnable,
}

impl ThreadState {
    const ALL: [Self; 7] = [
        Self::Running,
        Self::Blocked,
        Self::Waiting,
        Self::Parked,
        Self::Sleeping,
        Self::InNative,
        Self::Runnable,
    ];

    /// The state's name in attributes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => thread_states::RUNNING,
            Self::Blocked => thread_states::BLOCKED,
            Self::Waiting => thread_states::WAITING,
            Self::Parked => thread_states::PARKED,
            Self::Sleeping => thread_states::SLEEPING,
            Self::InNative => thread_states::IN_NATIVE,
            Self::Runnable => thread_states::RUNNABLE,
        }
    }

    pub(super) const fn subject(self) -> Subject {
        Subject(self as u32)
    }

    /// The state that a sample's subject encodes.
    pub fn from_subject(subject: Subject) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.subject() == subject)
    }
}

/// Cache: the state that each stack's topmost Java method implies.
#[derive(Default)]
pub(super) struct ThreadStates {
    waits: HashMap<StackId, Option<ThreadState>, RandomState>,
}

impl ThreadStates {
    /// Returns the state of the sampled thread.
    pub(super) fn of(&mut self, tables: &Tables, header: &SampleHeader, stack: StackId) -> ThreadState {
        if header.is_waiting == 0 {
            return if header.is_runnable == 0 { ThreadState::Running } else { ThreadState::Runnable };
        }
        let state = *self.waits.entry(stack).or_insert_with(|| state_of_leaf(tables, stack));
        match state {
            Some(state) => state,
            None if matches!(header.thread_state, JavaThreadState::Blocked | JavaThreadState::InVm) => {
                ThreadState::Blocked
            }
            None => ThreadState::InNative,
        }
    }
}

/// Returns the state that the topmost Java method implies, if that method waits.
fn state_of_leaf(tables: &Tables, stack: StackId) -> Option<ThreadState> {
    let mut methods = tables.stacks.get(stack).iter().filter_map(|frame| match tables.frames.get(*frame) {
        Frame::Java { function, .. } => Some(tables.strings.get(tables.functions.get(*function).name)),
        _ => None,
    });
    match methods.next()? {
        "jdk.internal.misc.Unsafe.park" => Some(ThreadState::Parked),
        "java.lang.Object.wait" | "java.lang.Object.wait0" => Some(ThreadState::Waiting),
        "java.lang.Thread.sleep" | "java.lang.Thread.sleep0" | "java.lang.Thread.sleepNanos0" => {
            Some(ThreadState::Sleeping)
        }
        _ => None,
    }
}

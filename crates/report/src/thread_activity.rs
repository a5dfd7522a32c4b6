//! The activities of the threads of wall-clock profiles, by their states.

use otlpprof_model::thread_states::{RUNNABLE, RUNNING};

/// The activity of a thread in some state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// The thread runs, or its state is unknown.
    Runs,
    /// The thread is ready to run, and waits for a processor.
    AwaitsProcessor,
    /// The thread waits for something else.
    Waits,
}

impl Activity {
    /// By the value of the attribute `thread.state`.
    pub(super) fn of(state: &str) -> Self {
        match state {
            "" | RUNNING => Self::Runs,
            RUNNABLE => Self::AwaitsProcessor,
            _ => Self::Waits,
        }
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_model::thread_states::{PARKED, WAITING};

    use super::*;

    /// Regression: a thread whose state was an empty text was taken for an idle one.
    #[test]
    fn a_thread_of_an_unknown_state_is_not_taken_for_a_waiting_one() {
        assert_eq!(["", RUNNING].map(Activity::of), [Activity::Runs; 2]);
        assert_eq!([PARKED, WAITING, "new state"].map(Activity::of), [Activity::Waits; 3]);
    }
}

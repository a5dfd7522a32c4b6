//! The engines that take samples: one table, with a row for each, from which all else about them follows.

/// The cause of an engine's samples, which determines how the engine is stretched (`signal::stretch`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// A clock of each thread, whose signals keep their pace. A stretched engine postpones samples: periods
    /// add up.
    Clock,
    /// A thread of the profiler that visits other threads. Stretched, the thread visits each less often.
    Visits,
    /// A source in the kernel or the VM that reports one event in so many. Stretched, the source reports
    /// fewer.
    Source,
    /// Each event. Of a stretched engine's events one in so many is sampled, at random.
    EachEvent,
}

/// The value of a sample by which its event is weighed against other events of its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// The first value: a count, or bytes.
    First,
    /// The second value: a duration.
    Second,
}

/// The properties of an engine.
#[derive(Clone, Copy, Debug)]
struct Properties {
    /// The option that enables the engine.
    name: &'static str,
    pace: Pace,
    amount: Amount,
    /// Whether the first value counts periods, which get longer if the engine is stretched.
    counts_periods: bool,
}

/// Makes the table into [`Engine`], its numbers and its properties. A property that a row leaves out does not
/// compile.
macro_rules! engines {
    ($($(#[$doc:meta])+ $engine:ident => { $($property:ident: $value:expr),+ })+) => {
        /// An engine. Its number is the index of its row in the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Engine {
            $($(#[$doc])+ $engine,)+
        }

        impl Engine {
            /// All engines, each at the index of its number.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$engine),+];

            /// The number of engines.
            pub const COUNT: usize = [$(Self::$engine),+].len();

            const fn properties(self) -> Properties {
                match self {
                    $(Self::$engine => Properties { $($property: $value),+ },)+
                }
            }
        }
    };
}

engines! {
    /// CPU time of all threads.
    Cpu => { name: "cpu", pace: Pace::Clock, amount: Amount::First, counts_periods: true }
    /// Wall-clock time of all threads.
    Wall => { name: "wall", pace: Pace::Visits, amount: Amount::First, counts_periods: false }
    /// Allocations of objects.
    Alloc => { name: "alloc", pace: Pace::Source, amount: Amount::First, counts_periods: false }
    /// Waits to enter monitors and to acquire locks.
    Lock => { name: "lock", pace: Pace::EachEvent, amount: Amount::Second, counts_periods: false }
    /// Waits for notifications.
    Wait => { name: "wait", pace: Pace::EachEvent, amount: Amount::Second, counts_periods: false }
    /// Exceptions.
    Exceptions => { name: "exceptions", pace: Pace::EachEvent, amount: Amount::First, counts_periods: false }
    /// A perf event.
    Event => { name: "event", pace: Pace::Source, amount: Amount::First, counts_periods: true }
    /// Native allocations.
    NativeMemory => { name: "nativemem", pace: Pace::EachEvent, amount: Amount::First, counts_periods: false }
    /// Sampled objects that may still be alive.
    Live => { name: "live", pace: Pace::Source, amount: Amount::First, counts_periods: false }
    /// Long calls of traced methods.
    Trace => { name: "trace", pace: Pace::EachEvent, amount: Amount::Second, counts_periods: false }
}

impl Engine {
    /// The name of the option that enables the engine.
    pub const fn name(self) -> &'static str {
        self.properties().name
    }

    /// The cause of the engine's samples.
    pub const fn pace(self) -> Pace {
        self.properties().pace
    }

    /// Whether the engine's first value counts periods, which get longer if the engine is stretched.
    pub const fn counts_periods(self) -> bool {
        self.properties().counts_periods
    }

    /// The amount of a sample with these values.
    pub const fn amount(self, [first, second]: [f64; 2]) -> f64 {
        match self.properties().amount {
            Amount::First => first,
            Amount::Second => second,
        }
    }
}

impl Pace {
    /// Whether a stretched engine receives fewer signals.
    pub const fn slows_signals(self) -> bool {
        matches!(self, Self::Visits | Self::Source)
    }

    /// Whether the number of samples depends on what the program does, so that it needs a limit.
    pub const fn follows_program(self) -> bool {
        matches!(self, Self::Source | Self::EachEvent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_at_the_indices_of_their_numbers_and_have_names_of_their_own() {
        for (index, engine) in Engine::ALL.into_iter().enumerate() {
            assert_eq!(engine as usize, index, "{engine:?}");
            let same = Engine::ALL.into_iter().filter(|other| other.name() == engine.name());
            assert_eq!(same.count(), 1, "{engine:?}");
        }
    }
}

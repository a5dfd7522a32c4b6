//! The engines that take samples, with the properties of each in one table.

/// An engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Engine {
    /// CPU time of all threads.
    Cpu = 0,
    /// Wall-clock time of all threads.
    Wall,
    /// Allocations of objects.
    Alloc,
    /// Waits to enter monitors and to acquire locks.
    Lock,
    /// Waits for notifications.
    Wait,
    /// Exceptions.
    Exceptions,
    /// A perf event.
    Event,
    /// Native allocations.
    NativeMemory,
    /// Sampled objects that may still be alive.
    Live,
    /// Long calls of traced methods.
    Trace,
}

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

const fn row(name: &'static str, pace: Pace, amount: Amount, counts_periods: bool) -> Properties {
    Properties { name, pace, amount, counts_periods }
}

impl Engine {
    /// The number of engines.
    pub const COUNT: usize = 10;

    /// All engines, each at the index of its number.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Cpu,
        Self::Wall,
        Self::Alloc,
        Self::Lock,
        Self::Wait,
        Self::Exceptions,
        Self::Event,
        Self::NativeMemory,
        Self::Live,
        Self::Trace,
    ];

    /// The table: a row for each engine.
    const fn properties(self) -> Properties {
        match self {
            Self::Cpu => row("cpu", Pace::Clock, Amount::First, true),
            Self::Wall => row("wall", Pace::Visits, Amount::First, false),
            Self::Alloc => row("alloc", Pace::Source, Amount::First, false),
            Self::Lock => row("lock", Pace::EachEvent, Amount::Second, false),
            Self::Wait => row("wait", Pace::EachEvent, Amount::Second, false),
            Self::Exceptions => row("exceptions", Pace::EachEvent, Amount::First, false),
            Self::Event => row("event", Pace::Source, Amount::First, true),
            Self::NativeMemory => row("nativemem", Pace::EachEvent, Amount::First, false),
            Self::Live => row("live", Pace::Source, Amount::First, false),
            Self::Trace => row("trace", Pace::EachEvent, Amount::Second, false),
        }
    }

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

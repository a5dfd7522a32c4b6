//! The options of the engines, which decide what is sampled.

use std::time::Duration;

use otlpprof_convert::InvalidEvent;
use otlpprof_sampling::KernelFrames;
use otlpprof_sampling::config::Config;
use otlpprof_sampling::perf_events::names::{EventSpec, read_period};

use crate::option_spec::{GIB, HOUR, LIST_SEPARATOR, OptionSpec, PLAIN, US, set};
use crate::traced_methods::TracedMethods;
use crate::types::{CpuClock, RecordedEvents};
use crate::value;

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "cpu",
        value: "DURATION|on|off",
        default: Some("10ms"),
        bare: Some("on"),
        help: "sample each thread once per this much CPU time (on: 10ms)",
        read: |draft, text| {
            let interval =
                |text: &str| value::duration(text, Config::SHORTEST_INTERVAL, Config::LONGEST_INTERVAL);
            set(&mut draft.options.cpu, switchable(text, "10ms", interval))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "cpu.clock",
        value: "auto|perf|timer|itimer",
        default: Some("auto"),
        help: "the clock of CPU samples: perf events, a timer for each thread, the process's timer; auto: \
               the first that works",
        read: |draft, text| {
            let clocks = [
                ("auto", CpuClock::Auto),
                ("perf", CpuClock::Perf),
                ("timer", CpuClock::Timer),
                ("itimer", CpuClock::Itimer),
            ];
            set(&mut draft.options.cpu_clock, value::choice(text, &clocks))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "cpu.kernel",
        value: "BOOL",
        default: Some("false"),
        bare: Some("true"),
        help: "put the kernel's own frames on top of the stacks of CPU samples; with the perf clock only",
        read: |draft, text| set(&mut draft.options.cpu_kernel, value::boolean(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "wall",
        value: "DURATION|on|off",
        default: Some("off"),
        bare: Some("on"),
        help: "sample each thread once per this much elapsed time, running or waiting (on: 50ms)",
        read: |draft, text| {
            let interval = |text: &str| value::duration(text, 100 * US, HOUR);
            set(&mut draft.options.wall, switchable(text, "50ms", interval))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "wall.signal",
        value: "SIGNAL",
        default: Some("SIGVTALRM"),
        help: "the signal of wall-clock samples, by name or number; must differ from `signal`",
        read: |draft, text| set(&mut draft.options.wall_signal, value::signal(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "event",
        value: "NAME[:u][:PERIOD]|off",
        default: Some("off"),
        help: "sample by a perf event: cycles, cache-misses, page-faults, sched:sched_switch, ... \
               (:u: not in the kernel)",
        read: |draft, text| {
            set(
                &mut draft.options.event,
                match text {
                    "off" => Ok(None),
                    event => EventSpec::parse(event).map(Some),
                },
            )
        },
        ..PLAIN
    },
    OptionSpec {
        name: "event.kernel",
        value: "auto|BOOL",
        default: Some("auto"),
        bare: Some("true"),
        help: "put the kernel's own frames on top of the stacks of `event`; auto: if the process has the \
               permission",
        read: |draft, text| {
            let frames = match text {
                "auto" => Ok(KernelFrames::Auto),
                text => value::boolean(text)
                    .map(|is_on| if is_on { KernelFrames::On } else { KernelFrames::Off })
                    .map_err(|message| format!("{message}; or auto")),
            };
            set(&mut draft.options.event_kernel, frames)
        },
        ..PLAIN
    },
    OptionSpec {
        name: "event.period",
        value: "NUMBER",
        help: "the number of events between two samples, in place of PERIOD in `event` or the event's \
               default",
        read: |draft, text| set(&mut draft.event_period, read_period(text).map(Some)),
        ..PLAIN
    },
    OptionSpec {
        name: "event.signal",
        value: "SIGNAL",
        default: Some("SIGSTKFLT"),
        help: "the signal of samples by a perf event, by name or number; must differ from `signal` and \
               `wall.signal`",
        read: |draft, text| set(&mut draft.options.event_signal, value::signal(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "alloc",
        value: "SIZE|on|off",
        default: Some("off"),
        bare: Some("on"),
        help: "sample allocations, one in about so many bytes (on: 512k)",
        read: |draft, text| {
            let interval = switchable(text, "512k", |text| value::size(text, 1, GIB));
            set(&mut draft.options.alloc, interval.map(|interval| interval.map(|bytes| bytes as u64)))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "live",
        value: "SIZE|on|off",
        default: Some("off"),
        bare: Some("on"),
        help: "report live objects at each interval's end, sampled as one in about so many allocated bytes \
               (on: 512k)",
        read: |draft, text| {
            let interval = switchable(text, "512k", |text| value::size(text, 1, GIB));
            set(&mut draft.options.live, interval.map(|interval| interval.map(|bytes| bytes as u64)))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "lock",
        value: "DURATION|on|off",
        default: Some("off"),
        bare: Some("on"),
        help: "record waits for monitors and locks (LockSupport.park) that take this long or longer \
               (on: 10us)",
        read: |draft, text| set(&mut draft.options.lock, switchable(text, "10us", shortest_wait)),
        ..PLAIN
    },
    OptionSpec {
        name: "wait",
        value: "DURATION|on|off",
        default: Some("off"),
        bare: Some("on"),
        help: "record calls of Object.wait that take this long or longer (on: 10us)",
        read: |draft, text| set(&mut draft.options.wait, switchable(text, "10us", shortest_wait)),
        ..PLAIN
    },
    OptionSpec {
        name: "nativemem",
        value: "SIZE|on|off",
        default: Some("off"),
        bare: Some("on"),
        help: "sample native allocations (malloc, mmap and their like), one in about so many bytes \
               (on: 512k)",
        read: |draft, text| {
            let interval = switchable(text, "512k", |text| value::size(text, 1, GIB));
            set(&mut draft.options.nativemem, interval.map(|interval| interval.map(|bytes| bytes as u64)))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "nativemem.leaks",
        value: "BOOL",
        default: Some("false"),
        bare: Some("true"),
        help: "with nativemem: report at each interval's end the sampled memory that has not been freed",
        read: |draft, text| set(&mut draft.options.nativemem_leaks, value::boolean(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "exceptions",
        value: "NUMBER|on|off",
        default: Some("off"),
        bare: Some("on"),
        help: "sample one of so many exceptions, where they are created (on: 1, all)",
        read: |draft, text| {
            let period = switchable(text, "1", |text| value::integer(text, 1, 1_000_000));
            set(&mut draft.options.exceptions, period.map(|period| period.map(|count| count as u64)))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "exceptions.thrown",
        value: "BOOL",
        default: Some("false"),
        bare: Some("true"),
        help: "with exceptions: sample each throw, where it is thrown; slows all throws; with -agentpath \
               only",
        read: |draft, text| set(&mut draft.options.exceptions_thrown, value::boolean(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "jfr",
        value: "EVENT+EVENT|true|false",
        default: Some("false"),
        bare: Some("true"),
        help: "merge events of a JDK recording: all that no running engine replaces, or these (NAME or \
               NAME:VALUE_FIELD)",
        read: |draft, text| set(&mut draft.options.recorded_events, recorded_events(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "trace",
        value: "CLASS.METHOD[:DURATION]+...|off",
        default: Some("off"),
        help: "record calls of these methods that take this long or longer; a * may end class and method",
        read: |draft, text| {
            let items = text.split(LIST_SEPARATOR).filter(|_| text != "off");
            set(&mut draft.options.trace, items.map(TracedMethods::parse).collect())
        },
        ..PLAIN
    },
    OptionSpec {
        name: "signal",
        value: "SIGNAL",
        default: Some("SIGPROF"),
        help: "the signal that clocks send, by name or number",
        read: |draft, text| set(&mut draft.options.signal, value::signal(text)),
        ..PLAIN
    },
];

/// Parses a value that is off, on with the value `on`, or on with a value that `read` parses. Digits begin a
/// value here, so that 1 and 0 are not booleans.
fn switchable<T>(
    text: &str,
    on: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    match value::boolean(text) {
        Ok(is_on) if !text.starts_with(|c: char| c.is_ascii_digit()) => is_on.then(|| read(on)).transpose(),
        _ => read(text).map(Some).map_err(|message| format!("{message}; or on, or off")),
    }
}

fn recorded_events(text: &str) -> Result<RecordedEvents, String> {
    if let Ok(is_on) = value::boolean(text) {
        return Ok(if is_on { RecordedEvents::Usual } else { RecordedEvents::None });
    }
    let is_name = |event: &str| !event.contains(|c: char| c.is_control() || c.is_whitespace());
    let event = |event: &str| if is_name(event) { event.parse() } else { Err(InvalidEvent) };
    let events = text.split(LIST_SEPARATOR).map(event).collect::<Result<_, _>>();
    events
        .map(RecordedEvents::These)
        .map_err(|error| format!("{error}; several with {LIST_SEPARATOR} between them, or true, or false"))
}

fn shortest_wait(text: &str) -> Result<Duration, String> {
    value::duration(text, Duration::ZERO, HOUR)
}

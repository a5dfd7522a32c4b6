//! Events by name: the table of counters, and the syntax of tracepoints and probes.
//!
//! The names come from `perf list`. The kernel's numbers of events are from include/uapi/linux/perf_event.h:
//! `perf_type_id`, `perf_hw_id`, `perf_hw_cache_id`, `perf_sw_ids`.

use perf_event_open_sys::bindings as perf;

/// An event, as the user asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// The event's text without the period, which names its profile.
    pub name: String,
    /// The source of the counts.
    pub source: EventSource,
    /// Whether only events in the program's own code are counted, and no events in the kernel.
    pub user_only: bool,
    /// The number of events for each sample.
    pub period: u64,
}

/// The source of an event's counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSource {
    /// A counter that the kernel identifies by two numbers.
    Counter {
        /// `perf_event_attr.type`.
        kind: u32,
        /// `perf_event_attr.config`.
        config: u64,
    },
    /// A tracepoint of the kernel.
    Tracepoint {
        /// The tracepoint's system, such as `sched`.
        system: String,
        /// The tracepoint's event, such as `sched_switch`.
        event: String,
    },
    /// A function of the kernel.
    Kprobe {
        /// The function's symbol.
        symbol: String,
        /// The offset in bytes from the start of the function.
        offset: u64,
    },
    /// A place in an executable file.
    Uprobe {
        /// The file.
        path: String,
        /// The place in the file.
        place: UprobeLocation,
    },
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UprobeLocation {
    /// The beginning of a function.
    Symbol(String),
    /// A position in the file.
    Offset(u64),
}

/// The part of the system where a counter's events happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventSpace {
    Anywhere,
    /// In the kernel only, never in the program's own code.
    Kernel,
}

struct KnownEvent {
    name: &'static str,
    kind: u32,
    config: u64,
    period: u64,
    place: EventSpace,
}

const fn known(name: &'static str, kind: u32, config: u64, period: u64) -> KnownEvent {
    KnownEvent { name, kind, config, period, place: EventSpace::Anywhere }
}

const fn hardware(name: &'static str, id: u32, period: u64) -> KnownEvent {
    known(name, perf::PERF_TYPE_HARDWARE, id as u64, period)
}

/// `id | operation << 8 | result << 16` (perf_event_open(2), "PERF_TYPE_HW_CACHE").
const fn cache(name: &'static str, id: u32, operation: u32, result: u32, period: u64) -> KnownEvent {
    known(name, perf::PERF_TYPE_HW_CACHE, id as u64 | (operation as u64) << 8 | (result as u64) << 16, period)
}

const fn software(name: &'static str, id: u32, place: EventSpace) -> KnownEvent {
    KnownEvent { place, ..known(name, perf::PERF_TYPE_SOFTWARE, id as u64, 1) }
}

/// The usual period of events that nearly every instruction causes.
const OFTEN: u64 = 1_000_000;
/// The usual period of events that processors try to avoid.
const SELDOM: u64 = 1_000;

const KNOWN: &[KnownEvent] = &[
    hardware("cycles", perf::PERF_COUNT_HW_CPU_CYCLES, OFTEN),
    hardware("instructions", perf::PERF_COUNT_HW_INSTRUCTIONS, OFTEN),
    hardware("cache-references", perf::PERF_COUNT_HW_CACHE_REFERENCES, OFTEN),
    hardware("cache-misses", perf::PERF_COUNT_HW_CACHE_MISSES, SELDOM),
    hardware("branches", perf::PERF_COUNT_HW_BRANCH_INSTRUCTIONS, OFTEN),
    hardware("branch-misses", perf::PERF_COUNT_HW_BRANCH_MISSES, SELDOM),
    hardware("bus-cycles", perf::PERF_COUNT_HW_BUS_CYCLES, OFTEN),
    hardware("ref-cycles", perf::PERF_COUNT_HW_REF_CPU_CYCLES, OFTEN),
    cache(
        "L1-dcache-load-misses",
        perf::PERF_COUNT_HW_CACHE_L1D,
        perf::PERF_COUNT_HW_CACHE_OP_READ,
        perf::PERF_COUNT_HW_CACHE_RESULT_MISS,
        OFTEN,
    ),
    cache(
        "LLC-load-misses",
        perf::PERF_COUNT_HW_CACHE_LL,
        perf::PERF_COUNT_HW_CACHE_OP_READ,
        perf::PERF_COUNT_HW_CACHE_RESULT_MISS,
        SELDOM,
    ),
    cache(
        "dTLB-load-misses",
        perf::PERF_COUNT_HW_CACHE_DTLB,
        perf::PERF_COUNT_HW_CACHE_OP_READ,
        perf::PERF_COUNT_HW_CACHE_RESULT_MISS,
        SELDOM,
    ),
    software("page-faults", perf::PERF_COUNT_SW_PAGE_FAULTS, EventSpace::Anywhere),
    software("minor-faults", perf::PERF_COUNT_SW_PAGE_FAULTS_MIN, EventSpace::Anywhere),
    software("major-faults", perf::PERF_COUNT_SW_PAGE_FAULTS_MAJ, EventSpace::Anywhere),
    software("context-switches", perf::PERF_COUNT_SW_CONTEXT_SWITCHES, EventSpace::Kernel),
    software("cpu-migrations", perf::PERF_COUNT_SW_CPU_MIGRATIONS, EventSpace::Kernel),
    software("alignment-faults", perf::PERF_COUNT_SW_ALIGNMENT_FAULTS, EventSpace::Anywhere),
];

/// The syntax of events that are not in the table.
const OTHER_FORMS: &str = "SYSTEM:TRACEPOINT, kprobe:SYMBOL[+OFFSET], uprobe:/PATH:SYMBOL, \
                           uprobe:/PATH:+OFFSET, rNNN (raw, hexadecimal)";

impl EventSpec {
    /// Parses `NAME[:u][:PERIOD]`.
    ///
    /// # Errors
    /// A description of the valid texts.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (rest, period) = match text.rsplit_once(':') {
            Some((rest, last)) if is_number(last) => (rest, Some(read_period(last)?)),
            _ => (text, None),
        };
        let (bare, user_only) = match rest.strip_suffix(":u") {
            Some(bare) => (bare, true),
            None => (rest, false),
        };
        let (source, usual_period, place) = Self::source(bare)?;
        if user_only && place == EventSpace::Kernel {
            return Err(format!("{bare} happens in the kernel: remove :u"));
        }
        Ok(Self { name: rest.to_owned(), source, user_only, period: period.unwrap_or(usual_period) })
    }

    fn source(name: &str) -> Result<(EventSource, u64, EventSpace), String> {
        if let Some(known) = KNOWN.iter().find(|known| known.name == name) {
            let source = EventSource::Counter { kind: known.kind, config: known.config };
            return Ok((source, known.period, known.place));
        }
        if let Some(config) = name.strip_prefix('r').and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
            let source = EventSource::Counter { kind: perf::PERF_TYPE_RAW, config };
            return Ok((source, SELDOM, EventSpace::Anywhere));
        }
        if let Some(probe) = name.strip_prefix("uprobe:") {
            let source = read_uprobe(probe).ok_or("must be uprobe:/PATH:SYMBOL or uprobe:/PATH:+OFFSET")?;
            return Ok((source, 1, EventSpace::Anywhere));
        }
        if let Some(probe) = name.strip_prefix("kprobe:") {
            let source = read_kprobe(probe).ok_or("must be kprobe:SYMBOL or kprobe:SYMBOL+OFFSET")?;
            return Ok((source, 1, EventSpace::Kernel));
        }
        if ["cpu", "wall", "alloc", "lock"].contains(&name) {
            return Err(format!(
                "{name} is an option, not a perf event: write {name} in place of event={name}"
            ));
        }
        // A text that would lead out of the kernel's list of tracepoints is not a name.
        let is_name = |text: &str| text.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-".contains(&c));
        let is_part =
            |part: &str| !part.is_empty() && is_name(part) && KNOWN.iter().all(|known| known.name != part);
        match name.split_once(':') {
            Some((system, event)) if is_part(system) && is_part(event) => {
                let source = EventSource::Tracepoint { system: system.into(), event: event.into() };
                Ok((source, 1, EventSpace::Kernel))
            }
            _ => {
                let names: Vec<_> = KNOWN.iter().map(|known| known.name).collect();
                Err(format!("must be an event: {}, {OTHER_FORMS}", names.join(", ")))
            }
        }
    }

    /// Whether the event may be counted while its thread goes to sleep, so that its signal wakes the thread.
    pub(super) fn may_wake(&self) -> bool {
        match &self.source {
            EventSource::Counter { kind, config } => {
                *kind == perf::PERF_TYPE_SOFTWARE
                    && *config == u64::from(perf::PERF_COUNT_SW_CONTEXT_SWITCHES)
            }
            EventSource::Tracepoint { .. } | EventSource::Kprobe { .. } => true,
            EventSource::Uprobe { .. } => false,
        }
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|c| c.is_ascii_digit()) && !text.is_empty()
}

/// Parses a period.
///
/// # Errors
/// A description of the valid texts.
pub fn read_period(text: &str) -> Result<u64, String> {
    let period = text.parse().ok().filter(|period| (1..=1_000_000_000_000).contains(period));
    period.filter(|_| is_number(text)).ok_or_else(|| "a period must be from 1 to 1000000000000 events".into())
}

fn read_offset(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn read_uprobe(text: &str) -> Option<EventSource> {
    let (path, place) = text.rsplit_once(':').filter(|(path, place)| path.len() > 1 && !place.is_empty())?;
    let place = match place.strip_prefix('+') {
        Some(offset) => UprobeLocation::Offset(read_offset(offset)?),
        None => UprobeLocation::Symbol(place.to_owned()),
    };
    path.starts_with('/').then(|| EventSource::Uprobe { path: path.to_owned(), place })
}

fn read_kprobe(text: &str) -> Option<EventSource> {
    let (symbol, offset) = match text.split_once('+') {
        Some((symbol, offset)) => (symbol, read_offset(offset)?),
        None => (text, 0),
    };
    let is_symbol =
        !symbol.is_empty() && symbol.bytes().all(|c| c.is_ascii_alphanumeric() || b"_.".contains(&c));
    is_symbol.then(|| EventSource::Kprobe { symbol: symbol.to_owned(), offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's values of the constants (include/uapi/linux/perf_event.h).
    #[test]
    fn names_are_the_kernels_events() {
        for (name, kind, config, period) in [
            ("cycles", 0, 0, 1_000_000),
            ("instructions", 0, 1, 1_000_000),
            ("cache-references", 0, 2, 1_000_000),
            ("cache-misses", 0, 3, 1_000),
            ("branches", 0, 4, 1_000_000),
            ("branch-misses", 0, 5, 1_000),
            ("bus-cycles", 0, 6, 1_000_000),
            ("ref-cycles", 0, 9, 1_000_000),
            ("L1-dcache-load-misses", 3, 0x1_0000, 1_000_000),
            ("LLC-load-misses", 3, 0x1_0002, 1_000),
            ("dTLB-load-misses", 3, 0x1_0003, 1_000),
            ("page-faults", 1, 2, 1),
            ("context-switches", 1, 3, 1),
            ("cpu-migrations", 1, 4, 1),
            ("minor-faults", 1, 5, 1),
            ("major-faults", 1, 6, 1),
            ("alignment-faults", 1, 7, 1),
            ("r1a8", 4, 0x1a8, 1_000),
        ] {
            let spec = EventSpec::parse(name).unwrap();
            let source = EventSource::Counter { kind, config };
            assert_eq!(spec, EventSpec { name: name.into(), source, user_only: false, period });
        }
    }

    #[test]
    fn periods_and_modifiers_are_parsed_apart_from_names() {
        let read = |text| EventSpec::parse(text).unwrap();
        let cycles = read("cycles:u:250000");
        assert_eq!((&*cycles.name, cycles.user_only, cycles.period), ("cycles:u", true, 250_000));
        let switches = read("sched:sched_switch:7");
        assert_eq!((&*switches.name, switches.user_only, switches.period), ("sched:sched_switch", false, 7));
        assert!(switches.may_wake() && read("context-switches").may_wake() && !cycles.may_wake());
        let source = |system: &str, event: &str| EventSource::Tracepoint {
            system: system.into(),
            event: event.into(),
        };
        assert_eq!(switches.source, source("sched", "sched_switch"));
        let uprobe = read("uprobe:/lib/x86_64-linux-gnu/libc.so.6:malloc:100");
        let place = UprobeLocation::Symbol("malloc".into());
        let path = "/lib/x86_64-linux-gnu/libc.so.6".to_owned();
        assert_eq!((uprobe.source, uprobe.period), (EventSource::Uprobe { path, place }, 100));
        let place = UprobeLocation::Offset(0x1234);
        assert_eq!(
            read("uprobe:/a:b/c:+0x1234").source,
            EventSource::Uprobe { path: "/a:b/c".into(), place }
        );
        let kprobe = read("kprobe:do_sys_openat2+0x10");
        assert_eq!(kprobe.source, EventSource::Kprobe { symbol: "do_sys_openat2".into(), offset: 16 });
    }

    #[test]
    fn an_unknown_event_gets_the_list_of_names() {
        for bad in ["", "cyclez", "r", "rxyz", "sched:", ":x", "sched:../../x", "a:b:c:d", "cycles:k"] {
            let error = EventSpec::parse(bad).unwrap_err();
            assert!(
                error.contains("LLC-load-misses") && error.contains("uprobe:/PATH:SYMBOL"),
                "{bad}: {error}"
            );
            assert!(!error.contains('\n'));
        }
        for (bad, says) in [
            ("context-switches:u", "happens in the kernel"),
            ("sched:sched_switch:u", "happens in the kernel"),
            ("cpu", "write cpu in place of event=cpu"),
            ("cycles:0", "from 1 to"),
            ("page-faults:99999999999999999999", "from 1 to"),
            ("uprobe:libc.so.6:malloc", "uprobe:/PATH:SYMBOL"),
            ("uprobe:/libc.so.6", "uprobe:/PATH:SYMBOL"),
            ("kprobe:", "kprobe:SYMBOL"),
            ("kprobe:a b", "kprobe:SYMBOL"),
        ] {
            let error = EventSpec::parse(bad).unwrap_err();
            assert!(error.contains(says), "{bad}: {error}");
        }
    }
}

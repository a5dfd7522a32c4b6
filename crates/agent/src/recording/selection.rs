//! The events that are recorded, and their settings.

use otlpprof_convert::{RequestedEvent, events::CONVERSIONS};
use otlpprof_core::engine::Engine;
use otlpprof_jvm::layout::Release;
use otlpprof_options::{Options, RecordedEvents};

use crate::engines::{description, enabled};

/// The least duration of recorded events of the table. With the JVM's own setting of 20 ms (`default.jfc`,
/// JDK 17), half of all time in socket calls may be missing.
const THRESHOLD: &str = "1 ms";

/// An event of the JVM's that has a profile, and its settings besides the stack.
struct RecordableEvent {
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
    /// Whether the event is recorded in a release: no other event of that release is better. Releases without
    /// the event need no exception: a recording ignores settings of unknown events.
    is_recorded: fn(Release) -> bool,
}

const ALWAYS: fn(Release) -> bool = |_| true;
const WITHOUT_ALLOCATION_SAMPLES: fn(Release) -> bool = |release| !release.has_allocation_sample_event();

/// Turns throttling off: JDK 25 drops some events when there are many of them.
const UNTHROTTLED: (&str, &str) = ("throttle", "off");

/// An event, and another that must be enabled for the first to be complete. For the time of any exception JDK
/// 25 asks the event of errors (`ThrowableTracer.traceThrowable`), which has a time only while it is enabled.
const NEEDED: (&str, &str) = ("jdk.JavaExceptionThrow", "jdk.JavaErrorThrow");

const LASTING: &[(&str, &str)] = &[("threshold", THRESHOLD), UNTHROTTLED];

const fn lasting(name: &'static str) -> RecordableEvent {
    RecordableEvent { name, settings: LASTING, is_recorded: ALWAYS }
}

/// The period that the conversion assumes as HotSpot's default.
const PERIOD: &[(&str, &str)] = &[("period", "20 ms")];

/// The events that are recorded by default. Not among them: `jdk.OldObjectSample`, which reports the same
/// objects repeatedly; `jdk.MethodTrace`, which needs a list of methods; and the events of [`ONLY_BY_NAME`].
const USUAL: &[RecordableEvent] = &[
    RecordableEvent { name: "jdk.ExecutionSample", settings: PERIOD, is_recorded: ALWAYS },
    RecordableEvent { name: "jdk.NativeMethodSample", settings: PERIOD, is_recorded: ALWAYS },
    RecordableEvent {
        name: "jdk.ObjectAllocationSample",
        settings: &[("throttle", "150/s")],
        is_recorded: Release::has_allocation_sample_event,
    },
    RecordableEvent {
        name: "jdk.ObjectAllocationInNewTLAB",
        settings: &[],
        is_recorded: WITHOUT_ALLOCATION_SAMPLES,
    },
    RecordableEvent {
        name: "jdk.ObjectAllocationOutsideTLAB",
        settings: &[],
        is_recorded: WITHOUT_ALLOCATION_SAMPLES,
    },
    lasting("jdk.JavaMonitorEnter"),
    lasting("jdk.JavaMonitorWait"),
    lasting("jdk.ThreadPark"),
    lasting("jdk.ThreadSleep"),
    lasting("jdk.VirtualThreadPinned"),
    lasting("jdk.SocketRead"),
    lasting("jdk.SocketWrite"),
    lasting("jdk.FileRead"),
    lasting("jdk.FileWrite"),
    lasting("jdk.ClassLoad"),
    RecordableEvent { name: "jdk.JavaExceptionThrow", settings: &[UNTHROTTLED], is_recorded: ALWAYS },
];

/// Events that are recorded only if the user names them. `jdk.CPUTimeSample` is experimental in JDK 25, and
/// has aborted JVMs of 25 and 26 in production: the recorder's thread fails in `JfrStorage::write`
/// (DataDog/dd-trace-java issue 11749).
const ONLY_BY_NAME: &[RecordableEvent] =
    &[RecordableEvent { name: "jdk.CPUTimeSample", settings: &[("throttle", "20 ms")], is_recorded: ALWAYS }];

/// Returns the option of the running engine that measures the same as this event, if there is one. Of two it
/// is the later one in the table, so that `wall`, not `cpu`, replaces samples of threads in native code.
fn engine_of(event: &str, options: &Options) -> Option<&'static str> {
    let replaces = |engine: &Engine| description(*engine).replaces.contains(&event);
    enabled(options).rfind(replaces).map(Engine::name)
}

/// The events and settings of a recording.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct EventSelection {
    /// The events' names.
    pub(super) names: Vec<String>,
    /// Events that the user has named.
    chosen: Vec<String>,
    /// The requested events that have no profile of their own.
    pub(super) requested: Vec<RequestedEvent>,
    /// Settings of the recording: `NAME#SETTING` and value.
    pub(super) settings: Vec<(String, String)>,
    /// Warnings for the user, one line each.
    pub(super) warnings: Vec<String>,
}

impl EventSelection {
    /// Selects the events to record in a JVM of this release. The JVM's list of events is not read:
    /// that takes longer than to start a recording, and the program may register further events later.
    pub(super) fn new(options: &Options, release: Release) -> Self {
        let mut selection = Self::default();
        match &options.recorded_events {
            RecordedEvents::None => {}
            RecordedEvents::Usual => {
                let usual = USUAL.iter().filter(|event| (event.is_recorded)(release));
                usual
                    .filter(|event| engine_of(event.name, options).is_none())
                    .for_each(|event| selection.add(event.name));
            }
            RecordedEvents::These(events) => {
                for event in events {
                    selection.choose(event, options);
                }
            }
        }
        selection
    }

    /// Returns the events named by the user that a JVM with `known` events lacks: first the JVM's own, which
    /// it will never have, then the program's, which may be registered later.
    pub(super) fn missing(&self, known: &[String]) -> (Vec<&str>, Vec<&str>) {
        let missing = self.chosen.iter().map(String::as_str);
        missing.filter(|name| !known.iter().any(|known| known == name)).partition(|name| is_jvms_own(name))
    }

    /// Whether all selected events are in `never`, the events that the JVM will never have.
    pub(super) fn is_in_vain(&self, never: &[&str]) -> bool {
        self.names.iter().all(|name| never.contains(&name.as_str()))
    }

    fn choose(&mut self, event: &RequestedEvent, options: &Options) {
        let name = event.name();
        if let Some(engine) = engine_of(name, options) {
            self.warnings
                .push(format!("jfr: {name} is not recorded, because the engine `{engine}` replaces it"));
            return;
        }
        self.add(name);
        self.chosen.push(name.to_owned());
        let is_of_table = CONVERSIONS.iter().any(|conversion| conversion.event == name);
        if !is_of_table || event.field().is_some() {
            self.requested.push(event.clone());
        }
    }

    fn add(&mut self, name: &str) {
        if self.names.iter().any(|known| known == name) {
            return;
        }
        self.names.push(name.to_owned());
        // Events of the program are recorded however short they are.
        let own: &[(&str, &str)] = &[("threshold", "0 ns")];
        let known = USUAL.iter().chain(ONLY_BY_NAME).find(|event| event.name == name);
        let settings = known.map_or(own, |event| event.settings);
        for (setting, value) in [("enabled", "true"), ("stackTrace", "true")].iter().chain(settings) {
            self.settings.push((format!("{name}#{setting}"), (*value).to_owned()));
        }
        if name == NEEDED.0 {
            self.settings.push((format!("{}#enabled", NEEDED.1), "true".to_owned()));
        }
    }
}

fn is_jvms_own(name: &str) -> bool {
    name.starts_with("jdk.")
}

#[cfg(test)]
mod tests {
    use otlpprof_options::{Environment, Request, parse};

    use super::*;

    fn select(text: &str, feature: u32) -> EventSelection {
        let Request::Start(options) = parse(&format!("file=x,{text}"), &Environment::default()).unwrap()
        else {
            panic!("a start")
        };
        EventSelection::new(&options, Release::new(feature))
    }

    #[test]
    fn events_that_an_engine_measures_are_not_recorded() {
        let names = |text: &str| select(text, 25).names.join(" ");
        let all = names("cpu=off,jfr");
        for event in
            ["ExecutionSample", "NativeMethodSample", "ObjectAllocationSample", "ThreadPark", "ThreadSleep"]
        {
            assert!(all.contains(event), "{all}");
        }
        let with_engines = names("wall,alloc,lock,wait,exceptions,jfr");
        let expected = "jdk.ThreadSleep jdk.VirtualThreadPinned jdk.SocketRead jdk.SocketWrite jdk.FileRead \
                        jdk.FileWrite jdk.ClassLoad";
        assert_eq!(with_engines, expected);
        assert_eq!(names("jfr=off"), "");
        let chosen = "jfr=jdk.OldObjectSample+jdk.MethodTrace";
        assert_eq!(names(chosen), "jdk.OldObjectSample jdk.MethodTrace");
        let left = select(&format!("live,trace=a.B.c:1ms,{chosen}"), 25);
        assert_eq!((left.names.len(), left.warnings.len()), (0, 2), "{left:?}");
    }

    /// Regression: without the engine `cpu`, `jfr=true` enabled an event that has aborted JVMs of 25 and 26.
    #[test]
    fn the_jvms_own_cpu_time_samples_are_recorded_only_by_name() {
        let all = select("cpu=off,jfr", 25);
        assert!(!all.settings.iter().any(|(setting, _)| setting.contains("CPUTimeSample")), "{all:?}");
        assert!(all.names.iter().any(|name| name == "jdk.ExecutionSample"), "{all:?}");
        let named = select("cpu=off,jfr=jdk.CPUTimeSample", 25);
        assert_eq!(named.names, ["jdk.CPUTimeSample"]);
        let throttle = ("jdk.CPUTimeSample#throttle".to_owned(), "20 ms".to_owned());
        assert!(named.settings.contains(&throttle), "{named:?}");
        assert_eq!(select("jfr=jdk.CPUTimeSample", 25).warnings.len(), 1);
    }

    #[test]
    fn an_older_jvm_has_other_events_for_the_same() {
        let allocations = |feature| {
            let names = select("cpu=off,jfr", feature).names;
            names.into_iter().filter(|name| name.contains("Allocation")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(allocations(11), "jdk.ObjectAllocationInNewTLAB jdk.ObjectAllocationOutsideTLAB");
        assert_eq!(allocations(17), "jdk.ObjectAllocationSample");
    }

    #[test]
    fn chosen_events_are_recorded_and_unknown_ones_reported() {
        let selection = select("jfr=jdk.ThreadSleep+app.Sent:bytes+app.Done+jdk.No+jdk.ExecutionSample", 25);
        assert_eq!(selection.names, ["jdk.ThreadSleep", "app.Sent", "app.Done", "jdk.No"]);
        let requested: Vec<_> = selection.requested.iter().map(RequestedEvent::name).collect();
        assert_eq!(requested, ["app.Sent", "app.Done", "jdk.No"]);
        assert_eq!(selection.warnings.len(), 1, "{:?}", selection.warnings);
        let known = ["jdk.ThreadSleep", "jdk.ThreadPark", "app.Done"].map(str::to_owned);
        let (never, not_yet) = selection.missing(&known);
        assert_eq!((never, not_yet), (vec!["jdk.No"], vec!["app.Sent"]));
        let in_vain = |text: &str| {
            let selection = select(text, 25);
            selection.is_in_vain(&selection.missing(&known).0)
        };
        assert!(in_vain("jfr=jdk.No+jdk.Neither") && !in_vain("jfr=jdk.No+app.Later"));
        assert!(!in_vain("jfr"), "what the JVM lacks of the usual ones is not said");
        let setting = |name: &str| {
            selection.settings.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
        };
        assert_eq!(setting("jdk.ThreadSleep#threshold"), Some("1 ms"));
        assert_eq!(setting("app.Done#threshold"), Some("0 ns"));
        assert_eq!(setting("app.Done#stackTrace"), Some("true"));
    }
}

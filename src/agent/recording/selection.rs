//! Which events are recorded, and with which settings.

use crate::agent::options::{Options, RecordedEvents};
use crate::convert::{RequestedEvent, events::CONVERSIONS};

/// How long events of the table take at least: where the JVM's own settings leave out what is shorter than 20 ms
/// (`default.jfc`, JDK 17), half of all time in front of sockets may be missing.
const THRESHOLD: &str = "1 ms";

/// An event of the JVM's that has a profile, and what it is recorded with besides its stack.
struct Known {
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
    /// Another that says the same, and is better where the JVM has it.
    unless: &'static str,
}

/// JDK 25 leaves some events out if they are many.
const UNTHROTTLED: (&str, &str) = ("throttle", "off");

/// An event that has to be recorded for another to be whole: JDK 25 asks that of errors for the time of any exception
/// (`ThrowableTracer.traceThrowable`), and it has one only while it is enabled.
const NEEDED: (&str, &str) = ("jdk.JavaExceptionThrow", "jdk.JavaErrorThrow");

const LASTING: &[(&str, &str)] = &[("threshold", THRESHOLD), UNTHROTTLED];

const fn lasting(name: &'static str) -> Known {
    Known { name, settings: LASTING, unless: "" }
}

/// The period is what the conversion takes for HotSpot's default.
const PERIOD: &[(&str, &str)] = &[("period", "20 ms")];

/// All that are recorded if nobody chooses. Not `jdk.OldObjectSample`, which tells of the same objects again and again, nor
/// `jdk.MethodTrace`, which must be told of which methods, nor the events of [`ONLY_BY_NAME`].
const USUAL: &[Known] = &[
    Known { name: "jdk.ExecutionSample", settings: PERIOD, unless: "" },
    Known { name: "jdk.NativeMethodSample", settings: PERIOD, unless: "" },
    Known { name: "jdk.ObjectAllocationSample", settings: &[("throttle", "150/s")], unless: "" },
    Known { name: "jdk.ObjectAllocationInNewTLAB", settings: &[], unless: "jdk.ObjectAllocationSample" },
    Known { name: "jdk.ObjectAllocationOutsideTLAB", settings: &[], unless: "jdk.ObjectAllocationSample" },
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
    Known { name: "jdk.JavaExceptionThrow", settings: &[UNTHROTTLED], unless: "" },
];

/// Events that are recorded only where the user names them. `jdk.CPUTimeSample` is experimental in JDK 25, and has aborted
/// JVMs of 25 and 26 in production: the recorder's thread fails in `JfrStorage::write` (DataDog/dd-trace-java issue 11749).
const ONLY_BY_NAME: &[Known] =
    &[Known { name: "jdk.CPUTimeSample", settings: &[("throttle", "20 ms")], unless: "" }];

/// The option of the engine that measures what this event tells of.
fn engine_of(event: &str, options: &Options) -> Option<&'static str> {
    let (is_running, engine) = match event {
        "jdk.ExecutionSample" | "jdk.CPUTimeSample" => (options.cpu.is_some(), "cpu"),
        "jdk.NativeMethodSample" if options.wall.is_some() => (true, "wall"),
        "jdk.NativeMethodSample" => (options.cpu.is_some(), "cpu"),
        "jdk.JavaMonitorEnter" | "jdk.ThreadPark" => (options.lock.is_some(), "lock"),
        "jdk.JavaMonitorWait" => (options.wait.is_some(), "wait"),
        "jdk.JavaExceptionThrow" => (options.exceptions.is_some(), "exceptions"),
        "jdk.OldObjectSample" => (options.live.is_some(), "live"),
        "jdk.MethodTrace" => (!options.trace.is_empty(), "trace"),
        event if event.starts_with("jdk.ObjectAllocation") => (options.alloc.is_some(), "alloc"),
        _ => (false, ""),
    };
    is_running.then_some(engine)
}

/// What is to be recorded.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    /// The events' names.
    pub(super) names: Vec<String>,
    /// Those with no profile of their own.
    pub(super) requested: Vec<RequestedEvent>,
    /// Settings of the recording, `NAME#SETTING` and value.
    pub(super) settings: Vec<(String, String)>,
    /// What the user should know, one line each.
    pub(super) warnings: Vec<String>,
}

impl Selection {
    /// What is wanted, in a JVM that has the events of these names. Others may be registered later by the program.
    pub(super) fn new(options: &Options, has: impl Fn(&str) -> bool) -> Self {
        let mut selection = Self::default();
        match &options.recorded_events {
            RecordedEvents::None => {}
            RecordedEvents::Usual => {
                let usual = USUAL.iter().filter(|event| has(event.name));
                let usual = usual.filter(|event| event.unless.is_empty() || !has(event.unless));
                usual
                    .filter(|event| engine_of(event.name, options).is_none())
                    .for_each(|event| selection.add(event.name));
            }
            RecordedEvents::These(events) => {
                for event in events {
                    selection.choose(event, options, &has);
                }
            }
        }
        selection
    }

    fn choose(&mut self, event: &RequestedEvent, options: &Options, has: &impl Fn(&str) -> bool) {
        let name = event.name();
        if let Some(engine) = engine_of(name, options) {
            self.warnings.push(format!("jfr: {name} is left out, for which `{engine}` is there"));
            return;
        }
        if name.starts_with("jdk.") && !has(name) {
            self.warnings.push(format!("jfr: this JVM has no event {name}"));
            return;
        }
        self.add(name);
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
        // One that the program has made is recorded however short it is.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::options::{Environment, Request, parse};

    fn select(text: &str, has: impl Fn(&str) -> bool) -> Selection {
        let Request::Start(options) = parse(&format!("file=x,{text}"), &Environment::default()).unwrap()
        else {
            panic!("a start")
        };
        Selection::new(&options, has)
    }

    #[test]
    fn what_an_engine_measures_is_left_out() {
        let names = |text: &str| select(text, |_| true).names.join(" ");
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
        let left = select(&format!("live,trace=a.B.c:1ms,{chosen}"), |_| true);
        assert_eq!((left.names.len(), left.warnings.len()), (0, 2), "{left:?}");
    }

    /// Regression: without the engine `cpu`, `jfr=true` switched on an event that has aborted JVMs of 25 and 26.
    #[test]
    fn the_jvms_own_cpu_time_samples_are_recorded_only_by_name() {
        let all = select("cpu=off,jfr", |_| true);
        assert!(!all.settings.iter().any(|(setting, _)| setting.contains("CPUTimeSample")), "{all:?}");
        assert!(all.names.iter().any(|name| name == "jdk.ExecutionSample"), "{all:?}");
        let named = select("cpu=off,jfr=jdk.CPUTimeSample", |_| true);
        assert_eq!(named.names, ["jdk.CPUTimeSample"]);
        let throttle = ("jdk.CPUTimeSample#throttle".to_owned(), "20 ms".to_owned());
        assert!(named.settings.contains(&throttle), "{named:?}");
        assert_eq!(select("jfr=jdk.CPUTimeSample", |_| true).warnings.len(), 1);
    }

    #[test]
    fn an_older_jvm_has_other_events_for_the_same() {
        let names = select("cpu=off,jfr", |name| name != "jdk.ObjectAllocationSample").names;
        assert!(names.iter().any(|name| name == "jdk.ObjectAllocationInNewTLAB"), "{names:?}");
    }

    #[test]
    fn chosen_events_are_recorded_and_what_cannot_be_is_said() {
        let selection =
            select("jfr=jdk.ThreadSleep+app.Sent:bytes+app.Done+jdk.No+jdk.ExecutionSample", |name| {
                name != "jdk.No"
            });
        assert_eq!(selection.names, ["jdk.ThreadSleep", "app.Sent", "app.Done"]);
        let requested: Vec<_> = selection.requested.iter().map(RequestedEvent::name).collect();
        assert_eq!(requested, ["app.Sent", "app.Done"]);
        assert_eq!(selection.warnings.len(), 2, "{:?}", selection.warnings);
        let setting = |name: &str| {
            selection.settings.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
        };
        assert_eq!(setting("jdk.ThreadSleep#threshold"), Some("1 ms"));
        assert_eq!(setting("app.Done#threshold"), Some("0 ns"));
        assert_eq!(setting("app.Done#stackTrace"), Some("true"));
    }
}

//! The attributes that are passed to the kernel for an event, and the lookups that they need: ids of
//! tracepoints, types of probes, positions of functions in files.

use std::ffi::CString;
use std::fs;
use std::io;
use std::path::Path;

use otlpprof_elf::symbols::by_name::function_offset;
use perf_event_open_sys::bindings::perf_event_attr;

use super::names::{EventSource, EventSpec, UprobeLocation};
use super::refusal::Refusal;
use crate::kernel_rings;

/// The mount points of tracefs (Documentation/trace/ftrace.rst): the usual one, and the one before Linux 4.1.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The kernel's list of sources of events (Documentation/ABI/testing/sysfs-bus-event_source-devices).
const EVENT_SOURCES: &str = "/sys/bus/event_source/devices";

/// An event's attributes, without a period.
pub(super) struct EventAttributes {
    attributes: perf_event_attr,
    /// The text to which the attributes point.
    _text: Option<CString>,
}

impl EventAttributes {
    /// Returns the attributes of an event on this machine.
    pub(super) fn of(event: &EventSpec) -> Result<Self, Refusal> {
        Self::found_in(event, &TRACEFS, EVENT_SOURCES)
    }

    fn found_in(event: &EventSpec, tracefs: &[&str], event_sources: &str) -> Result<Self, Refusal> {
        let mut attributes =
            perf_event_attr { size: size_of::<perf_event_attr>() as u32, ..Default::default() };
        let mut text = None;
        match &event.source {
            EventSource::Counter { kind, config } => (attributes.type_, attributes.config) = (*kind, *config),
            EventSource::Tracepoint { system, event } => {
                attributes.type_ = perf_event_open_sys::bindings::PERF_TYPE_TRACEPOINT;
                attributes.config = tracepoint_id(tracefs, system, event)?;
            }
            EventSource::Kprobe { symbol, offset } => {
                attributes.type_ = probe_type(event_sources, "kprobe")?;
                attributes.__bindgen_anon_4.probe_offset = *offset;
                text = Some(symbol);
            }
            EventSource::Uprobe { path, place } => {
                attributes.type_ = probe_type(event_sources, "uprobe")?;
                attributes.__bindgen_anon_4.probe_offset = match place {
                    UprobeLocation::Offset(offset) => *offset,
                    UprobeLocation::Symbol(symbol) => offset_of(path, symbol)?,
                };
                text = Some(path);
            }
        }
        // Options cannot contain a zero byte.
        let text = text.and_then(|text| CString::new(text.as_str()).ok());
        if let Some(text) = &text {
            attributes.__bindgen_anon_3.config1 = text.as_ptr() as u64;
        }
        if event.user_only {
            attributes.set_exclude_kernel(1);
            attributes.set_exclude_hv(1);
        }
        attributes.__bindgen_anon_2.wakeup_events = 1;
        attributes.set_disabled(1);
        Ok(Self { attributes, _text: text })
    }

    /// Requests the kernel's own frames.
    pub(super) fn ask_for_kernel_frames(&mut self) {
        kernel_rings::ask_for(&mut self.attributes);
    }

    /// Returns the attributes with this period. The text to which they point lives as long as `self`.
    pub(super) fn with_period(&self, period: u64) -> perf_event_attr {
        let mut attributes = self.attributes;
        attributes.__bindgen_anon_1.sample_period = period;
        attributes
    }
}

fn tracepoint_id(tracefs: &[&str], system: &str, event: &str) -> Result<u64, Refusal> {
    let mut refusal = Refusal::NoTracefs;
    for root in tracefs {
        let events = Path::new(root).join("events");
        match fs::read_to_string(events.join(system).join(event).join("id")) {
            Ok(id) => {
                return id.trim().parse().map_err(|_| Refusal::NoTracepoint(format!("{system}:{event}")));
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                refusal = Refusal::TracefsDenied(events);
            }
            // The mount point of a file system that is not mounted exists, as an empty folder.
            Err(_) if events.is_dir() => return Err(Refusal::NoTracepoint(format!("{system}:{event}"))),
            Err(_) => {}
        }
    }
    Err(refusal)
}

fn probe_type(event_sources: &str, kind: &'static str) -> Result<u32, Refusal> {
    let text = fs::read_to_string(Path::new(event_sources).join(kind).join("type"));
    text.ok().and_then(|text| text.trim().parse().ok()).ok_or(Refusal::NoProbes { kind })
}

fn offset_of(path: &str, symbol: &str) -> Result<u64, Refusal> {
    match function_offset(Path::new(path), symbol) {
        Ok(Some(offset)) => Ok(offset.0),
        Ok(None) => Err(Refusal::NoSymbol { path: path.to_owned(), symbol: symbol.to_owned() }),
        Err(error) => Err(Refusal::File { path: path.to_owned(), error: error.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn found(text: &str, root: &Path) -> Result<EventAttributes, Refusal> {
        let root = root.to_str().unwrap();
        EventAttributes::found_in(&EventSpec::parse(text).unwrap(), &["/nowhere", root], root)
    }

    /// Returns the text to which a probe's attributes point.
    fn text(attributes: &perf_event_attr) -> &str {
        // SAFETY: the tests call this function while the attributes' owner lives.
        unsafe { CStr::from_ptr(attributes.__bindgen_anon_3.config1 as *const _) }.to_str().unwrap()
    }

    #[test]
    fn counters_are_passed_by_their_numbers_and_stay_off_until_all_is_set() {
        let found = found("LLC-load-misses:u:77", Path::new("/nowhere")).unwrap();
        let attributes = found.with_period(77);
        assert_eq!((attributes.type_, attributes.config), (3, 0x1_0002));
        assert_eq!(attributes.size as usize, size_of::<perf_event_attr>());
        // SAFETY: all members of the unions are numbers.
        let (period, wakeup) =
            unsafe { (attributes.__bindgen_anon_1.sample_period, attributes.__bindgen_anon_2.wakeup_events) };
        assert_eq!((period, wakeup), (77, 1));
        assert_eq!((attributes.disabled(), attributes.freq(), attributes.inherit()), (1, 0, 0));
        assert_eq!((attributes.exclude_kernel(), attributes.exclude_hv()), (1, 1));
        let whole = super::tests::found("cycles", Path::new("/nowhere")).unwrap().with_period(1);
        assert_eq!((whole.exclude_kernel(), whole.exclude_hv()), (0, 0));
    }

    #[test]
    fn tracepoints_and_probes_are_found_where_the_kernel_shows_them() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("events/sched/sched_switch/id", "314\n");
        write("kprobe/type", "8\n");
        write("uprobe/type", "9\n");
        let tracepoint = found("sched:sched_switch", folder.path()).unwrap().with_period(1);
        assert_eq!((tracepoint.type_, tracepoint.config), (2, 314));
        let kprobe = found("kprobe:do_exit+4", folder.path()).unwrap();
        let attributes = kprobe.with_period(1);
        // SAFETY: all members of the union are numbers.
        let offset = |attributes: &perf_event_attr| unsafe { attributes.__bindgen_anon_4.probe_offset };
        assert_eq!((attributes.type_, offset(&attributes), text(&attributes)), (8, 4, "do_exit"));
        let uprobe = found("uprobe:/bin/x:+0x40", folder.path()).unwrap();
        let attributes = uprobe.with_period(1);
        assert_eq!((attributes.type_, offset(&attributes), text(&attributes)), (9, 0x40, "/bin/x"));
    }

    #[test]
    fn a_missing_event_source_is_named_with_its_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let says = |text: &str| found(text, folder.path()).map(drop).unwrap_err().to_string();
        assert!(says("sched:sched_switch").contains("mount -t tracefs"));
        assert!(says("kprobe:do_exit").contains("CONFIG_KPROBE_EVENTS"));
        assert!(says("uprobe:/bin/sh:main").contains("CONFIG_UPROBE_EVENTS"));
        fs::create_dir_all(folder.path().join("events")).unwrap();
        assert!(says("sched:sched_switch").contains("no tracepoint sched:sched_switch"));
        fs::create_dir_all(folder.path().join("uprobe")).unwrap();
        fs::write(folder.path().join("uprobe/type"), "9").unwrap();
        assert!(says("uprobe:/nowhere/x:main").contains("/nowhere/x: No such file"));
        let this = std::env::current_exe().unwrap();
        assert!(says(&format!("uprobe:{}:no_such_function", this.display())).contains("no function"));
    }
}

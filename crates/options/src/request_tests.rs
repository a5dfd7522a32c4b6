//! Tests of all options from text to their values, whichever source gives them.

use std::path::Path;
use std::time::Duration;

use log::LevelFilter;
use otlpprof_aggregate::{NamePattern, NameSelection};
use otlpprof_core::engine::Engine;
use otlpprof_export::upload::Compression;
use otlpprof_export::{Endpoint, UploadConfig};
use otlpprof_otlp::{EncodeOptions, Format, NativeFrames};
use otlpprof_sampling::KernelFrames;

use super::*;
use crate::types::*;

const NO_VARIABLES: [(&str, &str); 0] = [];

pub(super) fn start_in(
    agent_string: &str,
    variables: impl IntoIterator<Item = (&'static str, &'static str)>,
) -> Options {
    match parse(agent_string, &variables.into_iter().collect()) {
        Ok(Request::Start(options)) => *options,
        other => panic!("{agent_string}: {other:?}"),
    }
}

pub(super) fn start(agent_string: &str) -> Options {
    start_in(agent_string, NO_VARIABLES)
}

pub(super) fn error_in(
    agent_string: &str,
    variables: impl IntoIterator<Item = (&'static str, &'static str)>,
) -> OptionError {
    let error = parse(agent_string, &variables.into_iter().collect()).expect_err(agent_string);
    assert!(!error.message.is_empty() && !error.message.contains('\n'), "one line: {error}");
    error
}

pub(super) fn error(agent_string: &str) -> String {
    error_in(agent_string, NO_VARIABLES).message
}

pub(super) fn upload(options: Options) -> UploadConfig {
    options.upload.expect("an upload")
}

fn attribute<'a>(options: &'a Options, key: &str) -> Option<&'a str> {
    options.resource.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
}

/// The given limit for all engines that can have one.
fn limits(limit: Option<u32>) -> [Option<u32>; Engine::COUNT] {
    Engine::ALL.map(|engine| limit.filter(|_| !matches!(engine, Engine::Cpu | Engine::Wall)))
}

#[test]
fn limits_are_of_all_engines_or_of_one() {
    assert_eq!(start("limit=off").limits, [None; Engine::COUNT]);
    let mut of_one = [None; Engine::COUNT];
    of_one[Engine::Lock as usize] = Some(10);
    assert_eq!(start("limit=lock:10").limits, of_one);
    for (bad, why) in [
        ("limit=9", "limit=9: must be a whole number from 10 to 10000000, or off"),
        (
            "limit=cpu:100",
            "limit=cpu:100: 'cpu' must be one of alloc, lock, wait, exceptions, event, nativemem, live, \
             trace",
        ),
        ("limit=lock:", "limit=lock:: must be a whole number from 10 to 10000000, or off"),
    ] {
        assert_eq!(error(bad), why);
    }
}

#[test]
fn an_empty_option_string_gives_the_documented_defaults() {
    let options = start("");
    assert_eq!(
        options,
        Options {
            cpu: Some(Duration::from_millis(10)),
            wall: None,
            wall_signal: libc::SIGVTALRM,
            event: None,
            event_kernel: KernelFrames::Auto,
            event_signal: libc::SIGSTKFLT,
            alloc: None,
            live: None,
            lock: None,
            wait: None,
            nativemem: None,
            nativemem_leaks: false,
            exceptions: None,
            exceptions_thrown: false,
            recorded_events: RecordedEvents::None,
            trace: vec![],
            cpu_clock: CpuClock::Auto,
            cpu_kernel: false,
            signal: libc::SIGPROF,
            stack_walker: StackWalker::Vm,
            depth: 2048,
            remotesym: false,
            debug_files: Some("/usr/lib/debug".into()),
            normalise_class_names: true,
            context: vec![],
            context_publication: ContextPublication::Trace,
            publishes_virtual_threads: false,
            filter: false,
            threads: NameSelection::default(),
            frames: NameSelection::default(),
            budget: Some(200),
            limits: limits(Some(10_000)),
            delay: Duration::ZERO,
            duration: None,
            interval: Duration::from_secs(10),
            file_period: None,
            encode: EncodeOptions {
                empty_profiles: false,
                native_frames: NativeFrames::Remote,
                timestamps: false,
                values_beside_times: false,
                format: Format::Proto
            },
            file: None,
            // The exporter's own defaults: the table must not drift from them.
            upload: Some(UploadConfig::new(Endpoint::base("http://localhost:4318").unwrap())),
            resource: vec![],
            log_level: LevelFilter::Info,
            strict: false,
            warnings: vec![],
        }
    );
}

#[test]
fn remotesym_in_every_spelling() {
    assert!(!start("").remotesym, "off by default");
    for on in ["remotesym=true", "remotesym=y", "remotesym=yes", "remotesym=1", "remotesym=on", "remotesym"] {
        assert!(start(on).remotesym, "{on}");
    }
    for off in ["remotesym=false", "remotesym=n", "remotesym=no", "remotesym=0", "remotesym=off"] {
        assert!(!start(off).remotesym, "{off}");
    }
    let with_others = start("cpu=1ms,remotesym=true,file=/tmp/p.otlp");
    assert!(with_others.remotesym);
    assert_eq!(with_others.cpu, Some(Duration::from_millis(1)));
    assert_eq!(with_others.file.as_deref(), Some("/tmp/p.otlp"));
}

#[test]
fn debug_files_are_in_an_absolute_folder_or_nowhere() {
    assert_eq!(start("debug_files=/opt/debug").debug_files, Some("/opt/debug".into()));
    assert_eq!(start("debug_files=no").debug_files, None);
    for bad in ["debug_files=", "debug_files=debug", "debug_files=yes"] {
        assert_eq!(error(bad), format!("{bad}: must be an absolute folder, or no"));
    }
}

#[test]
fn a_value_that_is_no_boolean_is_an_error() {
    for bad in ["remotesym=invalid", "remotesym=", "remotesym=2", "strict=maybe", "timestamps=truee"] {
        let message = error(bad);
        assert!(message.starts_with(&format!("{bad}: must be true or false")), "{message}");
    }
}

#[test]
fn every_option_is_read_from_the_string() {
    let options = start(
        "start,cpu=500us,cpu.clock=timer,cpu.kernel,event.kernel=no,filter,signal=SIGVTALRM,cstack=vmx,\
         depth=128,remotesym,debug_files=no,native_frames=name,timestamps,\
         context=tenant+a%2Bb,context.publish=attributes,context.publish.virtual=true,threads=a*+!b,\
         include=C.m,exclude=D.*,budget=1.5,limit=500+exceptions:off,delay=1s,duration=60s,loop=1h,\
         interval=1s,format=json,file=/tmp/%p-%t,endpoint=http://c:1,headers=A=1+b=%2B,compression=none,\
         timeout=3s,certificate=/ca.pem,client_certificate=/me.pem,client_key=/me.key,upload.limit=1m,\
         upload.queue=2m,resource=a=1+service.name=weaker,service=s,loglevel=off,strict",
    );
    assert_eq!(
        options,
        Options {
            cpu: Some(Duration::from_micros(500)),
            wall: None,
            wall_signal: libc::SIGVTALRM,
            event: None,
            event_kernel: KernelFrames::Off,
            event_signal: libc::SIGSTKFLT,
            alloc: None,
            live: None,
            lock: None,
            wait: None,
            nativemem: None,
            nativemem_leaks: false,
            exceptions: None,
            exceptions_thrown: false,
            recorded_events: RecordedEvents::None,
            trace: vec![],
            cpu_clock: CpuClock::Timer,
            cpu_kernel: true,
            signal: libc::SIGVTALRM,
            stack_walker: StackWalker::Vmx,
            depth: 128,
            remotesym: true,
            debug_files: None,
            normalise_class_names: true,
            context: vec!["tenant".to_owned(), "a+b".to_owned()],
            context_publication: ContextPublication::Attributes,
            publishes_virtual_threads: true,
            filter: true,
            threads: NameSelection {
                wanted: vec![NamePattern::new("a*")],
                unwanted: vec![NamePattern::new("b")],
            },
            frames: NameSelection {
                wanted: vec![NamePattern::new("C.m")],
                unwanted: vec![NamePattern::new("D.*")],
            },
            budget: Some(150),
            limits: {
                let mut limits = limits(Some(500));
                limits[Engine::Exceptions as usize] = None;
                limits
            },
            delay: Duration::from_secs(1),
            duration: Some(Duration::from_secs(60)),
            interval: Duration::from_secs(1),
            file_period: Some(Duration::from_secs(3600)),
            encode: EncodeOptions {
                empty_profiles: false,
                native_frames: NativeFrames::Name,
                timestamps: true,
                values_beside_times: false,
                format: Format::Json
            },
            file: Some("/tmp/%p-%t".into()),
            upload: Some(UploadConfig {
                headers: vec![("A".into(), "1".into()), ("b".into(), "+".into())],
                compression: Compression::None,
                timeout: Duration::from_secs(3),
                ca_certificate: Some("/ca.pem".into()),
                client_certificate: Some("/me.pem".into()),
                client_key: Some("/me.key".into()),
                max_request_bytes: 1 << 20,
                queue_bytes: 2 << 20,
                ..UploadConfig::new(Endpoint::base("http://c:1").unwrap())
            }),
            resource: vec![("a".into(), "1".into()), ("service.name".into(), "s".into())],
            log_level: LevelFilter::Off,
            strict: true,
            warnings: vec![],
        }
    );
}

#[test]
fn every_option_is_read_from_its_variable() {
    // No valid value begins with a control character, so an option that rejects one has read its variable.
    // The options excepted here take any text.
    let take_any = ["file", "certificate", "client_certificate", "client_key", "service"];
    for option in table::all().filter(|option| !take_any.contains(&option.name)) {
        let variable = option.environment_variable();
        let environment = [(variable.as_str(), "\u{1}")].into_iter().collect();
        let message = parse("", &environment).expect_err(option.name).message;
        assert!(message.starts_with(&variable), "{message}");
    }
    let options = start_in(
        "",
        [
            ("OTLPPROF_FILE", "/f"),
            ("OTLPPROF_CERTIFICATE", "/c"),
            ("OTLPPROF_CLIENT_CERTIFICATE", "/me"),
            ("OTLPPROF_CLIENT_KEY", "/key"),
            ("OTLPPROF_SERVICE", "s"),
            ("OTLPPROF_ENDPOINT", "http://h"),
        ],
    );
    assert_eq!(options.file.as_deref(), Some("/f"));
    assert_eq!(attribute(&options, "service.name"), Some("s"));
    let upload = upload(options);
    assert_eq!(upload.ca_certificate.as_deref(), Some(Path::new("/c")));
    assert_eq!(upload.client_certificate.as_deref(), Some(Path::new("/me")));
    assert_eq!(upload.client_key.as_deref(), Some(Path::new("/key")));
}

/// Regression: 20us was accepted here and rejected when the VM was live, too late for `strict`.
#[test]
fn cpu_intervals_are_those_that_the_engine_keeps() {
    use otlpprof_sampling::config::Config;
    let ns = |duration: Duration| duration.as_nanos() as u64;
    let (shortest, longest) = (ns(Config::SHORTEST_INTERVAL), ns(Config::LONGEST_INTERVAL));
    for (interval_ns, allowed) in
        [(shortest - 1, false), (shortest, true), (longest, true), (longest + 1, false), (20_000, false)]
    {
        assert_eq!(Config::allows_interval(Duration::from_nanos(interval_ns)), allowed, "{interval_ns}");
        let text = format!("cpu={interval_ns}ns");
        if allowed {
            assert_eq!(start(&text).cpu, Some(Duration::from_nanos(interval_ns)));
        } else {
            assert_eq!(error(&text), format!("{text}: must be from 50us to 1h; or on, or off"));
        }
    }
}

#[test]
fn clocks_are_called_as_the_engine_calls_them() {
    use otlpprof_core::thread::ClockKind;
    assert_eq!(start("cpu.clock=auto").cpu_clock, CpuClock::Auto);
    for (clock, kind) in [
        (CpuClock::Perf, ClockKind::Perf),
        (CpuClock::Timer, ClockKind::Timer),
        (CpuClock::Itimer, ClockKind::Itimer),
    ] {
        assert_eq!(start(&format!("cpu.clock={}", kind.name())).cpu_clock, clock);
    }
}

#[test]
fn cpu_is_an_interval_or_a_switch() {
    for on in ["cpu", "cpu=on", "cpu=true", "cpu=y"] {
        assert_eq!(start(on).cpu, Some(Duration::from_millis(10)), "{on}");
    }
    for off in ["cpu=off", "cpu=false", "cpu=no"] {
        assert_eq!(start(off).cpu, None, "{off}");
    }
    assert_eq!(start("cpu=1000000").cpu, Some(Duration::from_millis(1)), "bare numbers are nanoseconds");
    for bad in ["cpu=0", "cpu=1", "cpu=9us", "cpu=2h", "cpu=fast", "cpu="] {
        assert!(error(bad).starts_with(&format!("{bad}: ")), "{bad}");
    }
}

#[test]
fn unknown_keys_name_the_nearest() {
    assert_eq!(error("remotsym=true"), "unknown option 'remotsym'; did you mean 'remotesym'?");
    assert_eq!(error("endpont=http://h"), "unknown option 'endpont'; did you mean 'endpoint'?");
    assert_eq!(error("CPU=1ms"), "unknown option 'CPU'; did you mean 'cpu'?");
    assert_eq!(error("stpo"), "unknown option 'stpo'; did you mean 'stop'?");
    assert_eq!(error("evnt_kind=cpu"), "unknown option 'evnt_kind'; 'help' lists them");
    assert_eq!(error("=1"), "unknown option ''; 'help' lists them");
}

#[test]
fn malformed_strings_are_one_clear_line() {
    assert_eq!(error("interval"), "option 'interval' needs a value: interval=DURATION");
    assert_eq!(error("cpu=1ms,cpu=2ms"), "option 'cpu' is given twice");
    assert_eq!(error("cpu=1ms,stop"), "'stop' must be the first word of the options");
    assert_eq!(error("stop,cpu=1ms"), "'stop' takes no options, got 'cpu'");
    assert_eq!(error("cstack=lbr"), "cstack=lbr: must be one of vm, vmx, fp, dwarf, no");
    assert_eq!(error("format=xml"), "format=xml: must be one of proto, json");
    assert_eq!(error("depth=0"), "depth=0: must be a whole number from 1 to 2048");
    assert_eq!(error("file="), "file=: must not be empty");
    assert!(error("file=/tmp/%x").starts_with("file=/tmp/%x: "));
    assert_eq!(
        error("file=/a/x.html"),
        "file=/a/x.html: the agent writes OTLP, not .html: write file=/a/x.otlp, then run `otlpprof \
         flamegraph /a/x.otlp -o /a/x.html`"
    );
    assert!(error("file=x.pb.gz").ends_with("then run `otlpprof export --to pprof x.otlp -o x.pb.gz`"));
    // Regression: the shell read such paths as two words.
    assert!(error("file=my x.pprof").ends_with("export --to pprof 'my x.otlp' -o 'my x.pprof'`"));
    assert!(error("file=x.pprof").ends_with("then run `otlpprof export --to pprof x.otlp -o x.pprof`"));
    assert!(error("file=x.folded").contains("export --to collapsed x.otlp"));
    assert!(error("file=x.collapsed").contains("export --to collapsed x.otlp"));
    assert_eq!(
        error("endpoint=localhost:4318"),
        "endpoint: localhost:4318: not an HTTP URL; write http://HOST:4318 or https://HOST:4318"
    );
    assert_eq!(start(",cpu=1ms,,"), start("cpu=1ms"), "a comma too many is harmless");
}

#[test]
fn commands_are_the_first_word() {
    let parse = |text| parse(text, &Environment::default());
    assert_eq!(parse("stop"), Ok(Request::Stop));
    assert_eq!(parse("flush"), Ok(Request::Flush));
    assert_eq!(parse("status"), Ok(Request::Status));
    assert_eq!(parse("help"), Ok(Request::Help));
    assert_eq!(parse("help,whatever"), Ok(Request::Help));
    assert_eq!(parse("start,cpu=1ms"), parse("cpu=1ms"));
}

#[test]
fn strict_is_known_even_from_a_string_with_mistakes() {
    for (text, strict) in [
        ("strict,bad", true),
        ("bad=1,strict=true", true),
        ("strict=y,cpu=x", true),
        ("strict=false,bad", false),
        ("bad", false),
        ("strictly", false),
        ("strict=invalid", false),
    ] {
        assert_eq!(error_in(text, NO_VARIABLES).strict, strict, "{text}");
    }
    assert!(error_in("bad", [("OTLPPROF_STRICT", "1")]).strict);
    assert!(!error_in("bad,strict=0", [("OTLPPROF_STRICT", "1")]).strict, "the agent string wins");
}

#[test]
fn resource_attributes_are_decoded_and_merged() {
    let options = start_in(
        "resource=env=test",
        [
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=attributes, deployment.zone = eu%2Cwest ,env=prod"),
            ("OTEL_SERVICE_NAME", "variable"),
            ("OTLPPROF_RESOURCE", "team=a%2Bb"),
        ],
    );
    assert_eq!(attribute(&options, "service.name"), Some("variable"), "beats the attribute list");
    assert_eq!(attribute(&options, "deployment.zone"), Some("eu,west"));
    assert_eq!(attribute(&options, "env"), Some("test"), "the agent string wins");
    assert_eq!(attribute(&options, "team"), Some("a+b"));
    assert_eq!(options.resource.len(), 4);
}

#[test]
fn the_service_name_by_precedence() {
    let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=1");
    let otel = ("OTEL_SERVICE_NAME", "2");
    let ours = ("OTLPPROF_SERVICE", "3");
    for (expected, options) in [
        (None, start("")),
        (Some("1"), start_in("", [attributes])),
        (Some("2"), start_in("", [attributes, otel])),
        (Some("3"), start_in("", [attributes, otel, ours])),
        (Some("4"), start_in("resource=service.name=4", [attributes, otel, ours])),
        (Some("5"), start_in("service=5,resource=service.name=4", [attributes, otel, ours])),
    ] {
        assert_eq!(attribute(&options, "service.name"), expected);
    }
}

#[test]
fn nine_context_attributes_have_names_and_a_tenth_is_refused() {
    let names = |count: usize| (0..count).map(|n| format!("n{n}")).collect::<Vec<_>>().join("+");
    assert_eq!(start(&format!("context={}", names(9))).context.len(), 9);
    let problem = |text: &str| parse(text, &Environment::default()).unwrap_err().message;
    let tenth = problem(&format!("context={}", names(10)));
    assert!(tenth.ends_with("10 names, more than 9"), "{tenth}");
    assert!(problem("context=a+b+a").ends_with("'a' is given twice"));
    assert!(problem(&format!("context={}", "n".repeat(256))).contains("1 to 255 bytes"));
}

#[test]
fn empty_variables_count_as_unset() {
    let empty =
        ["OTLPPROF_CPU", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SERVICE_NAME", "OTEL_EXPORTER_OTLP_PROTOCOL"];
    assert_eq!(start_in("", empty.map(|name| (name, ""))), start(""));
}

#[test]
fn unknown_otlpprof_variables_cause_a_warning() {
    let options = start_in("", [("OTLPPROF_REMOTESYMS", "1"), ("OTLPPROFX", "1")]);
    assert_eq!(
        options.warnings,
        ["OTLPPROF_REMOTESYMS is ignored: no such option; did you mean 'OTLPPROF_REMOTESYM'?"]
    );
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "[a-z.=,+%0-9é]{0,40}", variable in ".{0,20}") {
        let names = [
            "OTEL_RESOURCE_ATTRIBUTES",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "OTLPPROF_X",
        ];
        let _ = parse(&text, &names.map(|name| (name, variable.as_str())).into_iter().collect());
    }
}

/// Regression: such variables were dropped silently, and the agent ran without the user's options.
#[test]
fn variables_that_are_not_utf8_are_reported() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let bytes = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let own = Environment::of([(bytes(b"OTLPPROF_FILE"), bytes(b"/tmp/\xff"))]);
    assert_eq!(parse("", &own).unwrap_err().message, "OTLPPROF_FILE: must be UTF-8");
    assert!(parse("strict", &own).unwrap_err().strict);
    let own_name = Environment::of([(bytes(b"OTLPPROF_\xff"), bytes(b"x"))]);
    assert_eq!(parse("", &own_name).unwrap_err().message, "OTLPPROF_\u{fffd}: must be UTF-8");
    let standard = [(&b"OTEL_SERVICE_NAME"[..], &b"caf\xe9"[..]), (b"PATH", b"/\xff"), (b"LANG", b"C")];
    let standard = Environment::of(standard.map(|(name, value)| (bytes(name), bytes(value))));
    let Ok(Request::Start(options)) = parse("", &standard) else { panic!() };
    assert_eq!(options.warnings, ["OTEL_SERVICE_NAME is ignored: must be UTF-8"]);
    assert_eq!(attribute(&options, "service.name"), None);
}

/// Regression: bytes that are not UTF-8 turned into another path.
#[test]
fn an_agent_string_that_is_not_utf8_is_an_error() {
    let parse = |text| parse_bytes(text, &Environment::default(), false);
    assert_eq!(parse(b"file=/tmp/x"), super::parse("file=/tmp/x", &Environment::default()));
    for (text, strict) in [(&b"file=/tmp/\xff"[..], false), (b"strict,service=caf\xe9", true)] {
        let error = parse(text).unwrap_err();
        assert_eq!((error.message.as_str(), error.strict), ("the options: must be UTF-8", strict));
    }
}

#[test]
fn profiles_that_a_command_reads_along_need_no_other_destination() {
    let parse =
        |text: &str, is_read_along| parse_bytes(text.as_bytes(), &Environment::default(), is_read_along);
    for (text, is_read_along) in [("endpoint=off", false), ("endpoint=off,delay=1s", true)] {
        assert!(parse(text, is_read_along).unwrap_err().message.contains("leaves no destination"));
    }
    assert!(
        matches!(parse("endpoint=off", true), Ok(Request::Start(options)) if options.has_no_destination())
    );
}

#[test]
fn reading_along_needs_the_socket_of_a_command() {
    for text in ["stream=1s", "cpu=1ms,stream=1s", "status,stream=1s", "answer=/tmp/x"] {
        let error = super::parse(text, &Environment::default()).unwrap_err();
        assert!(error.message.contains("answer=SOCKET"), "{error:?}");
    }
}

#[test]
fn an_event_has_its_period_and_a_signal_of_its_own() {
    let event = |options: &str| start(options).event.map(|event| (event.name, event.period));
    assert_eq!(event("event=cycles"), Some(("cycles".into(), 1_000_000)));
    assert_eq!(event("event=cycles:u:5"), Some(("cycles:u".into(), 5)));
    assert_eq!(event("event=cycles:5,event.period=6"), Some(("cycles".into(), 6)));
    assert!(error("event=cycles:u,event.kernel=true").contains("remove :u"));
    assert!(start("event=cycles:u").warnings.is_empty());
    assert!(error("event.kernel=maybe").contains("or auto"));
    assert!(error("event=cyclez").starts_with("event=cyclez: must be an event: cycles, instructions, "));
    for (options, names) in [
        ("event=cycles,signal=USR1,event.signal=USR1", "event.signal and signal"),
        ("event=cycles,wall,event.signal=VTALRM", "event.signal and wall.signal"),
        ("wall,signal=VTALRM", "wall.signal and signal"),
    ] {
        assert!(error(options).starts_with(&format!("{names} are the same")), "{options}");
    }
    assert!(start("event=cycles,cpu=off,signal=USR1,event.signal=USR1").cpu.is_none());
}

#[test]
fn empty_patterns_of_names_are_mistakes() {
    for bad in ["threads=!", "threads=a+!", "include=!"] {
        assert!(error(bad).starts_with(&format!("{bad}: ")), "{bad}");
    }
}

//! Every option, once: its name, type, default, help line, and how it is read.
//!
//! Its environment variable follows from its name: `OTLPPROF_` and the name in capitals, dots as underscores.

use std::time::Duration;

use log::LevelFilter;

use super::request::{Destination, Draft};
use super::types::{ContextPublication, CpuClock, StackWalker};
use super::value;
use crate::context::slot_names;
use crate::core::context::SLOTS;
use crate::export::Endpoint;
use crate::export::endpoint::PROFILES_PATH;
use crate::export::pattern::PathPattern;
use crate::export::upload::Compression;
use crate::otlp::{Format, NativeFrames};
use crate::sampling::config::Config;

/// One option.
pub(super) struct OptionSpec {
    /// Its name in the agent string.
    pub(super) name: &'static str,
    /// What a value looks like, for the help.
    pub(super) value: &'static str,
    /// The value it has when nobody says one; `None`: nothing.
    pub(super) default: Option<&'static str>,
    /// What the bare name stands for; `None`: it needs a value.
    pub(super) bare: Option<&'static str>,
    /// Whether messages must not repeat the value.
    pub(super) secret: bool,
    /// One line for the user.
    pub(super) help: &'static str,
    /// Reads a value into the draft, or says what it should have been.
    pub(super) read: fn(&mut Draft, &str) -> Result<(), String>,
}

impl OptionSpec {
    /// The name of the variable that sets the option too.
    pub(super) fn environment_variable(&self) -> String {
        format!("{ENVIRONMENT_PREFIX}{}", self.name.replace('.', "_").to_uppercase())
    }
}

/// How the variables of this project begin.
pub(super) const ENVIRONMENT_PREFIX: &str = "OTLPPROF_";

/// The option of this name.
pub(super) fn find(name: &str) -> Option<&'static OptionSpec> {
    OPTIONS.iter().find(|option| option.name == name)
}

const US: Duration = Duration::from_micros(1);
const HOUR: Duration = Duration::from_secs(3600);
const KIB: usize = 1 << 10;
const GIB: usize = 1 << 30;

/// As an option that is a matter of course would be written: no default, no bare form, nothing secret.
const PLAIN: OptionSpec = OptionSpec {
    name: "",
    value: "",
    default: None,
    bare: None,
    secret: false,
    help: "",
    read: |_, _| Ok(()),
};

/// In the order of the help. Where two options write the same thing, the later one wins.
pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "cpu",
        value: "DURATION|on|off",
        default: Some("10ms"),
        bare: Some("on"),
        help: "sample every thread each time it has used this much CPU time (on: 10ms)",
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
        help: "what times CPU samples: perf events, a timer per thread, the process's timer; auto: the first that works",
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
        name: "wall",
        value: "DURATION|on|off",
        default: Some("off"),
        bare: Some("on"),
        help: "sample every thread each time this much time has passed, whatever it does (on: 50ms)",
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
        help: "the signal of wall-clock samples, by name or number; another than `signal`",
        read: |draft, text| set(&mut draft.options.wall_signal, value::signal(text)),
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
        name: "lock",
        value: "DURATION|on|off",
        default: Some("off"),
        bare: Some("on"),
        help: "record waits for monitors that take this long or longer (on: 10us)",
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
        name: "exceptions",
        value: "NUMBER|on|off",
        default: Some("off"),
        bare: Some("on"),
        help: "sample one of so many exceptions that are thrown (on: 1, all); with -agentpath only",
        read: |draft, text| {
            let period = switchable(text, "1", |text| value::integer(text, 1, 1_000_000));
            set(&mut draft.options.exceptions, period.map(|period| period.map(|count| count as u64)))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "filter",
        value: "BOOL",
        default: Some("false"),
        bare: Some("true"),
        help: "sample only threads that have registered themselves (Otlpprof.addThread in Java)",
        read: |draft, text| set(&mut draft.options.filter, value::boolean(text)),
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
    OptionSpec {
        name: "cstack",
        value: "vm|vmx|fp|dwarf|no",
        default: Some("vm"),
        help: "stacks: vm, vmx (native frames throughout), fp, dwarf (the VM makes and keeps ids of all methods), no (Java only)",
        read: |draft, text| {
            let walkers = StackWalker::ALL.map(|walker| (walker.name(), walker));
            set(&mut draft.options.stack_walker, value::choice(text, &walkers))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "depth",
        value: "FRAMES",
        default: Some("2048"),
        help: "the most frames of a stack; deeper ones are marked as truncated (at most 2048)",
        read: |draft, text| set(&mut draft.options.depth, value::integer(text, 1, 2048)),
        ..PLAIN
    },
    OptionSpec {
        name: "remotesym",
        value: "BOOL",
        default: Some("false"),
        bare: Some("true"),
        help: "leave native frames to the backend: build-id and address instead of a symbol",
        read: |draft, text| set(&mut draft.options.remotesym, value::boolean(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "native_frames",
        value: "remote|name",
        default: Some("remote"),
        help: "remote frames as address and mapping, or (name) with <build-id>.<remote>(0xADDRESS) as function name",
        read: |draft, text| {
            let forms = [("remote", NativeFrames::Remote), ("name", NativeFrames::Name)];
            set(&mut draft.options.encode.native_frames, value::choice(text, &forms))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "class_names",
        value: "normalised|full",
        default: Some("normalised"),
        help: "classes made at run time without what numbers them (Foo$$Lambda), or (full) as the VM has them",
        read: |draft, text| {
            let forms = [("normalised", true), ("full", false)];
            set(&mut draft.options.normalise_class_names, value::choice(text, &forms))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "timestamps",
        value: "BOOL",
        default: Some("false"),
        bare: Some("true"),
        help: "keep the time of each sample",
        read: |draft, text| set(&mut draft.options.encode.timestamps, value::boolean(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "context",
        value: "NAME+...",
        help: "names of context attributes, in this order; Java code may name others; nine at most",
        read: |draft, text| {
            set(&mut draft.options.context, value::names(text, LIST_SEPARATOR, SLOTS, check_slot_name))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "context.publish",
        value: "off|trace|attributes",
        // A block is a record of its trace already: its thread's pointer to it is set once, and no setter does more.
        default: Some("trace"),
        help: "what profilers outside the process may read of threads' contexts: nothing, trace and span, attributes too",
        read: |draft, text| {
            let publications = [
                ("off", ContextPublication::Off),
                ("trace", ContextPublication::Trace),
                ("attributes", ContextPublication::Attributes),
            ];
            set(&mut draft.options.context_publication, value::choice(text, &publications))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "interval",
        value: "DURATION",
        default: Some("10s"),
        help: "how often profiles are written and uploaded; also at exit",
        read: |draft, text| set(&mut draft.options.interval, value::duration(text, 100_000 * US, HOUR)),
        ..PLAIN
    },
    OptionSpec {
        name: "format",
        value: "proto|json",
        default: Some("proto"),
        help: "OTLP as protobuf or JSON, in files and uploads",
        read: |draft, text| {
            draft.unusable_protocol = None;
            set(
                &mut draft.options.encode.format,
                value::choice(text, &[("proto", Format::Proto), ("json", Format::Json)]),
            )
        },
        ..PLAIN
    },
    OptionSpec {
        name: "file",
        value: "PATH",
        help: "write profiles to this file; %p is the process id, %t the time (a file for each interval), %h the host",
        read: |draft, text| set_some(&mut draft.options.file, read_path_pattern(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "endpoint",
        value: "URL|off",
        secret: true,
        help: "upload to this OTLP/HTTP collector; without file and endpoint: http://localhost:4318",
        read: |draft, text| {
            draft.destination = read_endpoint(text)?;
            if let Destination::Collector(_) = draft.destination {
                // It is one of OTLP/HTTP, whatever protocol a weaker source asks for.
                draft.unusable_protocol = None;
            }
            Ok(())
        },
        ..PLAIN
    },
    OptionSpec {
        name: "headers",
        value: "NAME=VALUE+...",
        secret: true,
        help: "request headers of uploads; %XX for characters like + and ,",
        read: |draft, text| set(&mut draft.upload.headers, value::pairs(text, LIST_SEPARATOR)),
        ..PLAIN
    },
    OptionSpec {
        name: "compression",
        value: "gzip|none",
        default: Some("gzip"),
        help: "compression of uploads",
        read: |draft, text| set(&mut draft.upload.compression, value::choice(text, &COMPRESSIONS)),
        ..PLAIN
    },
    OptionSpec {
        name: "timeout",
        value: "DURATION",
        default: Some("10s"),
        help: "how long one upload may take",
        read: |draft, text| set(&mut draft.upload.timeout, value::duration(text, 1_000 * US, HOUR)),
        ..PLAIN
    },
    OptionSpec {
        name: "certificate",
        value: "PATH",
        help: "PEM file of the authorities that https endpoints are checked against, instead of the system's",
        read: |draft, text| set_some(&mut draft.upload.ca_certificate, value::text(text).map(Into::into)),
        ..PLAIN
    },
    OptionSpec {
        name: "client_certificate",
        value: "PATH",
        help: "PEM file of the certificate that https endpoints know the agent by (mutual TLS); with client_key",
        read: |draft, text| set_some(&mut draft.upload.client_certificate, value::text(text).map(Into::into)),
        ..PLAIN
    },
    OptionSpec {
        name: "client_key",
        value: "PATH",
        help: "PEM file of that certificate's private key",
        read: |draft, text| set_some(&mut draft.upload.client_key, value::text(text).map(Into::into)),
        ..PLAIN
    },
    OptionSpec {
        name: "upload.limit",
        value: "SIZE",
        default: Some("20m"),
        help: "the largest request before compression; larger profiles are split",
        read: |draft, text| set(&mut draft.upload.max_request_bytes, value::size(text, 64 * KIB, GIB)),
        ..PLAIN
    },
    OptionSpec {
        name: "upload.queue",
        value: "SIZE",
        default: Some("32m"),
        help: "the most memory for profiles that wait to be uploaded; older ones are dropped and counted",
        read: |draft, text| set(&mut draft.upload.queue_bytes, value::size(text, 64 * KIB, GIB)),
        ..PLAIN
    },
    OptionSpec {
        name: "resource",
        value: "KEY=VALUE+...",
        help: "resource attributes; %XX for characters like + and ,",
        read: |draft, text| value::pairs(text, LIST_SEPARATOR).map(|pairs| draft.add_resource(pairs)),
        ..PLAIN
    },
    OptionSpec {
        name: "service",
        value: "NAME",
        help: "the resource attribute service.name",
        read: |draft, text| {
            value::text(text).map(|name| draft.add_resource([("service.name".to_owned(), name)]))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "loglevel",
        value: "off|error|warn|info|debug",
        default: Some("info"),
        help: "what the agent says on stderr",
        read: |draft, text| {
            let levels = [
                ("off", LevelFilter::Off),
                ("error", LevelFilter::Error),
                ("warn", LevelFilter::Warn),
                ("info", LevelFilter::Info),
                ("debug", LevelFilter::Debug),
            ];
            set(&mut draft.options.log_level, value::choice(text, &levels))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "strict",
        value: "BOOL",
        default: Some("false"),
        bare: Some("true"),
        help: "fail the JVM's start on a mistake in the options, instead of running without profiles",
        read: |draft, text| set(&mut draft.options.strict, value::boolean(text)),
        ..PLAIN
    },
];

/// Between the items of a list inside a value.
const LIST_SEPARATOR: char = '+';

/// The compressions, by the names that OTEL_EXPORTER_OTLP_COMPRESSION has for them too.
pub(super) const COMPRESSIONS: [(&str, Compression); 2] =
    [("gzip", Compression::Gzip), ("none", Compression::None)];

/// What is off, on with the value `on`, or on with another that `read` takes. Digits begin a value here, so that 1 and 0
/// are no booleans.
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

fn shortest_wait(text: &str) -> Result<Duration, String> {
    value::duration(text, Duration::ZERO, HOUR)
}

/// A collector's base URL, or the whole URL of its profiles endpoint.
fn read_endpoint(text: &str) -> Result<Destination, String> {
    let endpoint = match text {
        "off" => return Ok(Destination::Off),
        whole if whole.ends_with(PROFILES_PATH) => Endpoint::signal(whole),
        base => Endpoint::base(base),
    };
    endpoint.map(Destination::Collector).map_err(|error| error.to_string())
}

fn check_slot_name(name: &str) -> Result<(), String> {
    slot_names::check(name).map_err(|error| error.to_string())
}

fn read_path_pattern(text: &str) -> Result<String, String> {
    let text = value::text(text)?;
    PathPattern::parse(&text).map(|_| text).map_err(|error| error.to_string())
}

fn set<T>(field: &mut T, value: Result<T, String>) -> Result<(), String> {
    value.map(|value| *field = value)
}

fn set_some<T>(field: &mut Option<T>, value: Result<T, String>) -> Result<(), String> {
    set(field, value.map(Some))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_spelt_alike() {
        for (i, option) in OPTIONS.iter().enumerate() {
            assert!(OPTIONS[..i].iter().all(|earlier| earlier.name != option.name), "{}", option.name);
            assert!(
                option.name.bytes().all(|c| c.is_ascii_lowercase() || c == b'.' || c == b'_'),
                "{}",
                option.name
            );
            assert!(!option.value.is_empty() && !option.help.is_empty(), "{}", option.name);
            // Two names must not meet in one variable.
            let variable = option.environment_variable();
            assert!(
                OPTIONS[..i].iter().all(|earlier| earlier.environment_variable() != variable),
                "{variable}"
            );
        }
    }

    #[test]
    fn defaults_and_bare_forms_can_be_read() {
        for option in OPTIONS {
            for text in [option.default, option.bare].into_iter().flatten() {
                assert_eq!((option.read)(&mut Draft::default(), text), Ok(()), "{}={text}", option.name);
            }
        }
    }
}

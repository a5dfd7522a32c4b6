//! The options of delivery: destinations, formats, and the log.

use std::time::Duration;

use log::LevelFilter;
use otlpprof_core::engine::Engine;
use otlpprof_export::Endpoint;
use otlpprof_export::endpoint::PROFILES_PATH;
use otlpprof_export::pattern::PathPattern;
use otlpprof_model::attribute_keys::SERVICE_NAME;
use otlpprof_otlp::Format;

use crate::draft::Destination;
use crate::option_spec::{COMPRESSIONS, GIB, HOUR, LIST_SEPARATOR, OptionSpec, PLAIN, US, set};
use crate::shell_word::quoted;
use crate::value;

const KIB: usize = 1 << 10;

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "interval",
        value: "DURATION",
        default: Some("10s"),
        help: "how often profiles are written and uploaded; also at exit",
        read: |draft, text| set(&mut draft.options.interval, value::duration(text, 100_000 * US, HOUR)),
        ..PLAIN
    },
    OptionSpec {
        name: "budget",
        value: "PERCENT|off",
        default: Some("2"),
        help: "the profiler's most CPU time, in percent of the used processors; it samples less often to \
               stay within",
        read: |draft, text| set(&mut draft.options.budget, read_budget(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "limit",
        value: "NUMBER|ENGINE:NUMBER+...|off",
        default: Some("10000"),
        help: "the most samples a second of each engine that samples events; above it, a sample stands for \
               more events",
        read: |draft, text| set(&mut draft.options.limits, read_limits(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "delay",
        value: "DURATION",
        default: Some("0s"),
        help: "begin sampling this long after the start",
        read: |draft, text| set(&mut draft.options.delay, value::duration(text, Duration::ZERO, 24 * HOUR)),
        ..PLAIN
    },
    OptionSpec {
        name: "duration",
        value: "DURATION",
        help: "stop after sampling this long",
        read: |draft, text| {
            set_some(&mut draft.options.duration, value::duration(text, 100_000 * US, 10_000 * HOUR))
        },
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
        help: "write profiles to this file; %p is the process id, %t the time (a file for each interval), %h \
               the host",
        read: |draft, text| set_some(&mut draft.options.file, read_path_pattern(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "loop",
        value: "DURATION|off",
        help: "begin another file after this much time; needs %t in `file`",
        read: |draft, text| set(&mut draft.options.file_period, read_file_period(text)),
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
                // The endpoint speaks OTLP/HTTP, whatever protocol a source of lower precedence demands.
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
        help: "the longest time of one upload",
        read: |draft, text| set(&mut draft.upload.timeout, value::duration(text, 1_000 * US, HOUR)),
        ..PLAIN
    },
    OptionSpec {
        name: "certificate",
        value: "PATH",
        help: "PEM file of the certificate authorities for https endpoints, instead of the system's",
        read: |draft, text| set_some(&mut draft.upload.ca_certificate, value::text(text).map(Into::into)),
        ..PLAIN
    },
    OptionSpec {
        name: "client_certificate",
        value: "PATH",
        help: "PEM file of the agent's own certificate for https endpoints (mutual TLS); with client_key",
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
        help: "the most memory for profiles that wait for upload; the oldest are dropped and counted",
        read: |draft, text| set(&mut draft.upload.queue_bytes, value::size(text, 64 * KIB, GIB)),
        ..PLAIN
    },
    OptionSpec {
        name: "resource",
        value: "KEY=VALUE+...",
        adds: true,
        help: "resource attributes; %XX for characters like + and ,",
        read: |draft, text| value::pairs(text, LIST_SEPARATOR).map(|pairs| draft.add_resource(pairs)),
        ..PLAIN
    },
    OptionSpec {
        name: "service",
        value: "NAME",
        help: "the resource attribute service.name",
        read: |draft, text| {
            value::text(text).map(|name| draft.add_resource([(SERVICE_NAME.to_owned(), name)]))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "loglevel",
        value: "off|error|warn|info|debug",
        default: Some("info"),
        help: "the least important messages that the agent prints to stderr",
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
        help: "stop the JVM's start on a mistake in the options, instead of running without profiles",
        read: |draft, text| set(&mut draft.options.strict, value::boolean(text)),
        ..PLAIN
    },
];

/// Parses a collector's base URL, or the whole URL of its profiles endpoint.
fn read_endpoint(text: &str) -> Result<Destination, String> {
    let endpoint = match text {
        "off" => return Ok(Destination::Off),
        whole if whole.ends_with(PROFILES_PATH) => Endpoint::signal(whole),
        base => Endpoint::base(base),
    };
    endpoint.map(Destination::Collector).map_err(|error| error.to_string())
}

/// Parses the time of each file; `None` without files by the time.
fn read_file_period(text: &str) -> Result<Option<Duration>, String> {
    if text == "off" {
        return Ok(None);
    }
    value::duration(text, 100_000 * US, 10_000 * HOUR)
        .map(Some)
        .map_err(|message| format!("{message}; or off"))
}

/// Parses a percentage, and returns it in hundredths of a percent.
fn read_budget(text: &str) -> Result<Option<u32>, String> {
    if text == "off" {
        return Ok(None);
    }
    let percent = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    let percent = percent.filter(|percent| (0.01..=100.0).contains(percent));
    percent
        .map(|percent| Some((percent * 100.0).round() as u32))
        .ok_or_else(|| "must be a percentage from 0.01 to 100, or off".to_owned())
}

/// Parses limits in samples per second, by engine. An item is a limit for all engines, or for one; later
/// items override earlier ones.
fn read_limits(text: &str) -> Result<[Option<u32>; Engine::COUNT], String> {
    let limited = || Engine::ALL.into_iter().filter(|engine| engine.pace().follows_program());
    let number = |text: &str| match text {
        "off" => Ok(None),
        _ => value::integer(text, 10, 10_000_000)
            .map(|number| u32::try_from(number).ok())
            .map_err(|message| format!("{message}, or off")),
    };
    let mut limits = [None; Engine::COUNT];
    for item in text.split(LIST_SEPARATOR) {
        let Some((name, of_one)) = item.split_once(':') else {
            let of_all = number(item)?;
            limited().for_each(|engine| limits[engine as usize] = of_all);
            continue;
        };
        let engine = limited().find(|engine| engine.name() == name).ok_or_else(|| {
            let names: Vec<_> = limited().map(Engine::name).collect();
            format!("'{name}' must be one of {}", names.join(", "))
        })?;
        limits[engine as usize] = number(of_one)?;
    }
    Ok(limits)
}

fn read_path_pattern(text: &str) -> Result<String, String> {
    let text = value::text(text)?;
    if let Some(ending) = FOREIGN_ENDINGS.iter().find(|ending| text.ends_with(ending.ending)) {
        return Err(ending.refusal(&text));
    }
    PathPattern::parse(&text).map(|_| text).map_err(|error| error.to_string())
}

/// The ending of files in a format that the agent does not write.
struct ForeignEnding {
    ending: &'static str,
    /// The command that writes such files from OTLP.
    command: &'static str,
}

const FOREIGN_ENDINGS: &[ForeignEnding] = &[
    ForeignEnding { ending: ".html", command: "flamegraph" },
    ForeignEnding { ending: ".pprof", command: "export --to pprof" },
    ForeignEnding { ending: ".pb.gz", command: "export --to pprof" },
    ForeignEnding { ending: ".collapsed", command: "export --to collapsed" },
    ForeignEnding { ending: ".folded", command: "export --to collapsed" },
];

impl ForeignEnding {
    fn refusal(&self, path: &str) -> String {
        let Self { ending, command } = self;
        let otlp = format!("{}.otlp", path.strip_suffix(ending).unwrap_or(path));
        let (from, to) = (quoted(&otlp), quoted(path));
        format!(
            "the agent writes OTLP, not {ending}: write file={otlp}, then run `otlpprof {command} {from} -o \
             {to}`"
        )
    }
}

fn set_some<T>(field: &mut Option<T>, value: Result<T, String>) -> Result<(), String> {
    set(field, value.map(Some))
}

//! Turns the agent string and the environment into a request.

use std::borrow::Cow;
use std::time::Duration;

use log::LevelFilter;

use super::agent_string::{self, Command, GivenOption};
use super::environment::Environment;
use super::error::{OptionError, did_you_mean};
use super::table::{self, ENVIRONMENT_PREFIX, OptionSpec};
use super::types::{ContextPublication, CpuClock, Options, RecordedEvents, StackWalker};
use super::{otel, value};
use crate::aggregate::NameSelection;
use crate::core::engine::Engine;
use crate::export::pattern::PathPattern;
use crate::export::{Endpoint, UploadConfig};
use crate::otlp::EncodeOptions;
use crate::sampling::KernelFrames;

const DEFAULT_ENDPOINT: &str = "http://localhost:4318";
const NOT_UTF8: &str = "must be UTF-8";

/// The request that a load of the agent makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Profile, with these options.
    Start(Box<Options>),
    /// Flush and stop.
    Stop,
    /// Flush and go on.
    Flush,
    /// Report what the agent is doing.
    Status,
    /// Print the help.
    Help,
    /// Nothing: the variable or the property of this name disables OpenTelemetry in this process.
    Disabled(String),
}

/// [`parse`] for an agent string of any bytes, as the JVM passes it.
pub fn parse_bytes(agent_string: &[u8], environment: &Environment) -> Result<Request, OptionError> {
    let text = String::from_utf8_lossy(agent_string);
    // Replacement characters must not turn into another path or name. The text is parsed nevertheless, to
    // find `strict`.
    parse(&text, environment).and_then(|request| match text {
        Cow::Borrowed(_) => Ok(request),
        Cow::Owned(_) => {
            let strict = matches!(&request, Request::Start(options) if options.strict);
            Err(OptionError { message: format!("the options: {NOT_UTF8}"), strict })
        }
    })
}

/// Parses the agent string (the text after `=` in `-agentpath:…=`, or the argument of `JVMTI.agent_load`) and
/// the environment.
pub fn parse(agent_string: &str, environment: &Environment) -> Result<Request, OptionError> {
    request(agent_string, environment).map_err(|message| {
        let strict = agent_string::find_strict(agent_string).or_else(|| environment.get("OTLPPROF_STRICT"));
        OptionError { message, strict: strict.is_some_and(|text| value::boolean(text) == Ok(true)) }
    })
}

fn request(agent_string: &str, environment: &Environment) -> Result<Request, String> {
    let (command, given) = agent_string::split(agent_string)?;
    if let (Command::Start, Some(name)) = (command, otel::disabled_by(environment)) {
        return Ok(Request::Disabled(name.to_owned()));
    }
    Ok(match command {
        Command::Start => Request::Start(Box::new(options(&given, environment)?)),
        Command::Stop => Request::Stop,
        Command::Flush => Request::Flush,
        Command::Status => Request::Status,
        Command::Help => Request::Help,
    })
}

/// Reads the options from the source of lowest precedence to that of the highest: each overwrites the earlier
/// ones.
fn options(given: &[GivenOption<'_>], environment: &Environment) -> Result<Options, String> {
    let mut draft = Draft::default();
    for option in table::all() {
        option.default.map_or(Ok(()), |text| read(option, option.name, text, &mut draft))?;
    }
    if let Some(name) = environment.unreadable_with_prefix(ENVIRONMENT_PREFIX).next() {
        return Err(format!("{name}: {NOT_UTF8}"));
    }
    for name in environment.unreadable_with_prefix("OTEL_") {
        draft.options.warnings.push(format!("{name} is ignored: {NOT_UTF8}"));
    }
    otel::apply(environment, &mut draft);
    for option in table::all() {
        let variable = option.environment_variable();
        environment.get(&variable).map_or(Ok(()), |text| read(option, &variable, text, &mut draft))?;
    }
    warn_of_unknown_variables(environment, &mut draft);
    for given in given {
        read(given.option, given.option.name, given.value, &mut draft)?;
    }
    draft.finish()
}

fn read(option: &OptionSpec, name: &str, text: &str, draft: &mut Draft) -> Result<(), String> {
    (option.read)(draft, text).map_err(|message| {
        if option.secret { format!("{name}: {message}") } else { format!("{name}={text}: {message}") }
    })
}

/// Warns of unknown variables. They are no error, since other parts of an installation may use the prefix as
/// well.
fn warn_of_unknown_variables(environment: &Environment, draft: &mut Draft) {
    let known: Vec<_> = table::all().map(OptionSpec::environment_variable).collect();
    for name in environment.names_with_prefix(ENVIRONMENT_PREFIX) {
        if !known.iter().any(|variable| variable == name) {
            let hint = did_you_mean(name, known.iter().map(String::as_str));
            draft.options.warnings.push(format!("{name} is ignored: no such option{hint}"));
        }
    }
}

/// The upload's destination, as far as it is known.
#[derive(Debug)]
pub(super) enum Destination {
    Unspecified,
    /// No upload.
    Off,
    Collector(Endpoint),
    /// The environment names an endpoint that cannot be used, for this reason.
    Unusable(String),
}

/// Options under construction.
#[derive(Debug)]
pub(super) struct Draft {
    /// All options except the upload.
    pub(super) options: Options,
    /// The upload's configuration; its endpoint is not used.
    pub(super) upload: UploadConfig,
    pub(super) destination: Destination,
    /// The perf event's period, where it is given apart from the event.
    pub(super) event_period: Option<u64>,
    /// The reason for which the protocol that the environment demands is not supported.
    pub(super) unusable_protocol: Option<String>,
}

impl Draft {
    /// Adds resource attributes, which replace earlier ones of the same keys.
    pub(super) fn add_resource(&mut self, attributes: impl IntoIterator<Item = (String, String)>) {
        for (key, value) in attributes {
            self.options.resource.retain(|(earlier, _)| *earlier != key);
            self.options.resource.push((key, value));
        }
    }

    fn finish(self) -> Result<Options, String> {
        let Self { mut options, mut upload, destination, event_period, unusable_protocol } = self;
        if let (Some(event), Some(period)) = (&mut options.event, event_period) {
            event.period = period;
        }
        check_signals(&options)?;
        if options.event_kernel == KernelFrames::On
            && options.event.as_ref().is_some_and(|event| event.user_only)
        {
            return Err("event.kernel=true needs an event in the kernel: remove :u".into());
        }
        if options.nativemem_leaks && options.nativemem.is_none() {
            options.warnings.push("nativemem.leaks is ignored: nativemem is off".into());
        }
        if options.file_period.is_some() && !options.file.as_deref().is_some_and(has_time) {
            return Err("loop needs a file name with the time: write file=PATH with %t in it".into());
        }
        let endpoint = match destination {
            Destination::Off if options.file.is_none() => {
                return Err(
                    "endpoint=off without file leaves no destination for profiles: add file=PATH".into()
                );
            }
            Destination::Off => return Ok(options),
            Destination::Unspecified if options.file.is_some() => {
                options
                    .warnings
                    .extend(unusable_protocol.map(|message| format!("nothing is uploaded: {message}")));
                return Ok(options);
            }
            Destination::Unspecified => Ok(upload.endpoint),
            Destination::Collector(endpoint) => Ok(endpoint),
            Destination::Unusable(message) => Err(message),
        };
        // An unsupported protocol is the likelier cause of an odd endpoint, and its message says more.
        let endpoint = match unusable_protocol.map_or(endpoint, Err) {
            Ok(endpoint) => endpoint,
            // A mistake in variables that other programs share does not prevent the file from being written.
            Err(message) if options.file.is_some() => {
                options.warnings.push(format!("nothing is uploaded: {message}"));
                return Ok(options);
            }
            Err(message) => return Err(message),
        };
        if endpoint.url().port_u16() == Some(4317) {
            options
                .warnings
                .push("the endpoint's port 4317 is usually gRPC; OTLP over HTTP is usually 4318".into());
        }
        if upload.queue_bytes < upload.max_request_bytes {
            let (queue, limit) = (upload.queue_bytes >> 10, upload.max_request_bytes >> 10);
            return Err(format!(
                "upload.queue ({queue}k) is less than upload.limit ({limit}k): raise upload.queue or lower \
                 upload.limit"
            ));
        }
        upload.endpoint = endpoint;
        options.upload = Some(upload);
        Ok(options)
    }
}

/// Checks that each engine that sends signals has a signal of its own: pending signals of one number are
/// merged.
fn check_signals(options: &Options) -> Result<(), String> {
    let mut signals = vec![
        ("signal", options.signal, options.cpu.is_some()),
        ("wall.signal", options.wall_signal, options.wall.is_some()),
        ("event.signal", options.event_signal, options.event.is_some()),
    ];
    signals.retain(|(_, _, is_used)| *is_used);
    while let Some((name, signal, _)) = signals.pop() {
        if let Some((other, ..)) = signals.iter().find(|(_, earlier, _)| *earlier == signal) {
            return Err(format!(
                "{name} and {other} are the same signal: each engine needs a signal of its own"
            ));
        }
    }
    Ok(())
}

/// Whether the name of a file changes with time.
fn has_time(file: &str) -> bool {
    PathPattern::parse(file).is_ok_and(|pattern| pattern.has_time())
}

/// The state before the table's defaults are read into it. Every option that has a default there overwrites
/// the value given here.
impl Default for Draft {
    fn default() -> Self {
        Self {
            options: Options {
                cpu: None,
                wall: None,
                wall_signal: 0,
                event: None,
                event_kernel: KernelFrames::Auto,
                event_signal: 0,
                alloc: None,
                live: None,
                lock: None,
                wait: None,
                nativemem: None,
                nativemem_leaks: false,
                exceptions: None,
                exceptions_thrown: false,
                recorded_events: RecordedEvents::None,
                trace: Vec::new(),
                cpu_clock: CpuClock::Auto,
                cpu_kernel: false,
                signal: 0,
                stack_walker: StackWalker::Vm,
                depth: 0,
                remotesym: false,
                normalise_class_names: false,
                context: Vec::new(),
                context_publication: ContextPublication::Off,
                publishes_virtual_threads: false,
                filter: false,
                threads: NameSelection::default(),
                frames: NameSelection::default(),
                budget: None,
                limits: [None; Engine::COUNT],
                delay: Duration::ZERO,
                duration: None,
                interval: Duration::ZERO,
                file_period: None,
                encode: EncodeOptions::default(),
                file: None,
                upload: None,
                resource: Vec::new(),
                log_level: LevelFilter::Off,
                strict: false,
                warnings: Vec::new(),
            },
            // SANITY: the text is a constant, and every test of the defaults parses it.
            upload: UploadConfig::new(Endpoint::base(DEFAULT_ENDPOINT).expect("a URL")),
            destination: Destination::Unspecified,
            event_period: None,
            unusable_protocol: None,
        }
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "destination_tests.rs"]
mod destination_tests;

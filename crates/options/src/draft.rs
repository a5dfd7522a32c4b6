//! Options under construction, and the rules that several options obey together.

use std::time::Duration;

use log::LevelFilter;
use otlpprof_aggregate::NameSelection;
use otlpprof_core::engine::Engine;
use otlpprof_elf::debug_file_places::DEBUG_ROOT;
use otlpprof_export::pattern::PathPattern;
use otlpprof_export::{Endpoint, UploadConfig};
use otlpprof_otlp::EncodeOptions;
use otlpprof_sampling::KernelFrames;

use super::types::{ContextPublication, CpuClock, Options, RecordedEvents, StackWalker};

const DEFAULT_ENDPOINT: &str = "http://localhost:4318";

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
    /// Whether a command reads the profiles along, so that no other destination is needed.
    pub(super) is_read_along: bool,
    /// The options that variables of this project have set, each with its variable.
    pub(super) variables: Vec<(&'static str, String)>,
}

impl Draft {
    /// Adds resource attributes, which replace earlier ones of the same keys.
    pub(super) fn add_resource(&mut self, attributes: impl IntoIterator<Item = (String, String)>) {
        for (key, value) in attributes {
            self.options.resource.retain(|(earlier, _)| *earlier != key);
            self.options.resource.push((key, value));
        }
    }

    /// Checks the options together, and completes them.
    pub(super) fn finish(self) -> Result<Options, String> {
        let Self {
            mut options,
            mut upload,
            destination,
            event_period,
            unusable_protocol,
            is_read_along,
            variables,
        } = self;
        // A conflict names the variable: the user may not know that it is set.
        let shown = |option: &'static str| {
            let variable = variables.iter().find(|(name, _)| *name == option);
            variable.map_or(option, |(_, variable)| variable.as_str())
        };
        if let (Some(event), Some(period)) = (&mut options.event, event_period) {
            event.period = period;
        }
        check_signals(&options, shown)?;
        if options.event_kernel == KernelFrames::On
            && options.event.as_ref().is_some_and(|event| event.user_only)
        {
            let event_kernel = shown("event.kernel");
            return Err(format!("{event_kernel}=true needs an event in the kernel: remove :u"));
        }
        if options.nativemem_leaks && options.nativemem.is_none() {
            options.warnings.push(format!("{} is ignored: nativemem is off", shown("nativemem.leaks")));
        }
        if options.file_period.is_some() && !options.file.as_deref().is_some_and(has_time) {
            return Err(format!(
                "{} needs a file name with the time: write file=PATH with %t in it, or loop=off",
                shown("loop")
            ));
        }
        let endpoint = match destination {
            // A reader does not wait for a session that begins later.
            Destination::Off if options.file.is_none() && !(is_read_along && options.delay.is_zero()) => {
                return Err(format!(
                    "{}=off without file leaves no destination for profiles: add file=PATH",
                    shown("endpoint")
                ));
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
            let [queue_name, limit_name] = ["upload.queue", "upload.limit"].map(shown);
            return Err(format!(
                "{queue_name} ({queue}k) is less than {limit_name} ({limit}k): raise upload.queue or lower \
                 upload.limit"
            ));
        }
        upload.endpoint = endpoint;
        options.upload = Some(upload);
        Ok(options)
    }
}

/// Checks that each engine that sends signals has a signal of its own: pending signals of one number are
/// merged. `shown` returns the name of an option for the message.
fn check_signals<'n>(options: &Options, shown: impl Fn(&'static str) -> &'n str) -> Result<(), String> {
    let mut signals = vec![
        ("signal", options.signal, options.cpu.is_some()),
        ("wall.signal", options.wall_signal, options.wall.is_some()),
        ("event.signal", options.event_signal, options.event.is_some()),
    ];
    signals.retain(|(_, _, is_used)| *is_used);
    while let Some((name, signal, _)) = signals.pop() {
        if let Some((other, ..)) = signals.iter().find(|(_, earlier, _)| *earlier == signal) {
            let [name, other] = [name, *other].map(&shown);
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
                debug_files: Some(DEBUG_ROOT.into()),
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
            is_read_along: false,
            variables: Vec::new(),
        }
    }
}

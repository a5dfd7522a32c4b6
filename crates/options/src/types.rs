//! The options in the form that the rest of the agent uses: typed, checked and complete.

use std::path::PathBuf;
use std::time::Duration;

use log::LevelFilter;
use otlpprof_aggregate::NameSelection;
use otlpprof_convert::RequestedEvent;
use otlpprof_core::engine::Engine;
pub use otlpprof_core::stack_walker::StackWalker;
use otlpprof_export::UploadConfig;
use otlpprof_otlp::EncodeOptions;
use otlpprof_sampling::KernelFrames;
use otlpprof_sampling::perf_events::names::EventSpec;

use super::traced_methods::TracedMethods;

/// The clock of CPU samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuClock {
    /// `Perf` where it is granted with the kernel's time included, otherwise `Timer`.
    Auto,
    /// A perf_event_open clock for each thread, which counts the thread's CPU time.
    Perf,
    /// A POSIX timer for each thread, on the thread's CPU clock.
    Timer,
    /// The process-wide ITIMER_PROF.
    Itimer,
}

/// The part of threads' contexts that other processes can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextPublication {
    /// Other processes read no contexts.
    Off,
    /// Each thread's trace and span.
    Trace,
    /// Each thread's trace, span and attributes.
    Attributes,
}

/// The events of the JVM's own recorder that are merged into the profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedEvents {
    /// None; nothing is recorded.
    None,
    /// The events that have profiles of their own, except the events for which an engine runs.
    Usual,
    /// The events of this list.
    These(Vec<RequestedEvent>),
}

/// All options, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The CPU sampling interval, in CPU time of a thread; `None`: no CPU sampling.
    pub cpu: Option<Duration>,
    /// The wall-clock sampling interval; `None`: no wall-clock sampling.
    pub wall: Option<Duration>,
    /// The signal of wall-clock sampling.
    pub wall_signal: i32,
    /// The perf event by which threads are sampled; `None`: no such sampling.
    pub event: Option<EventSpec>,
    /// Whether the stacks of the perf event's samples have the kernel's frames.
    pub event_kernel: KernelFrames,
    /// The signal of the perf event's samples.
    pub event_signal: i32,
    /// The mean number of bytes between two sampled allocations; `None`: allocations are not sampled.
    pub alloc: Option<u64>,
    /// The mean number of allocated bytes between two objects that are tracked while they live; `None`: none
    /// is.
    pub live: Option<u64>,
    /// The shortest wait for a monitor or a lock that is recorded; `None`: none is.
    pub lock: Option<Duration>,
    /// The shortest wait for a notification that is recorded; `None`: none is.
    pub wait: Option<Duration>,
    /// The mean number of natively allocated bytes between two samples; `None`: native memory is not sampled.
    pub nativemem: Option<u64>,
    /// Whether sampled native memory that was not freed is reported.
    pub nativemem_leaks: bool,
    /// The number of exceptions of which one is sampled; `None`: none is.
    pub exceptions: Option<u64>,
    /// Whether exceptions are sampled where they are thrown, instead of where they are created.
    pub exceptions_thrown: bool,
    /// The events of the JVM's own recorder that are merged.
    pub recorded_events: RecordedEvents,
    /// The methods whose long calls are recorded.
    pub trace: Vec<TracedMethods>,
    /// The clock of CPU samples.
    pub cpu_clock: CpuClock,
    /// Whether stacks of CPU samples have the kernel's frames.
    pub cpu_kernel: bool,
    /// The signal that clocks send.
    pub signal: i32,
    /// The stack walker.
    pub stack_walker: StackWalker,
    /// The most frames of a stack.
    pub depth: usize,
    /// Whether native frames are left to the backend to symbolize.
    pub remotesym: bool,
    /// The folder in which debug files are installed; `None`: no debug file is used.
    pub debug_files: Option<PathBuf>,
    /// Whether names of hidden and generated classes leave out their numbers.
    pub normalise_class_names: bool,
    /// Names of context attributes, in the order of their slots; nine at most.
    pub context: Vec<String>,
    /// The part of threads' contexts that other processes can read.
    pub context_publication: ContextPublication,
    /// Whether other processes can read the contexts of virtual threads, too.
    pub publishes_virtual_threads: bool,
    /// Whether only threads that have registered themselves are sampled.
    pub filter: bool,
    /// The threads whose samples are kept, by name.
    pub threads: NameSelection,
    /// The samples that are kept, by the names of their frames.
    pub frames: NameSelection,
    /// The share of the processors' time that the profiler may use, in hundredths of a percent; `None`: no
    /// limit.
    pub budget: Option<u32>,
    /// The most samples a second of each engine whose samples come by events; `None`: no limit.
    pub limits: [Option<u32>; Engine::COUNT],
    /// The time from the start until sampling begins.
    pub delay: Duration,
    /// The duration of sampling; `None`: until the profiler is stopped.
    pub duration: Option<Duration>,
    /// The time between two profiles.
    pub interval: Duration,
    /// The time for which a file whose name has the time is written to; `None`: each profile has a file of
    /// its own.
    pub file_period: Option<Duration>,
    /// The encoding of profiles, in files and uploads alike.
    pub encode: EncodeOptions,
    /// The path of the file for profiles, with its %p, %t and %h not yet expanded.
    pub file: Option<String>,
    /// The collector that profiles are uploaded to. This or `file` is set, or both, unless a command reads
    /// the profiles along.
    pub upload: Option<UploadConfig>,
    /// Resource attributes that the user set, including `service.name` if set. Keys are unique.
    pub resource: Vec<(String, String)>,
    /// The most verbose level that is logged.
    pub log_level: LevelFilter,
    /// Whether a mistake in the options fails the JVM's start.
    pub strict: bool,
    /// Warnings for the user, one line each, that do not keep the agent from starting.
    pub warnings: Vec<String>,
}

impl Options {
    /// Whether profiles go neither to a file nor to a collector: only commands read them.
    pub const fn has_no_destination(&self) -> bool {
        self.file.is_none() && self.upload.is_none()
    }
}

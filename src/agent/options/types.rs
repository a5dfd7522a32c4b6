//! The options as the rest of the agent sees them: typed, checked and complete.

use std::time::Duration;

use log::LevelFilter;

use super::traced_methods::TracedMethods;
use crate::aggregate::NameSelection;
use crate::convert::RequestedEvent;
use crate::core::record::Engine;
pub use crate::core::stack_walker::StackWalker;
use crate::export::UploadConfig;
use crate::otlp::EncodeOptions;
use crate::sampling::KernelFrames;
use crate::sampling::perf_events::names::EventSpec;

/// How a CPU sample's clock is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuClock {
    /// perf where it is granted with the kernel's time included, else per-thread timers.
    Auto,
    /// A perf_event_open clock per thread, which counts its CPU time.
    Perf,
    /// A POSIX timer per thread, on the thread's CPU clock.
    Timer,
    /// The process-wide ITIMER_PROF.
    Itimer,
}

/// What other processes can learn of what threads work for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextPublication {
    /// Nothing.
    Off,
    /// Each thread's trace and span.
    Trace,
    /// Each thread's attributes too.
    Attributes,
}

/// Which events of the JVM's own recorder are merged into the profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedEvents {
    /// None; nothing is recorded.
    None,
    /// Those that have profiles, if no engine is there for them.
    Usual,
    /// These.
    These(Vec<RequestedEvent>),
}

/// Everything the agent can be told, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The CPU sampling interval, in CPU time of a thread; `None`: no CPU sampling.
    pub cpu: Option<Duration>,
    /// The wall-clock sampling interval; `None`: it is not sampled.
    pub wall: Option<Duration>,
    /// The signal of wall-clock sampling.
    pub wall_signal: i32,
    /// The perf event that threads are sampled by; `None`: they are not.
    pub event: Option<EventSpec>,
    /// Whether its stacks have the kernel's frames.
    pub event_kernel: KernelFrames,
    /// The signal of samples by that event.
    pub event_signal: i32,
    /// The mean number of bytes between two sampled allocations; `None`: allocations are not sampled.
    pub alloc: Option<u64>,
    /// The mean number of allocated bytes between two objects that are looked after while they live; `None`: none are.
    pub live: Option<u64>,
    /// The shortest wait for a monitor or a lock that is recorded; `None`: none is.
    pub lock: Option<Duration>,
    /// The shortest wait for a notification that is recorded; `None`: none is.
    pub wait: Option<Duration>,
    /// The mean number of natively allocated bytes between two samples; `None`: native memory is not sampled.
    pub nativemem: Option<u64>,
    /// Whether it is told what of native memory was not freed.
    pub nativemem_leaks: bool,
    /// Of how many exceptions one is sampled; `None`: none is.
    pub exceptions: Option<u64>,
    /// Whether those are the ones that are thrown, instead of those that are made.
    pub exceptions_thrown: bool,
    /// The events that the JVM's own recorder has to offer.
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
    /// Whether names of hidden and generated classes leave out what numbers them.
    pub normalise_class_names: bool,
    /// Names of context attributes, in the order of their slots; nine at most.
    pub context: Vec<String>,
    /// What outside readers find of threads' contexts.
    pub context_publication: ContextPublication,
    /// Whether they find those of virtual threads.
    pub publishes_virtual_threads: bool,
    /// Whether only threads that have registered themselves are sampled.
    pub filter: bool,
    /// Which threads' samples are kept, by name.
    pub threads: NameSelection,
    /// Which samples are kept, by the names of their frames.
    pub frames: NameSelection,
    /// How much of the processors' time the profiler may use, in hundredths of a percent; `None`: any.
    pub budget: Option<u32>,
    /// The most samples a second of each engine whose samples come one by one; `None`: as many as there are.
    pub limits: [Option<u32>; Engine::COUNT],
    /// How long after the start sampling begins.
    pub delay: Duration,
    /// How long is sampled; `None`: until the profiler is stopped.
    pub duration: Option<Duration>,
    /// How often profiles leave.
    pub interval: Duration,
    /// How long a file whose name has the time is written to; `None`: each profile has a file of its own.
    pub file_period: Option<Duration>,
    /// How profiles are encoded, in files and uploads alike.
    pub encode: EncodeOptions,
    /// The path that profiles are written to, with its %p, %t and %h not yet expanded.
    pub file: Option<String>,
    /// The collector that profiles are uploaded to. At least one of this and `file` is there.
    pub upload: Option<UploadConfig>,
    /// Resource attributes that the user set, `service.name` among them where it is; keys are unique.
    pub resource: Vec<(String, String)>,
    /// The most talkative level that is logged.
    pub log_level: LevelFilter,
    /// Whether a mistake in the options fails the JVM's start.
    pub strict: bool,
    /// What the user should know, one line each, and what does not keep the agent from starting.
    pub warnings: Vec<String>,
}

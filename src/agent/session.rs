//! One run of the profiler: drains samples, and at each interval's end makes and sends profiles.

mod announcement;
mod cpu_clock;
mod drain;
mod held_signals;
mod interval_end;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jni::sys::JNIEnv;
use parking_lot::Mutex;
use thiserror::Error;

pub(super) use self::cpu_clock::{check_clock, clock_choice};
use self::drain::Drain;
use self::interval_end::IntervalStart;
use super::budget::Budget;
use super::counters::{Recorded, Snapshot};
use super::engines;
use super::events::Events;
use super::first_upload::first_interval;
use super::lifecycle;
use super::native_frames::NativeFrames;
use super::native_thread_names::NativeThreadNames;
use super::objects::Objects;
use super::options::Options;
use super::output::{EncodeStats, Output, OutputError};
use super::publication;
use super::recording::Recording;
use super::resolve::FrameResolver;
use super::resource;
use super::thread_labels::{IntervalLabels, ThreadLabels};
use super::thread_names::ThreadLabel;
use super::thread_renames;
use super::vm::{STUBS, Vm};
use crate::aggregate::{Aggregator, ObjectCounts, Survivors};
use crate::context::reclaim;
use crate::context::slot_names::{SLOT_NAMES, SlotNameError};
use crate::core::engine::Engine;
use crate::core::stack_walker::StackWalker;
use crate::elf::loader_list::{LoadCounts, load_counts};
use crate::jvm::methods::{MethodTable, MethodTableLimits};
use crate::model::Resource;
use crate::sampling::wall::{self, WallConfig};
use crate::sampling::{KernelFrames, cpu, join_kernel_readers, own_threads, perf_events};
use crate::signal::buffer::{self, SampleBuffer};
use crate::signal::rate_limit::LIMITS;
use crate::signal::safe_load::ProcessMemory;
use crate::signal::sample::{self, SETUP};

/// The longest time that records wait in the buffer. They are drained earlier if a half of a strip is half
/// full.
const DRAIN_PERIOD: Duration = Duration::from_millis(250);

/// The least number of rounds of the wall-clock sampler in an interval, if there are not too many threads.
const ROUNDS_PER_INTERVAL: u32 = 4;

/// The longest time that a profile of many messages may wait for room in the upload's queue.
const LONGEST_FLUSH: Duration = Duration::from_secs(10);

/// The reasons for which a session does not start.
#[derive(Debug, Error)]
pub(super) enum SessionError {
    #[error("the handler for invalid memory accesses cannot be installed: {0}")]
    Faults(std::io::Error),
    #[error("no memory for the sample buffer: {0}")]
    Buffer(std::io::Error),
    #[error("the profiler's thread cannot be started: {0}")]
    Thread(std::io::Error),
    #[error("the VM does not let the agent attach a thread")]
    Attach,
    #[error("context={0}: {1}")]
    Context(String, SlotNameError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("CPU sampling: {0}")]
    Cpu(#[from] cpu::StartError),
}

/// A running session.
pub(super) struct ProfilingSession {
    options: Options,
    vm: &'static Vm,
    buffer: &'static SampleBuffer,
    objects: Arc<Objects>,
    native_frames: NativeFrames,
    drain: Mutex<Drain>,
    budget: Mutex<Budget>,
    pub(super) labels: ThreadLabels,
    native_names: NativeThreadNames,
    pub(super) events: Events,
    recording: Recording,
    output: Output,
    resource: Resource,
    /// Samples of earlier intervals whose memory or objects are still allocated.
    survivors: Mutex<Survivors>,
    /// Guards whole flushes: one at a time.
    interval: Mutex<IntervalStart>,
    counters_at_start: Snapshot,
    /// The name of the clock of CPU samples.
    clock: OnceLock<&'static str>,
    cpu: Mutex<Option<cpu::CpuSampling>>,
    wall: Mutex<Option<wall::WallSampling>>,
    event: Mutex<Option<perf_events::EventSampling>>,
    /// Set while a thread waits to stop the session.
    stop_requested: AtomicBool,
    stopping: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
    started: Instant,
}

impl ProfilingSession {
    /// Starts to sample. The VM is live. `drains` is called before the first sample: from then on all drains
    /// of the buffer go through this session, even if starting it fails afterwards.
    pub(super) fn start(
        vm: &'static Vm,
        mut options: Options,
        drains: impl FnOnce(&Arc<Self>),
    ) -> Result<Arc<Self>, SessionError> {
        held_signals::turn_off(&mut options);
        cpu_clock::turn_off_if_refused(&mut options)?;
        name_slots(&options.context)?;
        let output = Output::new(&options)?;
        let buffer = buffer::create().map_err(SessionError::Buffer)?;
        let objects = Objects::start(buffer, is_sampling(&options)).map_err(SessionError::Thread)?;
        SETUP.depth.store(options.depth, Ordering::Relaxed);
        options.stack_walker = vm.walker(options.stack_walker);
        SETUP.walker.store(options.stack_walker as u8, Ordering::Relaxed);
        vm.set_call_trace(options.stack_walker);
        SETUP.filter.store(options.filter, Ordering::Relaxed);
        SETUP.remote.store(options.remotesym, Ordering::Relaxed);
        if let Some(layout) = vm.layout() {
            SETUP.vm.store(std::ptr::from_ref(layout).cast_mut(), Ordering::Release);
        }
        let methods = vm.layout().map(|layout| MethodTable::new(layout.method, MethodTableLimits::default()));
        let resolver = FrameResolver {
            methods,
            method_names: vm.method_names(),
            stubs: &STUBS,
            normalise_class_names: options.normalise_class_names,
            unknown_methods: 0,
        };
        let mut aggregator = Aggregator::new(options.encode.timestamps);
        let LoadCounts { loaded, unloaded } = load_counts();
        aggregator.sampled_since(ObjectCounts { loaded, unloaded });
        let drain = Drain {
            options: options.clone(),
            aggregator,
            resolver,
            recorded: Recorded::default(),
            is_over: false,
        };
        for engine in Engine::ALL {
            LIMITS.set(engine, options.limits[engine as usize]);
        }
        let events = Events::default();
        let counters =
            Snapshot::now(Recorded::default(), events.counts(), EncodeStats::default(), None, None);
        let interval = IntervalStart { monotonic_ns: monotonic_ns(), counters: counters.clone() };
        let resource = resource::detect(&vm.properties(), &options.resource);
        if let Some(line) = resource::warning(&resource) {
            log::warn!("{line}");
        }
        let session = Arc::new(Self {
            resource,
            vm,
            buffer,
            native_frames: NativeFrames::new(objects.clone(), options.remotesym),
            objects,
            drain: Mutex::new(drain),
            budget: Mutex::new(Budget::new(
                options.budget.map(|hundredths| f64::from(hundredths) / 10_000.0),
                options.interval,
            )),
            labels: ThreadLabels::default(),
            native_names: NativeThreadNames::default(),
            events,
            recording: Recording::default(),
            output,
            survivors: Mutex::default(),
            interval: Mutex::new(interval),
            counters_at_start: counters,
            clock: OnceLock::new(),
            cpu: Mutex::new(None),
            wall: Mutex::new(None),
            event: Mutex::new(None),
            stop_requested: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            thread: Mutex::new(None),
            started: Instant::now(),
            options,
        });
        drains(&session);
        session.sample().inspect_err(|_| {
            engines::stop(session.vm);
            thread_renames::stop(session.vm);
            session.recording.stop(Instant::now() + LONGEST_FLUSH);
            drop(session.wall.lock().take());
            drop(session.event.lock().take());
            drop(session.cpu.lock().take());
            session.vm.unset_call_trace();
            session.drain.lock().is_over = true;
            session.objects.stop();
            session.objects.join();
            session.recording.join();
            join_kernel_readers();
        })?;
        publication::begin(session.vm, &session.options, &session.resource);
        log::info!("{}", session.start_line());
        Ok(session)
    }

    /// The line in the log that describes the session.
    fn start_line(&self) -> String {
        let mut options = self.options.clone();
        // Engines that were refused at their start, which has been logged.
        options.wall.take_if(|_| self.wall.lock().is_none());
        options.event.take_if(|_| self.event.lock().is_none());
        announcement::start_line(&options, self.clock.get().copied())
    }

    /// Arms the clocks, starts the engines, and starts to drain.
    fn sample(self: &Arc<Self>) -> Result<(), SessionError> {
        if let Some(event) = &self.options.event {
            // This precedes the registration of threads, each of which then gets the event.
            let (signal, kernel_frames) = (self.options.event_signal, kernel_frames(&self.options));
            match perf_events::start(event, kernel_frames, signal, sample::take_event) {
                Ok(session) => *self.event.lock() = Some(session),
                Err(refusal) => log::warn!("event={} is off: {refusal}", event.name),
            }
        }
        if is_sampling(&self.options) {
            let cpu = cpu::start(&cpu_clock::config(&self.options), sample::take_cpu)?;
            if let Some(clock) = cpu.clock() {
                let _ = self.clock.set(clock.name());
            }
            *self.cpu.lock() = Some(cpu);
        }
        self.vm.note_existing_threads();
        if is_sampling(&self.options) {
            thread_renames::start(self.vm);
        }
        if let Some(interval) = self.options.wall {
            SETUP.wall_interval_ns.store(interval.as_nanos() as u64, Ordering::Relaxed);
            let longest_round = self.options.interval / ROUNDS_PER_INTERVAL;
            let config = WallConfig { interval, signal: self.options.wall_signal, longest_round };
            match wall::start(&config, sample::take_wall) {
                Ok(session) => *self.wall.lock() = Some(session),
                Err(error) => log::warn!("wall is off: {error}"),
            }
        }
        engines::start(self.vm, &self.options);
        self.recording.start(self.vm, &self.options);
        self.collection_starts();
        let running = self.clone();
        let thread = own_threads::spawn("otlpprof", move || running.run()).map_err(SessionError::Thread)?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    /// The body of the session's own thread: drains, and flushes at each interval's end.
    fn run(&self) {
        let env = self.vm.attach_as_daemon(c"otlpprof");
        let first = first_interval(self.options.interval);
        log::debug!("the first profile comes after {first:?}");
        let mut next = Instant::now() + first;
        let end = self.options.duration.and_then(|duration| Instant::now().checked_add(duration));
        while !self.stopping.load(Ordering::Acquire) {
            let now = Instant::now();
            if end.is_some_and(|end| end <= now) {
                self.has_run_its_time(env);
                break;
            }
            let until_flush = end.map_or(next, |end| end.min(next)).saturating_duration_since(now);
            self.buffer.drain_bell.wait(until_flush.min(DRAIN_PERIOD));
            self.drain_now();
            self.native_names.scan();
            let unnamed = self.drain.lock().aggregator.new_unnamed_frames();
            self.native_frames.find(unnamed);
            if self.stopping.load(Ordering::Acquire) {
                break;
            }
            let has_new_stretch = self.budget.lock().compare();
            if has_new_stretch {
                engines::stretched(self.vm);
            }
            reclaim::reclaim_if_crowded(|| self.drain_now());
            self.sweep(env, false);
            if Instant::now() >= next && !self.stopping.load(Ordering::Acquire) {
                publication::withdraw_if_contested(self.vm);
                self.flush(env);
                next = (next + self.options.interval).max(Instant::now());
            }
        }
        if env.is_some() {
            self.vm.detach();
        }
    }

    /// Ends the session after its `duration`. Runs in the session's own thread.
    fn has_run_its_time(&self, env: Option<*mut JNIEnv>) {
        let Some(agent) = lifecycle::agent() else { return };
        if agent.end_session(self, env) {
            self.objects.join();
            self.recording.join();
            join_kernel_readers();
            log::info!("stopped: profiled for {:?}, as `duration` requests", self.started.elapsed());
        }
    }

    /// Takes all samples out of the buffer.
    pub(super) fn drain_now(&self) {
        // Read before the drain's lock is taken: the start of a collection waits for that lock, and reading
        // the counts may wait for the dynamic linker's lock, which another thread may hold.
        let loads = load_counts();
        self.drain.lock().drain(self.buffer, loads);
        self.recording.take_changes();
    }

    /// Wakes the session's thread, so that it drains.
    pub(super) fn ring_drain_bell(&self) {
        self.buffer.drain_bell.ring();
    }

    /// Handles a native method that is about to be bound. It may be the first of its library.
    pub(super) fn native_method_is_bound(&self) {
        self.objects.native_method_is_bound();
    }

    /// Drains where a collection begins, at a safepoint: until then references in the buffer mean what they
    /// meant when they were sampled; afterwards they may not. Also called when an engine has changed classes,
    /// whose former methods will be freed.
    pub(super) fn collection_starts(&self) {
        // Method ids survive collections, and naming them may wait for a safepoint: so nothing is done here.
        if self.vm.names_by_ids() {
            return;
        }
        let mut drain = self.drain.lock();
        drain.take_samples(self.buffer);
        drain.aggregator.forget_java_frames();
        if let Some(methods) = &mut drain.resolver.methods {
            methods.advance_epoch();
        }
    }

    /// Ends the interval and sends its profile.
    pub(super) fn flush(&self, env: Option<*mut JNIEnv>) {
        let interval_start = self.interval.lock();
        // If the session has ended while this thread waited for the lock, there is nothing to send.
        if self.stopping.load(Ordering::Acquire) {
            return;
        }
        self.sweep(env, true);
        let labels = self.thread_labels(env);
        // The longest time for which a profile of many messages may delay the next one. It does not delay the
        // session's end.
        let patience = (self.options.interval / 2).min(LONGEST_FLUSH);
        self.end_interval(interval_start, labels, patience, || !self.stop_requested.load(Ordering::Acquire));
    }

    /// Returns the threads' names. Calls the VM, which may wait for a safepoint, so the drain's lock must not
    /// be held. Threads are identified by the sampling engine's records, so it must not have stopped yet.
    fn thread_labels(&self, env: Option<*mut JNIEnv>) -> IntervalLabels {
        let java = self.labels.of_interval(self.live_threads(env));
        let java_names = java.values().map(|label| label.name.as_str());
        let native = self.native_names.of_interval(java_names, |incarnation| java.contains_key(&incarnation));
        IntervalLabels { java, native }
    }

    /// Checks which sampled objects are still alive.
    fn sweep(&self, env: Option<*mut JNIEnv>, at_once: bool) {
        if let Some(env) = env {
            // SAFETY: `env` is the current thread's; the drain's lock, which is needed in safepoints, is not
            // held.
            unsafe { engines::sweep(self.vm, &self.options, env, at_once) };
        }
    }

    fn live_threads(&self, env: Option<*mut JNIEnv>) -> HashMap<i32, ThreadLabel> {
        let (Some(env), Some(names), Some(layout)) = (env, self.vm.names(), self.vm.layout()) else {
            return Default::default();
        };
        // SAFETY: `env` is the current thread's environment.
        let named = unsafe { names.list(self.vm.jvmti, env, &ProcessMemory, &layout.thread) };
        match named {
            Ok(threads) => threads
                .into_iter()
                .map(|thread| (thread.os_tid, ThreadLabel { name: thread.name, id: thread.thread_id }))
                .collect(),
            Err(error) => {
                log::debug!("names of threads cannot be read: {error}");
                Default::default()
            }
        }
    }

    /// Stops sampling, sends pending messages within the time limit, and signals the session's threads to
    /// end.
    pub(super) fn stop(&self, env: Option<*mut JNIEnv>, within: Duration) {
        self.stop_requested.store(true, Ordering::Release);
        publication::end(self.vm);
        let interval_start = self.interval.lock();
        let labels = self.thread_labels(env);
        // No thread takes a sample of itself after this.
        engines::stop(self.vm);
        // Engines restore traced classes one by one; the time for that does not count against the time to
        // send.
        let deadline = Instant::now() + within;
        self.sweep(env, true);
        self.collection_starts();
        drop(self.wall.lock().take());
        drop(self.event.lock().take());
        if let Some(cpu) = self.cpu.lock().take() {
            cpu.stop();
        }
        thread_renames::stop(self.vm);
        self.recording.stop(deadline);
        self.vm.unset_call_trace();
        self.stopping.store(true, Ordering::Release);
        self.buffer.drain_bell.ring();
        self.end_interval(interval_start, labels, within, || true);
        // From here on the buffer belongs to the next session.
        self.drain.lock().is_over = true;
        // SAFETY: `env` is the current thread's; the drain's lock, which is needed in safepoints, is not
        // held.
        unsafe { engines::forget(self.vm, &self.options, env) };
        self.output.shutdown(deadline.saturating_duration_since(Instant::now()));
        self.objects.stop();
        let counters = self.counters(self.drain.lock().recorded);
        let counts = counters.since(&self.counters_at_start);
        log::info!("{}", announcement::end_line(&self.options, self.started.elapsed(), &counts));
        log::debug!("{}", as_text(&counts));
    }

    /// Waits until the session's threads have ended. Must not be called in the VM's death, during which a
    /// thread that enters the VM never returns.
    pub(super) fn join(&self) {
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
        self.objects.join();
        self.recording.join();
        join_kernel_readers();
    }

    /// Describes the session in one line.
    pub(super) fn status(&self) -> String {
        let clock = self.clock.get().unwrap_or(&"off");
        let walker = self.options.stack_walker.name();
        let elapsed = self.started.elapsed();
        format!("profiling for {elapsed:?}, cpu clock {clock}, stack walker {walker}; {}", self.summary())
    }

    fn counters(&self, recorded: Recorded) -> Snapshot {
        let recorded = Recorded {
            used: self.budget.lock().used(),
            unknown_objects: self.native_frames.unknown_objects(),
            ..recorded
        };
        let output = &self.output;
        let (upload, file) = (output.upload_stats(), output.file_stats());
        let reported = self.events.counts().into_iter().chain(self.recording.counts());
        Snapshot::now(recorded, reported, output.encode_stats(), upload.as_ref(), file.as_ref())
    }

    fn summary(&self) -> String {
        let counters = self.counters(self.drain.lock().recorded);
        as_text(&counters.since(&self.counters_at_start))
    }
}

/// The counters as `NAME=COUNT`, without the names' common prefix.
fn as_text(counts: &[(&str, u64)]) -> String {
    let text = |(name, count): &(&str, u64)| format!("{}={count}", name.trim_start_matches("otlpprof."));
    counts.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// Whether any engine takes samples, so that threads and loaded objects must be known.
fn is_sampling(options: &Options) -> bool {
    options.cpu.is_some()
        || options.wall.is_some()
        || options.event.is_some()
        || engines::are_asked_for(options)
}

/// Assigns slots to context attributes. The two parts of the link have no slots.
fn name_slots(names: &[String]) -> Result<(), SessionError> {
    let of_slots = names.iter().filter(|name| !["traceid", "spanid"].contains(&name.as_str()));
    let of_slots: Vec<_> = of_slots.collect();
    SLOT_NAMES.slots_of(&of_slots).map(drop).map_err(|error| SessionError::Context(names.join("+"), error))
}

/// Whether stacks of the perf event have the kernel's frames, as far as the kernel permits it.
fn kernel_frames(options: &Options) -> KernelFrames {
    if options.stack_walker == StackWalker::No { KernelFrames::Off } else { options.event_kernel }
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Returns the monotonic time in ns, and the difference to add to it for Unix time.
fn clocks() -> (u64, i64) {
    let monotonic = monotonic_ns();
    (monotonic, clock_ns(libc::CLOCK_REALTIME) as i64 - monotonic as i64)
}

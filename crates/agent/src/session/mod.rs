//! One run of the profiler: drains samples, and at each interval's end makes and sends profiles.
//!
//! | Module | Duty |
//! |---|---|
//! | `running_threads` | the threads that work for a session until it ends |
//! | `label_collector` | collects the names of the sampled threads |
//! | `clocks` | the monotonic clock and the time of day at one moment |
//! | `drain` | the move of samples from the buffer to the interval's sums |
//! | `interval_end` | the end of an interval: its sums become profiles, which are sent |
//! | `announcement` | the lines at a session's start and end |

mod announcement;
mod clocks;
mod drain;
mod interval_end;
mod label_collector;
mod running_threads;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use jni::sys::JNIEnv;
use otlpprof_context::reclaim;
use otlpprof_context::slot_names::{SLOT_NAMES, SlotNameError};
use otlpprof_core::engine::Engine;
use otlpprof_export::answer::SessionState;
use otlpprof_export::stream::Readers;
use otlpprof_options::{Options, RecordedEvents};
use otlpprof_sampling::{cpu, own_threads, refusals};
use otlpprof_signal::buffer;
use otlpprof_signal::rate_limit::LIMITS;
use otlpprof_signal::sample::SETUP;
use parking_lot::Mutex;
use thiserror::Error;

use self::drain::Drain;
use self::interval_end::IntervalEnd;
use self::label_collector::LabelCollector;
use self::running_threads::RunningThreads;
use super::engines::{self, description, is_any_enabled};
use super::events::ProgramEvent;
use super::first_upload::first_interval;
use super::guards::{Guard, Guards};
use super::logging;
use super::objects::Objects;
use super::output::{Output, OutputError};
use super::publication;
use super::resource;
use super::thread_names::ThreadLabel;
use super::vm::Vm;

/// The longest time that records wait in the buffer. They are drained earlier if a half of a strip is half
/// full.
const DRAIN_PERIOD: Duration = Duration::from_millis(250);

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

/// Ends the session that calls it, in the session's own thread, and returns whether the session has not been
/// ended before.
pub(super) type EndSession = fn(&ProfilingSession, Option<*mut JNIEnv>) -> bool;

/// A running session.
pub(super) struct ProfilingSession {
    options: Arc<Options>,
    vm: &'static Vm,
    drain: Drain,
    labels: LabelCollector,
    interval_end: IntervalEnd,
    threads: RunningThreads,
    /// Stop sampling when they are dropped.
    guards: Mutex<Guards>,
    /// Called after the session's `duration`.
    end: EndSession,
    /// Set while a thread waits to stop the session.
    stop_requested: AtomicBool,
    stopping: AtomicBool,
    started: Instant,
    started_unix_ms: u64,
    /// The engines that were refused when the session began.
    refused: OnceLock<Vec<Engine>>,
}

impl ProfilingSession {
    /// Starts to sample. The VM is live. `drains` is called before the first sample: from then on all drains
    /// of the buffer go through this session, even if starting it fails afterwards. `end` is called after the
    /// session's `duration`.
    pub(super) fn start(
        vm: &'static Vm,
        mut options: Options,
        drains: impl FnOnce(&Arc<Self>),
        end: EndSession,
    ) -> Result<Arc<Self>, SessionError> {
        engines::turn_off_held(&mut options);
        engines::turn_off_if_refused(&mut options)?;
        name_slots(&options.context)?;
        let output = Output::new(&options)?;
        let buffer = buffer::create().map_err(SessionError::Buffer)?;
        let objects = Objects::start(buffer, is_any_enabled(&options), options.debug_files.clone());
        let objects = objects.map_err(SessionError::Thread)?;
        options.stack_walker = vm.walker(options.stack_walker);
        let mut guards = Guards::default();
        vm.set_call_trace(options.stack_walker);
        guards.push(Guard::new(move || vm.unset_call_trace()));
        set_up_handlers(vm, &options);
        let resource = resource::detect(&vm.properties(), &options.resource);
        if let Some(line) = resource::warning(&resource) {
            log::warn!("{line}");
        }
        let options = Arc::new(options);
        let drain = Drain::new(vm, buffer, options.clone());
        let threads = RunningThreads::new(objects.clone());
        let recording = threads.recording.clone();
        let session = Arc::new(Self {
            interval_end: IntervalEnd::new(options.clone(), objects, recording, output, resource),
            options,
            vm,
            drain,
            labels: LabelCollector::new(vm),
            threads,
            guards: Mutex::new(guards),
            end,
            stop_requested: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            started: Instant::now(),
            started_unix_ms: logging::unix_ms(),
            refused: OnceLock::new(),
        });
        drains(&session);
        let refused = session.sample().inspect_err(|_| {
            session.tear_down(None, LONGEST_FLUSH, || ());
            session.threads.join_others();
        })?;
        publication::begin(session.vm, &session.options, session.interval_end.resource());
        let _ = session.refused.set(refused);
        logging::announce(&session.start_line());
        Ok(session)
    }

    /// The line in the log that describes the session. The log has named the refused engines already.
    fn start_line(&self) -> String {
        announcement::start_line(&self.options_in_effect(), engines::clock_name())
    }

    /// The options, without the engines that were refused, and without a recording that cannot go on.
    fn options_in_effect(&self) -> Options {
        let mut options = Options::clone(&self.options);
        for engine in self.refused.get().into_iter().flatten() {
            (description(*engine).turn_off)(&mut options);
        }
        if self.threads.recording.is_off() {
            options.recorded_events = RecordedEvents::None;
        }
        options
    }

    /// Starts the engines and the recording, and starts to drain. Returns the engines that were refused.
    fn sample(self: &Arc<Self>) -> Result<Vec<Engine>, SessionError> {
        refusals::forget();
        let refused = engines::start(self.vm, &self.options, &mut self.guards.lock())?;
        self.threads.recording.start(self.vm, &self.options);
        self.drain.collection_starts();
        let running = self.clone();
        let thread = own_threads::spawn("otlpprof", move || running.run()).map_err(SessionError::Thread)?;
        self.threads.set_own(thread);
        Ok(refused)
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
                self.end_after_duration(env);
                break;
            }
            let until_flush = end.map_or(next, |end| end.min(next)).saturating_duration_since(now);
            let until_message = self.interval_end.readers().tend().unwrap_or(DRAIN_PERIOD);
            if self.is_abandoned() {
                self.end_without_readers(env);
                break;
            }
            self.drain.wait(until_flush.min(until_message).min(DRAIN_PERIOD));
            self.drain_now();
            self.labels.native.scan();
            self.interval_end.native_frames.find(self.drain.new_unnamed_frames());
            if self.stopping.load(Ordering::Acquire) {
                break;
            }
            let has_new_stretch = self.interval_end.budget.lock().compare();
            if has_new_stretch {
                engines::stretched(self.vm);
            }
            reclaim::reclaim_if_crowded(|| self.drain_now());
            self.sweep(env, false);
            if Instant::now() >= next && !self.stopping.load(Ordering::Acquire) {
                publication::withdraw_if_contested(self.vm);
                self.flush(env);
                next = (next + self.options.interval).max(Instant::now());
            } else if self.interval_end.readers().note_due() {
                self.interval_end.send_so_far(&self.drain, self.labels.so_far(env));
            }
        }
        if env.is_some() {
            self.vm.detach();
        }
    }

    /// Ends the session after its `duration`. Runs in the session's own thread.
    fn end_after_duration(&self, env: Option<*mut JNIEnv>) {
        if (self.end)(self, env) {
            self.threads.join_others();
            log::info!("stopped: profiled for {:?}, as `duration` requests", self.started.elapsed());
        }
    }

    /// Whether readers were the session's only destination, and all of them are gone.
    fn is_abandoned(&self) -> bool {
        self.options.has_no_destination() && self.interval_end.readers().have_gone()
    }

    /// Ends a session that nobody reads. Runs in the session's own thread.
    fn end_without_readers(&self, env: Option<*mut JNIEnv>) {
        if (self.end)(self, env) {
            self.threads.join_others();
            log::info!("stopped: no command reads the profiles any more");
        }
    }

    /// The commands that read the profiles so far.
    pub(super) const fn readers(&self) -> &Readers {
        self.interval_end.readers()
    }

    /// Takes all samples out of the buffer.
    pub(super) fn drain_now(&self) {
        self.drain.drain();
        self.threads.recording.take_changes();
    }

    /// Wakes the session's thread, so that it drains.
    pub(super) fn ring_drain_bell(&self) {
        self.drain.ring();
    }

    /// Handles a native method that is about to be bound. It may be the first of its library.
    pub(super) fn native_method_is_bound(&self) {
        self.threads.objects.native_method_is_bound();
    }

    /// Drains where a collection begins, at a safepoint.
    pub(super) fn collection_starts(&self) {
        self.drain.collection_starts();
    }

    /// Remembers the name of a thread that ends.
    pub(super) fn thread_ended(&self, java_incarnation: u32, label: ThreadLabel) {
        self.labels.java.ended(java_incarnation, label);
    }

    /// Records an event that the program reports, and its time. Returns `false` if there is no room for it.
    pub(super) fn record_event(&self, event: ProgramEvent, time_ns: i64) -> bool {
        self.interval_end.events.record(event, time_ns)
    }

    /// Ends the interval and sends its profile.
    pub(super) fn flush(&self, env: Option<*mut JNIEnv>) {
        let interval_start = self.interval_end.lock();
        // If the session has ended while this thread waited for the lock, there is nothing to send.
        if self.stopping.load(Ordering::Acquire) {
            return;
        }
        self.sweep(env, true);
        let labels = self.labels.of_interval(env);
        // The longest time for which a profile of many messages may delay the next one. It does not delay the
        // session's end.
        let patience = (self.options.interval / 2).min(LONGEST_FLUSH);
        let may_wait = || {
            self.drain_now();
            !self.stop_requested.load(Ordering::Acquire)
        };
        self.interval_end.run(interval_start, &self.drain, labels, patience, may_wait);
    }

    /// Checks which sampled objects are still alive.
    fn sweep(&self, env: Option<*mut JNIEnv>, at_once: bool) {
        if let Some(env) = env {
            // SAFETY: `env` belongs to the current thread; the drain's lock, which is needed in safepoints,
            // is not held.
            unsafe { engines::sweep(self.vm, &self.options, env, at_once) };
        }
    }

    /// Stops sampling, sends pending messages within the time limit, and signals the session's threads to
    /// end.
    pub(super) fn stop(&self, env: Option<*mut JNIEnv>, within: Duration) {
        self.stop_requested.store(true, Ordering::Release);
        publication::end(self.vm);
        let interval_start = self.interval_end.lock();
        let labels = self.labels.of_interval(env);
        self.tear_down(env, within, || {
            let may_wait = || {
                self.drain_now();
                true
            };
            self.interval_end.run(interval_start, &self.drain, labels, within, may_wait);
        });
        let counters = self.interval_end.counters(self.drain.recorded());
        let counts = counters.since(self.interval_end.counters_at_start());
        logging::announce(&announcement::end_line(&self.options, self.started.elapsed(), &counts));
        if let Some(line) = announcement::nothing_taken(&self.options, &counts, refusals::first) {
            log::warn!("{line}");
        }
        log::debug!("{}", as_text(&counts));
    }

    /// Stops sampling, calls `last_interval`, sends pending messages within the time limit, and signals the
    /// session's threads to end.
    fn tear_down(&self, env: Option<*mut JNIEnv>, within: Duration, last_interval: impl FnOnce()) {
        // No sample is taken after this.
        self.guards.lock().stop();
        // Engines restore traced classes one by one; the time for that does not count against the time to
        // send.
        let deadline = Instant::now() + within;
        self.sweep(env, true);
        self.drain.collection_starts();
        self.threads.recording.stop(deadline);
        self.stopping.store(true, Ordering::Release);
        self.drain.ring();
        last_interval();
        self.drain.end();
        // SAFETY: `env` belongs to the current thread; the drain's lock, which is needed in safepoints, is
        // not held.
        unsafe { engines::forget(self.vm, &self.options, env) };
        self.interval_end.shutdown(deadline.saturating_duration_since(Instant::now()));
        self.threads.objects.stop();
    }

    /// Waits until the session's threads have ended. Must not be called in the VM's death, during which a
    /// thread that enters the VM never returns.
    pub(super) fn join(&self) {
        self.threads.join();
    }

    /// Describes the session for another process.
    pub(super) fn state(&self) -> SessionState {
        let options = self.options_in_effect();
        let counters = self.interval_end.counters(self.drain.recorded());
        let counts = counters.since(self.interval_end.counters_at_start());
        SessionState {
            started_unix_ms: self.started_unix_ms,
            elapsed_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            engines: announcement::engines(&options),
            stack_walker: self.options.stack_walker.name().to_owned(),
            cpu_clock: engines::clock_name().map(str::to_owned),
            destinations: announcement::destinations(&options),
            counters: counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
        }
    }

    /// Describes the session in one line.
    pub(super) fn status(&self) -> String {
        let clock = engines::clock_name().unwrap_or("off");
        let walker = self.options.stack_walker.name();
        let elapsed = self.started.elapsed();
        let counters = self.interval_end.counters(self.drain.recorded());
        let counts = as_text(&counters.since(self.interval_end.counters_at_start()));
        format!("profiling for {elapsed:?}, cpu clock {clock}, stack walker {walker}; {counts}")
    }
}

/// Passes the options on to the signal handlers.
fn set_up_handlers(vm: &Vm, options: &Options) {
    SETUP.depth.store(options.depth, Ordering::Relaxed);
    SETUP.walker.store(options.stack_walker as u8, Ordering::Relaxed);
    SETUP.filter.store(options.filter, Ordering::Relaxed);
    SETUP.remote.store(options.remotesym, Ordering::Relaxed);
    if let Some(layout) = vm.layout() {
        SETUP.vm.store(std::ptr::from_ref(layout).cast_mut(), Ordering::Release);
    }
    for engine in Engine::ALL {
        LIMITS.set(engine, options.limits[engine as usize]);
    }
}

/// Assigns slots to context attributes. The two parts of the link have no slots.
fn name_slots(names: &[String]) -> Result<(), SessionError> {
    let of_slots = names.iter().filter(|name| !["traceid", "spanid"].contains(&name.as_str()));
    let of_slots: Vec<_> = of_slots.collect();
    SLOT_NAMES.slots_of(&of_slots).map(drop).map_err(|error| SessionError::Context(names.join("+"), error))
}

/// The counters as `NAME=COUNT`, without the names' common prefix.
fn as_text(counts: &[(&str, u64)]) -> String {
    let text = |(name, count): &(&str, u64)| format!("{}={count}", name.trim_start_matches("otlpprof."));
    counts.iter().map(text).collect::<Vec<_>>().join(" ")
}

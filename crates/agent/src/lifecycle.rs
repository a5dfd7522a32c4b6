//! Start, stop, flush and status, requested by the JVM's start, by a repeated load, by Java or by the JVM's
//! end.

use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use jni::sys::{JNIEnv, JavaVM};
use otlpprof_context::reclaim;
use otlpprof_core::collections::COLLECTIONS;
use otlpprof_jvm::jvmti::{Capability, Jvmti, Phase};
use otlpprof_jvm::jvmti_error::JvmtiError;
use otlpprof_jvm::jvmti_events::{EventCallbacks, JvmtiEvent};
use otlpprof_jvm::jvmti_table::Capabilities;
use otlpprof_jvm::live_phase;
use otlpprof_options::{Options, Request};
use otlpprof_sampling::own_threads;
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
use thiserror::Error;

use super::engines;
use super::logging;
use super::mounts::{self, MountCallbacks};
use super::other_copy;
use super::output::Output;
use super::session::{ProfilingSession, SessionError};
use super::vm::Vm;

/// The longest time for which the end of a session, or of the JVM, waits for pending messages to be sent.
const LONGEST_WAIT_AT_EXIT: Duration = Duration::from_secs(3);

/// The status without a session.
pub(super) const NOT_PROFILING: &str = "not profiling";

/// The functions that the VM calls.
pub(super) struct VmCallbacks {
    pub(super) events: EventCallbacks,
    pub(super) mounts: MountCallbacks,
    /// Called before and after classes are redefined.
    pub(super) redefinition: fn(),
}

/// A session that has not yet begun.
struct PendingSession {
    options: Options,
    /// The number of this pending session since the process began.
    number: u64,
}

impl PendingSession {
    fn new(options: Options) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Self { options, number: NUMBER.fetch_add(1, Ordering::Relaxed) }
    }
}

/// The right to start or to stop a session.
#[derive(Default)]
struct Change;

/// The reasons for which the agent does not start.
#[derive(Debug, Error)]
pub(super) enum AgentStartError {
    #[error("this JVM provides no JVMTI environment ({0})")]
    Environment(JvmtiError),
    #[error("this JVM refuses JVMTI's events ({0})")]
    Events(JvmtiError),
    #[error("the agent is profiling already; `stop` it first")]
    Running,
    #[error("another copy of this agent is already loaded, {}: a process can have only one", .0.display())]
    OtherCopy(PathBuf),
    #[error("the VM has ended")]
    Ended,
    #[error(transparent)]
    ProfilingSession(#[from] SessionError),
}

/// The agent of this process. It is never freed, since the JVM may call back at any time.
pub(super) struct Agent {
    pub(super) vm: &'static Vm,
    session: RwLock<Option<Arc<ProfilingSession>>>,
    /// The session whose samples are in the buffer: set from before the first sample is taken until the last
    /// has been drained.
    draining: RwLock<Option<Arc<ProfilingSession>>>,
    /// A session that begins when the VM is live, or when its delay has passed.
    pending: Mutex<Option<PendingSession>>,
    /// Notified when `pending` has changed.
    pending_changed: Condvar,
    /// Held while a session is started or stopped, and while the pending session is taken in order to start
    /// it.
    changing: Mutex<Change>,
    /// Whether the agent's events are enabled.
    listening: Mutex<bool>,
}

static AGENT: OnceLock<Agent> = OnceLock::new();

/// Returns the agent, once it has been made.
pub(super) fn agent() -> Option<&'static Agent> {
    AGENT.get()
}

/// Starts to profile: at once in a live VM, otherwise when the VM becomes live.
///
/// # Safety
/// `java_vm` is the JavaVM that the JVM passed to the agent.
pub(super) unsafe fn start(
    java_vm: *mut JavaVM,
    callbacks: &VmCallbacks,
    mut options: Options,
) -> Result<(), AgentStartError> {
    if let Some(other) = other_copy::started() {
        return Err(AgentStartError::OtherCopy(other));
    }
    Output::check(&options).map_err(SessionError::Output)?;
    // SAFETY: the contract requires the JavaVM that the JVM passed.
    let agent = unsafe { make(java_vm, callbacks) }?;
    if agent.is_profiling() {
        return Err(AgentStartError::Running);
    }
    for warning in &options.warnings {
        log::warn!("{warning}");
    }
    engines::acquire(agent.vm, &mut options);
    let recorded = agent.vm.record_all_lines();
    if agent.vm.jvmti.phase() == Ok(Phase::Live) {
        if recorded {
            log::info!(
                "loaded into a running JVM: methods that are already compiled have lines at safepoints only"
            );
        }
        agent.begin_when_due(&agent.changing.lock(), options)?;
    } else {
        engines::warm_up(&options);
        *agent.pending.lock() = Some(PendingSession::new(options));
    }
    other_copy::note_start();
    Ok(())
}

/// Returns the agent, and makes it if there is none. The agent's events are enabled, and in a live VM the
/// agent has learnt what it needs to know of the VM.
///
/// # Safety
/// `java_vm` is the JavaVM of this process.
pub(super) unsafe fn make(
    java_vm: *mut JavaVM,
    callbacks: &VmCallbacks,
) -> Result<&'static Agent, AgentStartError> {
    // The VM's own description is read by loads that may fault.
    otlpprof_signal::fault::install().map_err(SessionError::Faults)?;
    let agent = match AGENT.get() {
        Some(agent) => agent,
        None => {
            // SAFETY: the contract requires the JavaVM of this process.
            let jvmti = unsafe { Jvmti::new(java_vm) }.map_err(AgentStartError::Environment)?;
            // SAFETY: the contract requires the JavaVM of this process, and `jvmti` is an environment of it.
            let vm = unsafe { Vm::keep(java_vm, jvmti) };
            AGENT.get_or_init(|| Agent {
                vm,
                session: RwLock::new(None),
                draining: RwLock::new(None),
                pending: Mutex::new(None),
                pending_changed: Condvar::new(),
                changing: Mutex::default(),
                listening: Mutex::new(false),
            })
        }
    };
    agent.listen(callbacks).map_err(AgentStartError::Events)?;
    if agent.vm.jvmti.phase() == Ok(Phase::Live) {
        let env = agent.vm.attach_as_daemon(c"otlpprof").ok_or(SessionError::Attach)?;
        // SAFETY: `env` belongs to the current thread.
        unsafe { agent.vm.learn(env) };
    }
    Ok(agent)
}

/// Ends `session`, if it is the running one. Called by the session's own thread.
fn end_session(session: &ProfilingSession, env: Option<*mut JNIEnv>) -> bool {
    agent().is_some_and(|agent| agent.end_session(session, env))
}

impl Agent {
    fn listen(&self, callbacks: &VmCallbacks) -> Result<(), JvmtiError> {
        let mut listening = self.listening.lock();
        if *listening {
            return Ok(());
        }
        let jvmti = self.vm.jvmti;
        // SAFETY: the callbacks are functions of this library, which stays loaded.
        unsafe { jvmti.set_event_callbacks(&callbacks.events) }?;
        mounts::set_callbacks(callbacks.mounts);
        for event in [JvmtiEvent::VmInit, JvmtiEvent::VmDeath, JvmtiEvent::ThreadStart, JvmtiEvent::ThreadEnd]
        {
            jvmti.set_event_enabled(event, true)?;
        }
        let potential = jvmti.potential_capabilities()?;
        for (capability, events, otherwise) in [
            (
                Capability::GarbageCollectionEvents,
                &[JvmtiEvent::GarbageCollectionFinish, JvmtiEvent::GarbageCollectionStart][..],
                "the VM does not report garbage collections: methods of unloaded classes may have no names",
            ),
            (
                Capability::NativeMethodBindEvents,
                &[JvmtiEvent::NativeMethodBind],
                "the VM does not report the binding of native methods: the first stacks in a library may be \
                 incomplete",
            ),
        ] {
            if potential.has(capability) {
                jvmti.add_capabilities(Capabilities::default().with(capability))?;
                for event in events {
                    jvmti.set_event_enabled(*event, true)?;
                }
                if capability == Capability::GarbageCollectionEvents {
                    COLLECTIONS.announce();
                }
            } else {
                log::log!(self.vm.level_of_details(), "{otherwise}");
            }
        }
        if self.vm.is_hotspot() {
            // SAFETY: the VM is HotSpot, and this library stays loaded.
            unsafe { jvmti.watch_redefinitions(callbacks.redefinition) };
        }
        *listening = true;
        Ok(())
    }

    /// Begins the pending session, when the VM has entered its live phase.
    ///
    /// # Safety
    /// `env` belongs to the current thread.
    pub(super) unsafe fn vm_is_live(&'static self, env: *mut JNIEnv) {
        let change = self.changing.lock();
        let Some(PendingSession { options, .. }) = self.pending.lock().take() else { return };
        // SAFETY: the contract gives the current thread's `env`.
        unsafe { self.vm.learn(env) };
        if let Err(error) = self.begin_when_due(&change, options) {
            logging::say(&format!("error: {error}; the agent does not start"));
        }
    }

    /// Begins a session after the delay that the options request.
    fn begin_when_due(
        &'static self,
        change: &MutexGuard<'_, Change>,
        mut options: Options,
    ) -> Result<(), AgentStartError> {
        let delay = std::mem::take(&mut options.delay);
        if delay.is_zero() {
            return self.begin(change, options);
        }
        if live_phase::has_ended() {
            return Err(AgentStartError::Ended);
        }
        let pending = PendingSession::new(options);
        let number = pending.number;
        *self.pending.lock() = Some(pending);
        let wait = move || {
            self.wait_for(number, Instant::now() + delay);
            if let Err(error) = self.begin_pending(number) {
                logging::say(&format!("error: {error}; nothing is profiled"));
            }
            // Starting the session may have attached this thread to the VM.
            self.vm.detach();
        };
        own_threads::spawn("otlpprof-delay", wait).map(drop).map_err(|error| {
            self.forget_pending();
            SessionError::Thread(error).into()
        })
    }

    /// Waits until `due`, or until the pending session of this number is gone.
    fn wait_for(&self, number: u64, due: Instant) {
        let mut pending = self.pending.lock();
        while pending.as_ref().is_some_and(|pending| pending.number == number) && Instant::now() < due {
            self.pending_changed.wait_until(&mut pending, due);
        }
    }

    /// Begins the pending session of this number, if it is still pending. The lock is held throughout, so
    /// that a thread that stops the session finds it either pending or running.
    fn begin_pending(&'static self, number: u64) -> Result<(), AgentStartError> {
        let change = self.changing.lock();
        let pending = self.pending.lock().take_if(|pending| pending.number == number);
        pending.map_or(Ok(()), |pending| self.begin(&change, pending.options))
    }

    fn begin(&'static self, _: &MutexGuard<'_, Change>, options: Options) -> Result<(), AgentStartError> {
        if live_phase::has_ended() {
            return Err(AgentStartError::Ended);
        }
        if self.session.read().is_some() {
            return Err(AgentStartError::Running);
        }
        let drains = |session: &Arc<ProfilingSession>| *self.draining.write() = Some(session.clone());
        let session = ProfilingSession::start(self.vm, options, drains, end_session);
        if session.is_err() {
            self.draining.write().take();
        }
        *self.session.write() = Some(session?);
        Ok(())
    }

    /// Whether a session runs or is pending.
    pub(super) fn is_profiling(&self) -> bool {
        self.session.read().is_some() || self.pending.lock().is_some()
    }

    /// The running session, if there is one.
    pub(super) fn session(&self) -> Option<Arc<ProfilingSession>> {
        self.session.read().clone()
    }

    /// Calls `body` with the running session, if there is one.
    pub(super) fn with_session(&self, body: impl FnOnce(&ProfilingSession)) {
        if let Some(session) = self.session() {
            body(&session);
        }
    }

    /// Calls `body` with the session that may have samples in the buffer, if there is one.
    pub(super) fn with_draining_session(&self, body: impl FnOnce(&ProfilingSession)) {
        let session = self.draining.read().clone();
        if let Some(session) = session {
            body(&session);
        }
    }

    /// Ends the session when the VM ends. Pending messages are sent, within a time limit.
    ///
    /// # Safety
    /// `env` belongs to the current thread.
    pub(super) unsafe fn vm_ends(&self, env: *mut JNIEnv) {
        self.forget_pending();
        self.end_for_good(Some(env));
    }

    /// Ends the session when the library is about to be unloaded.
    pub(super) fn unload(&self) {
        self.end_for_good(None);
    }

    /// Ends the session, if there is one. Waits only a limited time for a thread that is starting or stopping
    /// a session: that thread may be in the VM, and wait there for the caller.
    fn end_for_good(&self, env: Option<*mut JNIEnv>) {
        match self.changing.try_lock_for(LONGEST_WAIT_AT_EXIT) {
            Some(_changing) => drop(self.end_running(env)),
            None => log::warn!(
                "the JVM ended while a thread was starting or stopping the profiler: pending profiles are \
                 lost"
            ),
        }
    }

    fn end(&self, env: Option<*mut JNIEnv>) -> Option<Arc<ProfilingSession>> {
        let _changing = self.changing.lock();
        self.end_running(env)
    }

    /// Ends `session`, if it is the running one. Does not wait for the session's thread, which may be the
    /// caller.
    fn end_session(&self, session: &ProfilingSession, env: Option<*mut JNIEnv>) -> bool {
        let _changing = self.changing.lock();
        let is_running =
            self.session.read().as_ref().is_some_and(|running| ptr::eq(&raw const **running, session));
        is_running && self.end_running(env).is_some()
    }

    /// Ends the running session. The caller holds `changing`.
    fn end_running(&self, env: Option<*mut JNIEnv>) -> Option<Arc<ProfilingSession>> {
        let session = self.session.write().take();
        let session = session?;
        session.stop(env, LONGEST_WAIT_AT_EXIT);
        self.draining.write().take();
        Some(session)
    }

    /// Carries out the command of a repeated load. Prints the outcome and returns it, in one line.
    pub(super) fn obey(&self, command: &Request) -> String {
        let outcome = self.outcome(command);
        logging::say_outcome(&outcome);
        outcome
    }

    fn outcome(&self, command: &Request) -> String {
        if self.vm.jvmti.phase() != Ok(Phase::Live) {
            return self.obey_before_the_start(command).to_owned();
        }
        let env = self.vm.attach_as_daemon(c"otlpprof");
        match command {
            Request::Stop => (if self.stop(env) { "stopped" } else { NOT_PROFILING }).to_owned(),
            // Uploads go on in the background: no thread waits for a collector.
            Request::Flush if self.flush(env) => "flushed".to_owned(),
            Request::Flush => self.idle_status().to_owned(),
            // The entry point carries out the others.
            Request::Status | Request::Start(_) | Request::Help | Request::Disabled(_) => self.status(),
        }
    }

    /// Stops the session, and waits until its threads have ended. Returns `false` if there is no session.
    pub(super) fn stop(&self, env: Option<*mut JNIEnv>) -> bool {
        let was_pending = self.forget_pending();
        let session = self.end(env);
        if let Some(session) = &session {
            session.join();
        }
        session.is_some() || was_pending
    }

    /// Sends the samples recorded so far. Returns `false` if there is no session.
    pub(super) fn flush(&self, env: Option<*mut JNIEnv>) -> bool {
        let mut running = false;
        self.with_session(|session| {
            running = true;
            session.flush(env);
        });
        running
    }

    /// Describes the agent's activity in one line.
    pub(super) fn status(&self) -> String {
        let mut status = self.idle_status().to_owned();
        self.with_session(|session| status = session.status());
        status
    }

    /// Wakes the session's thread, so that it drains if necessary.
    pub(super) fn ring_drain_bell(&self) {
        self.with_session(ProfilingSession::ring_drain_bell);
    }

    /// Makes room in the dictionary of context values. Returns whether there is some.
    pub(super) fn reclaim_values(&self) -> bool {
        reclaim::reclaim(|| self.with_draining_session(ProfilingSession::drain_now))
    }

    /// Carries out a command before the VM is live, when no session runs, though one may be pending. No
    /// thread can be attached to the VM yet.
    fn obey_before_the_start(&self, command: &Request) -> &'static str {
        match command {
            Request::Stop if self.forget_pending() => "stopped",
            Request::Flush | Request::Status => self.idle_status(),
            _ => NOT_PROFILING,
        }
    }

    /// The status while no session runs.
    fn idle_status(&self) -> &'static str {
        if self.pending.lock().is_none() {
            return NOT_PROFILING;
        }
        match self.vm.jvmti.phase() {
            Ok(Phase::Live) => "profiling begins when the delay is over",
            _ => "profiling begins when the VM has started",
        }
    }

    /// The outcome of a start: the session runs, or begins later.
    pub(super) fn outcome_of_start(&self) -> &'static str {
        if self.session.read().is_some() { "started" } else { self.idle_status() }
    }

    /// Discards the pending session. Returns `false` if there is none.
    fn forget_pending(&self) -> bool {
        let was_pending = self.pending.lock().take().is_some();
        self.pending_changed.notify_all();
        was_pending
    }
}

//! The thread that starts a recording, reads it as it grows, and converts it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use jni::sys::JNIEnv;
use otlpprof_convert::{ConvertOptions, Growing, GrowingRead, JfrToOtlp};
use otlpprof_jfr::error::JfrError;
use otlpprof_jvm::layout::Release;
use otlpprof_jvm::system_properties::system_property;
use otlpprof_options::Options;

use super::clocks::Reading;
use super::contexts::CurrentProcess;
use super::java_clock::nano_time;
use super::recorder::{self, Recorder, RecorderError};
use super::repository::{self, Mark};
use super::selection::EventSelection;
use super::shared::{Progress, Shared, stop_noting};
use crate::vm::Vm;

/// The time between two reads of the file and of the changes of contexts.
const PERIOD: Duration = Duration::from_millis(100);

/// The time after which a JVM whose files are readable only when finished is made to finish one.
const ROTATION: Duration = Duration::from_secs(10);

/// The time between two checks for other recordings.
const MARK_PERIOD: Duration = Duration::from_secs(1);

/// The most bytes that are read at a time.
const READ_LEN: usize = 1 << 20;

pub(super) struct Follower {
    vm: &'static Vm,
    options: Options,
    shared: Arc<Shared>,
    began: Instant,
}

impl Follower {
    pub(super) fn new(vm: &'static Vm, options: Options, shared: Arc<Shared>) -> Self {
        Self { vm, options, shared, began: Instant::now() }
    }

    /// Runs until the recording is stopped or cannot go on.
    pub(super) fn run(self) {
        match self.vm.attach_as_daemon(c"otlpprof-jfr") {
            Some(env) => {
                // SAFETY: `env` belongs to the current thread, which has just been attached and so has no
                // pending exception; sessions run in the VM's live phase.
                if let Err(error) = unsafe { self.record(env) } {
                    log::warn!("jfr is off: {error}");
                    self.shared.is_off.store(true, Ordering::Relaxed);
                    stop_noting();
                }
                self.report_end();
                self.vm.detach();
            }
            None => {
                log::warn!("jfr is off: the VM does not let the agent attach a thread");
                self.shared.is_off.store(true, Ordering::Relaxed);
                self.report_end();
            }
        }
    }

    fn report_end(&self) {
        *self.shared.progress.lock() = Progress::Ended;
        self.shared.changed.notify_all();
    }

    /// # Safety
    ///
    /// `env` belongs to the current thread, which has no pending exception, in the VM's live phase.
    unsafe fn record(&self, env: *mut JNIEnv) -> Result<(), RecorderError> {
        // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's
        // live phase.
        let selection = EventSelection::new(&self.options, unsafe { release(env) });
        for warning in &selection.warnings {
            log::warn!("{warning}");
        }
        if selection.names.is_empty() {
            return Err(RecorderError::Nothing);
        }
        *self.shared.converter.lock() = self.converter(&selection);
        // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's
        // live phase.
        let recorder = unsafe { Recorder::start(env, &selection.settings, |ticks| self.read_clocks(ticks)) }?;
        log::debug!(
            "jfr: {} events are recorded to {}, {:.1} ms after the session began",
            selection.names.len(),
            recorder.repository.display(),
            self.began.elapsed().as_secs_f64() * 1e3
        );
        // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's
        // live phase.
        let followed = unsafe { self.follow_selected(env, &recorder, &selection) };
        // At the JVM's end the recorder has removed everything itself, and closing would log an error.
        if recorder.repository.exists() {
            // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's
            // live phase.
            unsafe { recorder.close(env) };
        }
        followed
    }

    /// Logs which of the selected events the JVM lacks. Follows the recording, unless the JVM lacks all of
    /// them.
    ///
    /// # Safety
    ///
    /// As for [`Follower::record`].
    unsafe fn follow_selected(
        &self,
        env: *mut JNIEnv,
        recorder: &Recorder,
        selection: &EventSelection,
    ) -> Result<(), RecorderError> {
        // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's
        // live phase.
        let known = match unsafe { recorder::event_names(env) } {
            Ok(known) => known,
            // The JVM is ending.
            Err(error) => {
                log::debug!("jfr: {error}");
                // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the
                // VM's live phase.
                return unsafe { self.follow(env, recorder, &[]) };
            }
        };
        let (never, not_yet) = selection.missing(&known);
        for name in &never {
            log::warn!("jfr: this JVM has no event {name}");
        }
        if selection.is_in_vain(&never) {
            return Err(RecorderError::Nothing);
        }
        // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's
        // live phase.
        unsafe { self.follow(env, recorder, &not_yet) }
    }

    fn converter(&self, selection: &EventSelection) -> JfrToOtlp {
        let mut converter = JfrToOtlp::new(ConvertOptions {
            times: self.options.encode.timestamps,
            events: selection.requested.clone(),
            only: Some(selection.names.clone()),
            ..ConvertOptions::default()
        });
        converter.set_witness(Box::new(CurrentProcess {
            contexts: self.shared.contexts.clone(),
            threads: self.options.threads.clone(),
            frames: self.options.frames.clone(),
        }));
        converter
    }

    /// Reads and converts the recording until it is stopped. `not_yet` are the selected events that no class
    /// had registered when the recording began.
    ///
    /// # Safety
    ///
    /// As for [`Follower::record`].
    unsafe fn follow(
        &self,
        env: *mut JNIEnv,
        recorder: &Recorder,
        not_yet: &[&str],
    ) -> Result<(), RecorderError> {
        let opened = Growing::open(&recorder.repository);
        let mut growing =
            opened.map_err(|error| RecorderError::Repository(recorder.repository.clone(), error))?;
        // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's
        // live phase.
        let mut marked = unsafe { MarkedRepository::new(env, recorder) };
        repository::remove_abandoned(&recorder.repository);
        let mut bytes = vec![0; READ_LEN];
        let mut finished = Instant::now();
        let mut has_failed = false;
        let mut reported = BTreeSet::new();
        loop {
            let is_last = self.wait();
            // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's
            // live phase.
            unsafe { marked.check(env, recorder) };
            if is_last {
                // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the
                // VM's live phase.
                unsafe { report_missing(env, not_yet) };
                // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the
                // VM's live phase.
                unsafe { recorder.stop(env) };
            } else if !recorder.is_streamed && finished.elapsed() >= ROTATION {
                // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the
                // VM's live phase.
                if let Err(error) = unsafe { recorder.finish_file(env) } {
                    log::debug!("jfr: {error}");
                }
                finished = Instant::now();
            }
            // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's
            // live phase; the closure is called in this function only.
            let ticks = || unsafe { recorder.ticks(env) };
            loop {
                let grown = growing.read_now(&mut bytes);
                // All events in these bytes happened before the clocks are read now.
                self.read_clocks(&ticks);
                match grown {
                    Ok(GrowingRead::By(count)) => {
                        let mut converter = self.shared.converter.lock();
                        converter.push(&bytes[..count]).unwrap_or_else(report_damage);
                        report_problems(&converter, &mut reported);
                    }
                    Ok(GrowingRead::NotYet | GrowingRead::ToItsEnd) => break,
                    Err(error) => {
                        // Logged once, since the failure may last.
                        if !has_failed {
                            log::warn!("jfr: the recording cannot be read: {error}");
                        }
                        has_failed = true;
                        break;
                    }
                }
            }
            if is_last {
                let mut converter = self.shared.converter.lock();
                converter.finish().unwrap_or_else(report_damage);
                report_problems(&converter, &mut reported);
                return Ok(());
            }
        }
    }

    /// Reads the clocks, and then the changes of contexts, some of which may be later than the reading.
    fn read_clocks(&self, ticks: &dyn Fn() -> Option<i64>) {
        if let Some(contexts) = &self.shared.contexts {
            let reading = Reading::take(ticks, nano_time);
            let mut contexts = contexts.lock();
            reading.into_iter().for_each(|reading| contexts.clocks.note(reading));
            contexts.take_changes();
        }
    }

    /// Waits for the next round. Returns whether it is the last.
    fn wait(&self) -> bool {
        let mut progress = self.shared.progress.lock();
        if *progress == Progress::Following {
            self.shared.changed.wait_for(&mut progress, PERIOD);
        }
        *progress != Progress::Following
    }
}

/// The mark of the repository, which is kept while the repository has no recording but ours.
struct MarkedRepository {
    mark: Option<Mark>,
    checked_at: Instant,
}

impl MarkedRepository {
    /// # Safety
    ///
    /// As for [`Follower::record`].
    unsafe fn new(env: *mut JNIEnv, recorder: &Recorder) -> Self {
        // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's
        // live phase.
        let is_only_one = unsafe { recorder.is_only_one(env) }.unwrap_or(false);
        let mark = is_only_one.then(|| Mark::new(&recorder.repository));
        let mark = mark.and_then(|mark| {
            mark.inspect_err(|error| {
                log::debug!("jfr: the repository cannot be marked as the agent's: {error}")
            })
            .ok()
        });
        Self { mark, checked_at: Instant::now() }
    }

    /// Checks once a second whether there is another recording. If so, removes the mark for good.
    ///
    /// # Safety
    ///
    /// As for [`Follower::record`].
    unsafe fn check(&mut self, env: *mut JNIEnv, recorder: &Recorder) {
        if self.mark.is_none() || self.checked_at.elapsed() < MARK_PERIOD {
            return;
        }
        self.checked_at = Instant::now();
        // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's
        // live phase.
        if !unsafe { recorder.is_only_one(env) }.unwrap_or(false) {
            self.mark = None;
        }
    }
}

/// Returns the JVM's release. If the JVM does not state it, returns one above all known releases.
///
/// # Safety
///
/// As for [`recorder::event_names`].
unsafe fn release(env: *mut JNIEnv) -> Release {
    // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's live
    // phase.
    let version = unsafe { system_property(env, c"java.vm.specification.version") };
    Release::new(version.and_then(|version| version.parse().ok()).unwrap_or(u32::MAX))
}

/// Logs the problems that keep requested events from being converted, each once.
fn report_problems(converter: &JfrToOtlp, reported: &mut BTreeSet<String>) {
    for problem in converter.problems() {
        if !reported.contains(problem) {
            log::warn!("jfr: {problem}");
            reported.insert(problem.clone());
        }
    }
}

/// Logs which of these events the JVM still does not have: their names may be wrong.
///
/// # Safety
///
/// As for [`recorder::event_names`].
unsafe fn report_missing(env: *mut JNIEnv, names: &[&str]) {
    if names.is_empty() {
        return;
    }
    // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's live
    // phase.
    match unsafe { recorder::event_names(env) } {
        Ok(known) => {
            for name in names.iter().filter(|name| !known.iter().any(|known| known == *name)) {
                log::warn!("jfr: {name}: the JVM has registered no event of this name");
            }
        }
        // The JVM is ending.
        Err(error) => log::debug!("jfr: {error}"),
    }
}

fn report_damage(error: JfrError) {
    log::debug!("jfr: {error}");
}

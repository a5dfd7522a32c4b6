//! The thread that starts a recording, reads it as it grows, and converts it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jni::sys::JNIEnv;

use super::clocks::Reading;
use super::contexts::Present;
use super::java_clock::nano_time;
use super::recorder::{self, Recorder, RecorderError};
use super::selection::Selection;
use super::{Progress, Shared};
use crate::agent::options::Options;
use crate::agent::vm::Vm;
use crate::convert::{ConvertOptions, Growing, Grown, JfrToOtlp};
use crate::jfr::error::JfrError;

/// How often the file is looked at, and changes of contexts are taken.
const PERIOD: Duration = Duration::from_millis(100);

/// How often a JVM that lets finished files be read alone is made to finish one.
const ROTATION: Duration = Duration::from_secs(10);

/// How much is read at a time.
const READ_LEN: usize = 1 << 20;

pub(super) struct Follower {
    vm: &'static Vm,
    options: Options,
    shared: Arc<Shared>,
}

impl Follower {
    pub(super) fn new(vm: &'static Vm, options: Options, shared: Arc<Shared>) -> Self {
        Self { vm, options, shared }
    }

    /// Runs until it is stopped, or cannot go on.
    pub(super) fn run(self) {
        match self.vm.attach_as_daemon(c"otlpprof-jfr") {
            Some(env) => {
                // SAFETY: the current thread's environment; sessions run in the VM's live phase.
                if let Err(error) = unsafe { self.record(env) } {
                    log::warn!("jfr is off: {error}");
                    super::stop_noting();
                }
                self.say_ended();
                self.vm.detach();
            }
            None => {
                log::warn!("jfr is off: the VM does not let the agent attach a thread");
                self.say_ended();
            }
        }
    }

    fn say_ended(&self) {
        *self.shared.progress.lock() = Progress::Ended;
        self.shared.changed.notify_all();
    }

    /// # Safety
    ///
    /// `env` is the current thread's, in the VM's live phase.
    unsafe fn record(&self, env: *mut JNIEnv) -> Result<(), RecorderError> {
        // SAFETY: by the contract.
        let known = unsafe { recorder::event_names(env) }?;
        let selection = Selection::new(&self.options, |name| known.iter().any(|known| known == name));
        for warning in &selection.warnings {
            log::warn!("{warning}");
        }
        if selection.names.is_empty() {
            return Err(RecorderError::Nothing);
        }
        *self.shared.converter.lock() = self.converter(&selection);
        // SAFETY: by the contract.
        let recorder = unsafe { Recorder::start(env, &selection.settings, |ticks| self.read_clocks(ticks)) }?;
        log::debug!(
            "jfr: {} events are recorded to {}",
            selection.names.len(),
            recorder.repository.display()
        );
        let own = selection.names.iter().filter(|name| !known.contains(name));
        let own: Vec<_> = own.map(String::as_str).collect();
        // SAFETY: by the contract.
        let followed = unsafe { self.follow(env, &recorder, &own) };
        // At the JVM's end the recorder has removed everything itself, and would complain.
        if recorder.repository.exists() {
            // SAFETY: by the contract.
            unsafe { recorder.close(env) };
        }
        followed
    }

    fn converter(&self, selection: &Selection) -> JfrToOtlp {
        let mut converter = JfrToOtlp::new(ConvertOptions {
            times: self.options.encode.timestamps,
            events: selection.requested.clone(),
            only: Some(selection.names.clone()),
            ..ConvertOptions::default()
        });
        converter.set_witness(Box::new(Present {
            contexts: self.shared.contexts.clone(),
            threads: self.options.threads.clone(),
            frames: self.options.frames.clone(),
        }));
        converter
    }

    /// `own` are the events that the JVM did not have when the recording began.
    ///
    /// # Safety
    ///
    /// As for [`Follower::record`].
    unsafe fn follow(
        &self,
        env: *mut JNIEnv,
        recorder: &Recorder,
        own: &[&str],
    ) -> Result<(), RecorderError> {
        let opened = Growing::open(&recorder.repository);
        let mut growing =
            opened.map_err(|error| RecorderError::Repository(recorder.repository.clone(), error))?;
        let mut bytes = vec![0; READ_LEN];
        let mut finished = Instant::now();
        let mut has_failed = false;
        let mut told = BTreeSet::new();
        loop {
            let is_last = self.wait();
            if is_last {
                // SAFETY: by the contract.
                unsafe { say_missing(env, own) };
                // SAFETY: by the contract.
                unsafe { recorder.stop(env) };
            } else if !recorder.is_streamed && finished.elapsed() >= ROTATION {
                // SAFETY: by the contract.
                if let Err(error) = unsafe { recorder.finish_file(env) } {
                    log::debug!("jfr: {error}");
                }
                finished = Instant::now();
            }
            // SAFETY: by the contract.
            let ticks = || unsafe { recorder.ticks(env) };
            loop {
                let grown = growing.read_now(&mut bytes);
                // What the bytes tell of has happened, and lies before what is read now.
                self.read_clocks(&ticks);
                match grown {
                    Ok(Grown::By(count)) => {
                        let mut converter = self.shared.converter.lock();
                        converter.push(&bytes[..count]).unwrap_or_else(say_damaged);
                        say_problems(&converter, &mut told);
                    }
                    Ok(Grown::NotYet | Grown::ToItsEnd) => break,
                    Err(error) => {
                        // Once: it may last.
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
                converter.finish().unwrap_or_else(say_damaged);
                say_problems(&converter, &mut told);
                return Ok(());
            }
        }
    }

    /// Reads the clocks, and then the changes of contexts, of which some may be later.
    fn read_clocks(&self, ticks: &dyn Fn() -> Option<i64>) {
        if let Some(contexts) = &self.shared.contexts {
            let reading = Reading::take(ticks, nano_time);
            let mut contexts = contexts.lock();
            reading.into_iter().for_each(|reading| contexts.clocks.note(reading));
            contexts.take_changes();
        }
    }

    /// Waits for the next look. Whether it is the last.
    fn wait(&self) -> bool {
        let mut progress = self.shared.progress.lock();
        if *progress == Progress::Following {
            self.shared.changed.wait_for(&mut progress, PERIOD);
        }
        *progress != Progress::Following
    }
}

/// Says what keeps events that were asked for from being converted, as far as it has not been said.
fn say_problems(converter: &JfrToOtlp, told: &mut BTreeSet<String>) {
    for problem in converter.problems() {
        if !told.contains(problem) {
            log::warn!("jfr: {problem}");
            told.insert(problem.clone());
        }
    }
}

/// Says which of these events the JVM has not come to have: their names may be wrong.
///
/// # Safety
///
/// As for [`recorder::event_names`].
unsafe fn say_missing(env: *mut JNIEnv, names: &[&str]) {
    if names.is_empty() {
        return;
    }
    // SAFETY: by the contract.
    match unsafe { recorder::event_names(env) } {
        Ok(known) => {
            for name in names.iter().filter(|name| !known.iter().any(|known| known == *name)) {
                log::warn!("jfr: {name}: the JVM has had no event of this name");
            }
        }
        // At the JVM's end.
        Err(error) => log::debug!("jfr: {error}"),
    }
}

fn say_damaged(error: JfrError) {
    log::debug!("jfr: {error}");
}

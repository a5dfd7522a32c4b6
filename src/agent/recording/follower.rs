//! The thread that starts a recording, reads it as it grows, and converts it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jni::sys::JNIEnv;

use super::clocks::Reading;
use super::contexts::Present;
use super::java_clock::nano_time;
use super::recorder::{self, Recorder, RecorderError};
use super::repository::{self, Mark};
use super::selection::Selection;
use super::{Progress, Shared};
use crate::agent::options::Options;
use crate::agent::vm::Vm;
use crate::convert::{ConvertOptions, Growing, Grown, JfrToOtlp};
use crate::jfr::error::JfrError;
use crate::jvm::system_properties::system_property;

/// How often the file is looked at, and changes of contexts are taken.
const PERIOD: Duration = Duration::from_millis(100);

/// How often a JVM that lets finished files be read alone is made to finish one.
const ROTATION: Duration = Duration::from_secs(10);

/// How often another recording is looked for.
const MARK_PERIOD: Duration = Duration::from_secs(1);

/// How much is read at a time.
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
        let selection = Selection::new(&self.options, unsafe { java_version(env) });
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
            "jfr: {} events are recorded to {}, {:.1} ms after the session began",
            selection.names.len(),
            recorder.repository.display(),
            self.began.elapsed().as_secs_f64() * 1e3
        );
        // SAFETY: by the contract.
        let followed = unsafe { self.follow_selected(env, &recorder, &selection) };
        // At the JVM's end the recorder has removed everything itself, and would complain.
        if recorder.repository.exists() {
            // SAFETY: by the contract.
            unsafe { recorder.close(env) };
        }
        followed
    }

    /// Says which of the chosen events the JVM lacks, and follows the recording unless these are all.
    ///
    /// # Safety
    ///
    /// As for [`Follower::record`].
    unsafe fn follow_selected(
        &self,
        env: *mut JNIEnv,
        recorder: &Recorder,
        selection: &Selection,
    ) -> Result<(), RecorderError> {
        // SAFETY: by the contract.
        let known = match unsafe { recorder::event_names(env) } {
            Ok(known) => known,
            // At the JVM's end.
            Err(error) => {
                log::debug!("jfr: {error}");
                // SAFETY: by the contract.
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
        // SAFETY: by the contract.
        unsafe { self.follow(env, recorder, &not_yet) }
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
        // SAFETY: by the contract.
        let mut marked = unsafe { MarkedRepository::new(env, recorder) };
        repository::remove_abandoned(&recorder.repository);
        let mut bytes = vec![0; READ_LEN];
        let mut finished = Instant::now();
        let mut has_failed = false;
        let mut told = BTreeSet::new();
        loop {
            let is_last = self.wait();
            // SAFETY: by the contract.
            unsafe { marked.look(env, recorder) };
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

/// The mark of the repository, for as long as it has nobody else's recording.
struct MarkedRepository {
    mark: Option<Mark>,
    looked: Instant,
}

impl MarkedRepository {
    /// # Safety
    ///
    /// As for [`Follower::record`].
    unsafe fn new(env: *mut JNIEnv, recorder: &Recorder) -> Self {
        // SAFETY: by the contract.
        let is_only_one = unsafe { recorder.is_only_one(env) }.unwrap_or(false);
        let mark = is_only_one.then(|| Mark::new(&recorder.repository));
        let mark = mark.and_then(|mark| {
            mark.inspect_err(|error| log::debug!("jfr: the repository has no mark: {error}")).ok()
        });
        Self { mark, looked: Instant::now() }
    }

    /// Looks once a second whether there is another recording; then the mark goes for good.
    ///
    /// # Safety
    ///
    /// As for [`Follower::record`].
    unsafe fn look(&mut self, env: *mut JNIEnv, recorder: &Recorder) {
        if self.mark.is_none() || self.looked.elapsed() < MARK_PERIOD {
            return;
        }
        self.looked = Instant::now();
        // SAFETY: by the contract.
        if !unsafe { recorder.is_only_one(env) }.unwrap_or(false) {
            self.mark = None;
        }
    }
}

/// The version of Java that the JVM is of; where it does not say so, none has come after it.
///
/// # Safety
///
/// As for [`recorder::event_names`].
unsafe fn java_version(env: *mut JNIEnv) -> u32 {
    // SAFETY: by the contract.
    let version = unsafe { system_property(env, c"java.vm.specification.version") };
    version.and_then(|version| version.parse().ok()).unwrap_or(u32::MAX - 1)
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

//! The JVM's recorder, driven through the methods of `jdk.jfr`.
//!
//! A recording's events are written to files in the JVM's repository, which all recordings of the JVM share:
//! the files contain other recordings' events as well. JDK 14 and later bring a file up to date every second.
//! Before 14 a file can be read only when it is finished; requesting a snapshot finishes it
//! (`PlatformRecorder.fillWithRecordedData`, JDK 11).

use std::io;
use std::path::PathBuf;

use jni::sys::{JNIEnv, jclass, jlong, jobject, jvalue};
use thiserror::Error;

use otlpprof_jvm::java_calls::{CallError, Java, LongMethod, in_frame, release_global};
use otlpprof_jvm::system_properties::system_property;

/// The most bytes of a recording that the JVM keeps on disk. All of it is read as it is written.
const MOST_KEPT_BYTES: jlong = 64 << 20;

/// The reasons for which nothing is recorded.
#[derive(Debug, Error)]
pub(super) enum RecorderError {
    #[error("this JVM has no module jdk.jfr (add it with --add-modules jdk.jfr)")]
    NoModule,
    #[error("no requested event can be recorded")]
    Nothing,
    #[error("the JVM cannot record: {0}")]
    Call(#[from] CallError),
    #[error("the JVM does not report the folder of its recordings")]
    NoRepository,
    #[error("{0}: {1}")]
    Repository(PathBuf, io::Error),
}

/// A running recording. Its references are valid in the VM's live phase.
#[derive(Debug)]
pub(super) struct Recorder {
    recorder: jobject,
    recording: jobject,
    /// The class that has the method for the recorder's clock, and that method.
    jvm: Option<(jclass, LongMethod)>,
    /// The folder of the files.
    pub(super) repository: PathBuf,
    /// Whether files can be read while they are written.
    pub(super) is_streamed: bool,
}

type Method = (&'static std::ffi::CStr, &'static std::ffi::CStr);

const GET_RECORDER: Method = (c"getFlightRecorder", c"()Ljdk/jfr/FlightRecorder;");

/// The names of the events that the JVM has now.
///
/// # Safety
///
/// `env` must belong to the current thread, which has no pending exception, in the VM's live phase. This
/// holds for all functions below.
pub(super) unsafe fn event_names(env: *mut JNIEnv) -> Result<Vec<String>, RecorderError> {
    // SAFETY: the contract gives the current thread's `env`; the methods have the stated signatures.
    unsafe {
        in_frame(env, |java| {
            let class = java.class(c"jdk/jfr/FlightRecorder").map_err(|_| RecorderError::NoModule)?;
            let recorder = java.call_static(class, GET_RECORDER, &[])?;
            let types = java.call(recorder, (c"getEventTypes", c"()Ljava/util/List;"), &[])?;
            let types = java.call(types, (c"iterator", c"()Ljava/util/Iterator;"), &[])?;
            let mut names = Vec::new();
            while java.call_boolean(types, c"hasNext")? {
                let name = in_frame(env, |java| {
                    let next = java.call(types, (c"next", c"()Ljava/lang/Object;"), &[])?;
                    let name = java.call(next, (c"getName", c"()Ljava/lang/String;"), &[])?;
                    Ok::<_, CallError>(java.text(name))
                });
                names.extend(name?);
            }
            Ok(names)
        })
    }
}

impl Recorder {
    /// Starts a recording with these settings. Just before the start, `before` is called with a function that
    /// reads the recorder's clock.
    ///
    /// # Safety
    ///
    /// As for [`event_names`].
    pub(super) unsafe fn start(
        env: *mut JNIEnv,
        settings: &[(String, String)],
        before: impl FnOnce(&dyn Fn() -> Option<i64>),
    ) -> Result<Self, RecorderError> {
        // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's
        // live phase. The methods have the stated signatures.
        unsafe {
            in_frame(env, |java| {
                let class = java.class(c"jdk/jfr/FlightRecorder").map_err(|_| RecorderError::NoModule)?;
                let recorder = java.call_static(class, GET_RECORDER, &[])?;
                let class = java.class(c"jdk/jfr/Recording")?;
                let recording = java.construct(class, c"()V", &[])?;
                let started = Self::start_recording(env, java, recorder, recording, settings, before);
                if started.is_err() {
                    let _ = java.call_void(recording, (c"close", c"()V"), &[]);
                }
                started
            })
        }
    }

    /// # Safety
    ///
    /// As for [`event_names`]; the references are live.
    unsafe fn start_recording(
        env: *mut JNIEnv,
        java: Java,
        recorder: jobject,
        recording: jobject,
        settings: &[(String, String)],
        before: impl FnOnce(&dyn Fn() -> Option<i64>),
    ) -> Result<Self, RecorderError> {
        // SAFETY: the contract gives `env` and live references; the methods have the stated signatures.
        unsafe {
            let map = java.construct(java.class(c"java/util/HashMap")?, c"()V", &[])?;
            let put = (c"put", c"(Ljava/lang/Object;Ljava/lang/Object;)Ljava/lang/Object;");
            for (key, value) in settings {
                in_frame(env, |java| {
                    let pair = [jvalue { l: java.string(key)? }, jvalue { l: java.string(value)? }];
                    java.call(map, put, &pair).map(drop)
                })?;
            }
            let name = jvalue { l: java.string("otlpprof")? };
            java.call_void(recording, (c"setName", c"(Ljava/lang/String;)V"), &[name])?;
            java.call_void(recording, (c"setSettings", c"(Ljava/util/Map;)V"), &[jvalue { l: map }])?;
            java.call_void(recording, (c"setMaxSize", c"(J)V"), &[jvalue { j: MOST_KEPT_BYTES }])?;
            // The recorder's clock can be read once there is a recorder.
            let jvm = java.class(c"jdk/jfr/internal/JVM").and_then(|jvm| {
                let jvm = java.keep(jvm);
                Ok((jvm, java.long_method(jvm, c"counterTime")?))
            });
            let jvm = jvm.inspect_err(|error| log::warn!("jfr: events have no context: {error}")).ok();
            before(&|| jvm.map(|(_, clock)| clock.call(env)));
            java.call_void(recording, (c"start", c"()V"), &[])?;
            // This class exists since JDK 14.
            let is_streamed = java.class(c"jdk/jfr/consumer/EventStream").is_ok();
            let stated = system_property(env, c"jdk.jfr.repository");
            let repository = stated.or_else(|| repository_path(java)).ok_or(RecorderError::NoRepository)?;
            Ok(Self {
                recorder: java.keep(recorder),
                recording: java.keep(recording),
                jvm,
                repository: PathBuf::from(repository),
                is_streamed,
            })
        }
    }

    /// Reads the recorder's clock.
    ///
    /// # Safety
    ///
    /// As for [`event_names`].
    pub(super) unsafe fn ticks(&self, env: *mut JNIEnv) -> Option<i64> {
        // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's
        // live phase. A global reference keeps the class.
        self.jvm.map(|(_, clock)| unsafe { clock.call(env) })
    }

    /// Whether the JVM has no other recording, running or retained.
    ///
    /// # Safety
    ///
    /// As for [`event_names`].
    pub(super) unsafe fn is_only_one(&self, env: *mut JNIEnv) -> Result<bool, CallError> {
        // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's
        // live phase. A global reference keeps the recorder.
        unsafe {
            in_frame(env, |java| {
                let list = (c"getRecordings", c"()Ljava/util/List;");
                let recordings = java.call(self.recorder, list, &[])?;
                let recordings = java.call(recordings, (c"iterator", c"()Ljava/util/Iterator;"), &[])?;
                let mut count = 0;
                while java.call_boolean(recordings, c"hasNext")? {
                    java.call(recordings, (c"next", c"()Ljava/lang/Object;"), &[])?;
                    count += 1;
                }
                Ok(count <= 1)
            })
        }
    }

    /// Makes the JVM finish the current file, and continue in another.
    ///
    /// # Safety
    ///
    /// As for [`event_names`].
    pub(super) unsafe fn finish_file(&self, env: *mut JNIEnv) -> Result<(), CallError> {
        // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's
        // live phase. A global reference keeps the recorder.
        unsafe {
            in_frame(env, |java| {
                let snapshot = java.call(self.recorder, (c"takeSnapshot", c"()Ljdk/jfr/Recording;"), &[])?;
                java.call_void(snapshot, (c"close", c"()V"), &[])
            })
        }
    }

    /// Stops the recording, so that its last events are written. The JVM may have done so itself when it
    /// ends.
    ///
    /// # Safety
    ///
    /// As for [`event_names`].
    pub(super) unsafe fn stop(&self, env: *mut JNIEnv) {
        // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's
        // live phase. A global reference keeps the recording.
        if let Err(error) = unsafe { in_frame(env, |java| java.call_boolean(self.recording, c"stop")) } {
            log::debug!("jfr: {error}");
        }
    }

    /// Closes the recording. The JVM then removes its files.
    ///
    /// # Safety
    ///
    /// As for [`event_names`].
    pub(super) unsafe fn close(self, env: *mut JNIEnv) {
        // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's
        // live phase. The global references are not used afterwards.
        unsafe {
            if let Err(error) = in_frame(env, |java| java.call_void(self.recording, (c"close", c"()V"), &[]))
            {
                log::debug!("jfr: {error}");
            }
            let jvm = self.jvm.map(|(jvm, _)| jvm);
            for kept in [Some(self.recorder), Some(self.recording), jvm].into_iter().flatten() {
                release_global(env, kept);
            }
        }
    }
}

/// Returns the path of the repository in a JVM that does not state it in a property, which JVMs before 14 do
/// not.
///
/// # Safety
///
/// As for [`event_names`].
unsafe fn repository_path(java: Java) -> Option<String> {
    // SAFETY: the contract gives the current thread's `env`, without a pending exception, in the VM's live
    // phase. The methods have the stated signatures, or are not found.
    unsafe {
        let class = java.class(c"jdk/jfr/internal/Repository").ok()?;
        let get = (c"getRepository", c"()Ljdk/jfr/internal/Repository;");
        let repository = java.call_static(class, get, &[]).ok()?;
        let path = (c"getRepositoryPath", c"()Ljdk/jfr/internal/SecuritySupport$SafePath;");
        java.to_text(java.call(repository, path, &[]).ok().filter(|path| !path.is_null())?)
    }
}

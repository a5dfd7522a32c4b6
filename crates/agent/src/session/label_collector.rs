//! Collects the names of the threads that a session samples.

use std::collections::HashMap;

use jni::sys::JNIEnv;
use otlpprof_signal::safe_load::ProcessMemory;

use crate::native_thread_names::NativeThreadNames;
use crate::thread_labels::{IntervalLabels, ThreadLabels};
use crate::thread_names::ThreadLabel;
use crate::vm::Vm;

/// The names of a session's threads.
pub(super) struct LabelCollector {
    vm: &'static Vm,
    pub(super) java: ThreadLabels,
    pub(super) native: NativeThreadNames,
}

impl LabelCollector {
    pub(super) fn new(vm: &'static Vm) -> Self {
        Self { vm, java: ThreadLabels::default(), native: NativeThreadNames::default() }
    }

    /// Returns the names for an interval that ends now. Calls the VM, which may wait for a safepoint, so the
    /// drain's lock must not be held. Threads are identified by the records of `sampling`, so the engines
    /// must not have stopped yet.
    pub(super) fn of_interval(&self, env: Option<*mut JNIEnv>) -> IntervalLabels {
        let java = self.java.of_interval(self.live_threads(env));
        let java_names = java.values().map(|label| label.name.as_str());
        let native = self.native.of_interval(java_names, |incarnation| java.contains_key(&incarnation));
        IntervalLabels { java, native }
    }

    /// Returns the names of the interval so far, as [`LabelCollector::of_interval`]. The interval goes on.
    pub(super) fn so_far(&self, env: Option<*mut JNIEnv>) -> IntervalLabels {
        let java = self.java.so_far(self.live_threads(env));
        let java_names = java.values().map(|label| label.name.as_str());
        let native = self.native.so_far(java_names, |incarnation| java.contains_key(&incarnation));
        IntervalLabels { java, native }
    }

    /// The labels of the threads that the VM lists, by kernel thread id.
    fn live_threads(&self, env: Option<*mut JNIEnv>) -> HashMap<i32, ThreadLabel> {
        let (Some(env), Some(names), Some(layout)) = (env, self.vm.names(), self.vm.layout()) else {
            return HashMap::default();
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
                HashMap::default()
            }
        }
    }
}

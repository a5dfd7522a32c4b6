//! The threads that the profiler runs during a session: started, ended and joined.

use std::sync::Arc;
use std::thread::JoinHandle;

use otlpprof_sampling::join_kernel_readers;
use parking_lot::Mutex;

use crate::objects::Objects;
use crate::recording::Recording;

/// The threads of a session, which run until the session ends.
pub(super) struct RunningThreads {
    /// The session's own thread.
    own: Mutex<Option<JoinHandle<()>>>,
    /// The thread that follows the loaded objects.
    pub(super) objects: Arc<Objects>,
    /// The thread that reads the JVM's recording.
    pub(super) recording: Arc<Recording>,
}

impl RunningThreads {
    pub(super) fn new(objects: Arc<Objects>) -> Self {
        Self { own: Mutex::new(None), objects, recording: Arc::default() }
    }

    pub(super) fn set_own(&self, thread: JoinHandle<()>) {
        *self.own.lock() = Some(thread);
    }

    /// Waits until all threads have ended. Must not be called in the VM's death, during which a thread that
    /// enters the VM never returns.
    pub(super) fn join(&self) {
        if let Some(thread) = self.own.lock().take() {
            let _ = thread.join();
        }
        self.join_others();
    }

    /// Waits until all threads but the session's own have ended.
    pub(super) fn join_others(&self) {
        self.objects.join();
        self.recording.join();
        join_kernel_readers();
    }
}

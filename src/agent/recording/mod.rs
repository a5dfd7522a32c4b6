//! `jfr=`: events of a recording that the JVM makes, merged into the session's profiles, with what their threads worked for.
//!
//! A thread of its own starts the recording, reads the JVM's file as it grows, and converts it. The order matters: the
//! events are read first, then both clocks, then the changes of contexts; so all that a read event can have to do with is
//! known when it is converted.
//!
//! | Module | Duty |
//! |---|---|
//! | `selection` | which events, with which settings |
//! | `recorder` | the JVM's recorder |
//! | `follower` | the thread |
//! | `repository` | the JVM's folder of recordings, and those of killed JVMs |
//! | `contexts`, `clocks` | what a thread worked for at an event's time |

mod clocks;
mod contexts;
mod follower;
mod java_clock;
mod recorder;
mod repository;
mod selection;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use self::contexts::Contexts;
use super::options::{Options, RecordedEvents};
use super::vm::Vm;
use crate::context::changes;
use crate::context::dictionary::DICTIONARY;
use crate::convert::JfrToOtlp;
use crate::model::{Profile, Tables};
use crate::sampling::own_threads;

/// Where the thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Following,
    /// It is to take what is left.
    Stopping,
    /// Nothing more will come.
    Ended,
}

/// What the thread and the session share.
struct Shared {
    converter: Mutex<JfrToOtlp>,
    contexts: Option<Arc<Mutex<Contexts>>>,
    progress: Mutex<Progress>,
    changed: Condvar,
    converted: AtomicU64,
}

/// What the thread is called that reads it.
pub(super) const THREAD_NAME: &str = "otlpprof-jfr";

/// A recording for one session; for one without `jfr=` nothing at all.
#[derive(Default)]
pub(super) struct Recording {
    running: Mutex<Option<Running>>,
}

struct Running {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Recording {
    /// Starts to record what the options ask for. The recording begins some time after: the JVM's recorder is made in the
    /// background.
    pub(super) fn start(&self, vm: &'static Vm, options: &Options) {
        if options.recorded_events == RecordedEvents::None {
            return;
        }
        let contexts = changes::make().then(Contexts::new).flatten();
        let contexts = contexts.map(|contexts| Arc::new(Mutex::new(contexts)));
        let shared = Arc::new(Shared {
            converter: Mutex::default(),
            contexts,
            progress: Mutex::new(Progress::Following),
            changed: Condvar::new(),
            converted: AtomicU64::new(0),
        });
        DICTIONARY.published().note_changes(true);
        let follower = follower::Follower::new(vm, options.clone(), shared.clone());
        match own_threads::spawn(THREAD_NAME, move || follower.run()) {
            Ok(thread) => *self.running.lock() = Some(Running { shared, thread: Some(thread) }),
            Err(error) => {
                stop_noting();
                log::warn!("jfr is off: no thread for it: {error}");
            }
        }
    }

    fn shared(&self) -> Option<Arc<Shared>> {
        self.running.lock().as_ref().map(|running| running.shared.clone())
    }

    /// Whether there is no event to be taken.
    pub(super) fn is_empty(&self) -> bool {
        self.shared().is_none_or(|shared| {
            let converter = shared.converter.lock();
            converter.counts().all(|(_, count)| count.converted == 0)
        })
    }

    /// Takes the profiles of the events that have been read, with what they refer to in these tables, and how many events
    /// were of threads and stacks that the user does not want.
    pub(super) fn take(&self, tables: &mut Tables) -> (Vec<Profile>, u64) {
        let Some(shared) = self.shared() else { return (Vec::new(), 0) };
        let mut converter = shared.converter.lock();
        let (mut converted, mut unwanted) = (0, 0);
        for (_, count) in converter.counts() {
            converted += count.converted;
            unwanted += count.unwanted;
        }
        shared.converted.fetch_add(converted, Ordering::Relaxed);
        let batch = converter.convert();
        drop(converter);
        (tables.absorb(&batch.tables, batch.profiles), unwanted)
    }

    /// Takes the changes of contexts: what they refer to may be gone afterwards.
    pub(super) fn take_changes(&self) {
        if let Some(contexts) = self.shared().and_then(|shared| shared.contexts.clone()) {
            contexts.lock().take_changes();
        }
    }

    /// What was recorded since the session began.
    pub(super) fn counts(&self) -> [(&'static str, u64); 3] {
        let shared = self.shared();
        let contexts = shared.as_ref().and_then(|shared| shared.contexts.as_ref());
        let found = contexts.map(|contexts| contexts.lock().found).unwrap_or_default();
        let converted = shared.map_or(0, |shared| shared.converted.load(Ordering::Relaxed));
        [
            ("otlpprof.jfr.events", converted),
            ("otlpprof.jfr.contexts.known", found.known),
            ("otlpprof.jfr.contexts.doubtful", found.doubtful),
        ]
    }

    /// Stops recording, and waits until the last events can be taken, or until then.
    pub(super) fn stop(&self, deadline: Instant) {
        let Some(shared) = self.shared() else { return };
        let mut progress = shared.progress.lock();
        if *progress == Progress::Following {
            *progress = Progress::Stopping;
            shared.changed.notify_all();
        }
        while *progress != Progress::Ended {
            if shared.changed.wait_until(&mut progress, deadline).timed_out() {
                log::warn!("jfr: the last events are missing: the JVM takes too long to write them");
                break;
            }
        }
        stop_noting();
        // Before another session may begin, whose reader must not find them gone.
        if *progress == Progress::Ended {
            changes::release();
        }
    }

    /// Waits for the thread, if it has taken what was left: one that [`Recording::stop`] gave up on is in the JVM, and
    /// may stay there. It ends by itself, and what it reads stays.
    pub(super) fn join(&self) {
        let mut running = self.running.lock();
        let Some(running) = running.as_mut() else { return };
        let Some(thread) = running.thread.take() else { return };
        if *running.shared.progress.lock() != Progress::Ended {
            log::debug!("jfr: its thread is left alone until the JVM has written the last events");
            return;
        }
        let _ = thread.join();
    }
}

fn stop_noting() {
    DICTIONARY.published().note_changes(false);
}

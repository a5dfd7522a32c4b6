//! `jfr=`: merges events of a recording that the JVM makes into the session's profiles, with the contexts of
//! their threads.
//!
//! A thread of its own starts the recording, reads the JVM's file as it grows, and converts it. The order is
//! essential: it reads the events first, then both clocks, then the changes of contexts. So all changes that
//! may concern an event are known when the event is converted.
//!
//! | Module | Duty |
//! |---|---|
//! | `selection` | the selected events, and their settings |
//! | `recorder` | the JVM's recorder |
//! | `follower` | the thread |
//! | `shared` | the state that the thread and the session share |
//! | `repository` | the JVM's folder of recordings, and those of killed JVMs |
//! | `contexts` | the context of a thread at an event's time |
//! | `java_clock` | the clock by which Java notes changes of contexts |
//! | `clocks` | the relation of that clock to the recorder's clock |

mod clocks;
mod contexts;
mod follower;
mod java_clock;
mod recorder;
mod repository;
mod selection;
mod shared;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use otlpprof_context::changes;
use otlpprof_context::dictionary::DICTIONARY;
use otlpprof_model::{Profile, Tables};
use otlpprof_options::{Options, RecordedEvents};
use otlpprof_sampling::own_threads;
use parking_lot::{Condvar, Mutex};

use self::contexts::Contexts;
use self::shared::{Progress, Shared, stop_noting};
use super::vm::Vm;

/// The name of the thread that reads the recording.
pub(super) const THREAD_NAME: &str = "otlpprof-jfr";

/// A recording for one session; empty without `jfr=`.
#[derive(Default)]
pub(super) struct Recording {
    running: Mutex<Option<Running>>,
}

struct Running {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Recording {
    /// Starts to record the events that the options request. The recording itself begins some time later,
    /// since the JVM's recorder is created in the background.
    pub(super) fn start(&self, vm: &'static Vm, options: &Options) {
        if options.recorded_events == RecordedEvents::None {
            return;
        }
        let contexts = changes::make().then(Contexts::new).flatten();
        let contexts = contexts.map(|contexts| Arc::new(Mutex::new(contexts)));
        let shared = Arc::new(Shared {
            is_off: AtomicBool::new(false),
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
                log::warn!("jfr is off: its thread cannot be started: {error}");
            }
        }
    }

    /// Whether the recording could not begin, or has ended by itself.
    pub(super) fn is_off(&self) -> bool {
        self.shared().is_some_and(|shared| shared.is_off.load(Ordering::Relaxed))
    }

    fn shared(&self) -> Option<Arc<Shared>> {
        self.running.lock().as_ref().map(|running| running.shared.clone())
    }

    /// Whether there are no events to take.
    pub(super) fn is_empty(&self) -> bool {
        self.shared().is_none_or(|shared| {
            let converter = shared.converter.lock();
            converter.counts().all(|(_, count)| count.converted == 0)
        })
    }

    /// Takes the profiles of the events that have been read; everything that they refer to is moved into
    /// `tables`. Also returns how many events belong to threads and stacks that the user does not select.
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

    /// Reads the changes of contexts, before the values that they refer to may be freed.
    pub(super) fn take_changes(&self) {
        if let Some(contexts) = self.shared().and_then(|shared| shared.contexts.clone()) {
            contexts.lock().take_changes();
        }
    }

    /// The counts since the session began.
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

    /// Stops recording. Waits until the last events can be taken, but not beyond `deadline`.
    pub(super) fn stop(&self, deadline: Instant) {
        let Some(shared) = self.shared() else { return };
        let mut progress = shared.progress.lock();
        if *progress == Progress::Following {
            *progress = Progress::Stopping;
            shared.changed.notify_all();
        }
        while *progress != Progress::Ended {
            if shared.changed.wait_until(&mut progress, deadline).timed_out() {
                log::warn!("jfr: the last events are missing: the JVM took too long to write them");
                break;
            }
        }
        stop_noting();
        // Released before another session may begin, whose reader must find the rings in place.
        if *progress == Progress::Ended {
            changes::release();
        }
    }

    /// Waits for the thread, unless [`Recording::stop`] has given up on it: then the thread is in the JVM,
    /// and may stay there. It ends by itself, and the memory that it reads is kept.
    pub(super) fn join(&self) {
        let mut running = self.running.lock();
        let Some(running) = running.as_mut() else { return };
        let Some(thread) = running.thread.take() else { return };
        if *running.shared.progress.lock() != Progress::Ended {
            log::debug!(
                "jfr: the agent does not wait for its thread: the JVM has not yet written the last events"
            );
            return;
        }
        let _ = thread.join();
    }
}

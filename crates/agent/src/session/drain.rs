//! Moves samples out of the buffer, into the interval's sums.

use std::sync::Arc;
use std::time::Duration;

use otlpprof_aggregate::{Aggregator, Interval, ObjectCounts, RawFrame, UnnamedFrame};
use otlpprof_core::record::{FrameKind, FrameRecord};
use otlpprof_elf::loader_list::{LoadCounts, load_counts};
use otlpprof_jvm::methods::{MethodTable, MethodTableLimits};
use otlpprof_options::Options;
use otlpprof_sampling::wall;
use otlpprof_signal::buffer::{Drained, SampleBuffer};
use otlpprof_signal::sample;
use parking_lot::Mutex;

use super::clocks::SessionClocks;
use crate::counters::Recorded;
use crate::engines;
use crate::resolve::FrameResolver;
use crate::vm::{STUBS, Vm};

/// The number of numbered samples from which on those whose memory or objects are gone are discarded before
/// the interval ends: twice as many as are remembered.
const MOST_NUMBERED: usize = 600_000;

/// The drain of a session. The session's thread drains at intervals, the VM's thread where a collection
/// begins.
pub(super) struct Drain {
    vm: &'static Vm,
    buffer: &'static SampleBuffer,
    /// A thread that holds this lock never calls into the VM.
    state: Mutex<DrainState>,
}

struct DrainState {
    options: Arc<Options>,
    aggregator: Aggregator,
    resolver: FrameResolver,
    recorded: Recorded,
    /// Set when the session has ended. From then on the buffer belongs to another session, and this one no
    /// longer drains.
    is_over: bool,
}

/// The samples of an interval, and the moment at which it has ended.
pub(super) struct DrainedInterval {
    pub(super) interval: Interval,
    /// The counts since the session began.
    pub(super) recorded: Recorded,
    /// The clocks at the end.
    pub(super) end: SessionClocks,
}

impl Drain {
    pub(super) fn new(vm: &'static Vm, buffer: &'static SampleBuffer, options: Arc<Options>) -> Self {
        let methods = vm.layout().map(|layout| MethodTable::new(layout.method, MethodTableLimits::default()));
        let resolver = FrameResolver {
            methods,
            method_names: vm.method_names(),
            stubs: &STUBS,
            normalise_class_names: options.normalise_class_names,
            subject_form: engines::subject_form,
            unknown_methods: 0,
        };
        let mut aggregator = Aggregator::new(options.encode.timestamps);
        aggregator.sampled_since(object_counts(load_counts()));
        let state =
            DrainState { options, aggregator, resolver, recorded: Recorded::default(), is_over: false };
        Self { vm, buffer, state: Mutex::new(state) }
    }

    /// Takes all samples out of the buffer, and does the periodic work.
    pub(super) fn drain(&self) {
        // Read before the lock is taken: the start of a collection waits for that lock, and reading the
        // counts may wait for the dynamic linker's lock, which another thread may hold.
        let loads = load_counts();
        self.state.lock().drain(self.buffer, loads);
    }

    /// Drains where a collection begins, at a safepoint: until then references in the buffer mean what they
    /// meant when they were sampled; afterwards they may not. Also called before and after classes are
    /// redefined, whose former methods are freed.
    pub(super) fn collection_starts(&self) {
        // Method ids survive collections, and naming them may wait for a safepoint: so nothing is done here.
        if self.vm.names_by_ids() {
            return;
        }
        let mut state = self.state.lock();
        state.take_samples(self.buffer);
        state.aggregator.forget_java_frames();
        if let Some(methods) = &mut state.resolver.methods {
            methods.advance_epoch();
        }
    }

    /// Drains, and takes the interval's sums.
    pub(super) fn take_interval(&self) -> DrainedInterval {
        // As in `drain`.
        let loads = load_counts();
        let mut state = self.state.lock();
        state.drain(self.buffer, loads);
        let end = SessionClocks::now();
        let repeatable = wall::settle(end.monotonic_ns);
        state.take_repeats();
        let interval = state.aggregator.take(&repeatable);
        if let Some(methods) = &mut state.resolver.methods {
            methods.advance_interval();
        }
        DrainedInterval { interval, recorded: state.recorded, end }
    }

    /// Drains, and copies the interval's sums so far. The interval goes on.
    pub(super) fn interval_so_far(&self) -> DrainedInterval {
        // As in `drain`.
        let loads = load_counts();
        let mut state = self.state.lock();
        state.drain(self.buffer, loads);
        let end = SessionClocks::now();
        let interval = state.aggregator.so_far();
        DrainedInterval { interval, recorded: state.recorded, end }
    }

    /// Takes the native frames that have been drained since the last call.
    pub(super) fn new_unnamed_frames(&self) -> Vec<UnnamedFrame> {
        self.state.lock().aggregator.new_unnamed_frames()
    }

    /// Waits until a strip of the buffer is half full, or until somebody rings, for at most this time.
    pub(super) fn wait(&self, longest: Duration) {
        self.buffer.drain_bell.wait(longest);
    }

    /// Wakes the thread that waits.
    pub(super) fn ring(&self) {
        self.buffer.drain_bell.ring();
    }

    pub(super) fn recorded(&self) -> Recorded {
        self.state.lock().recorded
    }

    /// Counts samples that the user excluded.
    pub(super) fn add_left_out(&self, samples: u64) {
        self.state.lock().recorded.left_out += samples;
    }

    /// Ends the drain: from here on the buffer belongs to the next session.
    pub(super) fn end(&self) {
        self.state.lock().is_over = true;
    }
}

impl DrainState {
    /// Takes all samples out of the buffer, and does the periodic work. `loads` are counts from before: all
    /// samples of the next drain are taken after them.
    fn drain(&mut self, buffer: &SampleBuffer, loads: LoadCounts) {
        self.take_samples(buffer);
        if self.is_over {
            return;
        }
        self.aggregator.sampled_since(object_counts(loads));
        self.take_repeats();
        if self.aggregator.numbered_count() > MOST_NUMBERED {
            let alive = engines::alive(&self.options);
            self.aggregator.retain_numbered(|engine, number| alive.contains_key(&(engine, number)));
        }
    }

    /// Takes the wall-clock time of threads that have not moved since their last samples.
    fn take_repeats(&mut self) {
        for repeat in wall::take_repeats() {
            let values = sample::wall_values(repeat.ns);
            if !self.aggregator.repeat(repeat.number, values, repeat.monotonic_ns) {
                wall::return_time(&repeat);
            }
        }
    }

    /// Takes all samples out of the buffer, and resolves what a collection may change. Does nothing more,
    /// since the program waits while this happens at the start of a collection.
    fn take_samples(&mut self, buffer: &SampleBuffer) {
        let Self { aggregator, resolver, recorded, is_over, .. } = self;
        if *is_over {
            return;
        }
        aggregator.forget_labels();
        // SAFETY: there is one drainer at a time: all drains hold the session's lock, one session runs at a
        // time, and a session that is over does not drain.
        unsafe {
            buffer.drain(|drained| {
                for record in drained.records() {
                    recorded.samples[record.header.engine as usize] += 1;
                    recorded.periods += record.header.weight;
                    let frames = engines::frames_of(&record.header, record.frames, resolver);
                    let frames = frames.iter().map(|frame| self_contained(drained, frame));
                    aggregator.add(&record.header, frames, resolver);
                }
            });
        }
        recorded.unknown_methods = resolver.unknown_methods;
    }
}

fn object_counts(LoadCounts { loaded, unloaded }: LoadCounts) -> ObjectCounts {
    ObjectCounts { loaded, unloaded }
}

/// Copies a record's frame without its reference to the remote pool, whose slots are emptied after the drain.
fn self_contained(drained: &Drained<'_>, frame: &FrameRecord) -> RawFrame {
    let remote = if frame.kind == FrameKind::Remote { drained.remote(frame.aux) } else { None };
    match remote {
        Some(remote) => RawFrame { kind: FrameKind::Remote, aux: remote.object.0, value: remote.address.0 },
        None => RawFrame::new(frame),
    }
}

//! Moves samples out of the buffer, into the interval's sums.

use crate::agent::counters::Recorded;
use crate::agent::engines;
use crate::agent::options::Options;
use crate::agent::resolve::FrameResolver;
use crate::aggregate::{Aggregator, ObjectCounts, RawFrame};
use crate::core::record::{FrameKind, FrameRecord};
use crate::elf::loader_list::LoadCounts;
use crate::sampling::wall;
use crate::signal::buffer::{Drained, SampleBuffer};
use crate::signal::sample;

/// The number of numbered samples from which on those whose memory or objects are gone are discarded before
/// the interval ends: twice as many as are remembered.
const MOST_NUMBERED: usize = 600_000;

/// The state of the drain, under one lock. The session's thread drains at intervals, the VM's thread where a
/// collection begins. A thread that holds the lock never calls into the VM.
pub(super) struct Drain {
    pub(super) options: Options,
    pub(super) aggregator: Aggregator,
    pub(super) resolver: FrameResolver,
    pub(super) recorded: Recorded,
    /// Set when the session has ended. From then on the buffer belongs to another session, and this one no
    /// longer drains.
    pub(super) is_over: bool,
}

impl Drain {
    /// Takes all samples out of the buffer, and does the periodic work. `loads` are counts from before: all
    /// samples of the next drain are taken after them.
    pub(super) fn drain(&mut self, buffer: &SampleBuffer, loads: LoadCounts) {
        self.take_samples(buffer);
        let Self { aggregator, is_over, .. } = self;
        if *is_over {
            return;
        }
        aggregator.sampled_since(ObjectCounts { loaded: loads.loaded, unloaded: loads.unloaded });
        self.take_repeats();
        let Self { options, aggregator, .. } = self;
        if aggregator.numbered_count() > MOST_NUMBERED {
            let alive = engines::alive(options);
            aggregator.retain_numbered(|engine, number| alive.contains_key(&(engine, number)));
        }
    }

    /// Takes the wall-clock time of threads that have not moved since their last samples.
    pub(super) fn take_repeats(&mut self) {
        for repeat in wall::take_repeats() {
            let values = sample::wall_values(repeat.ns);
            if !self.aggregator.repeat(repeat.number, values, repeat.monotonic_ns) {
                wall::return_time(&repeat);
            }
        }
    }

    /// Takes all samples out of the buffer, and resolves what a collection may change. Does nothing more,
    /// since the program waits while this happens at the start of a collection.
    pub(super) fn take_samples(&mut self, buffer: &SampleBuffer) {
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

/// Copies a record's frame without its reference to the remote pool, whose slots are emptied after the drain.
fn self_contained(drained: &Drained<'_>, frame: &FrameRecord) -> RawFrame {
    let remote = if frame.kind == FrameKind::Remote { drained.remote(frame.aux) } else { None };
    match remote {
        Some(remote) => RawFrame { kind: FrameKind::Remote, aux: remote.object.0, value: remote.address.0 },
        None => RawFrame::new(frame),
    }
}

//! Samples out of the buffer, into the interval's sums.

use crate::agent::budget::Used;
use crate::agent::engines;
use crate::agent::options::Options;
use crate::agent::resolve::FrameResolver;
use crate::aggregate::{Aggregator, ObjectCounts, RawFrame};
use crate::core::record::{Engine, FrameKind, FrameRecord};
use crate::elf::loader_list::LoadCounts;
use crate::sampling::wall;
use crate::signal::buffer::{Drained, SampleBuffer};
use crate::signal::sample;

/// So many samples of what may outlive the interval are kept before it is asked what still lives: twice as many as are
/// remembered.
const MOST_NUMBERED: usize = 600_000;

/// What the drain works on, under one lock: the session's thread drains at intervals, the VM's thread where a
/// collection begins. Whoever holds it never calls into the VM.
pub(super) struct Drain {
    pub(super) options: Options,
    pub(super) aggregator: Aggregator,
    pub(super) resolver: FrameResolver,
    pub(super) recorded: Recorded,
    /// The session has ended: what is in the buffer is another's, whoever still asks this one to drain.
    pub(super) is_over: bool,
}

/// What was drained since the session began. The handlers' own counts are ahead of what a profile holds.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::agent) struct Recorded {
    /// By engine.
    pub(in crate::agent) samples: [u64; Engine::COUNT],
    pub(in crate::agent) periods: u64,
    pub(in crate::agent) used: Used,
    /// Those of threads or stacks that the user does not want.
    pub(in crate::agent) left_out: u64,
    /// Frames in methods, and in objects, of which nobody knew any more what they are.
    pub(in crate::agent) unknown_methods: u64,
    pub(in crate::agent) unknown_objects: u64,
}

impl Drain {
    /// Takes all samples out of the buffer, and does what is due from time to time.
    /// `loads` are from before: the next drain's samples are all taken after that.
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

    /// Takes the wall-clock time of threads that were where their last samples found them.
    pub(super) fn take_repeats(&mut self) {
        for repeat in wall::take_repeats() {
            let values = sample::wall_values(repeat.ns);
            if !self.aggregator.repeat(repeat.number, values, repeat.monotonic_ns) {
                wall::give_back(&repeat);
            }
        }
    }

    /// Takes all samples out of the buffer, and what a collection may change becomes names. Nothing more: the program waits
    /// where one begins.
    pub(super) fn take_samples(&mut self, buffer: &SampleBuffer) {
        let Self { aggregator, resolver, recorded, is_over, .. } = self;
        if *is_over {
            return;
        }
        aggregator.forget_labels();
        // SAFETY: one drainer at a time: all drain through the session's lock, one session runs at a time, and one that is
        // over drains no more.
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

/// A record's frame without reference to the remote pool, whose slots end with the drain.
fn self_contained(drained: &Drained<'_>, frame: &FrameRecord) -> RawFrame {
    let remote = if frame.kind == FrameKind::Remote { drained.remote(frame.aux) } else { None };
    match remote {
        Some(remote) => RawFrame { kind: FrameKind::Remote, aux: remote.object.0, value: remote.address.0 },
        None => RawFrame::new(frame),
    }
}

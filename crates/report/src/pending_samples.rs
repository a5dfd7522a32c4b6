//! Samples whose stacks are searched in the tree together, from one branch of the tree to the next.
//!
//! A search waits for main memory at each branch of a large tree. The searches of many stacks wait at the
//! same time. All that pass a node come to it in the same round, and in each round nodes are added in the
//! order of the samples. So siblings have the order that they would have if stacks were searched one by one.

use otlpprof_otlp::wire::Sample;

use super::call_tree::NodeId;
use super::frame_table::FrameId;
use super::idle_threads::Idleness;
use super::thread_role::ThreadRole;

/// The most samples: one cache line for each fits into the processor's first cache.
const MOST_SAMPLES: usize = 256;
/// The most frames, values and times of all samples together, but for the last sample.
const MOST_PARTS: usize = 1 << 16;

/// The most numbers that the lists of a sample have room for while the sample waits for its next use.
const MOST_SPARE: usize = 64;

/// The labels of samples of one profile.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleLabels {
    /// A number that is equal for samples of equal labels in one message.
    pub(super) number: u64,
    /// The role of the thread.
    pub(super) thread: ThreadRole,
    /// Whether the thread is an idle one that is left out.
    pub(super) idleness: Idleness,
    /// The node below which the stacks begin.
    pub(super) root: NodeId,
}

/// A sample whose stack is being searched.
#[derive(Debug)]
pub(super) struct PendingSample {
    pub(super) sample: Sample,
    pub(super) labels: SampleLabels,
    /// The node of the youngest frame, once it is found.
    pub(super) node: NodeId,
    /// Whether the node was known without a search.
    pub(super) is_known: bool,
    /// The places of the frames that are not found yet.
    next: usize,
    end: usize,
}

/// Samples in the order in which they were read.
#[derive(Debug, Default)]
pub(super) struct PendingSamples {
    samples: Vec<PendingSample>,
    /// Samples that have been passed on, whose memory is used again.
    spare: Vec<Sample>,
    /// The frames of all stacks, each from its root.
    pub(super) frames: Vec<FrameId>,
    /// The frames, values and times of all samples.
    parts: usize,
}

impl PendingSamples {
    /// Adds a sample whose node is known.
    pub(super) fn add_known(&mut self, sample: Sample, labels: SampleLabels, node: NodeId) {
        self.add(PendingSample { sample, labels, node, is_known: true, next: 0, end: 0 });
    }

    /// Adds a sample whose stack has the frames from `first` on.
    pub(super) fn add_stack(&mut self, sample: Sample, labels: SampleLabels, first: usize) {
        let (node, end) = (labels.root, self.frames.len());
        self.add(PendingSample { sample, labels, node, is_known: false, next: first, end });
    }

    fn add(&mut self, sample: PendingSample) {
        let of_sample = sample.sample.values.len() + sample.sample.timestamps_unix_nano.len();
        self.parts += of_sample + (sample.end - sample.next);
        self.samples.push(sample);
    }

    /// Whether no more samples should be added.
    pub(super) fn is_full(&self) -> bool {
        self.samples.len() >= MOST_SAMPLES || self.parts >= MOST_PARTS
    }

    /// All samples.
    pub(super) fn all(&self) -> &[PendingSample] {
        &self.samples
    }

    /// Passes all samples to `take`, and forgets them.
    pub(super) fn drain(&mut self, mut take: impl FnMut(&PendingSample)) {
        self.frames.clear();
        self.parts = 0;
        for pending in self.samples.drain(..) {
            take(&pending);
            keep(&mut self.spare, pending.sample);
        }
    }

    /// A sample of any contents, to be decoded into.
    pub(super) fn spare(&mut self) -> Sample {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes back a sample that is not wanted.
    pub(super) fn put_back(&mut self, sample: Sample) {
        keep(&mut self.spare, sample);
    }

    /// The samples whose stacks have frames that are not found yet.
    pub(super) fn open(&self) -> Vec<usize> {
        (0..self.samples.len()).filter(|&index| self.step(index).is_some()).collect()
    }

    /// The node that a search has reached, and the frame of the wanted child; `None` at the end of the stack.
    pub(super) fn step(&self, index: usize) -> Option<(NodeId, FrameId)> {
        let sample = &self.samples[index];
        (sample.next < sample.end).then(|| (sample.node, self.frames[sample.next]))
    }

    /// The frames that are not found yet.
    pub(super) fn rest(&self, index: usize) -> &[FrameId] {
        let PendingSample { next, end, .. } = self.samples[index];
        &self.frames[next..end]
    }

    /// Ends a search at the node of the youngest frame.
    pub(super) fn end_at(&mut self, index: usize, leaf: NodeId) {
        let sample = &mut self.samples[index];
        (sample.node, sample.next) = (leaf, sample.end);
    }

    /// Goes on to the child.
    pub(super) fn go_on(&mut self, index: usize, child: NodeId) {
        let sample = &mut self.samples[index];
        sample.node = child;
        sample.next += 1;
    }
}

fn keep(spare: &mut Vec<Sample>, sample: Sample) {
    let Sample { attribute_indices, values, timestamps_unix_nano, .. } = &sample;
    if attribute_indices.capacity() + values.capacity() + timestamps_unix_nano.capacity() <= MOST_SPARE {
        spare.push(sample);
    }
}

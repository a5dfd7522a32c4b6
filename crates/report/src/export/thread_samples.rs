//! Samples by thread and time, for formats that show threads over time. Memory grows with the number of
//! different stacks, times and threads together.

use std::collections::HashMap;

use foldhash::fast::RandomState as FastState;
use otlpprof_model::attribute_keys;

use super::processes::Processes;
use crate::call_tree::NodeId;
use crate::measure::Measure;
use crate::observations::timed_values;
use crate::profile_context::ProfileContext;
use crate::sample_reader::{SampleSink, SelectedSample};
use crate::selection::{Window, text_of};
use crate::summed::Summed;

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    /// The number of the process.
    pub process: u32,
    /// The name; empty if unknown.
    pub name: String,
    /// The id, Java's if there is one; empty if unknown.
    pub id: String,
}

impl Thread {
    /// The name for people.
    pub fn label(&self) -> String {
        match (&*self.name, &*self.id) {
            ("", "") => "samples without a thread".to_owned(),
            ("", id) => format!("thread {id}"),
            (name, _) => name.to_owned(),
        }
    }
}

/// A sample of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadSample {
    /// The time, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// 0 for a sample with a time of its own. Otherwise the length of its profile, in nanoseconds, which
    /// begins at `unix_ns`.
    pub length_ns: u64,
    /// The node of its youngest frame.
    pub node: NodeId,
    /// The value, in the measure's unit.
    pub value: i64,
}

/// The identity of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct SampleKey {
    thread: u32,
    unix_ns: u64,
    length_ns: u64,
    node: NodeId,
}

/// Collects samples of several measures.
#[derive(Debug)]
pub struct ThreadSamples {
    window: Window,
    kinds: Vec<(Measure, Summed<SampleKey>)>,
    threads: Vec<Thread>,
    thread_ids: HashMap<Thread, u32>,
    /// By the number of the process and that of a sample's labels in the present message.
    of_labels: HashMap<(u32, u64), u32, FastState>,
    /// The processes.
    pub processes: Processes,
    /// Whether samples had no time of their own.
    pub has_untimed: bool,
    /// The number of the present profile's measure.
    present: usize,
    /// The number of the present profile's process.
    process: u32,
}

/// The samples of one measure.
#[derive(Debug)]
pub struct KindSamples {
    /// The measure.
    pub measure: Measure,
    /// For each thread with samples, its number and the samples in the order of their times; the thread with
    /// the highest sum first.
    pub threads: Vec<(usize, Vec<ThreadSample>)>,
}

impl ThreadSamples {
    /// Collects samples of the measures in the window.
    pub fn new(measures: Vec<Measure>, window: Window) -> Self {
        Self {
            window,
            kinds: measures.into_iter().map(|measure| (measure, Summed::default())).collect(),
            threads: Vec::new(),
            thread_ids: HashMap::new(),
            of_labels: HashMap::default(),
            processes: Processes::default(),
            has_untimed: false,
            present: 0,
            process: 0,
        }
    }

    /// The threads, by their numbers.
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// The samples of each measure.
    pub fn take_kinds(&mut self) -> Vec<KindSamples> {
        let kinds = std::mem::take(&mut self.kinds).into_iter();
        kinds.map(|(measure, sums)| KindSamples { threads: by_thread(sums), measure }).collect()
    }

    fn thread_of(&mut self, profile: &ProfileContext<'_>, sample: &SelectedSample<'_>) -> u32 {
        let labels = (self.process, sample.labels);
        if let Some(&known) = self.of_labels.get(&labels) {
            return known;
        }
        let mut thread = Thread { process: self.process, name: String::new(), id: String::new() };
        let mut os_id = String::new();
        for (key, value) in profile.tables.attributes(&sample.sample.attribute_indices) {
            let text = || text_of(profile.tables, value.as_ref()).into_owned();
            match key {
                attribute_keys::THREAD_NAME => thread.name = text(),
                attribute_keys::THREAD_ID => thread.id = text(),
                attribute_keys::THREAD_OS_ID => os_id = text(),
                _ => {}
            }
        }
        if thread.id.is_empty() {
            thread.id = os_id;
        }
        let next = u32::try_from(self.threads.len()).unwrap_or(u32::MAX);
        let id = *self.thread_ids.entry(thread).or_insert_with_key(|thread| {
            self.threads.push(thread.clone());
            next
        });
        self.of_labels.insert(labels, id);
        id
    }
}

/// The samples of each thread, in the order of [`KindSamples::threads`].
fn by_thread(sums: Summed<SampleKey>) -> Vec<(usize, Vec<ThreadSample>)> {
    let mut sorted: Vec<_> = sums.into_sums().into_iter().filter(|&(_, value)| value != 0).collect();
    sorted.sort_unstable_by_key(|&(key, _)| key);
    let of_threads = sorted.chunk_by(|(one, _), (other, _)| one.thread == other.thread);
    let mut threads: Vec<_> = of_threads
        .map(|samples| {
            let thread = samples[0].0.thread as usize;
            let samples = samples.iter().map(|&(SampleKey { unix_ns, length_ns, node, .. }, value)| {
                ThreadSample { unix_ns, length_ns, node, value }
            });
            (thread, samples.collect::<Vec<_>>())
        })
        .collect();
    threads.sort_by_key(|(_, samples)| {
        std::cmp::Reverse(samples.iter().fold(0_i64, |sum, sample| sum.saturating_add(sample.value)))
    });
    threads
}

impl SampleSink for ThreadSamples {
    fn begin_message(&mut self) {
        self.of_labels.clear();
    }

    fn begin_profile(&mut self, profile: &ProfileContext<'_>) -> bool {
        let Some(at) = self.kinds.iter().position(|(measure, _)| *measure == profile.measure) else {
            return false;
        };
        (self.present, self.process) = (at, self.processes.of(profile));
        self.kinds[at].1.begin(profile)
    }

    fn take(&mut self, profile: &ProfileContext<'_>, sample: &SelectedSample<'_>) {
        let thread = self.thread_of(profile, sample);
        let is_untimed = sample.sample.timestamps_unix_nano.is_empty();
        let length_ns = if is_untimed { profile.duration_ns } else { 0 };
        self.has_untimed |= is_untimed;
        let sums = &mut self.kinds[self.present].1;
        timed_values(profile, sample.sample, self.window, |unix_ns, value| {
            sums.add(profile, SampleKey { thread, unix_ns, length_ns, node: sample.node }, value);
        });
    }
}

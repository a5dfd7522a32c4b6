//! The end of an interval, in five steps: its samples are collected, selected, and summed to profiles; the
//! profiler's counters are added; the profiles are sent.
//!
//! | Module | Duty |
//! |---|---|
//! | `so_far` | the profiles of the interval so far, for the readers of a stream |

mod so_far;

use std::sync::Arc;
use std::time::Duration;

use otlpprof_aggregate::{Interval, Survivors};
use otlpprof_core::engine::{Engine, Pace};
use otlpprof_export::stream::Readers;
use otlpprof_model::{AttributeId, Batch, Profile, Resource, Scope, Tables, attribute_keys};
use otlpprof_options::Options;
use otlpprof_signal::rate_limit::LIMITS;
use parking_lot::{Mutex, MutexGuard};

use super::clocks::SessionClocks;
use super::drain::{Drain, DrainedInterval};
use crate::budget::Budget;
use crate::counters::{Recorded, Snapshot};
use crate::engine_profiles::{profiles_of, profiles_of_survivors};
use crate::engines;
use crate::events::Events;
use crate::native_frames::NativeFrames;
use crate::objects::Objects;
use crate::output::Output;
use crate::recording::Recording;
use crate::thread_labels::{self, IntervalLabels, OwnerLabels};

/// Everything that makes and sends the profiles of a session's intervals.
pub(super) struct IntervalEnd {
    options: Arc<Options>,
    objects: Arc<Objects>,
    recording: Arc<Recording>,
    output: Output,
    resource: Resource,
    pub(super) native_frames: NativeFrames,
    pub(super) events: Events,
    pub(super) budget: Mutex<Budget>,
    /// Samples of earlier intervals whose memory or objects are still allocated.
    survivors: Mutex<Survivors>,
    /// Guards whole ends of intervals: one at a time.
    start: Mutex<IntervalStart>,
    counters_at_start: Snapshot,
}

/// The start of an interval.
pub(super) struct IntervalStart {
    /// The offset between the clocks at the start gives all Unix times of the interval, so that all messages
    /// about the interval have one start.
    clocks: SessionClocks,
    counters: Snapshot,
}

/// The profiles of an interval, without counters.
struct Summed {
    tables: Tables,
    profiles: Vec<Profile>,
    /// The longest stretch of each engine in the interval.
    stretches: [u32; Engine::COUNT],
    /// Events of the recording that the user excluded.
    left_out: u64,
}

impl IntervalEnd {
    /// The first interval begins now.
    pub(super) fn new(
        options: Arc<Options>,
        objects: Arc<Objects>,
        recording: Arc<Recording>,
        output: Output,
        resource: Resource,
    ) -> Self {
        let events = Events::default();
        let (encoded, stream) = Default::default();
        let counters = Snapshot::now(Recorded::default(), events.counts(), encoded, None, None, stream);
        let start = IntervalStart { clocks: SessionClocks::now(), counters: counters.clone() };
        let budget =
            Budget::new(options.budget.map(|hundredths| f64::from(hundredths) / 10_000.0), options.interval);
        Self {
            native_frames: NativeFrames::new(objects.clone(), options.remotesym),
            options,
            objects,
            recording,
            output,
            resource,
            events,
            budget: Mutex::new(budget),
            survivors: Mutex::default(),
            start: Mutex::new(start),
            counters_at_start: counters,
        }
    }

    /// Waits until no other thread ends an interval.
    pub(super) fn lock(&self) -> MutexGuard<'_, IntervalStart> {
        self.start.lock()
    }

    /// Ends the interval that `start` began, and sends its profiles. While there is no room in the upload's
    /// queue, waits for at most `patience`, and only as long as `meanwhile`, which is called again and again,
    /// returns `true`.
    pub(super) fn run(
        &self,
        mut start: MutexGuard<'_, IntervalStart>,
        drain: &Drain,
        mut labels: IntervalLabels,
        patience: Duration,
        meanwhile: impl Fn() -> bool,
    ) {
        let mut drained = self.collect(drain, &mut labels);
        let mut left_out = self.select(&mut drained.interval, &labels);
        let mut recorded = drained.recorded;
        let begin = std::mem::replace(&mut start.clocks, drained.end);
        let summed = self.sum(drained, &labels, begin);
        left_out += summed.as_ref().map_or(0, |summed| summed.left_out);
        recorded.left_out += left_out;
        drain.add_left_out(left_out);
        let Some(mut summed) = summed else { return };
        let counters = self.counters(recorded);
        if !self.count(&mut summed, &counters, &start.counters) {
            return;
        }
        // If nothing is sent, the counts are kept for the next profile.
        if self.send(summed, patience, meanwhile) {
            start.counters = counters;
        }
    }

    /// Step 1: drains the interval's samples, and names their frames and threads.
    fn collect(&self, drain: &Drain, labels: &mut IntervalLabels) -> DrainedInterval {
        let map_number = self.objects.published_number();
        let mut drained = drain.take_interval();
        // The drain's lock is not held from here on: the start of a collection waits for it.
        thread_labels::add_names_of_incarnations(&mut labels.java);
        self.native_frames.name(&mut drained.interval);
        self.objects.interval_ends(map_number);
        drained
    }

    /// Step 2: removes the samples that the user excluded. Returns their number.
    fn select(&self, interval: &mut Interval, labels: &IntervalLabels) -> u64 {
        let Options { threads, frames, .. } = &*self.options;
        if threads.is_everything() && frames.is_everything() {
            return 0;
        }
        interval.leave_out(
            |thread| threads.selects(labels.name(thread).into_iter()),
            |tables, stack| frames.selects_stack(tables, stack),
        )
    }

    /// Step 3: sums the samples to profiles, and adds those of survivors, of reported events and of the
    /// recording. Returns `None` if there is nothing to report.
    fn sum(&self, drained: DrainedInterval, labels: &IntervalLabels, begin: SessionClocks) -> Option<Summed> {
        let DrainedInterval { mut interval, end, .. } = drained;
        let (alive, mut survivors) = (engines::alive(&self.options), self.survivors.lock());
        let numbered =
            interval.numbered_samples(|tables, thread| thread_labels::attributes(tables, thread, labels));
        survivors.forget_dead(&alive);
        let is_empty = interval.is_empty() && self.events.is_empty() && survivors.is_empty();
        if is_empty && self.recording.is_empty() {
            return None;
        }
        let stretches = self.take_longest_stretches();
        survivors.update(&interval.tables, &numbered, &alive, &stretches);
        let (mut tables, mut profiles) = self.sum_samples(interval, begin.unix_offset_ns, labels, &stretches);
        let end_unix_nano = (self.options.encode.timestamps)
            .then(|| end.monotonic_ns.saturating_add_signed(begin.unix_offset_ns));
        for engine in Engine::ALL {
            let kinds = profiles_of_survivors(engine, &self.options);
            profiles.extend(survivors.profiles(engine, kinds, &mut tables, &alive, end_unix_nano));
        }
        drop(survivors);
        profiles.extend(self.events.take(&mut tables));
        set_times(&mut profiles, begin, end.monotonic_ns);
        // The times of these profiles are the times for which the recording has been read.
        let (of_recording, left_out) = self.recording.take(&mut tables);
        profiles.extend(of_recording);
        Some(Summed { tables, profiles, stretches, left_out })
    }

    /// Sums the samples of the interval itself to profiles, which have no times yet.
    fn sum_samples(
        &self,
        interval: Interval,
        unix_offset_ns: i64,
        labels: &IntervalLabels,
        stretches: &[u32; Engine::COUNT],
    ) -> (Tables, Vec<Profile>) {
        let mut owners = OwnerLabels::new(&labels.java);
        let kinds = |engine| profiles_of(engine, &self.options, stretches[engine as usize]);
        interval.into_profiles(
            kinds,
            unix_offset_ns,
            |tables, thread| thread_labels::attributes(tables, thread, labels),
            |tables, owner| owners.attributes(tables, owner),
        )
    }

    /// Returns the longest stretch of each engine, by the budget and by limits, since the last call.
    fn take_longest_stretches(&self) -> [u32; Engine::COUNT] {
        Self::combined_stretches(self.budget.lock().take_longest(), LIMITS.take_longest())
    }

    /// The stretch of each engine, from those by the budget and those by limits.
    fn combined_stretches(
        of_budget: [u32; Engine::COUNT],
        of_limits: [u32; Engine::COUNT],
    ) -> [u32; Engine::COUNT] {
        Engine::ALL.map(|engine| {
            let (of_budget, of_limit) = (of_budget[engine as usize], of_limits[engine as usize]);
            match engine.pace() == Pace::Source {
                true => of_budget.saturating_mul(of_limit),
                false => of_budget.max(of_limit),
            }
        })
    }

    /// Step 4: adds the counts since `earlier` to the profiles as attributes. Returns `false` if there is no
    /// profile: samples of the live heap make none before their objects have survived a collection.
    fn count(&self, summed: &mut Summed, counters: &Snapshot, earlier: &Snapshot) -> bool {
        let Summed { tables, profiles, stretches, .. } = summed;
        let mut attributes = counters.attributes_since(earlier, tables);
        if let Some(clock) = engines::clock_name() {
            attributes.push(tables.string_attribute(attribute_keys::CPU_CLOCK, clock));
        }
        for engine in Engine::ALL.into_iter().filter(|engine| stretches[*engine as usize] > 1) {
            let key = format!("{}{}", attribute_keys::LIMIT_OF_ENGINE, engine.name());
            attributes.push(tables.int_attribute(&key, i64::from(stretches[engine as usize]), ""));
        }
        attributes
            .push(tables.string_attribute(attribute_keys::STACK_WALKER, self.options.stack_walker.name()));
        // Counts of no engine go into the first profile, whichever that is.
        let Some(first) = profiles.first_mut() else { return false };
        add_attributes(first, tables, &attributes);
        for engine in Engine::ALL {
            let counts = counters.engine_attributes_since(engine, earlier, tables);
            let of_engine = [
                profiles_of(engine, &self.options, stretches[engine as usize]),
                profiles_of_survivors(engine, &self.options),
            ];
            let is_of_engine = |profile: &Profile| {
                let mut kinds = of_engine.iter().flatten().flatten();
                kinds.any(|kind| kind.profile_type == profile.profile_type)
            };
            // An engine without a profile may still have lost samples: then its counts go into the first
            // profile.
            let place = profiles.iter().position(is_of_engine).unwrap_or(0);
            add_attributes(&mut profiles[place], tables, &counts);
        }
        true
    }

    /// Step 5: sends the profiles. Returns whether they gave any message.
    fn send(&self, summed: Summed, patience: Duration, meanwhile: impl Fn() -> bool) -> bool {
        self.output.send(&self.batch(summed), patience, meanwhile)
    }

    fn batch(&self, summed: Summed) -> Batch {
        let Summed { tables, profiles, .. } = summed;
        Batch { resource: self.resource.clone(), scope: Scope::default(), tables, profiles }
    }

    /// The readers of the profiles so far.
    pub(super) const fn readers(&self) -> &Readers {
        self.output.readers()
    }

    /// Sends pending messages within the time limit. Nothing is sent afterwards.
    pub(super) fn shutdown(&self, within: Duration) {
        self.output.shutdown(within);
    }

    /// The counters now. `recorded` are the samples that the drain has counted.
    pub(super) fn counters(&self, recorded: Recorded) -> Snapshot {
        let recorded = Recorded {
            used: self.budget.lock().used(),
            unknown_objects: self.native_frames.unknown_objects(),
            ..recorded
        };
        let output = &self.output;
        let (upload, file) = (output.upload_stats(), output.file_stats());
        let reported = self.events.counts().into_iter().chain(self.recording.counts());
        let stream = output.readers().stats();
        Snapshot::now(recorded, reported, output.encode_stats(), upload.as_ref(), file.as_ref(), stream)
    }

    /// The counters when the session began.
    pub(super) const fn counters_at_start(&self) -> &Snapshot {
        &self.counters_at_start
    }

    /// The entity that the profiles are about.
    pub(super) const fn resource(&self) -> &Resource {
        &self.resource
    }
}

/// Gives the profiles the time from `begin` to `end_ns` of the monotonic clock.
fn set_times(profiles: &mut [Profile], begin: SessionClocks, end_ns: u64) {
    for profile in profiles {
        profile.start_unix_nano = begin.unix_ns();
        profile.duration_nano = end_ns.saturating_sub(begin.monotonic_ns);
    }
}

fn add_attributes(profile: &mut Profile, tables: &mut Tables, attributes: &[AttributeId]) {
    let attributes = tables.attribute_set(attributes);
    profile.attributes = tables.union_of_attributes(profile.attributes, attributes);
}

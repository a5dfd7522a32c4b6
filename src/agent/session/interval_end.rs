//! The end of an interval: its sums become profiles, which are sent.

use std::time::Duration;

use parking_lot::MutexGuard;

use super::{ProfilingSession, clocks};
use crate::agent::counters::Snapshot;
use crate::agent::engine_profiles::{profiles_of, profiles_of_survivors};
use crate::agent::engines;
use crate::agent::options::Options;
use crate::agent::thread_labels::{self, IntervalLabels, OwnerLabels};
use crate::aggregate::{Interval, ThreadKey};
use crate::core::engine::{Engine, Pace};
use crate::elf::loader_list::load_counts;
use crate::model::{Batch, Profile, Scope, Tables, attribute_keys};
use crate::sampling::wall;
use crate::signal::rate_limit::LIMITS;

/// The start of an interval.
#[derive(Clone)]
pub(super) struct IntervalStart {
    pub(super) monotonic_ns: u64,
    pub(super) counters: Snapshot,
}

impl ProfilingSession {
    /// Ends the interval and sends its profiles. While there is no room in the upload's queue, waits for at
    /// most `patience`, and only as long as `may_wait` returns `true`.
    pub(super) fn end_interval(
        &self,
        mut interval_start: MutexGuard<'_, IntervalStart>,
        mut labels: IntervalLabels,
        patience: Duration,
        may_wait: impl Fn() -> bool,
    ) {
        let map_number = self.objects.published_number();
        let loads = load_counts();
        let (mut interval, mut recorded, end_ns, unix_offset_ns) = {
            let mut drain = self.drain.lock();
            drain.drain(self.buffer, loads);
            let (end_ns, unix_offset_ns) = clocks();
            let repeatable = wall::settle(end_ns);
            drain.take_repeats();
            let interval = drain.aggregator.take(&repeatable);
            if let Some(methods) = &mut drain.resolver.methods {
                methods.advance_interval();
            }
            (interval, drain.recorded, end_ns, unix_offset_ns)
        };
        thread_labels::add_names_of_incarnations(&mut labels.java);
        let labels = &labels;
        interval.name_frames(|tables, frame| self.native_frames.frame(tables, frame));
        self.objects.interval_ends(map_number);
        // The drain's lock must not be held here: the start of a collection waits for it.
        let mut left_out = self.leave_out(&mut interval, labels);
        let start = interval_start.clone();
        interval_start.monotonic_ns = end_ns;
        let attributes_of =
            |tables: &mut Tables, thread: ThreadKey| thread_labels::attributes(tables, thread, labels);
        let (alive, mut survivors) = (engines::alive(&self.options), self.survivors.lock());
        let numbered = interval.numbered_samples(attributes_of);
        survivors.forget_dead(&alive);
        let is_empty = interval.is_empty() && self.events.is_empty() && survivors.is_empty();
        if is_empty && self.recording.is_empty() {
            self.drain.lock().recorded.left_out += left_out;
            return;
        }
        let (of_budget, of_limits) = (self.budget.lock().take_longest(), LIMITS.take_longest());
        let stretches = Engine::ALL.map(|engine| {
            let (of_budget, of_limit) = (of_budget[engine as usize], of_limits[engine as usize]);
            match engine.pace() == Pace::Source {
                true => of_budget.saturating_mul(of_limit),
                false => of_budget.max(of_limit),
            }
        });
        survivors.update(&interval.tables, &numbered, &alive, &stretches);
        let mut owners = OwnerLabels::new(&labels.java);
        let kinds = |engine| profiles_of(engine, &self.options, stretches[engine as usize]);
        let (mut tables, mut profiles) =
            interval.into_profiles(kinds, unix_offset_ns, attributes_of, |tables, owner| {
                owners.attributes(tables, owner)
            });
        let end_unix_nano =
            self.options.encode.timestamps.then(|| end_ns.saturating_add_signed(unix_offset_ns));
        for engine in Engine::ALL {
            let kinds = profiles_of_survivors(engine, &self.options);
            profiles.extend(survivors.profiles(engine, kinds, &mut tables, &alive, end_unix_nano));
        }
        drop(survivors);
        profiles.extend(self.events.take(&mut tables));
        for profile in &mut profiles {
            profile.start_unix_nano = start.monotonic_ns.saturating_add_signed(unix_offset_ns);
            profile.duration_nano = end_ns.saturating_sub(start.monotonic_ns);
        }
        // The times of these profiles are those for which the recording has been read.
        let (of_recording, unwanted) = self.recording.take(&mut tables);
        profiles.extend(of_recording);
        left_out += unwanted;
        recorded.left_out += left_out;
        self.drain.lock().recorded.left_out += left_out;
        let counters = self.counters(recorded);
        let mut attributes = counters.attributes_since(&start.counters, &mut tables);
        if let Some(clock) = self.clock.get() {
            attributes.push(tables.string_attribute(attribute_keys::CPU_CLOCK, clock));
        }
        for engine in Engine::ALL.into_iter().filter(|engine| stretches[*engine as usize] > 1) {
            let key = format!("{}{}", attribute_keys::LIMIT_OF_ENGINE, engine.name());
            attributes.push(tables.int_attribute(&key, i64::from(stretches[engine as usize]), ""));
        }
        attributes
            .push(tables.string_attribute(attribute_keys::STACK_WALKER, self.options.stack_walker.name()));
        // The counts go into the first profile, whichever that is. There may be none: samples of
        // the live heap make no profile before their objects have survived a collection.
        let Some(first) = profiles.first_mut() else { return };
        let counts = tables.attribute_set(&attributes);
        first.attributes = tables.union_of_attributes(first.attributes, counts);
        for engine in Engine::ALL {
            let counts = counters.engine_attributes_since(engine, &start.counters, &mut tables);
            let of_engine = [kinds(engine), profiles_of_survivors(engine, &self.options)];
            let is_of_engine = |profile: &Profile| {
                let mut kinds = of_engine.iter().flatten().flatten();
                kinds.any(|kind| kind.profile_type == profile.profile_type)
            };
            // An engine without a profile may still have lost samples: then its counts go into the first
            // profile.
            let place = profiles.iter().position(is_of_engine).unwrap_or(0);
            let counts = tables.attribute_set(&counts);
            let attributes = &mut profiles[place].attributes;
            *attributes = tables.union_of_attributes(*attributes, counts);
        }
        let batch = Batch { resource: self.resource.clone(), scope: Scope::default(), tables, profiles };
        // If nothing is sent, the counts are kept for the next profile.
        let meanwhile = || {
            self.drain_now();
            may_wait()
        };
        if self.output.send(&batch, patience, meanwhile) {
            interval_start.counters = counters;
        }
    }

    /// Removes the samples that the user excluded. Returns their number.
    fn leave_out(&self, interval: &mut Interval, labels: &IntervalLabels) -> u64 {
        let Options { threads, frames, .. } = &self.options;
        if threads.is_everything() && frames.is_everything() {
            return 0;
        }
        interval.leave_out(
            |thread| threads.selects(labels.name(thread).into_iter()),
            |tables, stack| frames.selects_stack(tables, stack),
        )
    }
}

//! The contents of profile files in outline: measures, times, resources.

use std::collections::BTreeMap;

use otlpprof_model::attribute_keys;
use otlpprof_otlp::encoded::{EncodedMessage, EncodedTables};
use otlpprof_otlp::encoded_profiles::{EncodedProfile, EncodedResource, EncodedScope};
use otlpprof_otlp::lookup::DictionaryTables as _;
use otlpprof_otlp::wire::Sample;

use super::measure::{self, Measure, PREFERRED, ProfileMeasure};
use super::page::steps::Interval;
use super::resource_survey::ResourceSurvey;
use super::selection::text_of;
use super::state_times::StateTimes;

/// The outline of all messages.
#[derive(Debug, Default)]
pub struct Survey {
    /// The number of messages.
    pub messages: usize,
    /// The size of the largest message in bytes.
    pub largest_message: usize,
    /// The number of samples of each measure.
    pub measures: BTreeMap<Measure, u64>,
    /// For each measure, the quantity and unit that its periods count; empty if unknown.
    pub period_types: BTreeMap<Measure, (String, String)>,
    /// The attributes of the resources that have profiles.
    pub resources: ResourceSurvey,
    /// The first start and the last end of a profile, in nanoseconds since 1970; `None` if no profile has a
    /// time.
    pub times: Option<(u64, u64)>,
    /// The last start of a profile, in nanoseconds since 1970; 0 if no profile has a time.
    pub last_start_ns: u64,
    /// Whether samples have times of their own, going by the first sample of each profile.
    pub has_sample_times: bool,
    /// The measure that the first file with a wish asks to be shown if none is named.
    pub wished: Option<Measure>,
    /// The last states of processes.
    pub states: StateTimes,
    /// Length and start of the profiles that have a length, in nanoseconds.
    intervals: Vec<(u64, u64)>,
}

impl Survey {
    /// Adds a message.
    pub fn add(&mut self, message: &EncodedMessage) {
        self.messages += 1;
        self.largest_message = self.largest_message.max(message.bytes().len());
        let tables = message.tables();
        for resource in message.resources() {
            let attributes = resource.resource().unwrap_or_default().attributes;
            let pairs = attributes.iter().map(|attribute| {
                let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
                (tables.key(attribute), value)
            });
            if resource.scopes().flat_map(EncodedScope::profiles).next().is_some() {
                self.resources.add(pairs.map(|(key, value)| (key, text_of(tables, value))));
            }
            let mut process = None;
            for scope in resource.scopes() {
                let wish = wish_of(tables, scope);
                for profile in scope.profiles() {
                    self.add_profile(tables, resource, &mut process, profile, wish.as_deref());
                }
            }
        }
    }

    /// Adds a profile. `process` is the number of the resource's process, once a profile has needed it.
    /// `wish` is the sample type that the scope asks to be shown.
    fn add_profile(
        &mut self,
        tables: EncodedTables<'_>,
        resource: EncodedResource<'_>,
        process: &mut Option<u64>,
        profile: EncodedProfile<'_>,
        wish: Option<&str>,
    ) {
        let header = profile.header();
        let ProfileMeasure { measure, .. } = ProfileMeasure::of(tables, &header);
        if !self.period_types.contains_key(&measure) {
            let (name, unit) = tables.value_type(header.period_type);
            self.period_types.insert(measure.clone(), (name.to_owned(), unit.to_owned()));
        }
        if measure.is_snapshot() {
            // The attributes are hashed here alone: few resources have states.
            let process = *process.get_or_insert_with(|| self.states.process(tables, resource));
            self.states.note(&measure, process, header.time_unix_nano);
        }
        if self.wished.is_none() && wish.is_some_and(|wish| tables.value_type(header.sample_type).0 == wish) {
            self.wished = Some(measure.clone());
        }
        *self.measures.entry(measure).or_default() += profile.sample_count() as u64;
        let has_times = |sample: Sample| !sample.timestamps_unix_nano.is_empty();
        self.has_sample_times |= profile.samples().next().is_some_and(has_times);
        let (start_ns, length_ns) = (header.time_unix_nano, header.duration_nano);
        if length_ns != 0 {
            self.intervals.push((length_ns, start_ns));
        }
        self.last_start_ns = self.last_start_ns.max(start_ns);
        if start_ns != 0 {
            let end_ns = start_ns.saturating_add(length_ns);
            let (first, last) = self.times.unwrap_or((start_ns, end_ns));
            self.times = Some((first.min(start_ns), last.max(end_ns)));
        }
    }

    /// The profile with the usual length, which is the median; `None` if no profile has a length.
    pub fn usual_interval(&self) -> Option<Interval> {
        let mut intervals = self.intervals.clone();
        intervals.sort_unstable();
        let &(length_ns, start_ns) = intervals.get(intervals.len() / 2)?;
        Some(Interval { start_ns, length_ns })
    }

    /// The other measures that are taken at the same events as this one: their periods count the same
    /// quantity, and both are states or both are not.
    pub fn of_same_events(&self, measure: &Measure) -> impl Iterator<Item = &Measure> {
        let period_type = self.period_types.get(measure).filter(|(name, _)| !name.is_empty());
        let is_snapshot = measure.is_snapshot();
        self.measures.keys().filter(move |&other| {
            other != measure
                && other.is_snapshot() == is_snapshot
                && period_type.is_some_and(|known| self.period_types.get(other) == Some(known))
        })
    }

    /// The measure that is called by this name; without a name the one that a file asks for, else the CPU
    /// time, else the wall-clock time, else the one with the most samples. `None` if there is none.
    pub fn measure(&self, name: Option<&str>) -> Option<&Measure> {
        let named = |name: &str| self.measures.keys().find(|measure| measure.name == name);
        match name {
            Some(name) => measure::called(self.measures.keys(), name),
            None => self.wished.as_ref().or_else(|| PREFERRED.into_iter().find_map(named)).or_else(|| {
                let most = self.measures.iter().max_by_key(|&(_, samples)| samples);
                most.map(|(measure, _)| measure)
            }),
        }
    }
}

/// The sample type that a scope asks to be shown.
fn wish_of(tables: EncodedTables<'_>, scope: EncodedScope<'_>) -> Option<String> {
    let attributes = scope.scope().unwrap_or_default().attributes;
    let is_wish = |key: &str| key == attribute_keys::PPROF_DEFAULT_SAMPLE_TYPE;
    let wish = attributes.iter().find(|attribute| is_wish(tables.key(attribute)))?;
    tables.value_text(wish.value.as_ref()?.value.as_ref()?).map(str::to_owned)
}

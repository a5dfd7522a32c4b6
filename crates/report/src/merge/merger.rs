//! The messages that are read, and the message that they become.

use std::collections::{BTreeSet, HashMap};

use otlpprof_model::{AttributeSetId, SliceInterner};
use otlpprof_otlp::encoded::{EncodedMessage, EncodedTables};
use otlpprof_otlp::encoded_profiles::EncodedProfile;
use otlpprof_otlp::lookup::DictionaryTables as _;
use otlpprof_otlp::wire::{Profile, ProfilesData, Sample};

use super::dictionary::{MergedDictionary, NoEntry};
use super::encoding;
use super::origins::{NoSuchKey, Origins, ScopeId, United};
use super::profile::{MergedProfile, ProfileKey, SampleKey};
use crate::measure::ProfileMeasure;
use crate::observations::observations;

/// Sums messages. All messages are passed to [`Merger::survey`], then all of them to [`Merger::add`].
#[derive(Debug)]
pub struct Merger {
    keeps_times: bool,
    origins: Origins,
    /// The profiles, in the order of their first occurrence.
    profiles: Vec<(ProfileKey, MergedProfile)>,
    profile_ids: HashMap<ProfileKey, usize>,
    dictionary: MergedDictionary,
    sets: SliceInterner<i32, AttributeSetId>,
    /// Scratch space: the attributes of a sample.
    set: Vec<i32>,
    /// The number of original recordings in the messages, which are left out.
    pub payloads: u64,
}

impl Merger {
    /// Sums nothing yet. If times are kept, each value keeps its own time or the start of its profile.
    pub fn new(keeps_times: bool) -> Self {
        Self {
            keeps_times,
            origins: Origins::default(),
            profiles: Vec::new(),
            profile_ids: HashMap::new(),
            dictionary: MergedDictionary::default(),
            sets: SliceInterner::default(),
            set: Vec::new(),
            payloads: 0,
        }
    }

    /// Takes the periods, times and states of a message.
    pub fn survey(&mut self, message: &EncodedMessage) {
        self.each_profile(message, |merger, at, profile, header, measured| {
            merger.profiles[at].1.survey(header, measured);
            merger.payloads += u64::from(!profile.payload().is_empty());
            Ok(())
        })
        // SANITY: the closure does not fail.
        .unwrap_or_default();
    }

    /// Adds the samples of a message.
    ///
    /// # Errors
    /// A sample refers to an entry that the message does not have.
    pub fn add(&mut self, message: &EncodedMessage) -> Result<(), NoEntry> {
        let tables = message.tables();
        self.dictionary.begin_message();
        self.each_profile(message, |merger, at, profile, header, measured| {
            let merged = &mut merger.profiles[at].1;
            merged.attributes().add(tables, &header.attribute_indices);
            merged.add_dropped_attributes(header.dropped_attributes_count);
            if !merged.has_state(header.time_unix_nano) {
                return Ok(());
            }
            let scale = merged.scale(measured);
            let mut sample = Sample::default();
            profile.encoded_samples().try_for_each(|encoded| {
                encoded.decode_to(&mut sample);
                merger.add_sample(tables, at, header, &sample, scale)
            })
        })
    }

    fn add_sample(
        &mut self,
        tables: EncodedTables<'_>,
        at: usize,
        header: &Profile,
        sample: &Sample,
        scale: i64,
    ) -> Result<(), NoEntry> {
        let mut sum = 0_i64;
        let mut has_value = false;
        observations(sample, header.time_unix_nano, |_, value| {
            sum = sum.saturating_add(value.saturating_mul(scale));
            has_value |= value != 0;
        });
        if !has_value {
            return Ok(());
        }
        self.dictionary.attribute_set_to(tables, &sample.attribute_indices, &mut self.set)?;
        let key = SampleKey {
            stack: self.dictionary.stack(tables, sample.stack_index)?,
            attributes: self.sets.intern(&self.set),
            link: self.dictionary.link(tables, sample.link_index)?,
        };
        let merged = &mut self.profiles[at].1;
        if !self.keeps_times {
            merged.add(key, sum);
            return Ok(());
        }
        observations(sample, header.time_unix_nano, |unix_ns, value| {
            if value != 0 {
                merged.add_timed(key, unix_ns, value.saturating_mul(scale));
            }
        });
        Ok(())
    }

    /// Calls `take` with each profile of a message: the number of its merged profile, the profile, its
    /// header and its measure.
    fn each_profile(
        &mut self,
        message: &EncodedMessage,
        mut take: impl FnMut(
            &mut Self,
            usize,
            EncodedProfile<'_>,
            &Profile,
            &ProfileMeasure,
        ) -> Result<(), NoEntry>,
    ) -> Result<(), NoEntry> {
        let tables = message.tables();
        for resource in message.resources() {
            let of_resource = self.origins.resource(tables, resource);
            for scope in resource.scopes() {
                let of_scope = self.origins.scope(tables, of_resource, scope);
                for profile in scope.profiles() {
                    let header = profile.header();
                    let measured = ProfileMeasure::of(tables, &header);
                    let at = self.profile(tables, of_scope, &header, &measured);
                    take(self, at, profile, &header, &measured)?;
                }
            }
        }
        Ok(())
    }

    /// The number of the merged profile that a profile belongs to.
    fn profile(
        &mut self,
        tables: EncodedTables<'_>,
        scope: ScopeId,
        header: &Profile,
        measured: &ProfileMeasure,
    ) -> usize {
        let texts = |value_type| {
            let (name, unit) = tables.value_type(value_type);
            (name.to_owned(), unit.to_owned())
        };
        let key = ProfileKey {
            scope,
            measure: measured.measure.clone(),
            sample_type: texts(header.sample_type),
            period_type: texts(header.period_type),
        };
        if let Some(&known) = self.profile_ids.get(&key) {
            return known;
        }
        let next = self.profiles.len();
        self.profiles.push((key.clone(), MergedProfile::default()));
        self.profile_ids.insert(key, next);
        next
    }

    /// Unites the processes whose resources have equal values for the keys `by`. Other attributes are left
    /// out where they differ; their keys are returned. Called once all messages have been added.
    ///
    /// # Errors
    /// If no resource has one of the attributes.
    pub fn unite(&mut self, by: &[String]) -> Result<BTreeSet<String>, NoSuchKey> {
        let United { new_scopes, left_out } = self.origins.unite(by)?;
        self.profile_ids.clear();
        for (key, profile) in std::mem::take(&mut self.profiles) {
            let key = ProfileKey { scope: new_scopes[key.scope], ..key };
            match self.profile_ids.get(&key) {
                Some(&known) => self.profiles[known].1.unite(profile),
                None => {
                    self.profile_ids.insert(key.clone(), self.profiles.len());
                    self.profiles.push((key, profile));
                }
            }
        }
        Ok(left_out)
    }

    /// The merged message, encoded.
    pub fn into_encoded(self) -> Vec<u8> {
        let Self { origins, profiles, mut dictionary, sets, .. } = self;
        let stacks = dictionary.take_stacks();
        encoding::encode(&stacks, || into_wire(origins, profiles, dictionary, &sets))
    }
}

/// The merged message without stacks.
fn into_wire(
    origins: Origins,
    profiles: Vec<(ProfileKey, MergedProfile)>,
    mut dictionary: MergedDictionary,
    sets: &SliceInterner<i32, AttributeSetId>,
) -> ProfilesData {
    let mut merged = Vec::with_capacity(profiles.len());
    for (key, profile) in profiles {
        merged.extend(profile.into_wire(&key, sets, &mut dictionary).map(|profile| (key.scope, profile)));
    }
    ProfilesData { resource_profiles: origins.into_wire(merged), dictionary: Some(dictionary.into_wire()) }
}

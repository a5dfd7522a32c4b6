//! The sums of a measure by the values of each attribute, in bounded memory.
//!
//! Of an attribute with many values, such as the id of a request, the values with the highest sums are kept.
//! The others are one sum, and are counted.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher as _;

use foldhash::fast::RandomState as FastState;

use super::measure::Measure;
use super::merge::attributes::COUNTERS;
use super::observations::sum_in;
use super::profile_context::ProfileContext;
use super::profiled_time::ProfiledTime;
use super::sample_reader::{SampleSink, SelectedSample};
use super::selection::{Window, text_of};
use super::summed::{Summed, Values};

/// The most values with a sum of their own. Beyond this number the lower half is forgotten.
const MOST_VALUES: usize = 1 << 16;
/// The most forgotten values that are counted.
const MOST_COUNTED: usize = 1 << 18;
/// The most keys.
const MOST_KEYS: usize = 512;
/// A value's text is cut after this many bytes.
const LONGEST_TEXT: usize = 1024;

/// The owner of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The sample.
    Sample,
    /// The sample's profile.
    Profile,
    /// The resource, which describes the process.
    Resource,
}

impl Place {
    /// The name in the singular.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sample => "sample",
            Self::Profile => "profile",
            Self::Resource => "resource",
        }
    }
}

/// The number of a sum.
type SumId = u32;
/// The sum of all samples.
const WHOLE: SumId = 0;

/// An attribute's key with its values.
#[derive(Debug)]
struct Key {
    place: Place,
    name: String,
    values: HashMap<Box<str>, SumId, FastState>,
    /// The sum of the forgotten values.
    forgotten: SumId,
    /// The hashes of the forgotten values, some of which may have been met again.
    forgotten_values: HashSet<u64, FastState>,
}

/// The sums of an attribute.
#[derive(Debug)]
pub struct AttributeSum {
    /// The owner.
    pub place: Place,
    /// The key.
    pub key: String,
    /// The sum of the samples that have the attribute.
    pub total: i64,
    /// The values with their sums, the highest first.
    pub values: Vec<(String, i64)>,
    /// The values that were forgotten.
    pub others: Option<Others>,
}

/// Values that have no sum of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Others {
    /// Their number.
    pub values: usize,
    /// Whether there may be more of them.
    pub is_least: bool,
    /// The sum, to which each kept value has contributed that was forgotten for a while.
    pub total: i64,
}

/// Collects the sums of one measure.
#[derive(Debug)]
pub struct AttributeSums<'m> {
    measure: &'m Measure,
    window: Window,
    keys: Vec<Key>,
    key_ids: HashMap<(Place, String), usize>,
    sums: Summed<SumId>,
    next: SumId,
    /// The number of values with a sum of their own.
    values: usize,
    most_values: usize,
    /// The number of hashes of forgotten values.
    counted: usize,
    hasher: FastState,
    /// The sums of the present profile's and resource's attributes.
    of_profile: Vec<SumId>,
    /// By the number of a sample's labels in the present profile: the sums of its attributes.
    of_labels: HashMap<u64, Vec<SumId>, FastState>,
    /// The time that the profiles of the measure cover.
    pub time: ProfiledTime,
    /// Whether there are more keys than are kept.
    pub has_more_keys: bool,
    /// Whether profiles have counters of this profiler, which are left out.
    pub has_counters: bool,
}

impl<'m> AttributeSums<'m> {
    /// Collects samples of `measure` in the window.
    pub fn new(measure: &'m Measure, window: Window) -> Self {
        Self {
            measure,
            window,
            keys: Vec::new(),
            key_ids: HashMap::new(),
            sums: Summed::default(),
            next: WHOLE + 1,
            values: 0,
            most_values: MOST_VALUES,
            counted: 0,
            hasher: FastState::default(),
            of_profile: Vec::new(),
            of_labels: HashMap::default(),
            time: ProfiledTime::default(),
            has_more_keys: false,
            has_counters: false,
        }
    }

    /// The sum of all selected samples.
    pub fn whole(&self) -> i64 {
        let of_whole = self.sums.values().filter(|(id, _)| *id == WHOLE);
        of_whole.fold(0, |sum, (_, value)| sum.saturating_add(value))
    }

    /// The attributes with their sums, those of samples first, in the order of their keys.
    pub fn into_attributes(self) -> Vec<AttributeSum> {
        let Self { keys, sums, counted, hasher, .. } = self;
        let sums = sums.into_sums();
        let sum_of = |id: &SumId| sums.get(id).copied().unwrap_or(0);
        let attributes = keys.into_iter().map(|key| {
            let values = key.values.iter().map(|(text, id)| (text.to_string(), sum_of(id)));
            let mut values: Vec<_> = values.filter(|(_, sum)| *sum != 0).collect();
            values.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
            let others = (!key.forgotten_values.is_empty()).then(|| {
                let kept: HashSet<_> = values.iter().map(|(text, _)| hasher.hash_one(&**text)).collect();
                Others {
                    values: key.forgotten_values.iter().filter(|hash| !kept.contains(hash)).count(),
                    is_least: counted >= MOST_COUNTED,
                    total: sum_of(&key.forgotten),
                }
            });
            let of_values = values.iter().fold(0_i64, |sum, (_, value)| sum.saturating_add(*value));
            let total = of_values.saturating_add(others.map_or(0, |others| others.total));
            AttributeSum { place: key.place, key: key.name, total, values, others }
        });
        let mut attributes: Vec<_> = attributes.filter(|attribute| attribute.total != 0).collect();
        attributes.sort_by(|one, other| (one.place, &one.key).cmp(&(other.place, &other.key)));
        attributes
    }

    /// The sum of an attribute's value; `None` if there are too many keys.
    fn sum_id(&mut self, place: Place, name: &str, value: &str) -> Option<SumId> {
        let key = match self.key_ids.get(&(place, name.to_owned())) {
            Some(&known) => known,
            None if self.keys.len() >= MOST_KEYS => {
                self.has_more_keys = true;
                return None;
            }
            None => {
                let (values, forgotten_values) = Default::default();
                let forgotten = self.new_id();
                self.keys.push(Key { place, name: name.to_owned(), values, forgotten, forgotten_values });
                self.key_ids.insert((place, name.to_owned()), self.keys.len() - 1);
                self.keys.len() - 1
            }
        };
        let value = &value[..value.floor_char_boundary(LONGEST_TEXT)];
        if let Some(&known) = self.keys[key].values.get(value) {
            return Some(known);
        }
        let id = self.new_id();
        self.keys[key].values.insert(value.into(), id);
        self.values += 1;
        Some(id)
    }

    fn new_id(&mut self) -> SumId {
        let id = self.next;
        // SANITY: 2^32 values would take more than the longest reading.
        self.next = self.next.wrapping_add(1);
        id
    }

    /// Forgets the values with the lowest sums of the keys that have the most values.
    fn forget(&mut self) {
        let mut sums: Values<SumId> = Values::default();
        for (id, value) in self.sums.values() {
            let sum = sums.entry(id).or_default();
            *sum = sum.saturating_add(value);
        }
        let most = (self.most_values / 2 / self.keys.len().max(1)).max(1);
        let mut moved: HashMap<SumId, SumId, FastState> = HashMap::default();
        for key in self.keys.iter_mut().filter(|key| key.values.len() > most) {
            let mut values: Vec<_> = key.values.drain().collect();
            values.sort_by_key(|(_, id)| std::cmp::Reverse(sums.get(id).copied().unwrap_or(0)));
            for (text, id) in values.drain(most..) {
                moved.insert(id, key.forgotten);
                if self.counted < MOST_COUNTED && key.forgotten_values.insert(self.hasher.hash_one(&*text)) {
                    self.counted += 1;
                }
            }
            key.values.extend(values);
        }
        self.values -= moved.len();
        self.sums.rename(|id| moved.get(&id).copied().unwrap_or(id));
        self.of_labels.clear();
        for id in &mut self.of_profile {
            *id = moved.get(id).copied().unwrap_or(*id);
        }
    }

    /// The sums of attributes of the present message's table. Of several values of a key the first counts.
    fn ids_of(&mut self, place: Place, profile: &ProfileContext<'_>, indices: &[i32]) -> Vec<SumId> {
        let (mut ids, mut keys) = (Vec::new(), Vec::new());
        for (key, value) in profile.tables.attributes(indices) {
            let is_counter = place == Place::Profile && key.starts_with(COUNTERS);
            self.has_counters |= is_counter;
            if !is_counter && !keys.contains(&key) {
                keys.push(key);
                ids.extend(self.sum_id(place, key, &text_of(profile.tables, value.as_ref())));
            }
        }
        ids
    }
}

impl SampleSink for AttributeSums<'_> {
    fn begin_message(&mut self) {
        self.of_labels.clear();
    }

    fn begin_profile(&mut self, profile: &ProfileContext<'_>) -> bool {
        self.of_labels.clear();
        if profile.measure != *self.measure || !self.sums.begin(profile) {
            return false;
        }
        self.time.add(profile, self.window);
        self.of_profile = self.ids_of(Place::Profile, profile, &profile.header.attribute_indices);
        for (key, value) in profile.resource {
            let id = self.sum_id(Place::Resource, key, value);
            self.of_profile.extend(id);
        }
        true
    }

    fn take(&mut self, profile: &ProfileContext<'_>, sample: &SelectedSample<'_>) {
        let sum = sum_in(profile, sample.sample, self.window);
        if sum == 0 {
            return;
        }
        if self.values > self.most_values {
            self.forget();
        }
        if !self.of_labels.contains_key(&sample.labels) {
            let ids = self.ids_of(Place::Sample, profile, &sample.sample.attribute_indices);
            self.of_labels.insert(sample.labels, ids);
        }
        self.sums.add(profile, WHOLE, sum);
        for &id in self.of_profile.iter().chain(&self.of_labels[&sample.labels]) {
            self.sums.add(profile, id, sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_otlp::encoded::EncodedMessage;
    use otlpprof_otlp::wire;

    use super::*;
    use crate::sample_reader::{SampleForm, SampleReader};
    use crate::selection::Selection;
    use prost::Message as _;

    /// A message whose sample `n`, from 1, has the value `n` and the request `n`, and one sample of
    /// 1,000,000.
    fn requests(count: i32) -> EncodedMessage {
        let value = |text: String| Some(wire::AnyValue { value: Some(wire::Value::StringValue(text)) });
        let attribute =
            |text: String| wire::KeyValueAndUnit { key_strindex: 1, value: value(text), unit_strindex: 0 };
        let mut attribute_table = vec![wire::KeyValueAndUnit::default()];
        attribute_table.extend((1..=count).map(|at| attribute(at.to_string())));
        let strings = ["", "request", "count"].map(str::to_owned).to_vec();
        let sample = |at: i32| wire::Sample {
            values: vec![if at == 3 { 1_000_000 } else { i64::from(at) }],
            attribute_indices: vec![at],
            ..Default::default()
        };
        let profile = wire::Profile {
            sample_type: Some(wire::ValueType { type_strindex: 1, unit_strindex: 2 }),
            samples: (1..=count).map(sample).collect(),
            ..Default::default()
        };
        let data = wire::ProfilesData {
            resource_profiles: vec![wire::ResourceProfiles {
                scope_profiles: vec![wire::ScopeProfiles { profiles: vec![profile], ..Default::default() }],
                ..Default::default()
            }],
            dictionary: Some(wire::ProfilesDictionary {
                string_table: strings,
                attribute_table,
                stack_table: vec![wire::Stack::default()],
                ..Default::default()
            }),
        };
        EncodedMessage::of_protobuf(data.encode_to_vec()).unwrap()
    }

    #[test]
    fn of_many_values_the_heaviest_are_kept_and_the_others_counted() {
        let measure = Measure { name: "request".into(), unit: "count".into() };
        let selection = Selection::default();
        let mut sums = AttributeSums::new(&measure, Window::default());
        sums.most_values = 100;
        let message = requests(1_000);
        SampleReader::new(&selection, SampleForm::default()).read(&message, &mut sums);
        let expected = (1..=1_000).sum::<i64>() - 3 + 1_000_000;
        assert!(sums.values <= 101 && sums.whole() == expected);
        let [attribute] = &sums.into_attributes()[..] else { panic!("one key") };
        assert_eq!((attribute.total, &attribute.values[0]), (expected, &("3".to_owned(), 1_000_000)));
        let others = attribute.others.unwrap();
        assert_eq!((attribute.values.len() + others.values, others.is_least), (1_000, false));
        let of_values: i64 = attribute.values.iter().map(|(_, sum)| sum).sum();
        assert_eq!(of_values + others.total, expected);
    }
}

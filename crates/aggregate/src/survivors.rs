//! Samples whose memory or objects are still allocated: they outlive the interval in which they were taken.
//!
//! An interval's tables leave with it, and the methods and objects in its stacks may be gone from the process
//! before the sampled memory is. So survivors are kept by name, in tables of their own. These are rebuilt
//! when most of their contents are no longer used.

use std::collections::HashMap;

use otlpprof_core::engine::Engine;
use otlpprof_model::{AttributeSetId, Profile, SampleIdentity, Tables, Translation, attribute_keys};

use super::profile_kind::{EngineProfiles, ProfileKind, Rounding};

/// A sample with a number.
#[derive(Clone, Copy, Debug)]
pub struct NumberedSample {
    /// The engine that took the sample.
    pub engine: Engine,
    /// The sample's number, unique within the engine.
    pub number: u32,
    /// The sample's identity, in the tables of its interval.
    pub identity: SampleIdentity,
    /// The sample's values.
    pub values: [f64; 2],
}

/// The part of a sample that is still allocated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Remains {
    /// The factor for the first value only.
    pub share: f64,
    /// The factor for both values: larger than 1 if other samples have been thinned out.
    pub weight: f64,
    /// For objects: the number of collections that they have survived, rounded. An object of age 0 has not
    /// survived any, and is not reported.
    pub age: Option<u32>,
}

impl Remains {
    /// The whole sample, without an age.
    pub const ALL: Self = Self { share: 1.0, weight: 1.0, age: None };
}

/// Sampled memory and objects that are still allocated, keyed by engine and sample number.
pub type Alive = HashMap<(Engine, u32), Remains>;

/// The tables are rebuilt when they have grown by this factor since the last time, and to more than
/// `FEW_STRINGS`.
const GROWTH: usize = 4;
const FEW_STRINGS: usize = 10_000;

/// A sample whose memory or object is still allocated, in the tables of [`Survivors`].
#[derive(Debug)]
struct Survivor {
    identity: SampleIdentity,
    values: [f64; 2],
    /// The longest stretch of the sample's engine in its interval.
    stretch: u32,
}

/// The samples whose memory or objects are still allocated.
#[derive(Debug, Default)]
pub struct Survivors {
    tables: Tables,
    samples: HashMap<(Engine, u32), Survivor>,
    /// The number of strings in the tables when they were rebuilt.
    strings_when_rebuilt: usize,
}

impl Survivors {
    /// Whether there are no survivors.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Forgets the samples that are not in `alive`.
    pub fn forget_dead(&mut self, alive: &Alive) {
        self.samples.retain(|key, _| alive.contains_key(key));
    }

    /// Takes over those samples of an interval that are in `alive`. `tables` belong to the interval, and
    /// `stretches` the longest stretches of the engines in the interval.
    pub fn update(
        &mut self,
        tables: &Tables,
        samples: &[NumberedSample],
        alive: &Alive,
        stretches: &[u32; Engine::COUNT],
    ) {
        let mut translation = Translation::new(tables, &mut self.tables);
        for sample in samples {
            let key = (sample.engine, sample.number);
            if alive.contains_key(&key) {
                let survivor = Survivor {
                    identity: translation.identity(sample.identity),
                    values: sample.values,
                    stretch: stretches[sample.engine as usize],
                };
                self.samples.insert(key, survivor);
            }
        }
        if self.tables.strings.len() > FEW_STRINGS.max(self.strings_when_rebuilt * GROWTH) {
            self.rebuild_tables();
        }
    }

    fn rebuild_tables(&mut self) {
        let mut tables = Tables::new();
        let mut translation = Translation::new(&self.tables, &mut tables);
        for survivor in self.samples.values_mut() {
            survivor.identity = translation.identity(survivor.identity);
        }
        self.strings_when_rebuilt = tables.strings.len();
        self.tables = tables;
    }

    /// Returns an engine's profiles of all samples in `alive`, with everything that they refer to in
    /// `tables`. Their period is the period of the sample with the largest stretch and weight.
    pub fn profiles(
        &self,
        engine: Engine,
        kinds: EngineProfiles,
        tables: &mut Tables,
        alive: &Alive,
        at_unix_nano: Option<u64>,
    ) -> Vec<Profile> {
        let remaining = || {
            let of_engine = self.samples.iter().filter(|((of, _), _)| *of == engine);
            of_engine.filter_map(|(key, survivor)| {
                alive.get(key).filter(|remains| remains.age != Some(0)).map(|remains| (survivor, remains))
            })
        };
        let longest = remaining().map(|(survivor, remains)| f64::from(survivor.stretch) * remains.weight);
        let longest = longest.fold(1.0, f64::max) as i64;
        let mut profiles = kinds.map(|kind| {
            let stretched =
                |kind: ProfileKind| ProfileKind { period: kind.period.saturating_mul(longest), ..kind };
            kind.map(stretched).map(Rounding::new)
        });
        let mut translation = Translation::new(&self.tables, tables);
        let mut ages: HashMap<(AttributeSetId, u32), AttributeSetId> = HashMap::new();
        for (Survivor { identity, values, .. }, remains) in remaining() {
            let mut identity = translation.identity(*identity);
            if let Some(age) = remains.age {
                let attributes = identity.attributes;
                identity.attributes = *ages.entry((attributes, age)).or_insert_with(|| {
                    let tables = translation.to();
                    let age = tables.int_attribute(attribute_keys::OBJECT_AGE, i64::from(age), "");
                    let age = tables.attribute_set(&[age]);
                    tables.union_of_attributes(attributes, age)
                });
            }
            let shares = [remains.share * remains.weight, remains.weight];
            for ((profile, value), share) in profiles.iter_mut().zip(values).zip(shares) {
                if let Some(profile) = profile {
                    profile.add(identity, value * share, at_unix_nano);
                }
            }
        }
        profiles.into_iter().flatten().map(Rounding::finish).filter(|profile| !profile.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_model::{AttributeValue, LinkId, types};

    use super::*;

    const ENGINE: Engine = Engine::NativeMemory;

    fn kinds() -> EngineProfiles {
        let kind = |profile_type| Some(ProfileKind { profile_type, period: 1, scale: 1.0 });
        [kind(&types::NATIVELEAK_SPACE), kind(&types::NATIVELEAK_OBJECTS)]
    }

    fn sample(tables: &mut Tables, number: u32, function: &str) -> NumberedSample {
        let function = tables.named_function(function);
        let frame = tables.frames.intern(otlpprof_model::Frame::java(function, 1));
        let stack = tables.stacks.intern(&[frame]);
        let identity = SampleIdentity { stack, attributes: AttributeSetId::EMPTY, link: LinkId::NONE };
        NumberedSample { engine: ENGINE, number, identity, values: [100.0, 2.0] }
    }

    const UNSTRETCHED: [u32; Engine::COUNT] = [1; Engine::COUNT];

    fn alive(numbers: &[u32]) -> Alive {
        numbers.iter().map(|number| ((ENGINE, *number), Remains::ALL)).collect()
    }

    /// Returns the functions of a profile's samples, with their values, sorted by name.
    fn functions(tables: &Tables, profile: &Profile) -> Vec<(String, i64)> {
        let name = |identity: SampleIdentity| {
            let frame = tables.stacks.get(identity.stack)[0];
            let otlpprof_model::Frame::Java { function, .. } = *tables.frames.get(frame) else { panic!() };
            tables.strings.get(tables.functions.get(function).name).to_owned()
        };
        let mut found: Vec<_> =
            profile.samples().iter().map(|sample| (name(sample.identity), sample.value)).collect();
        found.sort();
        found
    }

    #[test]
    fn live_samples_are_reported_at_each_interval_until_they_die() {
        let mut survivors = Survivors::default();
        let mut first = Tables::new();
        let samples = [1, 2, 3].map(|number| sample(&mut first, number, &format!("f{number}")));
        survivors.update(&first, &samples, &alive(&[1, 3]), &UNSTRETCHED);
        let mut second = Tables::new();
        let more = [sample(&mut second, 4, "f1")];
        survivors.forget_dead(&alive(&[1, 3, 4]));
        survivors.update(&second, &more, &alive(&[1, 3, 4]), &UNSTRETCHED);
        let profiles = survivors.profiles(ENGINE, kinds(), &mut second, &alive(&[1, 3, 4]), None);
        let text = |name: &str, value| (name.to_owned(), value);
        assert_eq!(functions(&second, &profiles[0]), [text("f1", 200), text("f3", 100)]);
        assert_eq!(functions(&second, &profiles[1]), [text("f1", 4), text("f3", 2)]);
        survivors.forget_dead(&alive(&[]));
        assert!(survivors.is_empty());
        assert!(survivors.profiles(ENGINE, kinds(), &mut second, &alive(&[]), None).is_empty());
    }

    #[test]
    fn the_period_is_that_of_the_rarest_reported_sample() {
        let mut survivors = Survivors::default();
        let mut tables = Tables::new();
        for (number, stretch) in [(1, 1), (2, 8), (3, 2)] {
            let samples = [sample(&mut tables, number, "f")];
            let stretches = Engine::ALL.map(|engine| if engine == ENGINE { stretch } else { 100 });
            survivors.update(&tables, &samples, &alive(&[1, 2, 3]), &stretches);
        }
        let halved = Alive::from([((ENGINE, 3), Remains { weight: 2.0, ..Remains::ALL })]);
        for (alive, period) in [(alive(&[1, 2, 3]), 8), (alive(&[1, 3]), 2), (alive(&[1]), 1), (halved, 4)] {
            let profiles = survivors.profiles(ENGINE, kinds(), &mut tables, &alive, None);
            assert_eq!(profiles.iter().map(|profile| profile.period).collect::<Vec<_>>(), [period; 2]);
        }
    }

    #[test]
    fn the_remaining_share_and_age_of_a_sample_are_reported() {
        let mut survivors = Survivors::default();
        let mut tables = Tables::new();
        let samples = [sample(&mut tables, 1, "f")];
        let remains = Remains { share: 0.25, weight: 2.0, age: Some(3) };
        let alive = Alive::from([((ENGINE, 1), remains)]);
        survivors.update(&tables, &samples, &alive, &UNSTRETCHED);
        let profiles = survivors.profiles(ENGINE, kinds(), &mut tables, &alive, None);
        assert_eq!(profiles.iter().map(|profile| profile.samples()[0].value).collect::<Vec<_>>(), [50, 4]);
        let attributes = tables.attributes_of(profiles[0].samples()[0].identity.attributes);
        let age = tables.attributes.get(attributes[0]);
        assert_eq!(
            (tables.strings.get(age.key), age.value),
            (attribute_keys::OBJECT_AGE, AttributeValue::Int(3))
        );
    }

    #[test]
    fn unused_names_are_dropped() {
        let mut survivors = Survivors::default();
        for round in 0..10 {
            let mut tables = Tables::new();
            let samples: Vec<_> = (0..3_000)
                .map(|number| sample(&mut tables, round * 3_000 + number, &format!("f{round}.{number}")))
                .collect();
            let numbers: Vec<u32> = samples.iter().map(|sample| sample.number).collect();
            survivors.forget_dead(&alive(&numbers));
            survivors.update(&tables, &samples, &alive(&numbers), &UNSTRETCHED);
        }
        assert!(survivors.tables.strings.len() < 20_000, "{}", survivors.tables.strings.len());
        let mut tables = Tables::new();
        let numbers: Vec<u32> = (27_000..30_000).collect();
        let profiles = survivors.profiles(ENGINE, kinds(), &mut tables, &alive(&numbers), None);
        assert_eq!(profiles[0].samples().len(), 3_000);
    }
}

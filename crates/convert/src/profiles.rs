//! The profiles that events add to: one for each type and source, with the period of its samples.

use otlpprof_model::{AttributeSetId, Profile, ProfileType, SampleIdentity, Tables, attribute_keys};

use super::events::Period;
use super::settings::Settings;

/// The profiles of one output.
#[derive(Debug, Default)]
pub(super) struct Profiles {
    all: Vec<Entry>,
}

/// The position of a profile in [`Profiles`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProfileIndex(usize);

#[derive(Debug)]
struct Entry {
    profile: Profile,
    source: String,
    /// The profile's order among the profiles with its type; the first one keeps the type.
    rank: usize,
    period: Option<Period>,
    /// The number of samples whose period is known.
    samples: i128,
    /// The time that these samples stand for, in nanoseconds.
    nanos: i128,
    /// The number of samples of the current chunk. Its settings, and so their period, may still change.
    in_chunk: i128,
    /// The samples of the current chunk that contain the time they stand for.
    measured: Vec<TimedSample>,
}

/// A sample that contains the time it stands for. This may be several periods, if the thread was not sampled
/// when a sample was due.
#[derive(Clone, Copy, Debug)]
struct TimedSample {
    identity: SampleIdentity,
    unix_nano: Option<u64>,
    nanos: i64,
}

impl Profiles {
    /// The profile with this type and source. A new one is added if there is none.
    pub(super) fn find(
        &mut self,
        profile_type: &'static ProfileType,
        source: &str,
        rank: usize,
        period: Option<Period>,
    ) -> ProfileIndex {
        let same =
            |entry: &Entry| std::ptr::eq(entry.profile.profile_type, profile_type) && entry.source == source;
        if let Some(known) = self.all.iter().position(same) {
            return ProfileIndex(known);
        }
        let source = source.to_owned();
        let profile = Profile::new(profile_type, 1);
        let (samples, nanos, in_chunk) = (0, 0, 0);
        self.all.push(Entry {
            profile,
            source,
            rank,
            period,
            samples,
            nanos,
            in_chunk,
            measured: Vec::new(),
        });
        ProfileIndex(self.all.len() - 1)
    }

    /// The position of the profile's sample with this identity. A new one is added if there is none.
    pub(super) fn sample(&mut self, ProfileIndex(index): ProfileIndex, identity: SampleIdentity) -> u32 {
        self.all[index].profile.sample(identity)
    }

    /// Adds a value to the sample at this position.
    #[inline]
    pub(super) fn add_to(
        &mut self,
        ProfileIndex(index): ProfileIndex,
        sample: u32,
        value: i64,
        unix_nano: Option<u64>,
    ) {
        let entry = &mut self.all[index];
        entry.profile.add_to(sample, value, unix_nano);
        entry.in_chunk += i128::from(value);
    }

    /// Adds a sample that stands for this number of nanoseconds.
    #[inline]
    pub(super) fn add_measured(
        &mut self,
        ProfileIndex(index): ProfileIndex,
        identity: SampleIdentity,
        nanos: i64,
        unix_nano: Option<u64>,
    ) {
        self.all[index].measured.push(TimedSample { identity, unix_nano, nanos });
    }

    /// Ends a chunk: all its settings are known now.
    pub(super) fn end_chunk(&mut self, settings: &Settings) {
        for entry in &mut self.all {
            let samples = std::mem::take(&mut entry.in_chunk);
            let Some(period) = &entry.period else { continue };
            let noted = settings.period(period);
            entry.samples += samples;
            entry.nanos += samples * i128::from(noted);
            let measured = std::mem::take(&mut entry.measured);
            let Some(shortest) = measured.iter().map(|sample| sample.nanos).min() else { continue };
            let period_ns = if is_multiple(shortest, noted) { noted } else { shortest };
            for TimedSample { identity, unix_nano, nanos } in measured {
                let weight = ((nanos + period_ns / 2) / period_ns).max(1);
                entry.profile.add(identity, weight, unix_nano);
                entry.samples += i128::from(weight);
                entry.nanos += i128::from(weight) * i128::from(period_ns);
            }
        }
    }

    /// Finishes the profiles for this window, in the order of the table. A profile whose samples have
    /// different periods gets their mean, so that all samples together stand for the same time.
    pub(super) fn finish(mut self, window: (u64, u64), tables: &mut Tables) -> Vec<Profile> {
        self.all.sort_by_key(|entry| entry.rank);
        let mut written: Vec<[&str; 4]> = Vec::new();
        let mut profiles = Vec::new();
        for Entry { mut profile, source, samples, nanos, .. } in self.all {
            if profile.is_empty() {
                continue;
            }
            if samples > 0 {
                profile.period = i64::try_from((nanos + samples / 2) / samples).unwrap_or(i64::MAX).max(1);
            }
            (profile.start_unix_nano, profile.duration_nano) = window;
            let of = profile.profile_type;
            let kind = |of: &ProfileType| [of.sample_type, of.sample_unit, of.period_type, of.period_unit];
            let mut attributes = Vec::new();
            if !source.is_empty() {
                attributes.push(tables.string_attribute(attribute_keys::JFR_EVENT, &source));
            }
            let kind_of_profile = kind(of);
            if written.contains(&kind_of_profile) {
                // There can be only one profile for a type and window, so the samples of this profile are
                // counted as events of their source.
                attributes.push(tables.string_attribute(attribute_keys::PROFILE_TYPE, of.profile_type));
                let name = format!("{}/{source}", of.name);
                let period = (&*source, of.period_unit);
                profile.profile_type = ProfileType::custom(&name, (of.sample_type, of.sample_unit), period);
            } else {
                written.push(kind_of_profile);
            }
            profile.attributes =
                if attributes.is_empty() { AttributeSetId::EMPTY } else { tables.attribute_set(&attributes) };
            profiles.push(profile);
        }
        profiles
    }
}

/// Whether `nanos` is a multiple of `of`, with an error of at most 1 % of `of`: the JVM records both in ticks
/// of its own.
fn is_multiple(nanos: i64, of: i64) -> bool {
    let times = (nanos + of / 2) / of.max(1);
    times > 0 && (nanos - times.saturating_mul(of)).abs() <= of / 100
}

#[cfg(test)]
mod tests {
    use otlpprof_model::{LinkId, StackId, types};

    use super::*;

    const IDENTITY: SampleIdentity =
        SampleIdentity { stack: StackId(1), attributes: AttributeSetId::EMPTY, link: LinkId::NONE };
    const PERIOD: Period =
        Period { field: None, settings: &[("a", "period")], default: 20, async_profiler_default: 20 };

    #[test]
    fn samples_of_different_periods_stand_for_the_same_time_together() {
        let (mut profiles, mut tables) = (Profiles::default(), Tables::new());
        let cpu = profiles.find(&types::CPU, "a", 0, Some(PERIOD));
        let sample = profiles.sample(cpu, IDENTITY);
        profiles.add_to(cpu, sample, 3, None);
        profiles.end_chunk(&Settings::default());
        profiles.add_measured(cpu, IDENTITY, 70, None);
        profiles.end_chunk(&Settings::default());
        let made = profiles.finish((5, 6), &mut tables);
        // Three samples of 20 ns and one of 70 ns.
        assert_eq!((made[0].period, made[0].samples()[0].value), (33, 4));
        assert_eq!((made[0].start_unix_nano, made[0].duration_nano), (5, 6));
    }

    #[test]
    fn samples_that_stand_for_several_periods_count_as_many() {
        for (times, period, weight) in [
            // The shortest time is a multiple of the setting, so the setting is the period.
            (&[1_999, 6_000, 4_001][..], 2_000, 6),
            // The shortest time is not a multiple of the setting, so the shortest time is the period.
            (&[3_100, 9_300], 3_100, 4),
        ] {
            let (mut profiles, mut tables) = (Profiles::default(), Tables::new());
            let noted = Period { default: 2_000, ..PERIOD };
            let cpu = profiles.find(&types::CPU, "a", 0, Some(noted));
            for &nanos in times {
                profiles.add_measured(cpu, IDENTITY, nanos, None);
            }
            profiles.end_chunk(&Settings::default());
            let made = profiles.finish((0, 1), &mut tables);
            assert_eq!((made[0].period, made[0].samples()[0].value), (period, weight));
        }
    }

    #[test]
    fn of_two_profiles_of_one_type_the_first_of_the_table_keeps_it() {
        let (mut profiles, mut tables) = (Profiles::default(), Tables::new());
        let second = profiles.find(&types::CPU, "jdk.ExecutionSample", 2, Some(PERIOD));
        let first = profiles.find(&types::CPU, "jdk.CPUTimeSample", 1, Some(PERIOD));
        assert_eq!(first, profiles.find(&types::CPU, "jdk.CPUTimeSample", 1, Some(PERIOD)));
        let sample = profiles.sample(second, IDENTITY);
        profiles.add_to(second, sample, 2, None);
        let sample = profiles.sample(first, IDENTITY);
        profiles.add_to(first, sample, 1, None);
        profiles.end_chunk(&Settings::default());
        let made = profiles.finish((0, 1), &mut tables);
        assert_eq!([made[0].samples()[0].value, made[1].samples()[0].value], [1, 2]);
        assert_eq!(made[0].profile_type, &types::CPU);
        let other = made[1].profile_type;
        assert_eq!((other.sample_type, other.period_type), ("samples", "jdk.ExecutionSample"));
    }
}

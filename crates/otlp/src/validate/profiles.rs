//! Checks profiles and their samples.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use super::super::encoded_profiles::EncodedProfile;
use super::super::wire::*;
use super::check::Check;
use super::repeated;
use super::report::Part;
use super::rules::RuleId;
use crate::lookup::DictionaryTables as _;

/// The profile ids of a file so far: the first [`KEPT_IDS`] of them.
pub(super) type ProfileIds = HashSet<[u8; 16]>;

/// The most profile ids of a file that are compared with each other.
const KEPT_IDS: usize = 1 << 19;

pub(super) fn check(check: &mut Check<'_>, ids: &mut ProfileIds) {
    let mut profiles = 0..;
    let mut seen = HashSet::new();
    let (data, hasher) = (check.data, RandomState::new());
    for (resource_index, resource) in data.resources().enumerate() {
        let of_resource = resource.resource();
        if of_resource.is_none() {
            check.breach(RuleId::ResourceMissing, Part::Resource(resource_index), String::new);
        }
        for (scope_index, scope) in resource.scopes().enumerate() {
            let part = Part::Scope(resource_index, scope_index);
            let of_scope = scope.scope();
            if of_scope.is_none() {
                check.breach(RuleId::ScopeMissing, part, String::new);
            }
            // Values may be floating-point numbers, which cannot be hashed; so their encoding is hashed.
            let encoded = |part: Option<Vec<u8>>| part.unwrap_or_default();
            let origin = hasher.hash_one((
                encoded(of_resource.as_ref().map(prost::Message::encode_to_vec)),
                encoded(of_scope.as_ref().map(prost::Message::encode_to_vec)),
            ));
            for (profile, profile_index) in scope.profiles().zip(&mut profiles) {
                let (part, of_profile) = (Part::Profile(profile_index), profile.header());
                if !seen.insert(hasher.hash_one((origin, ProfileIdentity::of(&of_profile)))) {
                    let name = check.tables.value_type(of_profile.sample_type).0;
                    check.breach(RuleId::ProfileDuplicate, part, || name.to_owned());
                }
                header(check, part, &of_profile, profile);
                profile_id(check, part, &of_profile.profile_id, ids);
                samples(check, profile_index, &of_profile, profile);
            }
        }
    }
}

/// The fields in which profiles with the same resource and scope must differ.
#[derive(PartialEq, Eq, Hash)]
struct ProfileIdentity {
    sample_type: Option<ValueType>,
    period_type: Option<ValueType>,
    time: (u64, u64),
}

impl ProfileIdentity {
    fn of(profile: &Profile) -> Self {
        Self {
            sample_type: profile.sample_type,
            period_type: profile.period_type,
            time: (profile.time_unix_nano, profile.duration_nano),
        }
    }
}

fn header(check: &mut Check<'_>, part: Part, profile: &Profile, encoded: EncodedProfile<'_>) {
    let named = |value_type: Option<ValueType>| value_type.is_some_and(|named| named.type_strindex != 0);
    if !named(profile.sample_type) {
        check.breach(RuleId::SampleTypeMissing, part, String::new);
    }
    if !named(profile.period_type) {
        check.breach(RuleId::PeriodTypeMissing, part, String::new);
    }
    for value_type in [profile.sample_type, profile.period_type].into_iter().filter(|&one| named(one)) {
        if value_type.is_some_and(|named| named.unit_strindex == 0) {
            let name = check.tables.value_type(value_type).0;
            check.breach(RuleId::TypeUnitMissing, part, || name.to_owned());
        }
    }
    if profile.period <= 0 {
        check.breach(RuleId::PeriodMissing, part, || profile.period.to_string());
    }
    if profile.time_unix_nano == 0 {
        check.breach(RuleId::TimeMissing, part, String::new);
    }
    if encoded.sample_count() == 0 {
        check.breach(RuleId::ProfileEmpty, part, String::new);
    }
    let format = &*profile.original_payload_format;
    let bytes = encoded.payload().len();
    if format.is_empty() != (bytes == 0) {
        check.breach(RuleId::PayloadFormat, part, || format!("{bytes} bytes of format {format:?}"));
    } else if !["", "jfr", "pprof", "linux_perf"].contains(&format) {
        check.breach(RuleId::PayloadFormatUnknown, part, || format!("{format:?}"));
    }
}

fn profile_id(check: &mut Check<'_>, part: Part, id: &[u8], ids: &mut ProfileIds) {
    if id.is_empty() {
        return;
    }
    if id.len() != 16 {
        check.breach(RuleId::ProfileIdLength, part, || format!("{} bytes", id.len()));
    } else if id.iter().all(|&byte| byte == 0) {
        check.breach(RuleId::ProfileIdZero, part, String::new);
    } else if let Ok(id) = id.try_into() {
        if ids.contains(&id) {
            check.breach(RuleId::ProfileIdDuplicate, part, String::new);
        } else if ids.len() < KEPT_IDS {
            ids.insert(id);
        }
    }
}

/// The fields in which a sample has its observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Values,
    Timestamps,
    Both,
}

fn samples(check: &mut Check<'_>, profile_index: usize, profile: &Profile, encoded: EncodedProfile<'_>) {
    let start = profile.time_unix_nano;
    let window = start..start.saturating_add(profile.duration_nano);
    let mut shape_of_all = None;
    for (sample_index, sample) in encoded.samples().enumerate() {
        let part = Part::Sample(profile_index, sample_index);
        let (values, timestamps) = (sample.values.len(), sample.timestamps_unix_nano.len());
        let shape = match (values, timestamps) {
            (0, 0) => {
                check.breach(RuleId::SampleEmpty, part, String::new);
                None
            }
            (0, _) => Some(Shape::Timestamps),
            (_, 0) => {
                if values > 1 {
                    check.breach(RuleId::SampleSeveralValues, part, || format!("{values} values"));
                }
                Some(Shape::Values)
            }
            _ => {
                let rule = match values == timestamps {
                    true => RuleId::ValuesBesideTimestamps,
                    false => RuleId::SampleLengths,
                };
                check.breach(rule, part, || format!("{values} values, {timestamps} timestamps"));
                Some(Shape::Both)
            }
        };
        if let (Some(shape), Some(of_all)) = (shape, shape_of_all)
            && shape != of_all
        {
            check.breach(RuleId::SampleShapes, part, || format!("{shape:?} after {of_all:?}").to_lowercase());
        }
        shape_of_all = shape_of_all.or(shape);
        if let Some(value) = sample.values.iter().find(|&&value| value < 0) {
            check.breach(RuleId::SampleNegative, part, || value.to_string());
        }
        if let Some(time) = sample.timestamps_unix_nano.iter().find(|time| !window.contains(time)) {
            check.breach(RuleId::TimestampOutside, part, || {
                format!("{time} is not in {}..{}", window.start, window.end)
            });
        }
    }
    let hasher = RandomState::new();
    let identity = |sample: Sample| {
        let mut attributes = sample.attribute_indices;
        attributes.sort_unstable();
        attributes.dedup();
        hasher.hash_one((sample.stack_index, attributes, sample.link_index))
    };
    repeated::find(
        || encoded.samples().map(identity),
        |index, _| check.breach(RuleId::SampleDuplicate, Part::Sample(profile_index, index), String::new),
    );
}

//! Reading of written messages, and of corrupt files.

use std::io::Write as _;

use crate::batches::{batch, profile_specs};
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_otlp::encoded_profiles::{EncodedProfile, EncodedResource, EncodedScope};
use otlpprof_otlp::frames::frames;
use otlpprof_otlp::lookup::Lookup;
use otlpprof_otlp::read::{decode_json, decode_protobuf, read};
use otlpprof_otlp::reader::{Failure, Reader};
use otlpprof_otlp::roots::{Ends, classify};
use otlpprof_otlp::validate::Validator;
use otlpprof_otlp::validate::rules::{RuleId, Severity};
use otlpprof_otlp::wire::{ProfilesData, Sample};
use otlpprof_otlp::{EncodeOptions, Format, encode};
use otlpprof_testkit::otlp_fixture::{framed, valid};
use proptest::prelude::*;
use prost::Message as _;

/// Rules that random batches break by their content rather than by their encoding: attributes with the wrong
/// type, mappings of objects without a build-id, and functions without a name.
const OF_THE_CONTENT: [RuleId; 3] = [RuleId::AttributeType, RuleId::BuildIdMissing, RuleId::FunctionNameless];

proptest! {
    #[test]
    fn both_formats_are_read_alike_and_valid(specs in profile_specs(), timestamps in any::<bool>()) {
        let batch = batch(&specs);
        let options = |format| EncodeOptions { format, timestamps, ..Default::default() };
        let mut proto = decode_protobuf(&encode(&batch, &options(Format::Proto))).unwrap();
        let mut json = decode_json(&encode(&batch, &options(Format::Json))).unwrap();
        remove_random_ids(&mut proto.data);
        remove_random_ids(&mut json.data);
        prop_assert_eq!(&json.data, &proto.data);
        prop_assert_eq!(proto.notes.first(), []);
        prop_assert_eq!(json.notes.first(), []);

        let mut validator = Validator::new(1);
        validator.message(&EncodedMessage::of_protobuf(proto.data.encode_to_vec()).unwrap());
        let report = validator.finish();
        let errors = report.breaches().filter(|(rule, _)| rule.rule().severity >= Severity::Error);
        let unexpected: Vec<_> = errors.filter(|(rule, _)| !OF_THE_CONTENT.contains(rule)).collect();
        prop_assert!(unexpected.is_empty(), "{unexpected:#?}");
    }

    #[test]
    fn broken_files_end_in_an_error_at_most(damage in damages(), form in 0..4_usize) {
        let mut bytes = forms()[form].clone();
        for one in damage {
            one.apply(&mut bytes);
        }
        use_all_of(&bytes);
    }

    #[test]
    fn noise_ends_in_an_error_at_most(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        use_all_of(&bytes);
    }

    #[test]
    fn messages_before_the_damage_are_whole(at in any::<prop::sample::Index>(), value in any::<u8>()) {
        let message = framed(&valid());
        let mut bytes = message.repeat(3);
        let at = at.index(bytes.len());
        bytes[at] = value;
        let before = at / message.len();
        let messages: Vec<_> = read(&bytes).take(before).collect();
        prop_assert_eq!(messages.len(), before);
        for message in messages {
            prop_assert_eq!(message.unwrap().data, valid());
        }
    }
}

/// Removes the ids of all profiles. Checks that each has an id of 16 bytes.
fn remove_random_ids(data: &mut ProfilesData) {
    let scopes = data.resource_profiles.iter_mut().flat_map(|resource| &mut resource.scope_profiles);
    for profile in scopes.flat_map(|scope| &mut scope.profiles) {
        assert_eq!(std::mem::take(&mut profile.profile_id).len(), 16);
    }
}

/// A modification of a file.
#[derive(Clone, Debug)]
enum Damage {
    Set(prop::sample::Index, u8),
    Flip(prop::sample::Index, u8),
    Truncate(prop::sample::Index),
    Repeat(prop::sample::Index, prop::sample::Index),
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        match self {
            Self::Set(at, value) => {
                let at = at.index(bytes.len());
                bytes[at] = *value;
            }
            Self::Flip(at, bit) => {
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << (bit % 8);
            }
            Self::Truncate(at) => bytes.truncate(at.index(bytes.len())),
            Self::Repeat(from, to) => {
                let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
                bytes.extend_from_within(from.min(to)..from.max(to));
            }
        }
    }
}

fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let index = any::<prop::sample::Index>;
    let damage = prop_oneof![
        4 => (index(), any::<u8>()).prop_map(|(at, value)| Damage::Set(at, value)),
        4 => (index(), any::<u8>()).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        1 => index().prop_map(Damage::Truncate),
        1 => (index(), index()).prop_map(|(from, to)| Damage::Repeat(from, to)),
    ];
    prop::collection::vec(damage, 1..8)
}

/// A valid file in every form.
fn forms() -> [Vec<u8>; 4] {
    let frames = framed(&valid()).repeat(2);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&frames).unwrap();
    let json = br#"{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"samples":[{"stackIndex":1,
        "values":["5"],"timestampsUnixNano":["1"]}],"profileId":"00","originalPayload":"AAAA"}]}]}],
        "dictionary":{"stackTable":[{},{"locationIndices":[1]}],
        "attributeTable":[{"value":{"doubleValue":1.5}}]}}"#;
    [valid().encode_to_vec(), frames, gzip.finish().unwrap(), json.repeat(2)]
}

/// Reads a file, and performs every operation of the command line on it.
fn use_all_of(bytes: &[u8]) {
    let mut validator = Validator::new(3);
    let mut end = 0;
    for message in Reader::new(bytes).unwrap() {
        match message {
            Ok(message) => {
                assert!(message.offset >= end, "messages do not overlap");
                end = message.offset + message.size;
                validator.message(&message);
                let decoded = message.decode();
                assert_eq!(all_samples(&message), all_decoded_samples(&decoded));
                let (tables, lookup) = (message.tables(), Lookup::new(&decoded));
                for sample in all_decoded_samples(&decoded) {
                    let frames = self::frames(tables, sample.stack_index);
                    assert_eq!(frames, self::frames(lookup, sample.stack_index));
                    let _ = classify(&frames, Ends::Unmarked, StackWalker::Vm);
                }
            }
            Err(Failure::Io(error)) => panic!("memory can be read: {error}"),
            Err(Failure::Read(error)) => {
                assert!(error.compressed || error.offset <= bytes.len() as u64, "{error}");
                assert_eq!(error.to_string().lines().count(), 1, "{error}");
                validator.unreadable(&error);
            }
        }
    }
    let _ = validator.finish();
}

/// The samples of an encoded message.
fn all_samples(message: &EncodedMessage) -> Vec<Sample> {
    let scopes = message.resources().flat_map(EncodedResource::scopes);
    scopes.flat_map(EncodedScope::profiles).flat_map(EncodedProfile::samples).collect()
}

/// The samples of a decoded message.
fn all_decoded_samples(data: &ProfilesData) -> Vec<Sample> {
    let scopes = data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
    scopes.flat_map(|scope| &scope.profiles).flat_map(|profile| &profile.samples).cloned().collect()
}

//! The OTLP writer, compared with an independent implementation of the format.

use std::collections::HashSet;

use crate::batches::{DURATION, START, batch, profile_specs};
use crate::resolved::{self, ResolvedIdentity, ResolvedProfile};
use crate::{json_view, rules};
use opentelemetry_proto::tonic::profiles::v1development::ProfilesData;
use otlpprof_model::{
    AttributeSetId, Batch, Frame, FrameType, JavaMethod, Link, LinkId, Profile, SampleIdentity, StackId,
    types,
};
use otlpprof_otlp::validate::rules::RuleId;
use otlpprof_otlp::validate::validate;
use otlpprof_otlp::{EncodeOptions, Format, NativeFrames, encode, encode_split, halve};
use otlpprof_testkit::profcheck::assert_passes;
use proptest::prelude::*;
use prost::Message as _;
use serde_json::Value;

/// The message as the independent implementation decodes it.
fn decode(bytes: &[u8]) -> ProfilesData {
    ProfilesData::decode(bytes).expect("the message is valid protobuf")
}

/// Rules that generated batches may break, each with the reason.
const ALLOWED: [(RuleId, &str); 5] = [
    (RuleId::SampleNegative, "values are drawn from all integers"),
    (
        RuleId::ValuesBesideTimestamps,
        "times of what is no count stand beside values, when they are asked for",
    ),
    (RuleId::HtlhashMissing, "mappings are drawn with one build-id or two"),
    (RuleId::FrameTypeUnknown, "samples are drawn with this key and any text"),
    (RuleId::ProfileDuplicate, "profiles are drawn with one window and few types"),
];

fn options() -> impl Strategy<Value = EncodeOptions> {
    (any::<bool>(), any::<bool>()).prop_map(|(names, timestamps)| EncodeOptions {
        native_frames: if names { NativeFrames::Name } else { NativeFrames::Remote },
        timestamps,
        ..EncodeOptions::default()
    })
}

proptest! {
    #[test]
    fn a_message_has_the_content_of_its_batch(specs in profile_specs(), options in options()) {
        let batch = batch(&specs);
        let message = decode(&encode(&batch, &options));
        rules::assert_kept(&message);
        let expected = resolved::of_batch(&batch, options.native_frames);
        prop_assert_eq!(resolved::totals(&resolved::of_message(&message)), resolved::totals(&expected));
    }

    #[test]
    fn the_validator_finds_no_error(specs in profile_specs(), options in options()) {
        let batch = batch(&specs);
        for format in [Format::Proto, Format::Json] {
            let bytes = encode(&batch, &EncodeOptions { format, ..options });
            let report = validate(&bytes, 3);
            let allowed = |rule| ALLOWED.iter().any(|(allowed, _)| *allowed == rule);
            let broken: Vec<_> = report.breaches().filter(|(rule, _)| !allowed(*rule)).collect();
            // A message without samples is never sent.
            if report.samples > 0 {
                assert_passes("generated", &bytes);
                prop_assert!(broken.is_empty(), "{broken:?}");
            }
            let profiles = resolved::of_batch(&batch, options.native_frames);
            let samples: usize = profiles.iter().map(|profile| profile.samples.len()).sum();
            prop_assert_eq!(report.samples, samples as u64);
        }
    }

    #[test]
    fn json_says_what_protobuf_says(specs in profile_specs(), options in options()) {
        let batch = batch(&specs);
        let message = decode(&encode(&batch, &options));
        let bytes = encode(&batch, &EncodeOptions { format: Format::Json, ..options });
        prop_assert!(!bytes.contains(&b'\n'));
        let mut document: Value = serde_json::from_slice(&bytes).unwrap();
        for id in take_profile_ids(&mut document) {
            let id = id.as_str().unwrap().to_owned();
            prop_assert!(id.len() == 32 && id.bytes().all(|digit| b"0123456789abcdef".contains(&digit)));
        }
        prop_assert_eq!(document, json_view::of(&message));
    }

    #[test]
    fn times_are_those_of_the_additions(specs in profile_specs()) {
        let batch = batch(&specs);
        let options = EncodeOptions { timestamps: true, ..EncodeOptions::default() };
        let message = decode(&encode(&batch, &options));
        let written = resolved::of_message(&message);
        let profiles = batch.profiles.iter().filter(|profile| !profile.is_empty());
        for (profile, written) in profiles.zip(&written) {
            let is_count = profile.profile_type.sample_unit == "count";
            let observations: Vec<_> =
                (0..profile.samples().len()).flat_map(|sample| profile.observations(sample)).collect();
            let total: i128 = observations.iter().map(|observation| i128::from(observation.value)).sum();
            let repeatable =
                observations.iter().all(|observation| observation.value > 0) && total <= 1 << 20;
            let mut expected = Vec::new();
            if profile.is_timed() && (repeatable || !is_count) {
                for observation in observations {
                    let (times, value) =
                        if is_count { (observation.value, None) } else { (1, Some(observation.value)) };
                    expected.extend((0..times).map(|_| (observation.unix_nano, value)));
                }
            }
            prop_assert_eq!(times_of(written), sorted(expected));
        }
    }

    #[test]
    fn halves_of_a_message_hold_all_of_it_and_keep_the_rules(specs in profile_specs(), options in options()) {
        let batch = batch(&specs);
        let whole = encode(&batch, &options);
        let samples = |message: &[u8]| -> usize {
            resolved::of_message(&decode(message)).iter().map(|profile| profile.samples.len()).sum()
        };
        let Some(halves) = halve(&whole, Format::Proto) else {
            prop_assert!(samples(&whole) < 2);
            return Ok(());
        };
        let mut profiles = Vec::new();
        for (bytes, count) in &halves {
            rules::assert_kept(&decode(bytes));
            prop_assert_eq!(samples(bytes) as u64, *count);
            prop_assert!(bytes.len() <= whole.len());
            profiles.extend(resolved::of_message(&decode(bytes)));
        }
        let summed = |profiles: &[_]| summed(profiles, |identity| identity);
        prop_assert_eq!(summed(&profiles), summed(&resolved::of_message(&decode(&whole))));
        let json = encode(&batch, &EncodeOptions { format: Format::Json, ..options });
        let in_json = halve(&json, Format::Json).expect("what is halved in protobuf is in JSON");
        for ((text, count), (bytes, count_in_protobuf)) in in_json.iter().zip(&halves) {
            prop_assert!(text.len() < json.len() && !text.contains(&b'\n'));
            prop_assert_eq!(count, count_in_protobuf);
            let mut document: Value = serde_json::from_slice(text).unwrap();
            take_profile_ids(&mut document);
            prop_assert_eq!(document, json_view::of(&decode(bytes)));
        }
    }

    #[test]
    fn splitting_loses_nothing(specs in profile_specs(), options in options(), limit in 0usize..6000) {
        let batch = batch(&specs);
        for format in [Format::Proto, Format::Json] {
            let options = EncodeOptions { format, ..options };
            let split = encode_split(&batch, &options, limit);
            let samples = batch.profiles.iter().map(|profile| profile.samples().len() as u64).sum::<u64>();
            let additions = batch.profiles.iter().map(Profile::additions).sum::<u64>();
            prop_assert_eq!(
                split.messages.iter().map(|message| message.samples).sum::<u64>() + split.dropped_samples,
                samples
            );
            prop_assert_eq!(
                split.messages.iter().map(|message| message.additions).sum::<u64>() + split.dropped_additions,
                additions
            );
            prop_assert!(split.messages.iter().all(|message| message.bytes.len() <= limit));
            if format == Format::Proto && split.dropped_samples == 0 {
                let messages: Vec<_> = split.messages.iter().map(|message| decode(&message.bytes)).collect();
                messages.iter().for_each(rules::assert_kept);
                let parts: Vec<_> = messages.iter().flat_map(resolved::of_message).collect();
                let whole = resolved::of_batch(&batch, options.native_frames);
                // Methods that are overloaded in the whole batch need not be in a part.
                let summed = |profiles| summed(profiles, ResolvedIdentity::without_system_names);
                prop_assert_eq!(summed(&parts), summed(&whole));
            }
        }
    }
}

fn take_profile_ids(document: &mut Value) -> Vec<Value> {
    let mut scope = document["resourceProfiles"][0]["scopeProfiles"][0].take();
    let profiles = scope.get_mut("profiles").and_then(Value::as_array_mut);
    let ids = profiles.into_iter().flatten().map(|profile| {
        profile.as_object_mut().and_then(|members| members.remove("profileId")).expect("a profile id")
    });
    let ids = ids.collect();
    document["resourceProfiles"][0]["scopeProfiles"][0] = scope;
    ids
}

fn sorted<T: Ord>(mut items: Vec<T>) -> Vec<T> {
    items.sort();
    items
}

/// Every time of the profile, with its value if it has one.
fn times_of(profile: &ResolvedProfile) -> Vec<(u64, Option<i64>)> {
    let of_sample = |sample: &resolved::ResolvedSample| -> Vec<_> {
        let value = |index| sample.values.get(index).copied();
        sample.times.iter().enumerate().map(|(index, &time)| (time, value(index))).collect()
    };
    sorted(profile.samples.values().flat_map(of_sample).collect())
}

/// Totals over all profiles, by type, profile attributes, and the part of the identity that `what_counts`
/// keeps. Integer attributes of profiles are ignored, since only the first part of a divided profile has
/// them.
fn summed(
    profiles: &[ResolvedProfile],
    what_counts: impl Fn(ResolvedIdentity) -> ResolvedIdentity,
) -> std::collections::BTreeMap<String, i128> {
    let mut sums = std::collections::BTreeMap::new();
    for profile in profiles {
        let mut attributes = profile.attributes.clone();
        attributes.retain(|_, (value, _)| !value.starts_with("int "));
        for (identity, sample) in &profile.samples {
            let identity = what_counts(identity.clone());
            let key = format!("{:?} {attributes:?} {identity:?}", profile.types);
            *sums.entry(key).or_insert(0) += i128::from(sample.total());
        }
    }
    sums
}

/// A batch with one profile of CPU samples, each with one frame.
fn small_batch(samples: u32) -> Batch {
    let mut batch = Batch::default();
    let mut profile = Profile::new(&types::CPU, 10_000_000);
    profile.start_unix_nano = START;
    profile.duration_nano = DURATION;
    for number in 0..samples {
        let function = batch.tables.named_function(&format!("function.number{number}"));
        let frame = batch.tables.frames.intern(Frame::java(function, number));
        let stack = batch.tables.stacks.intern(&[frame]);
        let identity = SampleIdentity { stack, attributes: AttributeSetId::EMPTY, link: LinkId::NONE };
        profile.add(identity, 2, Some(START + u64::from(number)));
    }
    batch.profiles.push(profile);
    batch
}

#[test]
fn a_cpu_profile_has_the_form_that_backends_accept() {
    let mut batch = small_batch(1);
    let link = batch.tables.links.intern(Link { trace_id: [1; 16], span_id: [2; 8] });
    let identity = SampleIdentity { stack: StackId(1), attributes: AttributeSetId::EMPTY, link };
    batch.profiles[0].add(identity, 1, None);
    let message = decode(&encode(&batch, &EncodeOptions::default()));
    rules::assert_kept(&message);
    let profile = &message.resource_profiles[0].scope_profiles[0].profiles[0];
    let values: Vec<_> = profile.samples.iter().map(|sample| sample.values.clone()).collect();
    assert_eq!(values, [[2], [1]]);
    assert_eq!((profile.samples[0].link_index, profile.samples[1].link_index), (0, 1));
    assert_eq!((profile.time_unix_nano, profile.duration_nano), (START, DURATION));
    assert_eq!(profile.period, 10_000_000);
    let types = &resolved::of_message(&message)[0].types;
    assert_eq!(types, &["samples", "count", "cpu", "nanoseconds"].map(str::to_owned));
}

#[test]
fn empty_profiles_are_left_out_and_an_empty_batch_gives_no_message() {
    let mut batch = small_batch(1);
    batch.profiles.insert(0, Profile::new(&types::WALL, 1));
    let message = decode(&encode(&batch, &EncodeOptions::default()));
    assert_eq!(message.resource_profiles[0].scope_profiles[0].profiles.len(), 1);
    batch.profiles.truncate(1);
    assert_eq!(encode_split(&batch, &EncodeOptions::default(), 1 << 20), Default::default());
    rules::assert_kept(&decode(&encode(&batch, &EncodeOptions::default())));
}

#[test]
fn times_outside_the_window_are_moved_to_its_edge() {
    for (start, duration) in [(START, DURATION), (START, 0), (u64::MAX, 5), (0, u64::MAX)] {
        let mut batch = small_batch(1);
        let profile = &mut batch.profiles[0];
        (profile.start_unix_nano, profile.duration_nano) = (start, duration);
        let identity = profile.samples()[0].identity;
        for at in [0, START - 1, START + DURATION, u64::MAX] {
            profile.add(identity, 1, Some(at));
        }
        let options = EncodeOptions { timestamps: true, ..EncodeOptions::default() };
        rules::assert_kept(&decode(&encode(&batch, &options)));
    }
}

#[test]
fn a_period_that_was_not_set_is_written_as_one() {
    let mut batch = small_batch(1);
    batch.profiles[0].period = 0;
    let message = decode(&encode(&batch, &EncodeOptions::default()));
    assert_eq!(message.resource_profiles[0].scope_profiles[0].profiles[0].period, 1);
}

/// Pyroscope rejects a whole request if one sample in it has several values.
#[test]
fn a_heavy_count_does_not_give_its_profile_several_values_a_sample() {
    let mut batch = small_batch(2);
    let identity = batch.profiles[0].samples()[0].identity;
    batch.profiles[0].add(identity, 1_000, Some(START + 9));
    let options = EncodeOptions { timestamps: true, ..EncodeOptions::default() };
    let message = decode(&encode(&batch, &options));
    rules::assert_kept(&message);
    let samples = &message.resource_profiles[0].scope_profiles[0].profiles[0].samples;
    assert!(samples.iter().all(|sample| sample.values.is_empty()));
    assert_eq!(samples[0].timestamps_unix_nano, [vec![START; 2], vec![START + 9; 1_000]].concat());
    assert_eq!(samples[1].timestamps_unix_nano, [START + 1; 2]);
}

#[test]
fn a_count_of_absurdly_many_times_is_a_value_and_the_others_keep_theirs() {
    let mut batch = small_batch(3);
    let identity = batch.profiles[0].samples()[1].identity;
    batch.profiles[0].add(identity, 1 << 40, Some(START + 9));
    let options = EncodeOptions { timestamps: true, ..EncodeOptions::default() };
    let split = encode_split(&batch, &options, 1 << 20);
    assert_eq!((split.dropped_samples, split.untimed_samples), (0, 1));
    let mut shapes = Vec::new();
    for message in &split.messages {
        let message = decode(&message.bytes);
        rules::assert_kept(&message);
        let samples = message.resource_profiles[0].scope_profiles[0].profiles[0].samples.clone();
        shapes.extend(samples.into_iter().map(|sample| (sample.values, sample.timestamps_unix_nano.len())));
    }
    assert_eq!(shapes, [(vec![], 2), (vec![(1 << 40) + 2], 0), (vec![], 2)]);
}

#[test]
fn a_sample_that_fits_without_its_times_alone_is_written_so() {
    let mut batch = small_batch(3);
    let identity = batch.profiles[0].samples()[1].identity;
    batch.profiles[0].add(identity, 5_000, Some(START + 9));
    let options = EncodeOptions { timestamps: true, ..EncodeOptions::default() };
    let split = encode_split(&batch, &options, 10_000);
    assert_eq!((split.dropped_samples, split.untimed_samples), (0, 1));
    assert_eq!(split.messages.iter().map(|message| message.additions).sum::<u64>(), 4);
}

/// Two messages of one batch. A method counts as overloaded only if both overloads are in the message. A
/// native function always has its linkage name.
#[test]
fn a_method_says_its_descriptor_only_where_it_is_overloaded() {
    let mut batch = Batch::default();
    let mut profile = Profile::new(&types::CPU, 1);
    (profile.start_unix_nano, profile.duration_nano) = (START, DURATION);
    let mut frames = Vec::new();
    for (method, descriptor) in [("run", "()V"), ("put", "(I)V"), ("put", "(J)V")] {
        let method = JavaMethod { class: "a/B", method, descriptor, normalise: true };
        frames.push(Frame::java(batch.tables.java_function(method, "B.java", 0), 1));
    }
    let function = batch.tables.native_function("A::b()", "_ZN1A1bEv");
    frames.push(Frame::Native { mapping: None, address: None, function, line: 0 });
    for frame in frames {
        let frame = batch.tables.frames.intern(frame);
        let stack = batch.tables.stacks.intern(&[frame]);
        let identity = SampleIdentity { stack, attributes: AttributeSetId::EMPTY, link: LinkId::NONE };
        profile.add(identity, 1, None);
    }
    batch.profiles.push(profile);
    let functions = |message: &[u8]| -> Vec<[String; 2]> {
        let message = decode(message);
        rules::assert_kept(&message);
        let dictionary = message.dictionary.unwrap();
        let text = |index: i32| dictionary.string_table[index as usize].clone();
        let names = dictionary.function_table[1..].iter();
        names.map(|function| [text(function.name_strindex), text(function.system_name_strindex)]).collect()
    };
    let options = EncodeOptions::default();
    let whole = encode(&batch, &options);
    let native = ["A::b()", "_ZN1A1bEv"];
    assert_eq!(
        functions(&whole),
        [["a.B.run", ""], ["a.B.put", "a/B.put(I)V"], ["a.B.put", "a/B.put(J)V"], native]
    );
    // The parts of a split are encoded anew from the batch; the halves of a message keep its functions
    // unchanged.
    let parts = encode_split(&batch, &options, whole.len() - 1).messages;
    let alone = parts.iter().flat_map(|part| functions(&part.bytes));
    assert_eq!(alone.collect::<Vec<_>>(), [["a.B.run", ""], ["a.B.put", ""], ["a.B.put", ""], native]);
    let halves = halve(&whole, Format::Proto).unwrap();
    let moved = halves.iter().flat_map(|(half, _)| functions(half));
    assert_eq!(moved.collect::<Vec<_>>(), functions(&whole));
}

/// Regression: a method without class and descriptor, beside a native function with the same name, was
/// written twice if a third function had this name.
#[test]
fn a_method_and_a_native_function_of_the_same_names_are_one_entry() {
    let mut batch = Batch::default();
    let method = |descriptor| JavaMethod { class: "", method: "run", descriptor, normalise: true };
    let functions = [
        batch.tables.java_function(method(""), "", 0),
        batch.tables.native_function("run", "run"),
        batch.tables.java_function(method("()V"), "", 0),
    ];
    let mut profile = Profile::new(&types::CPU, 1);
    (profile.start_unix_nano, profile.duration_nano) = (START, DURATION);
    for function in functions {
        let frame = batch.tables.frames.intern(Frame::java(function, 1));
        let stack = batch.tables.stacks.intern(&[frame]);
        let identity = SampleIdentity { stack, attributes: AttributeSetId::EMPTY, link: LinkId::NONE };
        profile.add(identity, 1, None);
    }
    batch.profiles.push(profile);
    let message = decode(&encode(&batch, &EncodeOptions::default()));
    rules::assert_kept(&message);
    let dictionary = message.dictionary.unwrap();
    let system_names = dictionary.function_table[1..].iter();
    let system_names =
        system_names.map(|function| &*dictionary.string_table[function.system_name_strindex as usize]);
    assert_eq!(system_names.collect::<Vec<_>>(), ["run", "run()V"]);
}

#[test]
fn stacks_that_become_equal_are_one_sample() {
    let mut batch = Batch::default();
    let function = batch.tables.named_function("do_syscall_64");
    let frames = [
        Frame::Kernel { mapping: None, address: None, function },
        Frame::Marker { function, frame_type: FrameType::Kernel },
    ];
    for timed in [false, true] {
        let mut profile = Profile::new(&types::CPU, 1);
        (profile.start_unix_nano, profile.duration_nano) = (START, DURATION);
        for frame in frames {
            let frame = batch.tables.frames.intern(frame);
            let stack = batch.tables.stacks.intern(&[frame]);
            let identity = SampleIdentity { stack, attributes: AttributeSetId::EMPTY, link: LinkId::NONE };
            profile.add(identity, 3, timed.then_some(START + 1));
        }
        batch.profiles.push(profile);
    }
    let options = EncodeOptions { timestamps: true, ..EncodeOptions::default() };
    let message = decode(&encode(&batch, &options));
    rules::assert_kept(&message);
    let profiles = &message.resource_profiles[0].scope_profiles[0].profiles;
    assert_eq!((profiles[0].samples.len(), &profiles[0].samples[0].values[..]), (1, &[6][..]));
    assert_eq!(profiles[1].samples[0].timestamps_unix_nano, [START + 1; 6]);
}

#[test]
fn parts_fill_their_limit_and_have_ids_of_their_own() {
    let batch = small_batch(20_000);
    let options = EncodeOptions::default();
    let whole = encode(&batch, &options).len();
    let limit = 100_000;
    let split = encode_split(&batch, &options, limit);
    assert_eq!((split.dropped_samples, split.dropped_additions), (0, 0));
    assert!(split.messages.len() <= whole / limit + 3, "{} messages for {whole} bytes", split.messages.len());
    let ids: HashSet<_> = split
        .messages
        .iter()
        .map(|message| {
            decode(&message.bytes).resource_profiles[0].scope_profiles[0].profiles[0].profile_id.clone()
        })
        .collect();
    assert_eq!(ids.len(), split.messages.len());
}

/// Otherwise the counts of a divided profile would be counted several times.
#[test]
fn a_profiles_counts_are_in_its_first_part_alone() {
    let mut batch = small_batch(20_000);
    let count = batch.tables.int_attribute("otlpprof.handler.samples_recorded", 20_000, "");
    let clock = batch.tables.string_attribute("otlpprof.cpu.clock", "timer");
    batch.profiles[0].attributes = batch.tables.attribute_set(&[count, clock]);
    let options = EncodeOptions::default();
    let names = |message: &[u8]| -> Vec<String> {
        let data = decode(message);
        let dictionary = data.dictionary.unwrap();
        let profile = &data.resource_profiles[0].scope_profiles[0].profiles[0];
        let keys = profile.attribute_indices.iter().map(|&index| &dictionary.attribute_table[index as usize]);
        keys.map(|attribute| dictionary.string_table[attribute.key_strindex as usize].clone()).collect()
    };
    let split = encode_split(&batch, &options, 100_000).messages;
    let halves = halve(&encode(&batch, &options), Format::Proto).unwrap();
    let parts =
        [split.into_iter().map(|part| part.bytes).collect::<Vec<_>>(), halves.map(|half| half.0).into()];
    for parts in parts {
        assert!(parts.len() >= 2);
        for (number, part) in parts.iter().enumerate() {
            let names = names(part);
            assert!(names.iter().any(|name| name == "otlpprof.cpu.clock"), "{names:?}");
            let counts = names.iter().filter(|name| *name == "otlpprof.handler.samples_recorded").count();
            assert_eq!(counts, usize::from(number == 0), "part {number}: {names:?}");
        }
    }
}

#[test]
fn a_profile_whose_first_sample_is_over_the_limit_keeps_its_counts() {
    let mut batch = Batch::default();
    let function = batch.tables.named_function(&"x".repeat(10_000));
    let frame = batch.tables.frames.intern(Frame::java(function, 1));
    let stack = batch.tables.stacks.intern(&[frame]);
    let mut profile = Profile::new(&types::CPU, 1);
    let identity = SampleIdentity { stack, attributes: AttributeSetId::EMPTY, link: LinkId::NONE };
    profile.add(identity, 1, None);
    for line in 0..2 {
        let function = batch.tables.named_function("f");
        let frame = batch.tables.frames.intern(Frame::java(function, line));
        let stack = batch.tables.stacks.intern(&[frame]);
        profile.add(SampleIdentity { stack, ..identity }, 1, None);
    }
    let count = batch.tables.int_attribute("otlpprof.handler.samples_recorded", 3, "");
    profile.attributes = batch.tables.attribute_set(&[count]);
    batch.profiles.push(profile);
    let split = encode_split(&batch, &EncodeOptions::default(), 5_000);
    assert_eq!(split.dropped_samples, 1);
    let counted = split.messages.iter().filter(|message| {
        let strings = decode(&message.bytes).dictionary.unwrap().string_table;
        strings.iter().any(|text| text == "otlpprof.handler.samples_recorded")
    });
    assert_eq!(counted.count(), 1);
}

#[test]
fn one_sample_over_the_limit_is_dropped_and_counted_and_the_others_stay() {
    let mut batch = small_batch(3);
    let function = batch.tables.named_function(&"x".repeat(10_000));
    let frame = batch.tables.frames.intern(Frame::java(function, 1));
    let stack = batch.tables.stacks.intern(&[frame]);
    let identity = SampleIdentity { stack, attributes: AttributeSetId::EMPTY, link: LinkId::NONE };
    batch.profiles[0].add(identity, 1, None);
    batch.profiles[0].add(identity, 1, None);
    let split = encode_split(&batch, &EncodeOptions::default(), 5_000);
    assert_eq!((split.dropped_samples, split.dropped_additions, split.dropped_value), (1, 2, 2));
    assert_eq!(split.messages.iter().map(|message| message.samples).sum::<u64>(), 3);
}

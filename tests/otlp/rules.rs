//! The rules of the format that resolving references does not check.

use std::collections::{BTreeSet, HashSet};

use opentelemetry_proto::tonic::profiles::v1development as otlp;
use prost::Message;

/// Panics on the first rule that the message breaks.
pub(crate) fn assert_kept(message: &otlp::ProfilesData) {
    let dictionary = message.dictionary.as_ref().expect("a dictionary");
    assert_zero_entries(dictionary);
    assert_distinct("mapping", &dictionary.mapping_table);
    assert_distinct("location", &dictionary.location_table);
    assert_distinct("function", &dictionary.function_table);
    assert_distinct("link", &dictionary.link_table);
    assert_distinct("attribute", &dictionary.attribute_table);
    assert_distinct("stack", &dictionary.stack_table);
    let strings: HashSet<_> = dictionary.string_table.iter().collect();
    assert_eq!(strings.len(), dictionary.string_table.len(), "a string comes twice");
    assert_locations(dictionary);
    assert_resources(message);
    let mut used = Used::default();
    for profile in profiles(message) {
        assert_profile(dictionary, profile);
        used.profile(dictionary, profile);
    }
    used.assert_complete(dictionary);
}

fn profiles(message: &otlp::ProfilesData) -> impl Iterator<Item = &otlp::Profile> {
    message.resource_profiles.iter().flat_map(|r| &r.scope_profiles).flat_map(|s| &s.profiles)
}

fn assert_zero_entries(dictionary: &otlp::ProfilesDictionary) {
    assert_eq!(dictionary.mapping_table[0], otlp::Mapping::default());
    assert_eq!(dictionary.location_table[0], otlp::Location::default());
    assert_eq!(dictionary.function_table[0], otlp::Function::default());
    assert_eq!(dictionary.link_table[0], otlp::Link::default());
    assert_eq!(dictionary.attribute_table[0], otlp::KeyValueAndUnit::default());
    assert_eq!(dictionary.stack_table[0], otlp::Stack::default());
    assert_eq!(dictionary.string_table[0], "");
}

fn assert_distinct(table: &str, entries: &[impl Message]) {
    let distinct: HashSet<_> = entries.iter().map(Message::encode_to_vec).collect();
    assert_eq!(distinct.len(), entries.len(), "the {table} table has duplicates");
}

fn assert_locations(dictionary: &otlp::ProfilesDictionary) {
    let has_key = |indices: &[i32], keys: &[&str]| {
        indices.iter().any(|&index| {
            let key = dictionary.attribute_table[index as usize].key_strindex;
            keys.contains(&dictionary.string_table[key as usize].as_str())
        })
    };
    for location in &dictionary.location_table[1..] {
        assert!(has_key(&location.attribute_indices, &["profile.frame.type"]), "{location:?}");
    }
    for mapping in &dictionary.mapping_table[1..] {
        let keys = ["process.executable.build_id.gnu", "process.executable.build_id.htlhash"];
        assert!(has_key(&mapping.attribute_indices, &keys), "{mapping:?}");
    }
    for function in &dictionary.function_table[1..] {
        let names = [function.name_strindex, function.system_name_strindex, function.filename_strindex];
        assert_ne!(names, [0; 3], "a function has no name");
    }
}

fn assert_resources(message: &otlp::ProfilesData) {
    assert_eq!(message.resource_profiles.len(), 1);
    for resource_profiles in &message.resource_profiles {
        let resource = resource_profiles.resource.as_ref().expect("a resource");
        let keys: HashSet<_> = resource.attributes.iter().map(|attribute| &attribute.key).collect();
        assert_eq!(keys.len(), resource.attributes.len());
        assert!(resource.attributes.iter().all(|attribute| !attribute.key.is_empty()));
        assert_eq!(resource_profiles.scope_profiles.len(), 1);
        let scope = resource_profiles.scope_profiles[0].scope.as_ref().expect("a scope");
        assert_eq!(scope.name, "otlpprof");
    }
}

fn assert_profile(dictionary: &otlp::ProfilesDictionary, profile: &otlp::Profile) {
    assert!(!profile.samples.is_empty(), "an empty profile");
    assert_eq!(profile.profile_id.len(), 16);
    assert!(profile.period > 0);
    for value_type in [profile.sample_type, profile.period_type] {
        let value_type = value_type.expect("a sample type and a period type");
        assert!(value_type.type_strindex > 0 && value_type.unit_strindex > 0);
    }
    let shapes: HashSet<_> = profile
        .samples
        .iter()
        .map(|sample| (sample.values.is_empty(), sample.timestamps_unix_nano.is_empty()))
        .collect();
    assert_eq!(shapes.len(), 1, "samples of one profile have several shapes");
    let unit = profile.sample_type.map(|sample_type| sample_type.unit_strindex as usize);
    let counts = unit.is_some_and(|unit| dictionary.string_table[unit] == "count");
    let end = profile.time_unix_nano + profile.duration_nano;
    for sample in &profile.samples {
        let (values, times) = (&sample.values, &sample.timestamps_unix_nano);
        match (values.len(), times.len()) {
            (1, 0) | (0, 1..) => {}
            (values, times) => assert!(values == times && values > 0 && !counts),
        }
        assert!(times.iter().all(|time| (profile.time_unix_nano..end).contains(time)));
    }
}

/// The entries to which something refers.
#[derive(Default)]
struct Used {
    strings: BTreeSet<i32>,
    attributes: BTreeSet<i32>,
    mappings: BTreeSet<i32>,
    locations: BTreeSet<i32>,
    functions: BTreeSet<i32>,
    links: BTreeSet<i32>,
    stacks: BTreeSet<i32>,
}

impl Used {
    fn profile(&mut self, dictionary: &otlp::ProfilesDictionary, profile: &otlp::Profile) {
        for value_type in [profile.sample_type, profile.period_type].into_iter().flatten() {
            self.strings.extend([value_type.type_strindex, value_type.unit_strindex]);
        }
        self.attributes.extend(&profile.attribute_indices);
        for sample in &profile.samples {
            self.attributes.extend(&sample.attribute_indices);
            self.links.insert(sample.link_index);
            self.stacks.insert(sample.stack_index);
            self.locations.extend(&dictionary.stack_table[sample.stack_index as usize].location_indices);
        }
    }

    fn assert_complete(mut self, dictionary: &otlp::ProfilesDictionary) {
        for &index in &self.locations {
            let location = &dictionary.location_table[index as usize];
            self.mappings.insert(location.mapping_index);
            self.attributes.extend(&location.attribute_indices);
            self.functions.extend(location.lines.iter().map(|line| line.function_index));
        }
        for &index in &self.mappings {
            let mapping = &dictionary.mapping_table[index as usize];
            self.strings.insert(mapping.filename_strindex);
            self.attributes.extend(&mapping.attribute_indices);
        }
        for &index in &self.functions {
            let function = &dictionary.function_table[index as usize];
            self.strings.extend([
                function.name_strindex,
                function.system_name_strindex,
                function.filename_strindex,
            ]);
        }
        for &index in &self.attributes {
            let attribute = &dictionary.attribute_table[index as usize];
            self.strings.extend([attribute.key_strindex, attribute.unit_strindex]);
        }
        for (table, mut used, len) in [
            ("string", self.strings, dictionary.string_table.len()),
            ("attribute", self.attributes, dictionary.attribute_table.len()),
            ("mapping", self.mappings, dictionary.mapping_table.len()),
            ("location", self.locations, dictionary.location_table.len()),
            ("function", self.functions, dictionary.function_table.len()),
            ("link", self.links, dictionary.link_table.len()),
            ("stack", self.stacks, dictionary.stack_table.len()),
        ] {
            used.insert(0);
            assert_eq!(used, (0..len as i32).collect(), "the {table} table has orphans");
        }
    }
}

//! The traversal of one message, which decides the content of each field. The [`FieldWriter`] decides the
//! format.

use std::ops::Range;

use otlpprof_model::{AttributeValue, Batch, Profile, ResourceValue, Scope, attribute_keys};

use super::dictionary::{AnyValueRef, Dictionary, WireFunction, WireMapping};
use super::encode_options::EncodeOptions;
use super::field_writer::FieldWriter;
use super::locations::WireLocation;
use super::profile_id::new_profile_id;
use super::samples::{ProfileWindow, Shape, for_each_sample};
use super::schema::{
    any_value, dictionary as table, function, key_value, key_value_and_unit, line, link, location, mapping,
    profile as field, profiles_data, resource, resource_profiles, sample, scope, scope_profiles, stack,
    value_type,
};
use super::wire_index::WireIndex;

/// Samples of one profile that go into a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    /// The profile's position in the batch.
    pub(super) profile: usize,
    /// The positions of the selected samples.
    pub(super) samples: Range<usize>,
    /// Whether the profile's counts are written too. Of a divided profile, only one part has the counts.
    pub(super) with_counts: bool,
}

/// The original payload of a profile. The caller writes its bytes into the message, since they may not fit in
/// memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// `original_payload_format`: `jfr`, `pprof` or `linux_perf`.
    pub format: &'static str,
    /// The payload's length, in bytes.
    pub length: u64,
}

/// Writes a ProfilesData message with the selected samples. An ExportProfilesServiceRequest has the same
/// fields. Selections without samples give no profile. The first profile gets the payload.
pub(super) fn write_message<W: FieldWriter>(
    w: &mut W,
    batch: &Batch,
    selections: &[Selection],
    options: &EncodeOptions,
    payload: Option<&Payload>,
) {
    let mut dictionary = Dictionary::new(&batch.tables, options.native_frames);
    w.repeated(profiles_data::RESOURCE_PROFILES, |w| {
        w.element(profiles_data::RESOURCE_PROFILES, |w| {
            w.message(resource_profiles::RESOURCE, |w| write_resource(w, batch));
            w.repeated(resource_profiles::SCOPE_PROFILES, |w| {
                w.element(resource_profiles::SCOPE_PROFILES, |w| {
                    w.message(scope_profiles::SCOPE, |w| write_scope(w, &batch.scope));
                    write_profiles(w, &mut dictionary, batch, selections, options, payload);
                });
            });
        });
    });
    dictionary.enter_system_names();
    w.message(profiles_data::DICTIONARY, |w| write_dictionary(w, &dictionary));
}

fn write_resource<W: FieldWriter>(w: &mut W, batch: &Batch) {
    let attributes = batch.resource.attributes();
    if attributes.is_empty() {
        return;
    }
    w.repeated(resource::ATTRIBUTES, |w| {
        for (key, value) in attributes {
            let value = match value {
                ResourceValue::Str(value) => AnyValueRef::Str(value),
                ResourceValue::Int(value) => AnyValueRef::Int(*value),
                ResourceValue::Bool(value) => AnyValueRef::Bool(*value),
                ResourceValue::Double(value) => AnyValueRef::Double(*value),
            };
            w.element(resource::ATTRIBUTES, |w| write_key_value(w, key, value));
        }
    });
}

fn write_key_value<W: FieldWriter>(w: &mut W, key: &str, value: AnyValueRef<'_>) {
    w.string(key_value::KEY, key);
    w.message(key_value::VALUE, |w| write_any_value(w, value));
}

fn write_scope<W: FieldWriter>(w: &mut W, value: &Scope) {
    w.string(scope::NAME, &value.name);
    w.string(scope::VERSION, &value.version);
    if value.attributes.is_empty() {
        return;
    }
    w.repeated(scope::ATTRIBUTES, |w| {
        for (key, value) in &value.attributes {
            w.element(scope::ATTRIBUTES, |w| write_key_value(w, key, AnyValueRef::Str(value)));
        }
    });
}

fn write_any_value<W: FieldWriter>(w: &mut W, value: AnyValueRef<'_>) {
    match value {
        AnyValueRef::Str(value) => w.any_string(any_value::STRING_VALUE, value),
        AnyValueRef::Bool(value) => w.any_bool(any_value::BOOL_VALUE, value),
        AnyValueRef::Int(value) => w.any_int(any_value::INT_VALUE, value),
        AnyValueRef::Double(value) => w.any_double(any_value::DOUBLE_VALUE, value),
    }
}

fn write_profiles<W: FieldWriter>(
    w: &mut W,
    dictionary: &mut Dictionary<'_>,
    batch: &Batch,
    selections: &[Selection],
    options: &EncodeOptions,
    payload: Option<&Payload>,
) {
    let is_written = |selection: &&Selection| options.empty_profiles || !selection.samples.is_empty();
    if !selections.iter().any(|selection| is_written(&selection)) {
        return;
    }
    w.repeated(scope_profiles::PROFILES, |w| {
        let mut payload = payload;
        for selection in selections.iter().filter(is_written) {
            let profile = &batch.profiles[selection.profile];
            let payload = payload.take();
            w.element(scope_profiles::PROFILES, |w| {
                write_profile(w, dictionary, profile, selection, options);
                if let Some(payload) = payload {
                    w.string(field::ORIGINAL_PAYLOAD_FORMAT, payload.format);
                    w.outside_bytes(field::ORIGINAL_PAYLOAD, payload.length);
                }
            });
        }
    });
}

fn write_profile<W: FieldWriter>(
    w: &mut W,
    dictionary: &mut Dictionary<'_>,
    profile: &Profile,
    selection: &Selection,
    options: &EncodeOptions,
) {
    let profile_type = profile.profile_type;
    let samples = selection.samples.clone();
    let shape = Shape::of(profile, samples.clone(), options);
    let window = ProfileWindow::of(profile, shape);
    let sample_type = (profile_type.sample_type, profile_type.sample_unit);
    let period_type = (profile_type.period_type, profile_type.period_unit);
    w.message(field::SAMPLE_TYPE, |w| write_value_type(w, dictionary, sample_type));
    w.repeated(field::SAMPLES, |w| {
        for_each_sample(dictionary, profile, samples, shape, |entry| {
            w.element(field::SAMPLES, |w| {
                w.index(sample::STACK_INDEX, entry.stack);
                w.indices(sample::ATTRIBUTE_INDICES, entry.attributes);
                w.index(sample::LINK_INDEX, entry.link);
                w.int64s(sample::VALUES, entry.values);
                w.fixed64s(sample::TIMESTAMPS_UNIX_NANO, entry.times);
            });
        });
    });
    w.fixed64(field::TIME_UNIX_NANO, window.start_unix_nano);
    w.uint64(field::DURATION_NANO, window.duration_nano);
    w.message(field::PERIOD_TYPE, |w| write_value_type(w, dictionary, period_type));
    // Backends reject a profile without a period.
    w.int64(field::PERIOD, profile.period.max(1));
    w.identifier(field::PROFILE_ID, &new_profile_id());
    w.indices(field::ATTRIBUTE_INDICES, &profile_attributes(dictionary, profile, selection.with_counts));
}

/// The profile's own attributes, and its type unless these attributes include one. Integer attributes are
/// counts of the whole profile, so only one part of a divided profile has them.
fn profile_attributes(
    dictionary: &mut Dictionary<'_>,
    profile: &Profile,
    with_counts: bool,
) -> Vec<WireIndex> {
    let set = profile.attributes;
    let mut indices = Vec::new();
    let tables = dictionary.tables();
    let is_type = |&id: &_| tables.strings.get(tables.attributes.get(id).key) == attribute_keys::PROFILE_TYPE;
    if !tables.attributes_of(set).iter().any(is_type) {
        indices.push(dictionary.profile_type(profile.profile_type));
    }
    for &id in tables.attributes_of(set) {
        let is_count = matches!(tables.attributes.get(id).value, AttributeValue::Int(_));
        if with_counts || !is_count {
            indices.push(dictionary.attribute(id));
        }
    }
    indices
}

fn write_value_type<W: FieldWriter>(w: &mut W, dictionary: &mut Dictionary<'_>, (name, unit): (&str, &str)) {
    w.index(value_type::TYPE_STRINDEX, dictionary.text(name));
    w.index(value_type::UNIT_STRINDEX, dictionary.text(unit));
}

fn write_dictionary<W: FieldWriter>(w: &mut W, dictionary: &Dictionary<'_>) {
    w.repeated(table::MAPPING_TABLE, |w| {
        for entry in dictionary.mappings() {
            w.element(table::MAPPING_TABLE, |w| write_mapping(w, entry));
        }
    });
    w.repeated(table::LOCATION_TABLE, |w| {
        for entry in dictionary.locations() {
            w.element(table::LOCATION_TABLE, |w| write_location(w, &entry));
        }
    });
    w.repeated(table::FUNCTION_TABLE, |w| {
        for entry in dictionary.functions() {
            w.element(table::FUNCTION_TABLE, |w| write_function(w, &entry));
        }
    });
    w.repeated(table::LINK_TABLE, |w| {
        for entry in dictionary.links() {
            w.element(table::LINK_TABLE, |w| {
                if let Some(entry) = entry {
                    w.identifier(link::TRACE_ID, &entry.trace_id);
                    w.identifier(link::SPAN_ID, &entry.span_id);
                }
            });
        }
    });
    w.repeated(table::STRING_TABLE, |w| {
        dictionary.strings().for_each(|string| w.string_element(table::STRING_TABLE, string));
    });
    w.repeated(table::ATTRIBUTE_TABLE, |w| {
        for (key, value, unit) in dictionary.attributes() {
            w.element(table::ATTRIBUTE_TABLE, |w| {
                w.index(key_value_and_unit::KEY_STRINDEX, key);
                if let Some(value) = value {
                    w.message(key_value_and_unit::VALUE, |w| write_any_value(w, value));
                }
                w.index(key_value_and_unit::UNIT_STRINDEX, unit);
            });
        }
    });
    w.repeated(table::STACK_TABLE, |w| {
        for locations in dictionary.stacks() {
            w.element(table::STACK_TABLE, |w| w.indices(stack::LOCATION_INDICES, locations));
        }
    });
}

fn write_mapping<W: FieldWriter>(w: &mut W, entry: &WireMapping) {
    w.uint64(mapping::MEMORY_START, entry.start);
    w.uint64(mapping::MEMORY_LIMIT, entry.limit);
    w.uint64(mapping::FILE_OFFSET, entry.file_offset);
    w.index(mapping::FILENAME_STRINDEX, entry.filename);
    w.indices(mapping::ATTRIBUTE_INDICES, present(&entry.attributes));
}

fn write_location<W: FieldWriter>(w: &mut W, entry: &WireLocation) {
    w.index(location::MAPPING_INDEX, entry.mapping);
    w.uint64(location::ADDRESS, entry.address.0);
    if entry.function != WireIndex::ZERO {
        w.repeated(location::LINES, |w| {
            w.element(location::LINES, |w| {
                w.index(line::FUNCTION_INDEX, entry.function);
                w.int64(line::LINE, i64::from(entry.line));
            });
        });
    }
    w.indices(location::ATTRIBUTE_INDICES, present(&entry.attributes));
}

fn write_function<W: FieldWriter>(w: &mut W, entry: &WireFunction) {
    w.index(function::NAME_STRINDEX, entry.name);
    w.index(function::SYSTEM_NAME_STRINDEX, entry.system_name);
    w.index(function::FILENAME_STRINDEX, entry.filename);
    w.int64(function::START_LINE, i64::from(entry.start_line));
}

/// The attributes before the first zero.
fn present(attributes: &[WireIndex; 2]) -> &[WireIndex] {
    let count = attributes.iter().take_while(|&&index| index != WireIndex::ZERO).count();
    &attributes[..count]
}

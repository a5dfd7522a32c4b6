//! Samples with all references resolved, so that messages and batches can be compared by content.

use std::collections::{BTreeMap, BTreeSet};

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::profiles::v1development as otlp;
use otlpprof_model::{
    AttributeSetId, AttributeValue, Batch, Frame, FunctionId, LinkId, MappingId, Profile, RemoteFrame,
    StringId, Tables, attribute_keys, unnamed_native_frame,
};
use otlpprof_otlp::NativeFrames;

type Attributes = BTreeMap<String, (String, String)>;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ResolvedFrame {
    /// The start, limit, file offset, file name and attributes.
    mapping: Option<(u64, u64, u64, String, Attributes)>,
    address: u64,
    /// The name, system name, file name, start line, and line.
    line: Option<(String, String, String, i64, i64)>,
    attributes: Attributes,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ResolvedIdentity {
    stack: Vec<ResolvedFrame>,
    attributes: Attributes,
    link: Option<(Vec<u8>, Vec<u8>)>,
}

impl ResolvedIdentity {
    /// The identity without system names, which depend on the other functions in the message.
    pub(crate) fn without_system_names(mut self) -> Self {
        self.stack.iter_mut().flat_map(|frame| &mut frame.line).for_each(|line| line.1.clear());
        self
    }
}

/// The values and times of one sample, paired if both are present.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResolvedSample {
    pub(crate) values: Vec<i64>,
    pub(crate) times: Vec<u64>,
}

impl ResolvedSample {
    /// The amount that the sample adds to a total. In a sample without values each time counts one.
    pub(crate) fn total(&self) -> i64 {
        if self.values.is_empty() {
            self.times.len() as i64
        } else {
            self.values.iter().fold(0, |sum, &value| sum.saturating_add(value))
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResolvedProfile {
    /// The sample type and its unit, the period type and its unit.
    pub(crate) types: [String; 4],
    pub(crate) period: i64,
    pub(crate) attributes: Attributes,
    pub(crate) samples: BTreeMap<ResolvedIdentity, ResolvedSample>,
}

/// The profiles of a message. Panics if an index is out of range, or if two samples have one identity.
pub(crate) fn of_message(message: &otlp::ProfilesData) -> Vec<ResolvedProfile> {
    let dictionary = message.dictionary.as_ref().unwrap();
    let view = MessageView(dictionary);
    let profiles = message.resource_profiles.iter().flat_map(|r| &r.scope_profiles).flat_map(|s| &s.profiles);
    profiles.map(|profile| view.profile(profile)).collect()
}

struct MessageView<'a>(&'a otlp::ProfilesDictionary);

impl MessageView<'_> {
    fn string(&self, index: i32) -> String {
        self.0.string_table[index as usize].clone()
    }

    fn attributes(&self, indices: &[i32]) -> Attributes {
        let mut attributes = Attributes::new();
        for &index in indices {
            let entry = &self.0.attribute_table[index as usize];
            let value = match entry.value.as_ref().unwrap().value.as_ref().unwrap() {
                Value::StringValue(value) => format!("string {value}"),
                Value::IntValue(value) => format!("int {value}"),
                Value::BoolValue(value) => format!("bool {value}"),
                Value::DoubleValue(value) => format!("double {value:?}"),
                other => panic!("unexpected attribute value {other:?}"),
            };
            let value = (value, self.string(entry.unit_strindex));
            assert_eq!(attributes.insert(self.string(entry.key_strindex), value), None, "a key comes twice");
        }
        attributes
    }

    fn frame(&self, index: i32) -> ResolvedFrame {
        let location = &self.0.location_table[index as usize];
        let mapping = (location.mapping_index != 0).then(|| {
            let mapping = &self.0.mapping_table[location.mapping_index as usize];
            (
                mapping.memory_start,
                mapping.memory_limit,
                mapping.file_offset,
                self.string(mapping.filename_strindex),
                self.attributes(&mapping.attribute_indices),
            )
        });
        assert!(location.lines.len() <= 1);
        let line = location.lines.first().map(|line| {
            let function = &self.0.function_table[line.function_index as usize];
            (
                self.string(function.name_strindex),
                self.string(function.system_name_strindex),
                self.string(function.filename_strindex),
                function.start_line,
                line.line,
            )
        });
        let attributes = self.attributes(&location.attribute_indices);
        ResolvedFrame { mapping, address: location.address, line, attributes }
    }

    fn profile(&self, profile: &otlp::Profile) -> ResolvedProfile {
        let mut samples = BTreeMap::new();
        for sample in &profile.samples {
            let stack = &self.0.stack_table[sample.stack_index as usize];
            let link = (sample.link_index != 0).then(|| {
                let link = &self.0.link_table[sample.link_index as usize];
                (link.trace_id.clone(), link.span_id.clone())
            });
            let identity = ResolvedIdentity {
                stack: stack.location_indices.iter().map(|&index| self.frame(index)).collect(),
                attributes: self.attributes(&sample.attribute_indices),
                link,
            };
            let resolved =
                ResolvedSample { values: sample.values.clone(), times: sample.timestamps_unix_nano.clone() };
            assert_eq!(samples.insert(identity, resolved), None, "two samples have one identity");
        }
        let (sample_type, period_type) = (profile.sample_type.unwrap(), profile.period_type.unwrap());
        ResolvedProfile {
            types: [
                self.string(sample_type.type_strindex),
                self.string(sample_type.unit_strindex),
                self.string(period_type.type_strindex),
                self.string(period_type.unit_strindex),
            ],
            period: profile.period,
            attributes: self.attributes(&profile.attribute_indices),
            samples,
        }
    }
}

/// The expected profiles of a message of this batch, with a total for each sample instead of its values and
/// times.
pub(crate) fn of_batch(batch: &Batch, native_frames: NativeFrames) -> Vec<ResolvedProfile> {
    let view = BatchView(&batch.tables, native_frames, overloaded(batch));
    batch.profiles.iter().filter(|profile| !profile.is_empty()).map(|profile| view.profile(profile)).collect()
}

/// The names of functions in the batch's samples that have several system names.
fn overloaded(batch: &Batch) -> BTreeSet<StringId> {
    let mut system_names = BTreeMap::<StringId, BTreeSet<StringId>>::new();
    for sample in batch.profiles.iter().flat_map(Profile::samples) {
        for &frame in batch.tables.stacks.get(sample.identity.stack) {
            let function = match *batch.tables.frames.get(frame) {
                Frame::RemoteNative { .. } => continue,
                Frame::Java { function, .. }
                | Frame::Native { function, .. }
                | Frame::Kernel { function, .. }
                | Frame::Stub { function }
                | Frame::Marker { function, .. } => batch.tables.functions.get(function),
            };
            system_names.entry(function.name).or_default().insert(function.system_name);
        }
    }
    system_names.into_iter().filter(|(_, different)| different.len() > 1).map(|(name, _)| name).collect()
}

struct BatchView<'a>(&'a Tables, NativeFrames, BTreeSet<StringId>);

fn text_attribute(key: &str, value: &str) -> (String, (String, String)) {
    (key.to_owned(), (format!("string {value}"), String::new()))
}

impl BatchView<'_> {
    fn string(&self, id: StringId) -> String {
        self.0.strings.get(id).to_owned()
    }

    fn attributes(&self, set: AttributeSetId) -> Attributes {
        let mut attributes = Attributes::new();
        for &id in self.0.attributes_of(set) {
            let attribute = self.0.attributes.get(id);
            let value = match attribute.value {
                AttributeValue::Str(id) => format!("string {}", self.string(id)),
                AttributeValue::Int(value) => format!("int {value}"),
                AttributeValue::Bool(value) => format!("bool {value}"),
                AttributeValue::Double(value) => format!("double {value:?}"),
            };
            attributes.insert(self.string(attribute.key), (value, self.string(attribute.unit)));
        }
        attributes
    }

    fn mapping(&self, id: MappingId) -> Option<(u64, u64, u64, String, Attributes)> {
        let mapping = self.0.mappings.get(id);
        let mut attributes = Attributes::new();
        if let Some(id) = mapping.build_id {
            attributes.extend([text_attribute("process.executable.build_id.gnu", &id.to_string())]);
        }
        if let Some(hash) = mapping.htlhash {
            attributes.extend([text_attribute("process.executable.build_id.htlhash", &self.string(hash))]);
        }
        let filename = self.string(mapping.filename);
        let (start, limit) = (mapping.memory_start.0, mapping.memory_limit.0);
        (!attributes.is_empty()).then_some((start, limit, mapping.file_offset.0, filename, attributes))
    }

    fn line(&self, id: FunctionId, line: u32) -> Option<(String, String, String, i64, i64)> {
        let function = self.0.functions.get(id);
        let mut name = self.string(function.name);
        if name.is_empty() {
            name = "[unknown]".to_owned(); // no function here has any other text then
        }
        let written = !function.is_method || self.2.contains(&function.name);
        let system_name = if written { self.string(function.system_name) } else { String::new() };
        let filename = self.string(function.filename);
        Some((name, system_name, filename, i64::from(function.start_line), i64::from(line)))
    }

    fn frame(&self, frame: Frame) -> ResolvedFrame {
        let frame_type = match frame {
            Frame::Java { .. } => "jvm",
            Frame::RemoteNative { .. } | Frame::Native { .. } | Frame::Stub { .. } => "native",
            Frame::Kernel { .. } => "kernel",
            Frame::Marker { frame_type, .. } => frame_type.as_str(),
        };
        let mut resolved = ResolvedFrame {
            attributes: Attributes::from([text_attribute(attribute_keys::FRAME_TYPE, frame_type)]),
            ..ResolvedFrame::default()
        };
        match frame {
            Frame::Java { function, line, execution } => {
                resolved.line = self.line(function, line);
                let execution = execution
                    .map(|execution| text_attribute(attribute_keys::FRAME_EXECUTION, execution.as_str()));
                resolved.attributes.extend(execution);
            }
            Frame::Kernel { mapping, address, function } => {
                resolved.mapping = mapping.and_then(|mapping| self.mapping(mapping));
                resolved.address = address.unwrap_or_default().0;
                resolved.line = self.line(function, 0);
            }
            Frame::Stub { function } => {
                resolved.line = self.line(function, 0);
                resolved.attributes.extend([text_attribute("otlpprof.frame.kind", "stub")]);
            }
            Frame::Marker { function, .. } => resolved.line = self.line(function, 0),
            Frame::Native { mapping, address, function, line } => {
                resolved.mapping = mapping.and_then(|mapping| self.mapping(mapping));
                resolved.address = address.unwrap_or_default().0;
                resolved.line = self.line(function, line);
            }
            Frame::RemoteNative { mapping: id, address } => {
                let mapping = self.0.mappings.get(id);
                resolved.mapping = self.mapping(id);
                resolved.address = address.0;
                let named = |name: String| Some((name, String::new(), String::new(), 0, 0));
                match (mapping.build_id, self.1) {
                    (None, _) => {
                        resolved.line = named(unnamed_native_frame(&self.string(mapping.filename), address));
                    }
                    (Some(build_id), NativeFrames::Name) => {
                        resolved.line = named(RemoteFrame { build_id, address }.to_string());
                    }
                    (Some(build_id), NativeFrames::Remote) => {
                        let text = RemoteFrame { build_id, address }.to_string();
                        resolved.attributes.extend([text_attribute("otlpprof.frame.remote", &text)]);
                    }
                }
            }
        }
        resolved
    }

    fn profile(&self, profile: &Profile) -> ResolvedProfile {
        let mut samples = BTreeMap::<_, ResolvedSample>::new();
        for sample in profile.samples() {
            let frames = self.0.stacks.get(sample.identity.stack);
            let link = (sample.identity.link != LinkId::NONE).then(|| {
                let link = self.0.links.get(sample.identity.link);
                (link.trace_id.to_vec(), link.span_id.to_vec())
            });
            let identity = ResolvedIdentity {
                stack: frames.iter().map(|&id| self.frame(*self.0.frames.get(id))).collect(),
                attributes: self.attributes(sample.identity.attributes),
                link,
            };
            samples.entry(identity).or_default().values.push(sample.value);
        }
        let profile_type = profile.profile_type;
        let mut attributes = self.attributes(profile.attributes);
        let (key, value) = text_attribute(attribute_keys::PROFILE_TYPE, profile_type.profile_type);
        attributes.entry(key).or_insert(value);
        let types = [
            profile_type.sample_type,
            profile_type.sample_unit,
            profile_type.period_type,
            profile_type.period_unit,
        ];
        ResolvedProfile { types: types.map(str::to_owned), period: profile.period, attributes, samples }
    }
}

/// The profiles with a total for each sample instead of its values and times.
pub(crate) fn totals(profiles: &[ResolvedProfile]) -> Vec<ResolvedProfile> {
    let mut profiles = profiles.to_vec();
    for sample in profiles.iter_mut().flat_map(|profile| profile.samples.values_mut()) {
        *sample = ResolvedSample { values: vec![sample.total()], times: Vec::new() };
    }
    profiles
}

//! A message that breaks no rule, for tests to read, print and modify.

use otlpprof_otlp::wire::*;
use prost::Message as _;

/// The window's start: 2023-11-14T22:13:20Z.
pub const TIME: u64 = 1_700_000_000_000_000_000;
/// The window's length: ten seconds.
pub const DURATION: u64 = 10_000_000_000;
/// The build-id of the fixture's native object.
pub const BUILD_ID: &str = "0123456789abcdef0123456789abcdef01234567";

/// A dictionary that grows as entries are added.
#[derive(Debug)]
pub struct Dictionary(pub ProfilesDictionary);

impl Dictionary {
    /// Tables that contain only their zero values.
    pub fn new() -> Self {
        Self(ProfilesDictionary {
            mapping_table: vec![Mapping::default()],
            location_table: vec![Location::default()],
            function_table: vec![Function::default()],
            link_table: vec![Link::default()],
            string_table: vec![String::new()],
            attribute_table: vec![KeyValueAndUnit::default()],
            stack_table: vec![Stack::default()],
        })
    }

    /// The index of a string.
    pub fn string(&mut self, text: &str) -> i32 {
        intern(&mut self.0.string_table, text.to_owned())
    }

    /// A sample or period type.
    pub fn value_type(&mut self, name: &str, unit: &str) -> Option<ValueType> {
        Some(ValueType { type_strindex: self.string(name), unit_strindex: self.string(unit) })
    }

    /// The index of an attribute.
    pub fn attribute(&mut self, key: &str, value: Value) -> i32 {
        let key_strindex = self.string(key);
        let value = Some(AnyValue { value: Some(value) });
        intern(&mut self.0.attribute_table, KeyValueAndUnit { key_strindex, value, unit_strindex: 0 })
    }

    /// The index of an attribute whose value is a string.
    pub fn text(&mut self, key: &str, value: &str) -> i32 {
        self.attribute(key, Value::StringValue(value.into()))
    }

    /// The index of a function.
    pub fn function(&mut self, name: &str, filename: &str) -> i32 {
        let (name_strindex, filename_strindex) = (self.string(name), self.string(filename));
        let function = Function { name_strindex, filename_strindex, ..Default::default() };
        intern(&mut self.0.function_table, function)
    }

    /// A frame of a function, with any frame type.
    pub fn frame(&mut self, frame_type: &str, name: &str, filename: &str, line: i64) -> i32 {
        let line = Line { function_index: self.function(name, filename), line, column: 0 };
        let attribute_indices = vec![self.text("profile.frame.type", frame_type)];
        intern(
            &mut self.0.location_table,
            Location { lines: vec![line], attribute_indices, ..Default::default() },
        )
    }

    /// A frame of a Java method, whose file has the name of its class.
    pub fn java(&mut self, name: &str, line: i64) -> i32 {
        let class = name.rsplit('.').nth(1).unwrap_or(name);
        self.frame("jvm", name, &format!("{class}.java"), line)
    }

    /// The index of a mapping of an object with the build-id [`BUILD_ID`].
    pub fn mapping(&mut self, filename: &str) -> i32 {
        let gnu = self.text("process.executable.build_id.gnu", BUILD_ID);
        let htlhash = self.text("process.executable.build_id.htlhash", "fedcba9876543210fedcba9876543210");
        let mapping = Mapping {
            memory_start: 0x1000,
            memory_limit: 0x3000,
            file_offset: 0x1000,
            filename_strindex: self.string(filename),
            attribute_indices: vec![gnu, htlhash],
        };
        intern(&mut self.0.mapping_table, mapping)
    }

    /// A frame without a function, which a backend has to symbolize.
    pub fn remote(&mut self, mapping_index: i32, address: u64) -> i32 {
        let native = self.text("profile.frame.type", "native");
        let text = self.text("otlpprof.frame.remote", &format!("{BUILD_ID}.<remote>({address:#x})"));
        let location =
            Location { mapping_index, address, attribute_indices: vec![native, text], ..Default::default() };
        intern(&mut self.0.location_table, location)
    }

    /// The index of a stack, whose locations are leaf first.
    pub fn stack(&mut self, location_indices: Vec<i32>) -> i32 {
        intern(&mut self.0.stack_table, Stack { location_indices })
    }
}

fn intern<T: PartialEq>(table: &mut Vec<T>, entry: T) -> i32 {
    let found = table.iter().position(|one| *one == entry);
    let index = found.unwrap_or_else(|| {
        table.push(entry);
        table.len() - 1
    });
    i32::try_from(index).unwrap()
}

/// An inline attribute.
pub fn inline(key: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(Value::StringValue(value.into())) });
    KeyValue { key: key.into(), value, key_strindex: 0 }
}

/// Two profiles of one process: CPU samples with values (30 in native code, 12 in Java), and wall-clock
/// samples with timestamps.
pub fn valid() -> ProfilesData {
    let mut tables = Dictionary::new();
    let library = tables.mapping("/opt/app/libburn.so");
    let native = tables.remote(library, 0x1234);
    let burn = tables.java("com.example.Burn.spin", 42);
    let main = tables.java("com.example.Burn.main", 7);
    let thread = tables.java("java.lang.Thread.run", 840);
    let native_stack = tables.stack(vec![native, burn, thread]);
    let java_stack = tables.stack(vec![burn, main]);
    let worker =
        vec![tables.text("thread.name", "worker"), tables.attribute("thread.id", Value::IntValue(17))];
    let main = vec![tables.text("thread.name", "main"), tables.attribute("thread.id", Value::IntValue(1))];
    tables.0.link_table.push(Link { trace_id: vec![0xaa; 16], span_id: vec![0xbb; 8] });

    let cpu = Profile {
        sample_type: tables.value_type("samples", "count"),
        period_type: tables.value_type("cpu", "nanoseconds"),
        period: 10_000_000,
        time_unix_nano: TIME,
        duration_nano: DURATION,
        profile_id: vec![1; 16],
        attribute_indices: vec![tables.text("profile.type", "cpu"), {
            tables.attribute("otlpprof.samples.dropped", Value::IntValue(3))
        }],
        samples: vec![
            Sample {
                stack_index: native_stack,
                attribute_indices: worker.clone(),
                link_index: 1,
                values: vec![30],
                ..Default::default()
            },
            Sample {
                stack_index: java_stack,
                attribute_indices: main.clone(),
                values: vec![12],
                ..Default::default()
            },
        ],
        ..Default::default()
    };
    let wall = Profile {
        sample_type: tables.value_type("samples", "count"),
        period_type: tables.value_type("wall", "nanoseconds"),
        period: 50_000_000,
        time_unix_nano: TIME,
        duration_nano: DURATION,
        profile_id: vec![2; 16],
        attribute_indices: vec![tables.text("profile.type", "wall")],
        original_payload_format: "jfr".into(),
        original_payload: b"FLR\0".to_vec(),
        samples: vec![
            Sample {
                stack_index: java_stack,
                attribute_indices: main,
                timestamps_unix_nano: vec![TIME, TIME + DURATION - 1],
                ..Default::default()
            },
            Sample {
                stack_index: native_stack,
                attribute_indices: worker,
                timestamps_unix_nano: vec![TIME + 1],
                ..Default::default()
            },
        ],
        ..Default::default()
    };
    ProfilesData {
        resource_profiles: vec![ResourceProfiles {
            resource: Some(Resource {
                attributes: vec![inline("service.name", "fixture"), inline("process.pid", "7")],
                ..Default::default()
            }),
            scope_profiles: vec![ScopeProfiles {
                scope: Some(InstrumentationScope {
                    name: "otlpprof".into(),
                    version: "0.1.0".into(),
                    ..Default::default()
                }),
                profiles: vec![cpu, wall],
                ..Default::default()
            }],
            ..Default::default()
        }],
        dictionary: Some(tables.0),
    }
}

/// The message with its length prefix.
pub fn framed(data: &ProfilesData) -> Vec<u8> {
    let message = data.encode_to_vec();
    [&u32::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat()
}

/// A length-delimited protobuf field: key, length, payload.
pub fn field(number: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    prost::encoding::encode_varint(payload.len() as u64, &mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

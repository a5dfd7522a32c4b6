//! Random batches with few distinct values, so that equal values are frequent.

use otlpprof_core::address::{ElfVaddr, FileOffset};
use otlpprof_core::build_id::BuildId;
use otlpprof_model::{
    AttributeId, AttributeValue, Batch, Execution, Frame, FrameId, FrameType, Function, JavaMethod, Link,
    LinkId, Mapping, MappingId, Profile, SampleIdentity, Tables, attribute_keys, types,
};
use proptest::prelude::*;

pub(crate) const START: u64 = 1_700_000_000_000_000_000;
pub(crate) const DURATION: u64 = 10_000_000_000;

/// The arguments of one call of `Profile::add`, as small numbers.
#[derive(Clone, Debug)]
pub(crate) struct Addition {
    pub(crate) frames: Vec<u8>,
    pub(crate) attributes: Vec<u8>,
    pub(crate) link: u8,
    pub(crate) value: i64,
    /// The time since the window's start, in nanoseconds.
    pub(crate) at: Option<u64>,
}

/// One profile of a batch.
#[derive(Clone, Debug)]
pub(crate) struct ProfileSpec {
    pub(crate) profile_type: usize,
    pub(crate) attributes: Vec<u8>,
    pub(crate) additions: Vec<Addition>,
}

pub(crate) fn profile_specs() -> impl Strategy<Value = Vec<ProfileSpec>> {
    prop::collection::vec(profile_spec(), 0..4)
}

fn profile_spec() -> impl Strategy<Value = ProfileSpec> {
    // Either all additions have times or only some; and values are either counts or arbitrary.
    (any::<bool>(), any::<bool>()).prop_flat_map(|(timed, counting)| {
        let at =
            if timed { (0..DURATION).prop_map(Some).boxed() } else { prop::option::of(0..DURATION).boxed() };
        let value =
            if counting { (1..4i64).boxed() } else { any::<i64>().prop_map(|value| value >> 8).boxed() };
        let attributes = || prop::collection::vec(0..24u8, 0..4);
        let addition = (prop::collection::vec(any::<u8>(), 0..6), attributes(), 0..4u8, value, at).prop_map(
            |(frames, attributes, link, value, at)| Addition { frames, attributes, link, value, at },
        );
        (0..types::ALL.len(), attributes(), prop::collection::vec(addition, 0..30)).prop_map(
            |(profile_type, attributes, additions)| ProfileSpec { profile_type, attributes, additions },
        )
    })
}

pub(crate) fn batch(specs: &[ProfileSpec]) -> Batch {
    let mut batch = Batch::default();
    batch.resource.set("service.name", "test \"quoted\"\n");
    batch.resource.set("process.pid", 7);
    batch.resource.set("ratio", 0.5);
    batch.resource.set("flag", false);
    // Values to which no sample refers must not be written.
    batch.tables.string_attribute("orphan.key", "orphan value");
    batch.tables.named_function("orphan.function");
    for spec in specs {
        let mut profile = Profile::new(types::ALL[spec.profile_type], 10_000_000);
        profile.start_unix_nano = START;
        profile.duration_nano = DURATION;
        profile.attributes = attribute_set(&mut batch.tables, &spec.attributes);
        for addition in &spec.additions {
            let frames: Vec<FrameId> =
                addition.frames.iter().map(|&frame| self::frame(&mut batch.tables, frame)).collect();
            let identity = SampleIdentity {
                stack: batch.tables.stacks.intern(&frames),
                attributes: attribute_set(&mut batch.tables, &addition.attributes),
                link: link(&mut batch.tables, addition.link),
            };
            profile.add(identity, addition.value, addition.at.map(|at| START + at));
        }
        batch.profiles.push(profile);
    }
    batch
}

fn attribute_set(tables: &mut Tables, numbers: &[u8]) -> otlpprof_model::AttributeSetId {
    let attributes: Vec<AttributeId> = numbers.iter().map(|&number| attribute(tables, number)).collect();
    tables.attribute_set(&attributes)
}

fn attribute(tables: &mut Tables, number: u8) -> AttributeId {
    let key = ["class", "age", "é", "", attribute_keys::PROFILE_TYPE, attribute_keys::FRAME_TYPE]
        [usize::from(number / 4)];
    // The keys of the conventions have string values.
    let kind = if number < 16 { number % 4 } else { 0 };
    match kind {
        0 => tables.string_attribute(key, ["jvm", "", "thread.name"][usize::from(number / 4) % 3]),
        1 => tables.int_attribute(key, i64::from(number) - 5, "By"),
        2 => tables.attribute(key, AttributeValue::Bool(number > 7), ""),
        _ => tables.attribute(key, AttributeValue::Double(f64::from(number) / 3.0), ""),
    }
}

fn link(tables: &mut Tables, number: u8) -> LinkId {
    match number {
        0 => LinkId::NONE,
        _ => tables.links.intern(Link { trace_id: [number; 16], span_id: [0xf0 | number; 8] }),
    }
}

fn mapping(tables: &mut Tables, number: u8) -> MappingId {
    let filename = tables.strings.intern(["/lib/liba.so", "[vdso]", ""][usize::from(number) % 3]);
    let htlhash = (number & 1 == 1).then(|| tables.strings.intern("00112233445566778899aabbccddeeff"));
    let build_id = (number & 2 == 2).then(|| BuildId::new(&[number, 0xab]).unwrap());
    tables.mappings.intern(Mapping {
        memory_start: ElfVaddr(0x1000),
        memory_limit: ElfVaddr(0x9000),
        file_offset: FileOffset(0x1000),
        filename,
        build_id,
        htlhash,
    })
}

fn frame(tables: &mut Tables, number: u8) -> FrameId {
    let small = number / 8 % 4;
    let address = ElfVaddr(0x1000 + u64::from(number / 32));
    // There are few names, so that frames of different kinds become equal if both are written alike.
    let named = tables.named_function(["a", "b", "", "00ab"][usize::from(small)]);
    let frame = match number % 8 {
        0 | 1 => {
            let method = JavaMethod {
                class: "com/example/A$B",
                method: ["a", "b", "<init>", "c"][usize::from(small)],
                // Some methods are overloaded.
                descriptor: if number < 192 { "()V" } else { "(I)V" },
                normalise: true,
            };
            let function = tables.java_function(method, "A.java", u32::from(small));
            let execution = match number / 32 {
                1 | 2 => Some(Execution::Interpreted),
                3 | 4 => Some(Execution::Inlined),
                _ => None,
            };
            Frame::Java { function, line: u32::from(number / 64), execution }
        }
        2 => Frame::RemoteNative { mapping: mapping(tables, small), address },
        3 => Frame::Native {
            mapping: Some(mapping(tables, small)),
            address: Some(address),
            function: named,
            line: 3,
        },
        4 => {
            let name = ["a", "b", "com.example.A$B.c", "00ab"][usize::from(small)];
            let function = tables.native_function(name, "_Z1av");
            Frame::Native { mapping: None, address: None, function, line: 0 }
        }
        5 => {
            let mapping = small.is_multiple_of(2).then(|| mapping(tables, small));
            Frame::Kernel { mapping, address: mapping.map(|_| address), function: named }
        }
        6 if number >= 192 => Frame::Stub { function: named },
        6 => {
            let frame_type = [FrameType::Jvm, FrameType::Native, FrameType::Kernel][usize::from(small) % 3];
            Frame::Marker { function: named, frame_type }
        }
        _ => {
            let remote = tables.named_function("02ab.<remote>(0x1001)");
            let function = Function { start_line: 0, ..*tables.functions.get(remote) };
            let function = tables.functions.intern(function);
            Frame::Native { mapping: Some(mapping(tables, 2)), address: Some(address), function, line: 0 }
        }
    };
    tables.frames.intern(frame)
}

//! Measures the throughput from additions to bytes: summing samples, and writing them as protobuf and JSON,
//! beside the time that prost needs for the same message when its structures exist already.

mod measure;

use std::hint::black_box;

use measure::{Contender, compare};
use otlpprof_core::address::{ElfVaddr, FileOffset};
use otlpprof_core::build_id::BuildId;
use otlpprof_model::{
    AttributeSetId, Batch, Frame, FrameId, JavaMethod, LinkId, Mapping, Profile, SampleIdentity, types,
};
use otlpprof_otlp::wire;
use otlpprof_otlp::{EncodeOptions, Format, encode};
use prost::Message;

const TURNS: usize = 41;

/// The samples of a busy server in ten seconds.
struct Workload {
    name: &'static str,
    stacks: usize,
    depth: usize,
    threads: usize,
    additions: usize,
}

const WORKLOADS: &[Workload] = &[
    Workload { name: "few stacks", stacks: 200, depth: 30, threads: 16, additions: 20_000 },
    Workload { name: "many stacks", stacks: 8_000, depth: 60, threads: 64, additions: 20_000 },
];

/// A small generator (splitmix64) with a fixed seed, so that every run measures the same batch.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % bound as u64) as usize
    }
}

/// Returns the batch without samples, and the additions to make.
fn prepare(workload: &Workload) -> (Batch, Vec<SampleIdentity>) {
    let mut numbers = Numbers(1);
    let mut batch = Batch::default();
    batch.resource.set("service.name", "benchmark");
    let frames = frames(&mut batch);
    let tables = &mut batch.tables;
    let threads: Vec<AttributeSetId> = (0..workload.threads)
        .map(|thread| {
            let name = tables.string_attribute("thread.name", &format!("http-nio-8080-exec-{thread}"));
            let id = tables.int_attribute("thread.id", thread as i64 + 20, "");
            tables.attribute_set(&[name, id])
        })
        .collect();
    let stacks: Vec<_> = (0..workload.stacks)
        .map(|_| {
            // Stacks share their roots, as the stacks of one program do.
            let own = workload.depth / 3;
            let mut stack: Vec<FrameId> = (0..own).map(|_| frames[numbers.below(frames.len())]).collect();
            let family = numbers.below(20);
            stack.extend((own..workload.depth).map(|depth| frames[(family * 97 + depth) % frames.len()]));
            tables.stacks.intern(&stack)
        })
        .collect();
    let additions = (0..workload.additions)
        .map(|_| SampleIdentity {
            stack: stacks[numbers.below(stacks.len())],
            attributes: threads[numbers.below(threads.len())],
            link: LinkId::NONE,
        })
        .collect();
    (batch, additions)
}

/// Makes 5,000 Java frames and 500 unsymbolized native frames.
fn frames(batch: &mut Batch) -> Vec<FrameId> {
    let tables = &mut batch.tables;
    let mut frames: Vec<FrameId> = (0..5_000u32)
        .map(|number| {
            let class = format!("com/example/service/internal/Component{}$Handler", number / 10);
            let method = format!("processRequest{}", number % 10);
            let descriptor = "(Ljava/lang/String;Ljava/util/Map;I)Ljava/lang/Object;";
            let method = JavaMethod { class: &class, method: &method, descriptor, normalise: true };
            let function = tables.java_function(method, &format!("Component{}.java", number / 10), 0);
            tables.frames.intern(Frame::java(function, 10 + number % 300))
        })
        .collect();
    let filename = tables.strings.intern("/usr/lib/jvm/java-17/lib/server/libjvm.so");
    let mapping = tables.mappings.intern(Mapping {
        memory_start: ElfVaddr(0x20_0000),
        memory_limit: ElfVaddr(0x120_0000),
        file_offset: FileOffset(0x20_0000),
        filename,
        build_id: BuildId::new(&[0xab; 20]),
        htlhash: None,
    });
    frames.extend((0..500).map(|number| {
        tables.frames.intern(Frame::RemoteNative { mapping, address: ElfVaddr(0x21_0000 + number * 0x123) })
    }));
    frames
}

fn fill(additions: &[SampleIdentity], timed: bool) -> Profile {
    let mut profile = Profile::new(&types::CPU, 10_000_000);
    profile.start_unix_nano = 1_700_000_000_000_000_000;
    profile.duration_nano = 10_000_000_000;
    for (number, &identity) in additions.iter().enumerate() {
        let at = profile.start_unix_nano + number as u64 * 500_000;
        profile.add(identity, 1, timed.then_some(at));
    }
    profile
}

fn main() {
    for workload in WORKLOADS {
        let (mut batch, additions) = prepare(workload);
        let count = additions.len() as f64;
        compare(
            &format!("sum, {}: {} additions", workload.name, additions.len()),
            TURNS,
            vec![
                Contender::new("without times", &[("additions", count)], || {
                    black_box(fill(&additions, false));
                }),
                Contender::new("with times", &[("additions", count)], || {
                    black_box(fill(&additions, true));
                }),
            ],
        );
        let known: Vec<Vec<FrameId>> = batch.tables.stacks.iter().map(<[FrameId]>::to_vec).collect();
        compare(
            &format!("intern, {}: {} known stacks", workload.name, known.len()),
            TURNS,
            vec![Contender::new("stacks", &[("stacks", known.len() as f64)], || {
                known.iter().for_each(|stack| {
                    black_box(batch.tables.stacks.intern(stack));
                });
            })],
        );
        for timestamps in [false, true] {
            batch.profiles = vec![fill(&additions, timestamps)];
            write(workload, &batch, timestamps);
        }
    }
}

fn write(workload: &Workload, batch: &Batch, timestamps: bool) {
    let proto = EncodeOptions { timestamps, ..EncodeOptions::default() };
    let json = EncodeOptions { format: Format::Json, ..proto };
    let proto_bytes = encode(batch, &proto);
    let json_bytes = encode(batch, &json);
    let ready = wire::ProfilesData::decode(&proto_bytes[..]).expect("our own message");
    assert_eq!(ready.encode_to_vec().len(), proto_bytes.len());

    let samples = batch.profiles[0].samples().len();
    let work = |bytes: &[u8]| [("samples", samples as f64), ("B", bytes.len() as f64)];
    let title = format!(
        "write, {}{}: {samples} samples, {} B protobuf, {} B JSON",
        workload.name,
        if timestamps { ", with times" } else { "" },
        proto_bytes.len(),
        json_bytes.len()
    );
    let contenders = vec![
        Contender::new("protobuf", &work(&proto_bytes), || {
            black_box(encode(batch, &proto));
        }),
        Contender::new("prost, structures ready", &work(&proto_bytes), || {
            black_box(ready.encode_to_vec());
        }),
        Contender::new("prost, structures copied", &work(&proto_bytes), || {
            black_box(black_box(ready.clone()).encode_to_vec());
        }),
        Contender::new("JSON", &work(&json_bytes), || {
            black_box(encode(batch, &json));
        }),
    ];
    compare(&title, TURNS, contenders);
}

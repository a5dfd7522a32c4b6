//! Files crafted to cost more than they should: the command's memory and output are bounded.
//!
//! The test limits the command's address space to a multiple of the largest message, mostly four, 64 MiB, the
//! memory of the loader and libraries, and the stacks of its threads. The result does not depend on timing.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::packed::gzip;
use otlpprof_otlp::wire::*;
use otlpprof_testkit::jdk::everything;
use prost::Message as _;
use tempfile::TempDir;

const MIB: usize = 1 << 20;
/// Memory for the command's code and libraries, its stack, and the allocator's reserves.
const OF_PROCESS: usize = 40 * MIB;

/// The stacks of the command's threads, for each of which the standard library reserves 2 MiB of addresses:
/// one that reads, and at most 12 others that check messages and parse lines.
fn of_threads() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (1 + (2 * processors).min(12)) * 2 * MIB
}

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn add(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// Runs the command with four times the largest message of its file, of `largest` bytes.
fn run(largest: usize, arguments: &[&str], file: &Path) -> Output {
    run_within(4 * largest, arguments, file)
}

/// Runs the command with so many bytes for the contents of its file.
fn run_within(bytes: usize, arguments: &[&str], file: &Path) -> Output {
    let most = (bytes + 64 * MIB + OF_PROCESS + of_threads()) / 1024;
    let limited = format!("ulimit -v {most} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limited, env!("CARGO_BIN_EXE_otlpprof")]).args(arguments).arg(file);
    if arguments[0] == "diff" {
        command.arg(file);
    }
    // For each thread the C library's allocator would reserve 64 MiB of addresses, without memory.
    command.env("MALLOC_ARENA_MAX", "1").output().unwrap()
}

/// The ways to read a file. Each holds different parts of it in memory.
const READERS: [&[&str]; 5] = [
    &["print", "--top-frames", "5", "--top", "10"],
    &["print", "--all", "--top", "0"],
    &["print", "--all", "--format", "json"],
    &["validate"],
    &["check-stacks"],
];

/// Results of profiles, each with the multiple that it may take of the file: beside a message, the tables of
/// the result are in memory, for all messages together.
const RESULTS: [(usize, &[&str]); 10] = [
    (7, &["report", "--lines", "--threads"]),
    (4, &["report", "--tree"]),
    (4, &["flamegraph", "-o", "/dev/null"]),
    (6, &["diff", "-o", "/dev/null"]),
    (10, &["export", "-o", "/dev/null", "--to", "pprof"]),
    (4, &["export", "-o", "/dev/null", "--to", "collapsed"]),
    (4, &["export", "-o", "/dev/null", "--to", "speedscope"]),
    (12, &["export", "-o", "/dev/null", "--to", "firefox"]),
    (4, &["merge", "-o", "/dev/null"]),
    (4, &["top", "--count", "1", "--interval", "100ms"]),
];

/// All commands that read profiles, each with its multiple.
fn commands() -> impl Iterator<Item = (usize, &'static [&'static str])> + Clone {
    READERS.into_iter().map(|reader| (4, reader)).chain(RESULTS)
}

fn data(profile: Profile, dictionary: ProfilesDictionary) -> ProfilesData {
    let scope = Some(InstrumentationScope { name: "test".into(), ..Default::default() });
    let scope_profiles = vec![ScopeProfiles { scope, profiles: vec![profile], ..Default::default() }];
    let resource = Some(Resource::default());
    let resource_profiles = vec![ResourceProfiles { resource, scope_profiles, ..Default::default() }];
    ProfilesData { resource_profiles, dictionary: Some(dictionary) }
}

fn profile(samples: Vec<Sample>) -> Profile {
    Profile {
        sample_type: Some(ValueType { type_strindex: 1, unit_strindex: 2 }),
        period_type: Some(ValueType { type_strindex: 1, unit_strindex: 2 }),
        period: 1,
        time_unix_nano: 1,
        duration_nano: 1 << 40,
        samples,
        ..Default::default()
    }
}

/// A message like those of real programs: `functions` functions with one name each, twice as many locations,
/// and as many stacks of `depth` frames as functions, each with one sample.
fn usual(seed: usize, functions: usize, depth: usize) -> ProfilesData {
    let mut tables = ProfilesDictionary {
        mapping_table: vec![Mapping::default()],
        location_table: vec![Location::default()],
        function_table: vec![Function::default()],
        link_table: vec![Link::default()],
        string_table: vec![String::new(), "samples".into(), "count".into(), "Program.java".into()],
        attribute_table: vec![KeyValueAndUnit::default()],
        stack_table: vec![Stack::default()],
    };
    let first = tables.string_table.len();
    let mut samples = Vec::new();
    for number in 0..functions {
        tables.string_table.push(format!("com.example.program{seed}.Class{}.method{number}", number % 97));
        let name_strindex = (first + number) as i32;
        tables.function_table.push(Function { name_strindex, filename_strindex: 3, ..Default::default() });
        for line in [number as i64 + 7, number as i64 + 9] {
            let lines = vec![Line { function_index: number as i32 + 1, line, column: 0 }];
            tables.location_table.push(Location { lines, ..Default::default() });
        }
        let frame = |depth: usize| ((number * 31 + depth * 17) % (2 * functions)) as i32 + 1;
        tables.stack_table.push(Stack { location_indices: (0..depth).map(frame).collect() });
        let stack_index = number as i32 + 1;
        samples.push(Sample { stack_index, values: vec![3], ..Default::default() });
    }
    data(profile(samples), tables)
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&u32::try_from(message.len()).unwrap().to_be_bytes()[..], message].concat()
}

/// The parts of a message that [`usual`] makes, as OTLP/JSON.
fn json(data: &ProfilesData) -> String {
    let list = |items: Vec<String>| items.join(",");
    let tables = data.dictionary.as_ref().unwrap();
    let samples = &data.resource_profiles[0].scope_profiles[0].profiles[0].samples;
    let sample =
        |one: &Sample| format!("{{\"stackIndex\":{},\"values\":[\"{}\"]}}", one.stack_index, one.values[0]);
    let location = |one: &Location| match one.lines.first() {
        Some(line) => format!(
            "{{\"lines\":[{{\"functionIndex\":{},\"line\":\"{}\"}}]}}",
            line.function_index, line.line
        ),
        None => "{}".into(),
    };
    let function = |one: &Function| {
        format!("{{\"nameStrindex\":{},\"filenameStrindex\":{}}}", one.name_strindex, one.filename_strindex)
    };
    let stack = |one: &Stack| format!("{{\"locationIndices\":{:?}}}", one.location_indices);
    format!(
        r#"{{"resourceProfiles":[{{"resource":{{}},"scopeProfiles":[{{"scope":{{"name":"test"}},"profiles":[{{
            "sampleType":{{"typeStrindex":1,"unitStrindex":2}},
            "periodType":{{"typeStrindex":1,"unitStrindex":2}},
            "period":"1","timeUnixNano":"1","durationNano":"1099511627776",
            "samples":[{}]}}]}}]}}],"dictionary":{{
            "mappingTable":[{{}}],"linkTable":[{{}}],"attributeTable":[{{}}],
            "locationTable":[{}],"functionTable":[{}],
            "stackTable":[{}],"stringTable":[{}]}}}}"#,
        list(samples.iter().map(sample).collect()),
        list(tables.location_table.iter().map(location).collect()),
        list(tables.function_table.iter().map(function).collect()),
        list(tables.stack_table.iter().map(stack).collect()),
        list(tables.string_table.iter().map(|text| format!("{text:?}")).collect()),
    )
    .replace("\n            ", "")
}

fn assert_read(output: &Output, what: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    // The messages break some rules, so the exit code may be 1.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{what}: {} {stderr}", output.status);
}

/// Regression: one stack that many samples refer to was resolved, and written, for each of the samples.
#[test]
fn a_long_stack_of_many_samples_is_gone_through_once() {
    const MANY: usize = 200_000;
    let mut tables = usual(0, 1, 1).dictionary.unwrap();
    tables.stack_table = vec![Stack::default(), Stack { location_indices: vec![1; MANY] }];
    let sample = |number: usize| Sample {
        stack_index: 1,
        timestamps_unix_nano: vec![2 + number as u64],
        ..Default::default()
    };
    let message = data(profile((0..MANY).map(sample).collect()), tables).encode_to_vec();
    let files = Files::new();
    let file = files.add("long", &message);
    for (multiple, arguments) in commands() {
        let output = run_within(multiple * message.len(), arguments, &file);
        assert_read(&output, &format!("{arguments:?}"));
        // The frames are written once, and a few lines for each sample.
        let most = MANY * if arguments.contains(&"json") { 1000 } else { 300 };
        assert!(output.stdout.len() < most, "{arguments:?}: {} bytes", output.stdout.len());
    }
    let output = run(message.len(), &["print", "--all", "--top", "0"], &file);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("      the frames of sample 0\n").count(), MANY - 1);
    let output = run(message.len(), &["check-stacks"], &file);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with(&format!("{MANY} samples: ")));
}

/// Regression: readers held a file, its text and all its messages decoded, which is 12 to 50 times the file's
/// size.
#[test]
fn a_large_message_is_read_in_four_times_its_size() {
    read_large([(4, &["validate"][..])].into_iter());
}

#[test]
#[ignore = "long: each command takes ten seconds in this build"]
fn a_large_message_is_read_by_every_command_in_a_multiple_of_its_size() {
    read_large(commands());
}

fn read_large(commands: impl Iterator<Item = (usize, &'static [&'static str])> + Clone) {
    let files = Files::new();
    let usual = usual(0, 75_000, 12);
    let protobuf = usual.encode_to_vec();
    let text = json(&usual);
    assert!(protobuf.len() > 8 * MIB && text.len() > 8 * MIB);
    for (name, largest, bytes) in
        [("plain", protobuf.len(), protobuf.clone()), ("json-gzip", text.len(), gzip(text.as_bytes()))]
    {
        let file = files.add(name, &bytes);
        for (multiple, arguments) in commands.clone() {
            assert_read(&run_within(multiple * largest, arguments, &file), &format!("{name} {arguments:?}"));
        }
    }
}

#[test]
#[ignore = "long: each command takes ten seconds in this build"]
fn many_messages_are_read_in_the_memory_of_the_largest() {
    let files = Files::new();
    // Readers have only the largest message in memory, however many there are and whatever they contain.
    let messages: Vec<_> = (0..24).map(|seed| usual(seed, 3_000, 8)).collect();
    let largest = messages.iter().map(|data| data.encoded_len()).max().unwrap();
    let frames: Vec<u8> = messages.iter().flat_map(|data| framed(&data.encode_to_vec())).collect();
    let lines: Vec<_> = messages.iter().map(json).collect();
    let longest = lines.iter().map(String::len).max().unwrap();
    assert!(frames.len() > 6 * MIB);
    let texts = lines.join("\n").into_bytes();
    for (name, largest, all, bytes) in
        [("frames-gzip", largest, frames.len(), gzip(&frames)), ("lines", longest, texts.len(), texts)]
    {
        let file = files.add(name, &bytes);
        let of_readers = READERS.map(|reader| (4 * largest, reader));
        for (most, arguments) in of_readers.into_iter().chain(RESULTS.map(|(of, result)| (of * all, result)))
        {
            let output = run_within(most, arguments, &file);
            assert_read(&output, &format!("{name} {arguments:?}"));
            if arguments == READERS[0] {
                let text = String::from_utf8(output.stdout).unwrap();
                assert!(text.starts_with("samples: 216,000 in "), "{name}: totals are exact: {text}");
                assert!(text.contains(" stacks: samples, 216,000\n"), "{name}: totals are exact: {text}");
            }
        }
    }
}

/// Elements that are larger decoded than encoded, and nested lists, are either read or refused in one line,
/// within the same memory.
#[test]
fn elements_that_grow_are_bounded() {
    let field = |number: u8, payload: &[u8]| {
        let mut bytes = vec![number << 3 | 2];
        prost::encoding::encode_varint(payload.len() as u64, &mut bytes);
        [bytes, payload.to_vec()].concat()
    };
    let dictionary = |table: &[u8]| field(2, table);
    let in_profile = |fields: &[u8]| field(1, &field(2, &field(2, fields)));
    const COUNT: usize = 1_500_000;
    let lines = field(2, &[field(3, &[]).repeat(500_000), Vec::new()].concat());
    let attribute = |number| field(number, &field(2, &field(5, &field(1, &[]).repeat(400_000))));
    let mut wide = field(2, &field(3, &[]).repeat(4_000));
    wide.extend(field(7, &field(1, &vec![0; 200_000])));
    let files = Files::new();
    for (what, message, refused) in [
        ("locations", dictionary(&[0x12, 0].repeat(COUNT)), true),
        ("strings", dictionary(&[0x2a, 0].repeat(COUNT)), true),
        ("attributes", dictionary(&[0x32, 0].repeat(COUNT)), true),
        ("stacks", dictionary(&[0x3a, 0].repeat(COUNT)), true),
        ("samples", in_profile(&[0x12, 0].repeat(COUNT)), true),
        ("profiles", field(1, &field(2, &[0x12, 0].repeat(COUNT))), true),
        ("scopes", field(1, &[0x12, 0].repeat(COUNT)), true),
        ("resources", [0x0a, 0].repeat(COUNT), true),
        ("values", in_profile(&field(2, &field(4, &vec![1; 2_200_000]))), true),
        ("lines of a location", dictionary(&lines), true),
        ("values of an attribute", dictionary(&attribute(6)), true),
        ("attributes of a resource", field(1, &field(1, &field(1, &[]).repeat(400_000))), true),
        ("frames of a stack", dictionary(&field(7, &field(1, &vec![0; 300_000]))), true),
        ("lines of a stack", dictionary(&wide), true),
        ("a text", dictionary(&field(5, &vec![b'x'; 2 * MIB])), true),
        ("a million of locations", dictionary(&[0x12, 0].repeat(1_000_000)), false),
        ("a million of samples", in_profile(&[0x12, 0].repeat(1_000_000)), false),
    ] {
        let file = files.add("hostile", &message);
        // All commands use the same reader, so for a refusal two of them suffice, and here one.
        let commands = match (refused, everything()) {
            (_, false) => &READERS[3..4],
            (true, true) => &READERS[2..4],
            (false, true) => &READERS[..],
        };
        for arguments in commands {
            let output = run(message.len(), arguments, &file);
            let stderr = String::from_utf8_lossy(&output.stderr);
            if refused {
                assert_eq!(output.status.code(), Some(2), "{what} {arguments:?}: {stderr}");
                assert!(
                    stderr.contains("input-too-large") && stderr.lines().count() == 1,
                    "{what}: {stderr}"
                );
            } else {
                assert_read(&output, &format!("{what} {arguments:?}"));
            }
        }
    }
}

/// Regression: the whole decompressed contents of a small file were held in memory.
#[test]
fn a_file_that_decompresses_to_much_is_read_as_it_comes() {
    let files = Files::new();
    let mut data = usual(0, 10, 3);
    data.dictionary.as_mut().unwrap().string_table.push("x".repeat(MIB / 2));
    let message = framed(&data.encode_to_vec());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..300 {
        gzip.write_all(&message).unwrap();
    }
    let file = files.add("much", &gzip.finish().unwrap());
    assert_read(&run(message.len(), &["check-stacks"], &file), "150 MiB");
}

/// Messages whose table of functions would be far larger than the messages: `print` begins with that table.
#[test]
fn a_table_that_grows_is_left_out() {
    let files = Files::new();
    // Stacks of few locations, each of which differs from all others below the first frames.
    let mut stacks = usual(0, 60, 1).dictionary.unwrap();
    let mut state = 1_u32;
    let mut random = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as i32 % 120 + 1
    };
    stacks.stack_table =
        (0..60_000).map(|_| Stack { location_indices: (0..100).map(|_| random()).collect() }).collect();
    // Long names of functions and of files, in all pairs.
    let mut names = usual(0, 1, 1).dictionary.unwrap();
    let first = names.string_table.len() as i32;
    names.string_table.extend((0..300).map(|number| format!("{number:04}{}", "x".repeat(4_000))));
    names.stack_table = vec![Stack::default()];
    for number in 0..20_000 {
        let (name_strindex, filename_strindex) = (first + number % 200, first + 200 + number / 200);
        names.function_table.push(Function { name_strindex, filename_strindex, ..Default::default() });
        let lines = vec![Line { function_index: number + 2, ..Default::default() }];
        names.location_table.push(Location { lines, ..Default::default() });
        names.stack_table.push(Stack { location_indices: vec![number + 3] });
    }
    for (name, tables) in [("stacks", stacks), ("names", names)] {
        let samples = (1..tables.stack_table.len()).map(|stack_index| Sample {
            stack_index: stack_index as i32,
            values: vec![1],
            ..Default::default()
        });
        let message = data(profile(samples.collect()), tables).encode_to_vec();
        let file = files.add(name, &message);
        for arguments in [&["print"][..], &["print", "--stacks", "5"], READERS[0]] {
            let output = run(message.len(), arguments, &file);
            assert_read(&output, &format!("{name} {arguments:?}"));
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(text.starts_with("too many different stacks for a table: "), "{name}: {text}");
        }
    }
}

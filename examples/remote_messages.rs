//! Writes messages as an agent with `remotesym` writes them, for measurements:
//!
//! ```text
//! remote_messages hour OUT OBJECT[=SYMBOLS]…
//! remote_messages addresses OUT OBJECT <addresses
//! ```
//!
//! An hour is 360 messages, length-prefixed, each of 2,000 samples and 3,000 native frames without names in
//! the given objects: 2,000 frames that every message has, and 1,000 of 40,000 others. Their addresses are in
//! functions of the object's symbol table, or of the file SYMBOLS with the same addresses. Of addresses, ELF
//! virtual ones in hexadecimal, one a line, one message is made, whose frames are these.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{BufWriter, Read as _, Write as _};
use std::path::Path;

use goblin::elf::Elf;
use goblin::elf::sym::STT_FUNC;
use otlpprof_elf::build_id;
use otlpprof_elf::htlhash::HtlHash;
use otlpprof_elf::source::FileSource;
use otlpprof_otlp::wire::*;
use prost::Message as _;

const MESSAGES: u64 = 360;
const FRAMES: usize = 3_000;
/// Frames that every message has.
const HOT: usize = 2_000;
/// Frames that a message may have besides.
const OTHERS: usize = 40_000;
/// Native and Java frames of a stack.
const DEPTH: [usize; 2] = [12, 30];
const INTERVAL_NS: u64 = 10_000_000_000;
const START_NS: u64 = 1_700_000_000_000_000_000;

/// The size of a message, beside its native frames.
#[derive(Clone, Copy)]
struct Size {
    samples: usize,
    java_frames: usize,
}

const OF_AN_HOUR: Size = Size { samples: 2_000, java_frames: 2_000 };

struct Object {
    path: String,
    build_id: String,
    htlhash: String,
    code: Mapping,
    functions: Vec<(u64, u64)>,
}

/// Pseudo-random numbers (xorshift), the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * bound as u128) >> 64) as usize
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let [what, out] = [(); 2].map(|()| arguments.next().unwrap_or_default());
    let mut out = BufWriter::new(std::fs::File::create(out)?);
    match (&*what, &arguments.collect::<Vec<_>>()[..]) {
        ("hour", objects) => {
            let objects: Vec<Object> = objects.iter().map(|object| read(object)).collect::<Result<_, _>>()?;
            write_hour(&objects, &mut out)?;
        }
        ("addresses", [object]) => {
            let frames: Vec<_> = addresses()?.into_iter().map(|vaddr| (0, vaddr)).collect();
            let size = Size { samples: frames.len().div_ceil(DEPTH[0]), java_frames: 30 };
            let message = message(&[read(object)?], &frames, 0, size, &mut Random(1));
            out.write_all(&message.encode_to_vec())?;
        }
        _ => return Err("usage: remote_messages hour|addresses OUT OBJECT…".into()),
    }
    Ok(out.flush()?)
}

fn write_hour(objects: &[Object], out: &mut impl std::io::Write) -> Result<(), Box<dyn Error>> {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut frame = || {
        let object = random.below(objects.len());
        let functions = &objects[object].functions;
        let (start, size) = functions[random.below(functions.len())];
        (object, start + random.below(size as usize) as u64)
    };
    let hot: BTreeSet<_> = (0..HOT).map(|_| frame()).collect();
    let others: Vec<_> = (0..OTHERS).map(|_| frame()).collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for number in 0..MESSAGES {
        let mut frames = hot.clone();
        while frames.len() < FRAMES {
            frames.insert(others[random.below(OTHERS)]);
        }
        let frames: Vec<_> = frames.into_iter().collect();
        let message = message(objects, &frames, number, OF_AN_HOUR, &mut random).encode_to_vec();
        out.write_all(&u32::try_from(message.len())?.to_be_bytes())?;
        out.write_all(&message)?;
    }
    Ok(())
}

fn read(argument: &str) -> Result<Object, Box<dyn Error>> {
    let (path, symbols) = argument.split_once('=').unwrap_or((argument, argument));
    let named = |what: &str| format!("{path}: {what}");
    let bytes = std::fs::read(symbols)?;
    let elf = Elf::parse(&bytes)?;
    let functions = elf.syms.iter().chain(elf.dynsyms.iter());
    let functions = functions.filter(|symbol| symbol.st_type() == STT_FUNC && symbol.st_size > 0);
    let functions: Vec<_> = functions
        .filter(|symbol| symbol.st_shndx != 0)
        .map(|symbol| (symbol.st_value, symbol.st_size))
        .collect();
    if functions.is_empty() {
        return Err(named("no functions").into());
    }
    let bytes = std::fs::read(path)?;
    let elf = Elf::parse(&bytes)?;
    let code = elf.program_headers.iter().find(|header| header.is_executable());
    let code = code.ok_or_else(|| named("no code"))?;
    Ok(Object {
        path: path.to_owned(),
        build_id: build_id::of_file(Path::new(path))?.to_string(),
        htlhash: HtlHash::of(&FileSource::open(Path::new(path))?)?.to_string(),
        code: Mapping {
            memory_start: code.p_vaddr,
            memory_limit: code.p_vaddr + code.p_memsz,
            file_offset: code.p_offset,
            ..Mapping::default()
        },
        functions,
    })
}

/// Tables that grow.
#[derive(Default)]
struct Tables(ProfilesDictionary);

impl Tables {
    fn string(&mut self, text: impl Into<String>) -> i32 {
        self.0.string_table.push(text.into());
        self.0.string_table.len() as i32 - 1
    }

    fn attribute(&mut self, key_strindex: i32, text: String) -> i32 {
        let value = Some(AnyValue { value: Some(Value::StringValue(text)) });
        self.0.attribute_table.push(KeyValueAndUnit { key_strindex, value, unit_strindex: 0 });
        self.0.attribute_table.len() as i32 - 1
    }
}

fn message(
    objects: &[Object],
    frames: &[(usize, u64)],
    number: u64,
    size: Size,
    random: &mut Random,
) -> ProfilesData {
    let mut tables = Tables::default();
    tables.string("");
    tables.0.mapping_table.push(Mapping::default());
    tables.0.location_table.push(Location::default());
    tables.0.function_table.push(Function::default());
    tables.0.link_table.push(Link::default());
    tables.0.attribute_table.push(KeyValueAndUnit::default());
    tables.0.stack_table.push(Stack::default());
    let [gnu, htlhash, frame_type, remote, thread] = [
        "process.executable.build_id.gnu",
        "process.executable.build_id.htlhash",
        "profile.frame.type",
        "otlpprof.frame.remote",
        "thread.name",
    ]
    .map(|key| tables.string(key));
    let [native, jvm] = ["native", "jvm"].map(|code| tables.attribute(frame_type, code.to_owned()));
    for object in objects {
        let attribute_indices = vec![
            tables.attribute(gnu, object.build_id.clone()),
            tables.attribute(htlhash, object.htlhash.clone()),
        ];
        let filename_strindex = tables.string(object.path.clone());
        tables.0.mapping_table.push(Mapping { filename_strindex, attribute_indices, ..object.code.clone() });
    }
    for &(object, address) in frames {
        let text = format!("{}.<remote>({address:#x})", objects[object].build_id);
        let attribute_indices = vec![native, tables.attribute(remote, text)];
        let mapping_index = object as i32 + 1;
        tables.0.location_table.push(Location {
            mapping_index,
            address,
            attribute_indices,
            lines: Vec::new(),
        });
    }
    let natives = frames.len();
    for method in 0..size.java_frames {
        let name_strindex = tables.string(format!("com.example.shop.Service{}.method{method}", method / 20));
        let filename_strindex = tables.string(format!("Service{method}.java"));
        tables.0.function_table.push(Function { name_strindex, filename_strindex, ..Function::default() });
        let lines = vec![Line { function_index: method as i32 + 1, line: 7, column: 0 }];
        let attribute_indices = vec![jvm];
        tables.0.location_table.push(Location { lines, attribute_indices, ..Location::default() });
    }
    let threads: Vec<_> = (0..40).map(|id| tables.attribute(thread, format!("worker-{id}"))).collect();
    let mut next = 0;
    let mut samples = Vec::with_capacity(size.samples);
    for sample in 0..size.samples {
        let mut locations = Vec::with_capacity(DEPTH[0] + DEPTH[1]);
        for _ in 0..DEPTH[0] {
            // Each frame is in a stack.
            locations.push((next % natives) as i32 + 1);
            next += 1;
        }
        locations.extend((0..DEPTH[1]).map(|_| (natives + 1 + random.below(size.java_frames)) as i32));
        tables.0.stack_table.push(Stack { location_indices: locations });
        samples.push(Sample {
            stack_index: sample as i32 + 1,
            attribute_indices: vec![threads[sample % threads.len()]],
            values: vec![1 + random.below(20) as i64],
            ..Sample::default()
        });
    }
    let value_type = |tables: &mut Tables, name: &str, unit: &str| {
        Some(ValueType { type_strindex: tables.string(name), unit_strindex: tables.string(unit) })
    };
    let profile = Profile {
        sample_type: value_type(&mut tables, "samples", "count"),
        period_type: value_type(&mut tables, "cpu", "nanoseconds"),
        period: 10_000_000,
        time_unix_nano: START_NS + number * INTERVAL_NS,
        duration_nano: INTERVAL_NS,
        samples,
        ..Profile::default()
    };
    let scope = ScopeProfiles { profiles: vec![profile], ..ScopeProfiles::default() };
    let resource = Some(Resource::default());
    let of_resource = ResourceProfiles { resource, scope_profiles: vec![scope], schema_url: String::new() };
    ProfilesData { resource_profiles: vec![of_resource], dictionary: Some(tables.0) }
}

/// The addresses on standard input.
fn addresses() -> Result<Vec<u64>, Box<dyn Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let words = text.split_whitespace().map(|word| word.trim_start_matches("0x"));
    Ok(words.map(|word| u64::from_str_radix(word, 16)).collect::<Result<_, _>>()?)
}

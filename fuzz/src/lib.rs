//! Code that fuzz targets share: addresses to look up, bytes as a loaded image, and the operations on
//! recordings.

use std::path::PathBuf;
use std::sync::OnceLock;

use otlpprof_convert::{ConvertOptions, JfrToOtlp};
use otlpprof_core::address::LoadBias;
use otlpprof_elf::image::LoadedImage;
use otlpprof_elf::program_header::ProgramHeader;
use otlpprof_jfr::recording::Chunks;
use otlpprof_jfr::values::{Struct, Value};
use otlpprof_model::Batch;
use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_otlp::validate::rules::Severity;
use otlpprof_otlp::validate::validate;
use otlpprof_otlp::{EncodeOptions, encode};
use otlpprof_testkit::recordings::synthetic;

/// ELF virtual addresses of small programs. The programs of scripts/fuzz.sh have their code at 0x1000, with
/// functions that are inlined into each other first.
pub const ADDRESSES: [u64; 7] = [0x1000, 0x1004, 0x1010, 0x1020, 0x1139, 0x401_126, u64::MAX];

/// The address of images. A fixed address, so that a run whose input contains an absolute address can be
/// repeated.
const ADDRESS: usize = 0x1234_0000_0000;
/// The largest length of an image.
const LEN: usize = 1 << 20;

/// Returns an image of these bytes. Segments are cut where the bytes end. The previous image becomes invalid.
pub fn image(bytes: &[u8], mut headers: Vec<ProgramHeader>) -> LoadedImage {
    static MEMORY: OnceLock<usize> = OnceLock::new();
    let memory = *MEMORY.get_or_init(|| {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: a mapping that replaces no other.
        let memory = unsafe {
            libc::mmap(ADDRESS as *mut libc::c_void, LEN, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        assert_eq!(memory as usize, ADDRESS);
        ADDRESS
    });
    let len = bytes.len().min(LEN);
    // SAFETY: the mapping has room for `len` bytes, and no other code uses it: a fuzzer has one thread.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory as *mut u8, len) };
    for header in headers.iter_mut().filter(|header| header.is_load()) {
        header.vaddr.0 = header.vaddr.0.min(len as u64);
        header.memory_size = header.memory_size.min(len as u64 - header.vaddr.0);
    }
    LoadedImage::new(PathBuf::from("fuzzed"), LoadBias(memory as u64), headers)
}

/// Makes a small, valid recording.
pub fn sound_recording(compressed: bool) -> Vec<u8> {
    synthetic::recording(synthetic::Shape { compressed, ..SHAPE })
}

const SHAPE: synthetic::Shape = synthetic::Shape {
    events: 5,
    depth: 3,
    repeated_percent: 50,
    contexts: 2,
    remote_frames: 1,
    compressed: true,
};

/// A part of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The types, after the head of the metadata event.
    Metadata,
    /// The constants, after the head of the checkpoint.
    Constants,
    /// The events.
    Events,
}

const SAMPLE: i64 = 100;
const EVENTS: &[synthetic::TypeOf] = &[(
    SAMPLE,
    "jdk.ExecutionSample",
    "jdk.jfr.Event",
    &[
        ("startTime", synthetic::LONG, false, false),
        ("sampledThread", synthetic::THREAD, true, false),
        ("stackTrace", synthetic::STACK_TRACE, true, false),
        ("state", synthetic::THREAD_STATE, true, false),
        ("text", synthetic::STRING, false, false),
    ],
)];

/// Returns a recording of one chunk that is valid except for one part, which is these bytes.
pub fn recording_with(layer: Layer, bytes: &[u8]) -> Vec<u8> {
    let part = |of: Layer, out: &mut synthetic::Writer, write: &dyn Fn(&mut synthetic::Writer)| {
        if of == layer { out.bytes.extend_from_slice(bytes) } else { write(out) }
    };
    let mut out = synthetic::Writer { bytes: vec![0; 68], compressed: true };
    part(Layer::Events, &mut out, &|out| {
        out.event(SAMPLE, |out| {
            [1_000, 1, 1, 1].into_iter().for_each(|number| out.long(number));
            out.text("text");
        });
    });
    let metadata = out.bytes.len();
    out.event(0, |out| match layer {
        Layer::Metadata => {
            [0, 0, 1].into_iter().for_each(|head| out.long(head));
            out.bytes.extend_from_slice(bytes);
        }
        _ => synthetic::metadata_with(out, &[synthetic::VALUE_TYPES, EVENTS].concat()),
    });
    let checkpoint = out.bytes.len();
    out.event(1, |out| {
        out.checkpoint(0, 1);
        part(Layer::Constants, out, &|out| {
            out.padded(synthetic::CONSTANT_POOLS);
            synthetic::pools_of_constants(out, SHAPE, 3);
        });
    });
    out.header(checkpoint, metadata, 1);
    out.bytes
}

/// The number of constants that are followed in a chain, as a chain may be a cycle.
const MOST_HOPS: usize = 4;
/// The number of an array's values that are read.
const MOST_VALUES: usize = 64;

/// Reads all parts of a recording.
pub fn read_recording(bytes: &[u8]) {
    for chunk in Chunks::new(bytes).map_while(Result::ok) {
        for event in chunk.contents().events().map_while(Result::ok) {
            read_fields(event.values(), 0);
        }
    }
}

fn read_fields(of: Struct<'_>, hops: usize) {
    for (field, value) in of.fields().map_while(Result::ok) {
        let _ = field.unit();
        read_value(value, of, hops);
    }
}

fn read_value(value: Value<'_>, within: Struct<'_>, hops: usize) {
    if hops == MOST_HOPS {
        return;
    }
    let chunk = within.chunk();
    let _ = chunk.text(value);
    match value {
        Value::Struct(of) => read_fields(of, hops + 1),
        Value::Array(array) => {
            array.values().take(MOST_VALUES).map_while(Result::ok).for_each(|value| {
                read_value(value, within, hops + 1);
            });
        }
        Value::Constant(constant) => {
            if let Some(value) = chunk.resolve(constant) {
                read_value(value, within, hops + 1);
            }
        }
        _ => {}
    }
}

/// Converts a recording to profiles, and checks that these break no rule, whatever the recording contains.
pub fn convert_recording(bytes: &[u8]) {
    let mut converter = JfrToOtlp::new(ConvertOptions { times: true, ..ConvertOptions::default() });
    let _ = converter.add(bytes);
    check(&mut converter);
}

/// Converts a recording that arrives in parts of `length` bytes, and checks the profiles after each part.
pub fn convert_parts(bytes: &[u8], length: usize) {
    let mut converter = JfrToOtlp::new(ConvertOptions { times: true, ..ConvertOptions::default() });
    for part in bytes.chunks(length.max(1)) {
        let _ = converter.push(part);
        check(&mut converter);
    }
    let _ = converter.finish();
    check(&mut converter);
}

/// Checks that a batch becomes a message that can be read.
pub fn check_batch(batch: &Batch) {
    let message = encode(batch, &EncodeOptions::default());
    EncodedMessage::of_protobuf(message).expect("an encoded batch is a message");
}

/// Checks a converter's present result by every rule that is not a warning.
fn check(converter: &mut JfrToOtlp) {
    let batch = converter.convert();
    for timestamps in [false, true] {
        let message = encode(&batch, &EncodeOptions { timestamps, ..EncodeOptions::default() });
        let report = validate(&message, 1);
        let errors: Vec<_> =
            report.breaches().filter(|(rule, _)| rule.rule().severity > Severity::Warning).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}

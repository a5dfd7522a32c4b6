//! The work of otlpprof in the contest, in a separate process as for the other programs: once for each line
//! of standard input, each answered with `EVENTS STACKS FRAMES CHECK` (`Passes.java`).

use std::fs::File;
use std::io::{BufRead as _, Write as _};

use otlpprof_convert::{ConvertOptions, JfrToOtlp};
use otlpprof_jfr::chunk::Chunk;
use otlpprof_jfr::numbers::{Numbers, element_type};
use otlpprof_jfr::projection::Projection;
use otlpprof_jfr::reading::ChunkReader;
use otlpprof_jfr::types::Constant;
use otlpprof_jfr::values::Value;
use otlpprof_otlp::{EncodeOptions, encode};

/// The argument that makes this program serve: `SERVE read FILE`, `SERVE read_typed FILE`, or
/// `SERVE convert FILE OUT [EVENT...]`.
pub(crate) const SERVE: &str = "--serve";

/// Does the work once for each line of standard input.
pub(crate) fn serve(work: &[String]) {
    for line in std::io::stdin().lock().lines() {
        line.expect("a line");
        let [events, stacks, frames, check] = once(work);
        let mut to = std::io::stdout().lock();
        writeln!(to, "{events} {stacks} {frames} {check}").and_then(|()| to.flush()).expect("who asked");
    }
}

/// Does the work once.
pub(crate) fn once(work: &[String]) -> [i64; 4] {
    match work {
        [what, path] if what == "read" => read(path),
        [what, path] if what == "read_typed" => read_typed(path),
        [what, path, out, only @ ..] if what == "convert" => {
            convert(path, out, only);
            [0; 4]
        }
        _ => panic!("{work:?}"),
    }
}

/// Converts a file to a file; only the events in `only`, if there are any.
fn convert(path: &str, out: &str, only: &[String]) {
    let only = (!only.is_empty()).then(|| only.to_vec());
    let mut converter = JfrToOtlp::new(ConvertOptions { only, ..Default::default() });
    converter.add_file(path).expect("a recording that is whole");
    std::fs::write(out, encode(&converter.convert(), &EncodeOptions::default())).expect("the result");
}

/// Reads every field of every event, and every frame of each event's stack.
fn read(path: &str) -> [i64; 4] {
    each_chunk(path, |chunk, read| {
        let mut stacks = Stacks::default();
        for event in chunk.events() {
            read.events += 1;
            let mut fields = event.expect("an event").values().fields();
            // By reference, since a value is large.
            while let Some(field) = &fields.next() {
                let (field, value) = field.as_ref().expect("a field");
                if let &Value::Constant(stack) = std::hint::black_box(value)
                    && &*field.name == STACK
                {
                    read.add(stacks.lines(chunk, stack));
                }
            }
        }
    })
}

/// Reads every number and every reference of every event, by a projection that is compiled once for each of a
/// chunk's types, and every frame of each event's stack.
fn read_typed(path: &str) -> [i64; 4] {
    each_chunk(path, |chunk, read| {
        let mut stacks = Stacks::default();
        // Indexed by the type's position.
        let mut types: Vec<Option<TypedEvents>> = Vec::new();
        for event in chunk.events() {
            read.events += 1;
            let event = event.expect("an event");
            let of = event.type_index();
            if types.len() <= of.position() {
                types.resize(of.position() + 1, None);
            }
            let TypedEvents { numbers, slots, stack } = types[of.position()].get_or_insert_with(|| {
                let names: Vec<&str> = event.type_of().fields.iter().map(|field| &*field.name).collect();
                let stack = names.iter().position(|&name| name == STACK);
                TypedEvents { numbers: Numbers::new(chunk, of, &names), slots: vec![0; names.len()], stack }
            });
            numbers.read(&event.values(), std::hint::black_box(slots)).expect("the fields");
            if let Some(stack) = stack.and_then(|stack| numbers.constant(stack, slots)) {
                read.add(stacks.lines(chunk, stack));
            }
        }
    })
}

/// Reads a file chunk by chunk, and returns the counts.
fn each_chunk(path: &str, mut of_chunk: impl FnMut(Chunk<'_>, &mut Read)) -> [i64; 4] {
    let mut read = Read::default();
    let mut chunks = ChunkReader::new(File::open(path).expect("the recording"));
    while let Some(chunk) = chunks.next_chunk().expect("the recording") {
        of_chunk(chunk.expect("a chunk").contents(), &mut read);
    }
    read.totals()
}

/// The events of one type.
#[derive(Clone)]
struct TypedEvents {
    numbers: Numbers,
    /// The values of the last event, one slot for each field.
    slots: Vec<i64>,
    /// The slot of the stack.
    stack: Option<usize>,
}

const STACK: &str = "stackTrace";

/// The counts of what was read.
#[derive(Default)]
struct Read {
    events: i64,
    stacks: i64,
    frames: i64,
    check: i64,
}

impl Read {
    fn add(&mut self, lines: Option<&[i32]>) {
        let Some(lines) = lines else { return };
        self.stacks += 1;
        self.frames += lines.len() as i64;
        self.check += lines.iter().map(|&line| i64::from(line)).sum::<i64>();
    }

    fn totals(self) -> [i64; 4] {
        [self.events, self.stacks, self.frames, self.check]
    }
}

/// The stacks of a chunk, each decoded once as by the other programs.
#[derive(Default)]
struct Stacks {
    /// By the stack's position: the range of its lines in `lines`.
    known: Vec<Option<(usize, usize)>>,
    lines: Vec<i32>,
    traces: Option<Projection<1>>,
    numbers: Option<Numbers>,
}

impl Stacks {
    /// Returns the line of each frame; `None` if the chunk has no such stack.
    fn lines(&mut self, chunk: Chunk<'_>, stack: Constant) -> Option<&[i32]> {
        let position = chunk.constant_position(stack)?;
        if self.known.len() <= position {
            self.known.resize(chunk.constant_count(stack.of).max(position + 1), None);
        }
        let (begin, end) = match self.known[position] {
            Some(known) => known,
            None => {
                let begin = self.lines.len();
                self.decode(chunk, stack);
                *self.known[position].insert((begin, self.lines.len()))
            }
        };
        Some(&self.lines[begin..end])
    }

    fn decode(&mut self, chunk: Chunk<'_>, stack: Constant) {
        let Some(trace) = Value::Constant(stack).as_struct(chunk) else { return };
        let traces = self.traces.get_or_insert_with(|| Projection::new(chunk, stack.of, ["frames"]));
        let [Some(frames)] = traces.read(&trace).expect("a stack") else { return };
        let (Value::Array(array), Some(of)) = (frames, element_type(&frames)) else { return };
        let numbers = self.numbers.get_or_insert_with(|| {
            Numbers::new(chunk, of, &["method", "lineNumber", "bytecodeIndex", "type"])
        });
        let lines = &mut self.lines;
        lines.reserve(array.len());
        let each = numbers.each::<4>(&array, |frame| lines.push(std::hint::black_box(frame)[1] as i32));
        each.expect("frames");
    }
}

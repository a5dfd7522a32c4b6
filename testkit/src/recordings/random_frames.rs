//! Recordings whose stacks share nothing, like the published benchmark of the Java converter. Each frame of
//! each stack is a random one of 10,000 methods in 1,000 classes, with a random line. 5,000 stacks of 100
//! frames have 487,000 distinct locations.
//!
//! The encoding follows JDK Mission Control's writer (flightrecorder.writer 9.1.2): frames are constants to
//! which stacks refer, and bytecode indices are unknown. async-profiler's reader requires the JVM's own
//! encoding, in which stacks contain their frames.

use std::collections::HashMap;

use super::synthetic::{
    self, BOOLEAN, CLASS, FRAME_TYPE, LONG, METHOD, STACK_FRAME, STACK_TRACE, SYMBOL, THREAD, THREAD_STATE,
    TypeOf, VALUE_TYPES, crafted,
};

/// A recording's size.
#[derive(Clone, Copy, Debug)]
pub struct RandomShape {
    /// The type of the events: `datadog.ExecutionSample`, or `jdk.ExecutionSample` for readers that know no
    /// other type.
    pub event: &'static str,
    /// The number of events.
    pub events: usize,
    /// The number of frames of each stack.
    pub depth: usize,
    /// The percentage of events that repeat a stack.
    pub repeated_percent: usize,
    /// The number of spans, which the events use in turn.
    pub spans: usize,
    /// Whether stacks contain their frames, in place of references to them.
    pub has_inline_frames: bool,
}

const CLASSES: i64 = 1_000;
const METHODS: i64 = 10_000;
const LINES: i64 = 1_000;
const SAMPLE: i64 = 100;
/// The number of constant pools besides the pool of frames.
const POOLS: u32 = 7;
/// The bytecode index -1 in 32 bits.
const NO_BYTECODE_INDEX: i64 = 0xffff_ffff;
const STACK_OF_REFERENCES: TypeOf = (
    STACK_TRACE,
    "jdk.types.StackTrace",
    "",
    &[("truncated", BOOLEAN, false, false), ("frames", STACK_FRAME, true, true)],
);
/// Keys of symbols: the descriptor is 1; then follow the classes, then the methods.
const FIRST_CLASS: i64 = 2;
const FIRST_METHOD: i64 = FIRST_CLASS + CLASSES;

/// Pseudo-random numbers that are the same in each run (xorshift64*, Vigna 2016).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: i64) -> i64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as i64 % bound
    }
}

/// The method (from 0) and the line of each frame of stack number `stack` (from 1), leaf first.
pub fn frames_of(shape: RandomShape, stack: usize) -> impl Iterator<Item = (i64, i64)> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (stack as u64) << 20);
    // Similar seeds give similar first numbers, so these are skipped.
    (0..4).for_each(|_| _ = random.below(1));
    (0..shape.depth).map(move |_| (random.below(METHODS), 1 + random.below(LINES)))
}

/// The number of different stacks in a recording.
pub fn stacks(shape: RandomShape) -> usize {
    (shape.events * (100 - shape.repeated_percent) / 100).max(1)
}

/// A recording of one chunk.
pub fn recording(shape: RandomShape) -> Vec<u8> {
    let stacks = stacks(shape);
    let event: TypeOf = (
        SAMPLE,
        shape.event,
        "jdk.jfr.Event",
        &[
            ("startTime", LONG, false, false),
            ("sampledThread", THREAD, true, false),
            ("stackTrace", STACK_TRACE, true, false),
            ("state", THREAD_STATE, true, false),
            ("spanId", LONG, false, false),
            ("localRootSpanId", LONG, false, false),
        ],
    );
    let mut types = [VALUE_TYPES, &[event]].concat();
    if !shape.has_inline_frames {
        types.iter_mut().filter(|of| of.0 == STACK_TRACE).for_each(|of| *of = STACK_OF_REFERENCES);
    }
    // Frames have keys from 1, in the order of their first occurrence.
    let mut frames = Vec::new();
    let mut keys = HashMap::new();
    let mut key_of = |frame| {
        *keys.entry(frame).or_insert_with(|| {
            frames.push(frame);
            frames.len() as i64
        })
    };
    let traces: Vec<Vec<i64>> =
        (1..=stacks).map(|stack| frames_of(shape, stack).map(&mut key_of).collect()).collect();
    let events = |out: &mut synthetic::Writer| {
        for event in 0..shape.events {
            let span = (event % shape.spans) as i64 + 1;
            out.event(SAMPLE, |out| {
                out.long(1_000 + event as i64 * 10_000);
                out.long(1 + event as i64 % 8);
                out.long((event % stacks) as i64 + 1);
                out.long(1);
                out.long(span << 33 | 5);
                out.long(span << 31 | 7);
            });
        }
    };
    let frame = |out: &mut synthetic::Writer, key: i64| {
        let (method, line) = frames[key as usize - 1];
        out.long(1 + method);
        out.int(line);
        out.integer(NO_BYTECODE_INDEX);
        out.long(1);
    };
    crafted(&types, events, POOLS + u32::from(!shape.has_inline_frames), |out| {
        synthetic::threads(out);
        out.pool(SYMBOL, 1..FIRST_METHOD + METHODS, |out, key| match key {
            1 => out.text("()V"),
            FIRST_METHOD.. => out.text(&format!("method{}", key - FIRST_METHOD)),
            _ => out.text(&format!("com/example/package{}/Class{}", key % 50, key - FIRST_CLASS)),
        });
        out.pool(CLASS, 1..CLASSES + 1, |out, key| out.long(FIRST_CLASS + key - 1));
        out.pool(METHOD, 1..METHODS + 1, |out, key| {
            out.long(1 + key % CLASSES);
            out.long(FIRST_METHOD + key - 1);
            out.long(1);
        });
        out.pool(FRAME_TYPE, 1..2, |out, _| out.text("JIT compiled"));
        out.pool(THREAD_STATE, 1..2, |out, _| out.text("RUNNABLE"));
        if !shape.has_inline_frames {
            out.pool(STACK_FRAME, 1..frames.len() as i64 + 1, frame);
        }
        out.pool(STACK_TRACE, 1..stacks as i64 + 1, |out, key| {
            out.bytes.push(0);
            out.int(shape.depth as i64);
            for &key in &traces[key as usize - 1] {
                if shape.has_inline_frames { frame(out, key) } else { out.long(key) }
            }
        });
    })
}

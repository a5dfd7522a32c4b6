//! Small synthetic recordings for tests and benchmarks: execution samples in the form of Datadog's profiler,
//! with stacks, a thread, a trace context and optionally remote frames.

/// The contents of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The number of events.
    pub events: usize,
    /// The number of frames of each stack.
    pub depth: usize,
    /// The percentage of events that repeat a stack.
    pub repeated_percent: usize,
    /// The number of trace contexts, which the events use in turn.
    pub contexts: usize,
    /// The number of remote frames of a stack, counted from the leaf.
    pub remote_frames: usize,
    /// Whether integers are compressed.
    pub compressed: bool,
}

/// The build-id of the object with the remote frames. The object is loaded [`LOAD_BIAS`] above its own
/// addresses.
pub const BUILD_ID: &str = "0123456789abcdef0123456789abcdef01234567";
/// The path of that object.
pub const LIBRARY: &str = "/opt/app/libnative.so";
/// The difference between the addresses of the loaded object and its own.
pub const LOAD_BIAS: i64 = 0x7f00_0000_0000;
/// The length of that object in bytes.
pub const LIBRARY_LEN: i64 = 0x10_0000;
/// The number of different remote frames. Frame n has the address n × [`REMOTE_STEP`].
pub const REMOTE_METHODS: i64 = 8;
/// The distance of the addresses of two remote frames.
pub const REMOTE_STEP: i64 = 0x1000;

const TICKS_PER_SECOND: i64 = 1_000_000_000;
/// The start of the recording in nanoseconds since 1970.
pub const START_NANOS: i64 = 1_700_000_000_000_000_000;
const METHODS: i64 = 500;

// Bits of a checkpoint's mask.
const FLUSH: u8 = 1;
const THREADS: u8 = 8;

/// The id of the type of `long`.
pub const LONG: i64 = 10;
/// The id of the type of `int`.
pub const INT: i64 = 11;
/// The id of the type of `boolean`.
pub const BOOLEAN: i64 = 12;
/// The id of the type of strings.
pub const STRING: i64 = 13;
/// The id of the type of threads.
pub const THREAD: i64 = 20;
/// The id of the type of classes.
pub const CLASS: i64 = 21;
/// The id of the type of methods.
pub const METHOD: i64 = 22;
/// The id of the type of symbols.
pub const SYMBOL: i64 = 23;
/// The id of the type of frame types.
pub const FRAME_TYPE: i64 = 24;
/// The id of the type of frames.
pub const STACK_FRAME: i64 = 25;
/// The id of the type of stacks.
pub const STACK_TRACE: i64 = 26;
/// The id of the type of thread states.
pub const THREAD_STATE: i64 = 27;
const TIMESTAMP: i64 = 28;
/// The id of the type of attributes.
pub const ATTRIBUTE: i64 = 29;
const SAMPLE: i64 = 100;
const NATIVE_LIBRARY: i64 = 101;

// Keys of symbols, which follow the keys of the Java methods.
const REMOTE_NAME: i64 = 2 * METHODS + 2;
const REMOTE_CLASS: i64 = REMOTE_NAME + 1;
const FIRST_OFFSET: i64 = REMOTE_CLASS + 1;

/// A field: its name, the id of its type, whether it is a reference, and whether it is an array.
pub type FieldOf = (&'static str, i64, bool, bool);
/// A type: its id, name, super type and fields.
pub type TypeOf = (i64, &'static str, &'static str, &'static [FieldOf]);

/// A recording of one chunk. Its events are of type `datadog.ExecutionSample` and have a weight and a trace
/// context. Trace n has the id n.
pub fn recording(shape: Shape) -> Vec<u8> {
    let mut out = Writer { bytes: vec![0; 68], compressed: shape.compressed };
    let distinct = (shape.events * (100 - shape.repeated_percent) / 100).max(1);
    for event in 0..shape.events {
        let context = (event % shape.contexts) as i64 + 1;
        sample(&mut out, event as i64, (event % distinct) as i64 + 1, context);
    }
    if shape.remote_frames > 0 {
        out.event(NATIVE_LIBRARY, |out| {
            out.long(500);
            out.text(LIBRARY);
            out.long(LOAD_BIAS);
            out.long(LOAD_BIAS + LIBRARY_LEN);
            out.text(BUILD_ID);
            out.long(LOAD_BIAS);
        });
    }
    let metadata = out.bytes.len();
    out.event(0, metadata_of);
    let checkpoint = out.bytes.len();
    out.event(1, |out| {
        out.checkpoint(0, 1);
        constants(out, shape, distinct);
    });
    out.header(checkpoint, metadata, shape.events);
    out.bytes
}

/// A chunk with the events of [`recording`] in each of `flushes` segments, as GraalVM's native images write
/// it while they run (substratevm 25.0 `JfrChunkFileWriter`). After the events of a flush follow a checkpoint
/// of threads, if there are new ones, and a checkpoint of the other constants, which has the bit FLUSH
/// without HEADER. The metadata follows only after the first flush. The number of pools is padded. The chunk
/// has not ended. Each flush has its own trace context.
pub fn native_image(shape: Shape, flushes: usize) -> Vec<u8> {
    let mut out = Writer { bytes: vec![0; 68], compressed: true };
    let mut last = None;
    for flush in 0..flushes {
        for event in 0..shape.events {
            sample(&mut out, event as i64, event as i64 + 1, flush as i64 + 1);
        }
        for mask in [THREADS, FLUSH] {
            if flush > 0 && mask == THREADS {
                continue;
            }
            let at = out.bytes.len();
            let delta = last.map_or(0, |last: usize| last as i64 - at as i64);
            out.event(1, |out| {
                out.checkpoint(delta, mask);
                match (mask, flush) {
                    (THREADS, _) => {
                        out.padded(1);
                        threads(out);
                    }
                    (_, 0) => constants(out, Shape { contexts: 1, ..shape }, shape.events),
                    _ => {
                        out.padded(1);
                        attributes(out, flush as i64 + 1..flush as i64 + 2);
                    }
                }
            });
            last = Some(at);
        }
        if flush == 0 {
            out.event(0, metadata_of);
        }
    }
    out.header(0, 0, 0);
    // The length and the state are written when the chunk ends.
    out.bytes[8..16].fill(0);
    out.bytes[64] = flushes as u8;
    out.bytes
}

fn sample(out: &mut Writer, event: i64, stack: i64, context: i64) {
    out.event(SAMPLE, |out| {
        out.long(1_000 + event * 10_000);
        out.long(1 + event % 8);
        out.long(stack);
        out.long(1);
        out.long(1 + event % 3);
        out.long(context << 33 | 5);
        out.long(context << 31 | 7);
        out.long(context);
    });
}

/// The sum of the weights of all events.
pub fn sum_of_weights(shape: Shape) -> i64 {
    (0..shape.events as i64).map(|event| 1 + event % 3).sum()
}

fn constants(out: &mut Writer, shape: Shape, stacks: usize) {
    out.padded(CONSTANT_POOLS);
    pools_of_constants(out, shape, stacks);
}

/// The number of pools that [`pools_of_constants`] writes.
pub const CONSTANT_POOLS: u32 = 8;

/// The constants for events of this shape: threads 1 to 8, thread state 1, stacks from 1 on, contexts from 1
/// on.
pub fn pools_of_constants(out: &mut Writer, shape: Shape, stacks: usize) {
    threads(out);
    out.pool(SYMBOL, 1..FIRST_OFFSET + REMOTE_METHODS, |out, key| match key {
        1 => out.text("()V"),
        REMOTE_NAME => out.text("<remote>"),
        REMOTE_CLASS => out.text(BUILD_ID),
        FIRST_OFFSET.. => out.text(&format!("(0x{:x})", (key - FIRST_OFFSET) * REMOTE_STEP)),
        key if key % 2 == 0 => out.text(&format!("com/example/Service{}", key / 2)),
        key => out.text(&format!("handle{}", key / 2)),
    });
    out.pool(CLASS, 1..METHODS + 2, |out, key| {
        out.long(if key <= METHODS { 2 * key } else { REMOTE_CLASS });
    });
    out.pool(METHOD, 1..METHODS + REMOTE_METHODS + 1, |out, key| {
        let remote = key - METHODS - 1;
        let [class, name, descriptor] = match remote {
            0.. => [METHODS + 1, REMOTE_NAME, FIRST_OFFSET + remote],
            _ => [key, 2 * key + 1, 1],
        };
        out.long(class);
        out.long(name);
        out.long(descriptor);
    });
    attributes(out, 1..shape.contexts as i64 + 1);
    out.pool(FRAME_TYPE, 1..3, |out, key| out.text(["Interpreted", "JIT compiled"][key as usize - 1]));
    out.pool(THREAD_STATE, 1..2, |out, _| out.text("RUNNABLE"));
    out.pool(STACK_TRACE, 1..stacks as i64 + 1, |out, key| {
        out.bytes.push(0);
        out.int(shape.depth as i64);
        for level in 0..shape.depth as i64 {
            // Stacks have common roots and different leaves.
            let method = if level < 3 { key * 7 + level } else { level * 13 };
            let is_remote = level < shape.remote_frames as i64;
            out.long(1 + if is_remote { METHODS + method % REMOTE_METHODS } else { method % METHODS });
            out.int(10 + (key + level) % 90);
            out.int(level % 40);
            out.long(1 + level % 2);
        }
    });
}

/// Eight threads, with keys from 1.
pub fn threads(out: &mut Writer) {
    out.pool(THREAD, 1..9, |out, key| {
        out.text(&format!("worker-{key}"));
        out.long(1_000 + key);
        out.text(&format!("worker-{key}"));
        out.long(key);
    });
}

fn attributes(out: &mut Writer, keys: std::ops::Range<i64>) {
    out.pool(ATTRIBUTE, keys, |out, key| out.text(&format!("{key:032x}")));
}

/// A chunk with these types, any events, and constants in `pools` pools.
pub fn crafted(
    types: &[TypeOf],
    events: impl FnOnce(&mut Writer),
    pools: u32,
    constants: impl FnOnce(&mut Writer),
) -> Vec<u8> {
    let mut out = Writer { bytes: vec![0; 68], compressed: true };
    events(&mut out);
    let metadata = out.bytes.len();
    out.event(0, |out| metadata_with(out, types));
    let checkpoint = out.bytes.len();
    out.event(1, |out| {
        out.checkpoint(0, 1);
        out.padded(pools);
        constants(out);
    });
    out.header(checkpoint, metadata, 1);
    out.bytes
}

fn metadata_of(out: &mut Writer) {
    let events: &[TypeOf] = &[
        (
            SAMPLE,
            "datadog.ExecutionSample",
            "jdk.jfr.Event",
            &[
                ("startTime", LONG, false, false),
                ("eventThread", THREAD, true, false),
                ("stackTrace", STACK_TRACE, true, false),
                ("state", THREAD_STATE, true, false),
                ("weight", LONG, false, false),
                ("spanId", LONG, false, false),
                ("localRootSpanId", LONG, false, false),
                ("trace_id", ATTRIBUTE, true, false),
            ],
        ),
        (
            NATIVE_LIBRARY,
            "jdk.NativeLibrary",
            "jdk.jfr.Event",
            &[
                ("startTime", LONG, false, false),
                ("name", STRING, false, false),
                ("baseAddress", LONG, false, false),
                ("topAddress", LONG, false, false),
                ("buildId", STRING, false, false),
                ("loadBias", LONG, false, false),
            ],
        ),
    ];
    metadata_with(out, &[VALUE_TYPES, events].concat());
}

/// The types of the values that events refer to. [`pools_of_constants`] writes constants of these types.
pub const VALUE_TYPES: &[TypeOf] = &[
    (LONG, "long", "", &[]),
    (INT, "int", "", &[]),
    (BOOLEAN, "boolean", "", &[]),
    (STRING, "java.lang.String", "", &[]),
    (TIMESTAMP, "jdk.jfr.Timestamp", "java.lang.annotation.Annotation", &[("value", STRING, false, false)]),
    (
        THREAD,
        "java.lang.Thread",
        "",
        &[
            ("osName", STRING, false, false),
            ("osThreadId", LONG, false, false),
            ("javaName", STRING, false, false),
            ("javaThreadId", LONG, false, false),
        ],
    ),
    (CLASS, "java.lang.Class", "", &[("name", SYMBOL, true, false)]),
    (
        METHOD,
        "jdk.types.Method",
        "",
        &[("type", CLASS, true, false), ("name", SYMBOL, true, false), ("descriptor", SYMBOL, true, false)],
    ),
    (SYMBOL, "jdk.types.Symbol", "", &[("string", STRING, false, false)]),
    (FRAME_TYPE, "jdk.types.FrameType", "", &[("description", STRING, false, false)]),
    (THREAD_STATE, "jdk.types.ThreadState", "", &[("name", STRING, false, false)]),
    (ATTRIBUTE, "profiler.types.AttributeValue", "", &[("value", STRING, false, false)]),
    (
        STACK_FRAME,
        "jdk.types.StackFrame",
        "",
        &[
            ("method", METHOD, true, false),
            ("lineNumber", INT, false, false),
            ("bytecodeIndex", INT, false, false),
            ("type", FRAME_TYPE, true, false),
        ],
    ),
    (
        STACK_TRACE,
        "jdk.types.StackTrace",
        "",
        &[("truncated", BOOLEAN, false, false), ("frames", STACK_FRAME, false, true)],
    ),
];

/// Writes the metadata of these types.
pub fn metadata_with(out: &mut Writer, types: &[TypeOf]) {
    let mut tree = Tree::default();
    let mut elements = Writer { bytes: Vec::new(), compressed: out.compressed };
    tree.element(&mut elements, "root", &[], 2);
    tree.element(&mut elements, "metadata", &[], types.len());
    for (id, name, super_type, fields) in types {
        let id = id.to_string();
        let mut attributes = vec![("id", &*id), ("name", name)];
        if !super_type.is_empty() {
            attributes.push(("superType", super_type));
        }
        let simple = ["Symbol", "FrameType", "ThreadState", "AttributeValue"];
        if simple.iter().any(|simple| name.ends_with(&format!("types.{simple}"))) {
            attributes.push(("simpleType", "true"));
        }
        tree.element(&mut elements, "class", &attributes, fields.len());
        for (field, of, is_constant, is_array) in *fields {
            let of = of.to_string();
            let mut attributes = vec![("name", *field), ("class", &*of)];
            if *is_constant {
                attributes.push(("constantPool", "true"));
            }
            if *is_array {
                attributes.push(("dimension", "1"));
            }
            let is_time = *field == "startTime";
            tree.element(&mut elements, "field", &attributes, is_time.into());
            if is_time {
                let timestamp = TIMESTAMP.to_string();
                tree.element(&mut elements, "annotation", &[("class", &timestamp), ("value", "TICKS")], 0);
            }
        }
    }
    tree.element(&mut elements, "region", &[("locale", "en_US"), ("gmtOffset", "0")], 0);
    for head in [0, 0, 1] {
        out.long(head);
    }
    out.int(tree.strings.len() as i64);
    for string in &tree.strings {
        out.text(string);
    }
    out.bytes.extend(elements.bytes);
}

#[derive(Default)]
struct Tree {
    strings: Vec<String>,
}

impl Tree {
    fn element(&mut self, out: &mut Writer, name: &str, attributes: &[(&str, &str)], children: usize) {
        out.int(self.string(name));
        out.int(attributes.len() as i64);
        for (name, value) in attributes {
            out.int(self.string(name));
            out.int(self.string(value));
        }
        out.int(children as i64);
    }

    fn string(&mut self, text: &str) -> i64 {
        let known = self.strings.iter().position(|other| other == text);
        known.unwrap_or_else(|| {
            self.strings.push(text.to_owned());
            self.strings.len() - 1
        }) as i64
    }
}

/// The bytes of a chunk.
pub struct Writer {
    /// The bytes so far.
    pub bytes: Vec<u8>,
    /// Whether integers are compressed.
    pub compressed: bool,
}

impl Writer {
    /// Writes an `int`.
    pub fn int(&mut self, value: i64) {
        if self.compressed { self.integer(value) } else { self.bytes.extend((value as i32).to_be_bytes()) }
    }

    /// Writes a `long`.
    pub fn long(&mut self, value: i64) {
        if self.compressed { self.integer(value) } else { self.bytes.extend(value.to_be_bytes()) }
    }

    /// Writes a compressed integer.
    pub fn integer(&mut self, value: i64) {
        let mut value = value as u64;
        for _ in 0..8 {
            if value < 0x80 {
                return self.bytes.push(value as u8);
            }
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Writes a string in UTF-8.
    pub fn text(&mut self, text: &str) {
        self.bytes.push(3);
        self.int(text.len() as i64);
        self.bytes.extend(text.as_bytes());
    }

    /// Writes an event. Its size is padded to four bytes, like the sizes of HotSpot's large events.
    pub fn event(&mut self, type_id: i64, write: impl FnOnce(&mut Self)) {
        let at = self.bytes.len();
        self.bytes.extend([0; 4]);
        self.long(type_id);
        write(self);
        let size = self.four_bytes((self.bytes.len() - at) as u32);
        self.bytes[at..at + 4].copy_from_slice(&size);
    }

    /// Writes an integer in four bytes, in either encoding.
    pub fn padded(&mut self, value: u32) {
        let bytes = self.four_bytes(value);
        self.bytes.extend(bytes);
    }

    /// An integer in four bytes.
    pub fn four_bytes(&self, value: u32) -> [u8; 4] {
        match self.compressed {
            true => [0, 7, 14, 21].map(|shift| (value >> shift) as u8 | if shift < 21 { 0x80 } else { 0 }),
            false => value.to_be_bytes(),
        }
    }

    /// Writes the fields of a checkpoint before the number of its pools.
    pub fn checkpoint(&mut self, delta: i64, mask: u8) {
        for head in [0, 0, delta] {
            self.long(head);
        }
        self.bytes.push(mask);
    }

    /// Writes the constants of a type, each by its key.
    pub fn pool(&mut self, of: i64, keys: std::ops::Range<i64>, write: impl Fn(&mut Self, i64)) {
        self.long(of);
        self.int(keys.end - keys.start);
        for key in keys {
            self.long(key);
            write(self, key);
        }
    }

    /// Writes the chunk's header over the first 68 bytes.
    pub fn header(&mut self, checkpoint: usize, metadata: usize, events: usize) {
        let mut header = b"FLR\0\0\x02\0\x01".to_vec();
        let duration = events as i64 * 10_000 + 2_000;
        for word in [
            self.bytes.len() as i64,
            checkpoint as i64,
            metadata as i64,
            START_NANOS,
            duration,
            0,
            TICKS_PER_SECOND,
        ] {
            header.extend(word.to_be_bytes());
        }
        header.extend([0, 0, 0, self.compressed.into()]);
        self.bytes[..68].copy_from_slice(&header);
    }
}

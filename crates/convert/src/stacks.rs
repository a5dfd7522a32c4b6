//! Converts the stacks of a chunk to the model's. Each stack constant is converted once.

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use otlpprof_jfr::chunk::Chunk;
use otlpprof_jfr::numbers::{Numbers, element_type};
use otlpprof_jfr::projection::Projection;
use otlpprof_jfr::types::{Constant, TypeIndex};
use otlpprof_jfr::values::Value;
use otlpprof_model::{
    Execution, Frame, FrameId, FrameType, FunctionId, JavaMethod, LONGEST_NAME, REMOTE_METHOD, RemoteFrame,
    StackId, Tables, is_hotspot_stub, markers,
};

use super::constants::ConvertedConstants;
use super::libraries::Libraries;

/// The converted stacks of one chunk.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    stacks: ConvertedConstants<StackId>,
    /// Cache: frames by method, line and kind, which are keys of the chunk. A hash of the keys gives a
    /// frame's place. A chunk has few different frames.
    recent: Vec<([i64; 3], FrameId)>,
    functions: HashMap<i64, FunctionId, RandomState>,
    kinds: ConvertedConstants<Kind>,
    traces: Option<(TypeIndex, Projection<2>)>,
    frame_fields: Option<(TypeIndex, Numbers)>,
    methods: Option<(TypeIndex, Projection<3>)>,
    /// Scratch space: the ids of a stack's frames.
    ids: Vec<FrameId>,
    /// Scratch space: the frames of a stack that are not in `recent`.
    unknown: Vec<Unknown>,
    /// Scratch space: the same frames, converted.
    converted: Vec<Frame>,
}

/// A frame that has no id yet.
#[derive(Clone, Copy, Debug)]
struct Unknown {
    /// The position in its stack.
    at: usize,
    key: [i64; 3],
}

/// The kind of a frame's code. The names come from HotSpot ("Interpreted", "JIT compiled", "Inlined";
/// "Native" for a native Java method) and from async-profiler ("C1 compiled"; "Native", "C++" and "Kernel"
/// for machine code).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Java(Option<Execution>),
    /// A native Java method or machine code; the method distinguishes the two.
    Native,
    Kernel,
}

const METHOD: usize = 0;
const TYPE: usize = 2;
const FRAME_FIELDS: [&str; 3] = ["method", "lineNumber", "type"];
const METHOD_FIELDS: [&str; 3] = ["type", "name", "descriptor"];

/// The number of cached frames, a power of two: as many as fit in the processor's first-level cache.
const RECENT_FRAMES: usize = 1_024;
/// The id in a cache place that is empty.
const NO_FRAME: FrameId = FrameId(u32::MAX);

/// The cache place of a frame. The keys differ in their low bits; the multiplication moves these to the high
/// bits.
#[inline(always)]
fn recent_place([method, line, kind]: [i64; 3]) -> usize {
    let keys = (method as u64) ^ (line as u64).rotate_left(24) ^ (kind as u64).rotate_left(48);
    (keys.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - RECENT_FRAMES.ilog2())) as usize
}

impl Stacks {
    /// The stack of this constant; `None` if the chunk has no such constant or the stack has no frames.
    #[inline]
    pub(super) fn stack(
        &mut self,
        chunk: Chunk<'_>,
        constant: Constant,
        libraries: &mut Libraries,
        tables: &mut Tables,
    ) -> Option<StackId> {
        let stack = match self.stacks.find(chunk, constant)? {
            Ok(known) => known,
            Err(place) => {
                let made = self.read(chunk, constant, libraries, tables).unwrap_or(StackId::EMPTY);
                self.stacks.put(chunk, place, made)
            }
        };
        (stack != StackId::EMPTY).then_some(stack)
    }

    fn read(
        &mut self,
        chunk: Chunk<'_>,
        constant: Constant,
        libraries: &mut Libraries,
        tables: &mut Tables,
    ) -> Option<StackId> {
        let Some(Value::Struct(trace)) = chunk.resolve(constant) else { return None };
        let of = trace.type_index();
        if self.traces.as_ref().is_none_or(|(known, _)| *known != of) {
            self.traces = Some((of, Projection::new(chunk, of, ["truncated", "frames"])));
        }
        let (_, fields) = self.traces.as_ref()?;
        let [truncated, frames] = fields.read(&trace).ok()?;
        let frames = frames?;
        let of = element_type(&frames)?;
        if self.frame_fields.as_ref().is_none_or(|(known, _)| *known != of) {
            self.frame_fields = Some((of, Numbers::new(chunk, of, &FRAME_FIELDS)));
        }
        let Value::Array(frames) = frames else { return None };
        let (of, numbers) = self.frame_fields.take()?;
        let (mut stack, mut unknown) = (std::mem::take(&mut self.ids), std::mem::take(&mut self.unknown));
        stack.clear();
        unknown.clear();
        self.recent.resize(RECENT_FRAMES, ([0; 3], NO_FRAME));
        let recent = &self.recent;
        let read = numbers.each::<3>(&frames, |key| {
            let known = recent[recent_place(key)];
            let is_known = known.0 == key && known.1 != NO_FRAME;
            if !is_known {
                unknown.push(Unknown { at: stack.len(), key });
            }
            stack.push(if is_known { known.1 } else { NO_FRAME });
        });
        let mut converted = std::mem::take(&mut self.converted);
        converted.clear();
        for unknown in &unknown {
            converted.push(self.frame(chunk, &numbers, unknown.key, libraries, tables));
        }
        let mut next = unknown.iter();
        tables.frames.intern_all(&converted, |id| {
            if let Some(unknown) = next.next() {
                self.recent[recent_place(unknown.key)] = (unknown.key, id);
                stack[unknown.at] = id;
            }
        });
        (self.unknown, self.converted) = (unknown, converted);
        // The readable frames of a corrupt stack are discarded.
        let is_whole = read.is_ok() && !stack.is_empty();
        if is_whole && truncated.and_then(|value| value.as_i64()) == Some(1) {
            let truncated = marker(markers::TRUNCATED, tables);
            stack.push(tables.frames.intern(truncated));
        }
        let id = is_whole.then(|| tables.stacks.intern(&stack));
        self.frame_fields = Some((of, numbers));
        self.ids = stack;
        id
    }

    #[inline(never)]
    fn frame(
        &mut self,
        chunk: Chunk<'_>,
        numbers: &Numbers,
        key: [i64; 3],
        libraries: &mut Libraries,
        tables: &mut Tables,
    ) -> Frame {
        let kind = numbers.constant(TYPE, &key).and_then(|kind| self.kind(chunk, kind));
        let kind = kind.unwrap_or(Kind::Java(None));
        let line = u32::try_from(key[1]).unwrap_or(0);
        if let Kind::Java(execution) = kind
            && let Some(&function) = self.functions.get(&key[METHOD])
        {
            return Frame::Java { function, line, execution };
        }
        let method = numbers.constant(METHOD, &key).and_then(|method| chunk.resolve(method));
        let Some(Value::Struct(method)) = method else { return marker(markers::UNKNOWN, tables) };
        let of = method.type_index();
        if self.methods.as_ref().is_none_or(|(known, _)| *known != of) {
            self.methods = Some((of, Projection::new(chunk, of, METHOD_FIELDS)));
        }
        let fields = self.methods.as_ref().and_then(|(_, fields)| fields.read(&method).ok());
        let made = named(chunk, fields.unwrap_or_default(), line, kind, libraries, tables);
        if let (Kind::Java(_), Frame::Java { function, .. }) = (kind, made) {
            self.functions.insert(key[METHOD], function);
        }
        made
    }

    fn kind(&mut self, chunk: Chunk<'_>, constant: Constant) -> Option<Kind> {
        Some(match self.kinds.find(chunk, constant)? {
            Ok(known) => known,
            Err(place) => {
                let kind = match chunk.text(Value::Constant(constant)).as_deref() {
                    Some("Kernel") => Kind::Kernel,
                    Some("Native" | "C++") => Kind::Native,
                    Some("Interpreted") => Kind::Java(Some(Execution::Interpreted)),
                    Some("JIT compiled") => Kind::Java(Some(Execution::Compiled)),
                    Some("C1 compiled") => Kind::Java(Some(Execution::C1)),
                    Some("Inlined") => Kind::Java(Some(Execution::Inlined)),
                    _ => Kind::Java(None),
                };
                self.kinds.put(chunk, place, kind)
            }
        })
    }
}

/// The stack of an event that has none, or whose stack the recording lacks.
pub(super) fn none(tables: &mut Tables) -> StackId {
    let none = marker(markers::NO_STACK, tables);
    let frame = tables.frames.intern(none);
    tables.stacks.intern(&[frame])
}

/// The stack of an event whose stack the JVM could not walk.
pub(super) fn failed(tables: &mut Tables) -> StackId {
    let failed = marker(markers::WALK_FAILED, tables);
    let frame = tables.frames.intern(failed);
    tables.stacks.intern(&[frame])
}

fn marker(text: &str, tables: &mut Tables) -> Frame {
    Frame::Marker { function: tables.named_function(text), frame_type: FrameType::Jvm }
}

/// Converts a frame by its method's class, name and descriptor. Machine code has the descriptor `()L;` or
/// none.
fn named(
    chunk: Chunk<'_>,
    [class, name, descriptor]: [Option<Value<'_>>; 3],
    line: u32,
    kind: Kind,
    libraries: &mut Libraries,
    tables: &mut Tables,
) -> Frame {
    let text = |value: Option<Value<'_>>| {
        let mut text = value.and_then(|value| chunk.text_up_to(value, LONGEST_NAME)).unwrap_or_default();
        if text.len() > LONGEST_NAME {
            // In the other encodings a unit may take several bytes of UTF-8.
            text = Cow::Owned(text[..text.floor_char_boundary(LONGEST_NAME)].to_owned());
        }
        text.into_owned()
    };
    let class = class.and_then(|class| class.as_struct(chunk));
    let (class, name, descriptor) =
        (text(class.and_then(|class| class.get("name"))), text(name), text(descriptor));
    if name == REMOTE_METHOD
        && let Some(remote) = RemoteFrame::from_parts(&class, &name, &descriptor)
    {
        let mapping = libraries.mapping(remote.build_id, tables);
        return Frame::RemoteNative { mapping, address: remote.address };
    }
    let is_machine_code = descriptor == "()L;" || descriptor.is_empty();
    match kind {
        _ if name.is_empty() => marker(markers::UNKNOWN, tables),
        Kind::Kernel => {
            Frame::Kernel { mapping: None, address: None, function: tables.named_function(&name) }
        }
        Kind::Native if is_machine_code && is_hotspot_stub(&name) => {
            Frame::Stub { function: tables.named_function(&name) }
        }
        Kind::Native if is_machine_code => {
            Frame::Native { mapping: None, address: None, function: tables.named_function(&name), line: 0 }
        }
        _ => {
            let method =
                JavaMethod { class: &class, method: &name, descriptor: &descriptor, normalise: true };
            let execution = match kind {
                Kind::Java(execution) => execution,
                Kind::Native => Some(Execution::Native),
                Kind::Kernel => None,
            };
            Frame::Java { function: tables.java_function(method, "", 0), line, execution }
        }
    }
}

//! A chunk's stacks, made into the model's once for each constant.

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::constants::Made;
use super::libraries::Libraries;
use crate::jfr::chunk::Chunk;
use crate::jfr::numbers::{Numbers, element_type};
use crate::jfr::projection::Projection;
use crate::jfr::types::TypeIndex;
use crate::jfr::values::{Constant, Struct, Value};
use crate::model::{
    Execution, Frame, FrameId, FrameType, FunctionId, JavaMethod, LONGEST_NAME, REMOTE_METHOD, RemoteFrame,
    StackId, Tables,
};

/// What the stacks of one chunk have become.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    stacks: Made<StackId>,
    /// By method, line and kind, which are keys.
    frames: HashMap<[i64; 3], FrameId, RandomState>,
    functions: HashMap<i64, FunctionId, RandomState>,
    kinds: Made<Kind>,
    traces: Option<(TypeIndex, Projection<2>)>,
    frame_fields: Option<(TypeIndex, Numbers)>,
    scratch: Vec<FrameId>,
}

/// What a frame's code is. The names are those of HotSpot ("Interpreted", "JIT compiled", "Inlined", "Native", for a Java
/// method that is native) and of async-profiler ("C1 compiled"; "Native", "C++" and "Kernel" for machine code).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Java(Option<Execution>),
    /// Of a native Java method or of machine code, as the method tells.
    Native,
    Kernel,
}

const METHOD: usize = 0;
const TYPE: usize = 2;
const FRAME_FIELDS: [&str; 3] = ["method", "lineNumber", "type"];

impl Stacks {
    /// The stack of this constant; `None` if there is none, or it has no frame.
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
        let mut stack = std::mem::take(&mut self.scratch);
        stack.clear();
        let read = numbers.each::<3>(&frames, |key| {
            let id = match self.frames.get(&key) {
                Some(&known) => known,
                None => {
                    let frame = self.frame(chunk, &numbers, key, libraries, tables);
                    let id = tables.frames.intern(frame);
                    self.frames.insert(key, id);
                    id
                }
            };
            stack.push(id);
        });
        // What could be read of a damaged stack is no stack.
        let is_whole = read.is_ok() && !stack.is_empty();
        if is_whole && truncated.and_then(|value| value.as_i64()) == Some(1) {
            let truncated = marker("[truncated]", tables);
            stack.push(tables.frames.intern(truncated));
        }
        let id = is_whole.then(|| tables.stacks.intern(&stack));
        self.frame_fields = Some((of, numbers));
        self.scratch = stack;
        id
    }

    #[cold]
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
        let method = numbers.constant(METHOD, &key).and_then(|method| chunk.resolve(method));
        let Some(Value::Struct(method)) = method else { return marker("[unknown]", tables) };
        let line = u32::try_from(key[1]).unwrap_or(0);
        if let Kind::Java(execution) = kind
            && let Some(&function) = self.functions.get(&key[METHOD])
        {
            return Frame::Java { function, line, execution };
        }
        let made = named(chunk, method, line, kind, libraries, tables);
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

/// The stack of an event whose own stack the JVM could not walk.
pub(super) fn failed(tables: &mut Tables) -> StackId {
    let failed = marker("[unwalkable: failed]", tables);
    let frame = tables.frames.intern(failed);
    tables.stacks.intern(&[frame])
}

fn marker(text: &str, tables: &mut Tables) -> Frame {
    Frame::Marker { function: tables.named_function(text), frame_type: FrameType::Jvm }
}

/// A frame by its method. Those of machine code have the descriptor `()L;`, or none.
fn named(
    chunk: Chunk<'_>,
    method: Struct<'_>,
    line: u32,
    kind: Kind,
    libraries: &mut Libraries,
    tables: &mut Tables,
) -> Frame {
    let text = |of: Struct<'_>, name: &str| {
        let mut text =
            of.get(name).and_then(|value| chunk.text_up_to(value, LONGEST_NAME)).unwrap_or_default();
        if text.len() > LONGEST_NAME {
            // Other encodings have units that are longer in UTF-8.
            text = Cow::Owned(text[..text.floor_char_boundary(LONGEST_NAME)].to_owned());
        }
        text.into_owned()
    };
    let class = method.get("type").and_then(|class| class.as_struct(chunk));
    let class = class.map(|class| text(class, "name")).unwrap_or_default();
    let (name, descriptor) = (text(method, "name"), text(method, "descriptor"));
    if name == REMOTE_METHOD
        && let Some(remote) = RemoteFrame::from_parts(&class, &name, &descriptor)
    {
        let mapping = libraries.mapping(remote.build_id, tables);
        return Frame::RemoteNative { mapping, address: remote.address };
    }
    let is_machine_code = descriptor == "()L;" || descriptor.is_empty();
    match kind {
        _ if name.is_empty() => marker("[unknown]", tables),
        Kind::Kernel => {
            Frame::Kernel { mapping: None, address: None, function: tables.named_function(&name) }
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

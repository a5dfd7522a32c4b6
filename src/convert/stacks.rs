//! A chunk's stacks and threads, made into the model's once for each constant.

use std::collections::HashMap;

use crate::jfr::chunk::Chunk;
use crate::jfr::values::{Constant, Struct, Value};
use crate::model::{AttributeSetId, Frame, FrameId, FrameType, JavaMethod, StackId, Tables};

/// What constants of one chunk have become. Keys mean nothing in another chunk.
#[derive(Debug, Default)]
pub(super) struct ChunkConstants {
    stacks: HashMap<Constant, StackId>,
    frames: HashMap<(Constant, i64, Option<Constant>), FrameId>,
    threads: HashMap<Constant, AttributeSetId>,
}

impl ChunkConstants {
    /// The stack that a field refers to; `None` if it refers to none.
    pub(super) fn stack<'c>(
        &mut self,
        chunk: Chunk<'c>,
        reference: Value<'c>,
        tables: &mut Tables,
    ) -> Option<StackId> {
        let constant = reference.as_constant()?;
        if let Some(&known) = self.stacks.get(&constant) {
            return Some(known);
        }
        let trace = reference.as_struct(chunk)?;
        let Some(Value::Array(frames)) = trace.get("frames") else { return None };
        let frames = frames.values().map_while(Result::ok);
        let mut stack: Vec<FrameId> = frames
            .filter_map(|frame| frame.as_struct(chunk))
            .filter_map(|frame| self.frame(chunk, frame, tables))
            .collect();
        if trace.get("truncated").and_then(|value| value.as_i64()) == Some(1) {
            let function = tables.named_function("[truncated]");
            stack.push(tables.frames.intern(Frame::Marker { function, frame_type: FrameType::Jvm }));
        }
        let id = tables.stacks.intern(&stack);
        self.stacks.insert(constant, id);
        Some(id)
    }

    fn frame<'c>(&mut self, chunk: Chunk<'c>, frame: Struct<'c>, tables: &mut Tables) -> Option<FrameId> {
        let (mut method, mut line, mut kind) = (None, 0, None);
        for (field, value) in frame.fields().map_while(Result::ok) {
            match &*field.name {
                "method" => method = Some(value),
                "lineNumber" => line = value.as_i64().unwrap_or(0),
                "type" => kind = Some(value),
                _ => {}
            }
        }
        let method = method?;
        let key = (method.as_constant()?, line, kind.and_then(|kind| kind.as_constant()));
        if let Some(&known) = self.frames.get(&key) {
            return Some(known);
        }
        let kind = kind.and_then(|kind| chunk.text(kind)).unwrap_or_default();
        let made = match method.as_struct(chunk) {
            Some(method) => named(chunk, method, line, &kind, tables),
            None => marker("[unknown]", tables),
        };
        let id = tables.frames.intern(made);
        self.frames.insert(key, id);
        Some(id)
    }

    /// The attributes of the thread that a field refers to.
    pub(super) fn thread<'c>(
        &mut self,
        chunk: Chunk<'c>,
        reference: Value<'c>,
        tables: &mut Tables,
    ) -> AttributeSetId {
        let Some(constant) = reference.as_constant() else { return AttributeSetId::EMPTY };
        if let Some(&known) = self.threads.get(&constant) {
            return known;
        }
        let Some(thread) = reference.as_struct(chunk) else { return AttributeSetId::EMPTY };
        let mut attributes = Vec::new();
        let text =
            |name| thread.get(name).and_then(|value| chunk.text(value)).filter(|text| !text.is_empty());
        if let Some(name) = text("javaName").or_else(|| text("osName")) {
            attributes.push(tables.string_attribute("thread.name", crate::model::label(&name)));
        }
        let os_thread_id = thread.get("osThreadId").and_then(|value| value.as_i64());
        if let Some(id) = os_thread_id.filter(|&id| id > 0) {
            attributes.push(tables.int_attribute("thread.id", id, ""));
        }
        let id = tables.attribute_set(&attributes);
        self.threads.insert(constant, id);
        id
    }
}

fn marker(text: &str, tables: &mut Tables) -> Frame {
    Frame::Marker { function: tables.named_function(text), frame_type: FrameType::Jvm }
}

/// A frame by its method; the writers' names of kinds are those of HotSpot ("Interpreted", "JIT compiled", "Inlined",
/// "Native", for a Java method that is native) and of async-profiler ("Native", "C++" and "Kernel" for machine code,
/// whose methods have the descriptor `()L;`).
fn named(chunk: Chunk<'_>, method: Struct<'_>, line: i64, kind: &str, tables: &mut Tables) -> Frame {
    let text = |of: Struct<'_>, name: &str| {
        of.get(name).and_then(|value| chunk.text(value)).unwrap_or_default().into_owned()
    };
    let class = method.get("type").and_then(|class| class.as_struct(chunk));
    let class = class.map(|class| text(class, "name")).unwrap_or_default();
    let (name, descriptor) = (text(method, "name"), text(method, "descriptor"));
    let is_machine_code = descriptor == "()L;" || descriptor.is_empty();
    match kind {
        "Kernel" => Frame::Kernel { function: tables.named_function(&name) },
        "Native" | "C++" if is_machine_code => {
            Frame::Native { mapping: None, address: None, function: tables.named_function(&name), line: 0 }
        }
        _ if name.is_empty() => marker("[unknown]", tables),
        _ => {
            let method =
                JavaMethod { class: &class, method: &name, descriptor: &descriptor, normalise: true };
            let function = tables.java_function(method, "", 0);
            Frame::Java { function, line: u32::try_from(line).unwrap_or(0) }
        }
    }
}

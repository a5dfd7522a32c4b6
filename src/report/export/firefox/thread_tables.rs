//! The tables of a thread: stacks, frames, functions, libraries, texts.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::stacks::Stacks;
use crate::model::RemoteFrame;
use crate::report::call_tree::{NodeId, ROOT};
use crate::report::frame_table::{FrameEntry, FrameId, FrameKind};
use crate::report::objects::{Object, ObjectId};

/// The type of a resource that is a library (`resourceTypes` in `src/profile-logic/data-structures.js`).
const LIBRARY: u32 = 1;

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Function {
    name: usize,
    file: Option<usize>,
    /// The index of its library among the resources.
    resource: Option<usize>,
}

/// A frame.
#[derive(Clone, Copy, Debug)]
struct Frame {
    function: usize,
    category: usize,
    line: Option<i64>,
    /// The address in the object, of a frame that is left to a symbolizer.
    address: Option<u64>,
}

/// The tables of a thread.
#[derive(Debug, Default)]
pub(super) struct ThreadTables {
    strings: Vec<String>,
    string_ids: HashMap<String, usize>,
    /// Object and name of each library.
    resources: Vec<(ObjectId, usize)>,
    resource_ids: HashMap<ObjectId, usize>,
    functions: Vec<Function>,
    function_ids: HashMap<Function, usize>,
    frames: Vec<Frame>,
    frame_ids: HashMap<FrameId, usize>,
    /// Frame and caller of each stack.
    stacks: Vec<(usize, Option<usize>)>,
    stack_ids: HashMap<NodeId, usize>,
}

impl ThreadTables {
    /// The index of a node's stack; `None` for the root. Callers come first.
    pub(super) fn stack(&mut self, of: Stacks<'_>, node: NodeId) -> Option<usize> {
        let mut missing = Vec::new();
        let mut known = node;
        while known != ROOT && !self.stack_ids.contains_key(&known) {
            missing.push(known);
            known = of.tree.parent(known);
        }
        let mut stack = self.stack_ids.get(&known).copied();
        for node in missing.into_iter().rev() {
            let frame = self.frame(of, of.tree.frame(node));
            let next = self.stacks.len();
            self.stacks.push((frame, stack));
            self.stack_ids.insert(node, next);
            stack = Some(next);
        }
        stack
    }

    fn frame(&mut self, of: Stacks<'_>, id: FrameId) -> usize {
        if let Some(&known) = self.frame_ids.get(&id) {
            return known;
        }
        let FrameEntry { name, file, line, kind, object } = of.frames.get(id);
        let function = Function {
            name: self.string(name),
            file: if file.is_empty() { None } else { Some(self.string(file)) },
            resource: self.resource(of.objects, *object),
        };
        let next = self.functions.len();
        let function = *self.function_ids.entry(function).or_insert_with_key(|&function| {
            self.functions.push(function);
            next
        });
        let frame = self.frames.len();
        let line = Some(*line).filter(|&line| line != 0);
        let address = RemoteFrame::parse(name).map(|remote| remote.address.0);
        self.frames.push(Frame { function, category: category(*kind), line, address });
        self.frame_ids.insert(id, frame);
        frame
    }

    /// The index of an object among the resources.
    fn resource(&mut self, objects: &[Object], id: ObjectId) -> Option<usize> {
        if let Some(&known) = self.resource_ids.get(&id) {
            return Some(known);
        }
        let object = objects.get((id as usize).checked_sub(1)?)?;
        let name = self.string(object.name());
        let next = self.resources.len();
        self.resources.push((id, name));
        self.resource_ids.insert(id, next);
        Some(next)
    }

    fn string(&mut self, text: &str) -> usize {
        if let Some(&known) = self.string_ids.get(text) {
            return known;
        }
        let id = self.strings.len();
        self.strings.push(text.to_owned());
        self.string_ids.insert(text.to_owned(), id);
        id
    }

    pub(super) fn add_to(self, thread: &mut Value) {
        let Self { strings, resources, functions, frames, stacks, .. } = self;
        let all = |value: Value, count: usize| vec![value; count];
        let (functions_count, count) = (functions.len(), frames.len());
        let categories: Vec<_> = stacks.iter().map(|&(frame, _)| frames[frame].category).collect();
        // -1 is none in these columns.
        let or_none = |value: Option<usize>| value.map_or(json!(-1), |value| json!(value));
        thread["resourceTable"] = json!({
            "length": resources.len(),
            "lib": resources.iter().map(|&(object, _)| object - 1).collect::<Vec<_>>(),
            "name": resources.iter().map(|&(_, name)| name).collect::<Vec<_>>(),
            "host": all(Value::Null, resources.len()),
            "type": all(json!(LIBRARY), resources.len()),
        });
        thread["funcTable"] = json!({
            "length": functions_count,
            "name": functions.iter().map(|function| function.name).collect::<Vec<_>>(),
            "fileName": functions.iter().map(|function| function.file).collect::<Vec<_>>(),
            "isJS": all(json!(false), functions_count),
            "relevantForJS": all(json!(false), functions_count),
            "resource": functions.iter().map(|function| or_none(function.resource)).collect::<Vec<_>>(),
            "lineNumber": all(Value::Null, functions_count),
            "columnNumber": all(Value::Null, functions_count),
        });
        let address = |frame: &Frame| frame.address.map_or(json!(-1), |address| json!(address));
        thread["frameTable"] = json!({
            "length": count,
            "func": frames.iter().map(|frame| frame.function).collect::<Vec<_>>(),
            "category": frames.iter().map(|frame| frame.category).collect::<Vec<_>>(),
            "line": frames.iter().map(|frame| frame.line).collect::<Vec<_>>(),
            "subcategory": all(json!(0), count),
            "address": frames.iter().map(address).collect::<Vec<_>>(),
            "inlineDepth": all(json!(0), count),
            "nativeSymbol": all(Value::Null, count),
            "innerWindowID": all(json!(0), count),
            "implementation": all(Value::Null, count),
            "column": all(Value::Null, count),
        });
        thread["stackTable"] = json!({
            "length": stacks.len(),
            "frame": stacks.iter().map(|&(frame, _)| frame).collect::<Vec<_>>(),
            "prefix": stacks.iter().map(|&(_, caller)| caller).collect::<Vec<_>>(),
            "subcategory": all(json!(0), stacks.len()),
            "category": categories,
        });
        thread["stringArray"] = json!(strings);
    }
}

/// The number of a frame's category.
pub(super) fn category(kind: FrameKind) -> usize {
    match kind {
        FrameKind::Marker => 0,
        FrameKind::Java => 1,
        FrameKind::Native => 2,
        FrameKind::Kernel => 3,
        FrameKind::Stub => 4,
        FrameKind::Other(_) => 5,
    }
}

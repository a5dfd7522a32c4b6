//! The tables of a thread: stacks, frames, functions, libraries, texts.

use std::collections::HashMap;
use std::io::{self, Write};

use otlpprof_model::RemoteFrame;
use serde_json::json;

use super::stacks::Stacks;
use super::table::Table;
use crate::call_tree::{NodeId, ROOT};
use crate::frame_table::{FrameEntry, FrameId, FrameKind};
use crate::objects::{Object, ObjectId};

/// The type of a resource that is a library (`resourceTypes` in `src/profile-logic/data-structures.js`).
const LIBRARY: u32 = 1;
/// JSON's `null`.
const NONE: () = ();

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

    /// Writes the tables, each after a comma.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        // -1 is none in some columns.
        let or_none = |value: Option<usize>| value.map_or(-1, |value| value as i64);
        let Self { strings, resources, functions, frames, stacks, .. } = self;
        let mut table = Table::begin("resourceTable", resources.len(), out)?;
        table.column("lib", resources.iter().map(|&(object, _)| object - 1))?;
        table.column("name", resources.iter().map(|&(_, name)| name))?;
        table.all("host", NONE)?;
        table.all("type", LIBRARY)?;
        table.end()?;
        let mut table = Table::begin("funcTable", functions.len(), out)?;
        table.column("name", functions.iter().map(|function| function.name))?;
        table.column("fileName", functions.iter().map(|function| function.file))?;
        table.all("isJS", false)?;
        table.all("relevantForJS", false)?;
        table.column("resource", functions.iter().map(|function| or_none(function.resource)))?;
        table.all("lineNumber", NONE)?;
        table.all("columnNumber", NONE)?;
        table.end()?;
        let mut table = Table::begin("frameTable", frames.len(), out)?;
        table.column("func", frames.iter().map(|frame| frame.function))?;
        table.column("category", frames.iter().map(|frame| frame.category))?;
        table.column("line", frames.iter().map(|frame| frame.line))?;
        table.all("subcategory", 0)?;
        table.column("address", frames.iter().map(|frame| frame.address.map_or(-1, i128::from)))?;
        table.all("inlineDepth", 0)?;
        table.all("nativeSymbol", NONE)?;
        table.all("innerWindowID", 0)?;
        table.all("implementation", NONE)?;
        table.all("column", NONE)?;
        table.end()?;
        let mut table = Table::begin("stackTable", stacks.len(), out)?;
        table.column("frame", stacks.iter().map(|&(frame, _)| frame))?;
        table.column("prefix", stacks.iter().map(|&(_, caller)| caller))?;
        table.all("subcategory", 0)?;
        table.column("category", stacks.iter().map(|&(frame, _)| frames[frame].category))?;
        table.end()?;
        write!(out, ",\"stringArray\":{}", json!(strings))
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

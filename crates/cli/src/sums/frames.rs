//! Interned frames and stacks. A function's text is stored once, however many of its lines occur.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;

use otlpprof_otlp::frames::Frame;

/// A frame, by its number in a [`FrameTable`].
pub(crate) type FrameId = u32;
/// A stack, by its number in a [`FrameTable`].
pub(super) type StackId = u32;

/// A function's or file's name is cut after this many bytes.
const LONGEST_TEXT: usize = 4096;
/// Approximate bytes that a frame, or a stack, occupies besides its text, or its frames.
const OF_ENTRY: usize = 24;

/// Frames, interned by the text of their function and by their line, and stacks of them.
#[derive(Debug, Default)]
pub(super) struct FrameTable {
    hasher: RandomState,
    texts: String,
    frames: Vec<FrameEntry>,
    /// The functions: frames without a line.
    by_text: HashTable<FrameId>,
    /// The frames with a line, by function and line.
    by_line: HashMap<(FrameId, i64), FrameId, RandomState>,
    /// The frames of all stacks, each leaf first.
    of_stacks: Vec<FrameId>,
    /// The end of each stack in `of_stacks`.
    stack_ends: Vec<u32>,
    by_frames: HashTable<StackId>,
}

#[derive(Clone, Copy, Debug)]
struct FrameEntry {
    /// The end of the frame's text in `texts`. Only functions have a text.
    end: u32,
    /// The frame without its line number. It may be this frame itself.
    function: FrameId,
    /// The line; 0 if this is a function.
    line: i64,
    /// Whether the function's text ends with its file.
    has_file: bool,
}

/// Translates the frame and stack ids of one table into those of another.
#[derive(Debug)]
pub(super) struct IdTranslation {
    pub(super) frames: Vec<Option<FrameId>>,
    pub(super) stacks: Vec<Option<StackId>>,
}

impl FrameTable {
    /// The approximate bytes that the table occupies.
    pub(super) fn bytes(&self) -> usize {
        self.texts.len()
            + self.of_stacks.len() * size_of::<FrameId>()
            + (self.frames.len() + self.by_line.len() + self.stack_ends.len()) * OF_ENTRY
    }

    /// The text of a frame, as a [`Frame`] is written.
    pub(super) fn text(&self, frame: FrameId) -> Cow<'_, str> {
        let FrameEntry { function, line, .. } = self.frames[frame as usize];
        let text = text_at(&self.texts, &self.frames, function);
        let of_file = self.frames[function as usize].has_file.then(|| text.strip_suffix(')')).flatten();
        match (line, of_file) {
            (0, _) => Cow::Borrowed(text),
            (line, Some(text)) => Cow::Owned(format!("{text}:{line})")),
            (line, None) => Cow::Owned(format!("{text} (line {line})")),
        }
    }

    /// The frame without its line number.
    pub(super) fn function(&self, frame: FrameId) -> FrameId {
        self.frames[frame as usize].function
    }

    /// The frames of a stack, leaf first.
    pub(super) fn stack(&self, stack: StackId) -> &[FrameId] {
        stack_at(&self.of_stacks, &self.stack_ends, stack)
    }

    /// Interns frames.
    pub(super) fn add_all(&mut self, frames: &[Frame<'_>]) -> Vec<FrameId> {
        let add = |frame: &Frame<'_>| {
            // Many frames may have the same long name.
            let (text, file) = (cut(&frame.text), cut(frame.file));
            let function = Frame { text: text.into(), file, line: 0, ..*frame };
            let function = self.add_function(&function.to_string(), !file.is_empty());
            self.add_line(function, frame.line)
        };
        frames.iter().map(add).collect()
    }

    /// Interns a function.
    fn add_function(&mut self, text: &str, has_file: bool) -> FrameId {
        let hash = self.hasher.hash_one(text);
        let is_it = |&known: &FrameId| text_at(&self.texts, &self.frames, known) == text;
        if let Some(&known) = self.by_text.find(hash, is_it) {
            return known;
        }
        self.texts.push_str(text);
        let id = self.push(|id| (id, 0), has_file);
        let rehash = |&id: &FrameId| self.hasher.hash_one(text_at(&self.texts, &self.frames, id));
        self.by_text.insert_unique(hash, id, rehash);
        id
    }

    /// Interns a line of a function. Line 0 is the function itself.
    fn add_line(&mut self, function: FrameId, line: i64) -> FrameId {
        if line == 0 {
            return function;
        }
        if let Some(&known) = self.by_line.get(&(function, line)) {
            return known;
        }
        let id = self.push(|_| (function, line), false);
        self.by_line.insert((function, line), id);
        id
    }

    fn push(&mut self, function_and_line: impl FnOnce(FrameId) -> (FrameId, i64), has_file: bool) -> FrameId {
        // SANITY: the bounds on memory keep the number of frames and the length of the texts far below 2^32.
        let id = self.frames.len() as FrameId;
        let (function, line) = function_and_line(id);
        self.frames.push(FrameEntry { end: self.texts.len() as u32, function, line, has_file });
        id
    }

    /// Interns a stack.
    pub(super) fn add_stack(&mut self, frames: &[FrameId]) -> StackId {
        let hash = self.hasher.hash_one(frames);
        if let Some(&known) = self.by_frames.find(hash, |&known| self.stack(known) == frames) {
            return known;
        }
        let id = self.stack_ends.len() as StackId;
        self.of_stacks.extend_from_slice(frames);
        self.stack_ends.push(self.of_stacks.len() as u32);
        let rehash = |&id: &StackId| self.hasher.hash_one(stack_at(&self.of_stacks, &self.stack_ends, id));
        self.by_frames.insert_unique(hash, id, rehash);
        id
    }

    /// Copies only the selected stacks and functions to a new table.
    pub(super) fn with_only(
        &self,
        is_stack: impl Fn(StackId) -> bool,
        is_function: impl Fn(FrameId) -> bool,
    ) -> (Self, IdTranslation) {
        let mut kept = Self::default();
        let mut frames = vec![None; self.frames.len()];
        let mut take = |kept: &mut Self, frame: FrameId| {
            if let Some(taken) = frames[frame as usize] {
                return taken;
            }
            let FrameEntry { function, line, .. } = self.frames[frame as usize];
            let text = text_at(&self.texts, &self.frames, function);
            let of = kept.add_function(text, self.frames[function as usize].has_file);
            let taken = kept.add_line(of, line);
            frames[function as usize] = Some(of);
            frames[frame as usize] = Some(taken);
            taken
        };
        let stacks = (0..self.stack_ends.len() as StackId).map(|stack| {
            is_stack(stack).then(|| {
                let ids: Vec<_> = self.stack(stack).iter().map(|&frame| take(&mut kept, frame)).collect();
                kept.add_stack(&ids)
            })
        });
        let stacks = stacks.collect();
        for function in (0..self.frames.len() as FrameId).filter(|&frame| is_function(frame)) {
            take(&mut kept, function);
        }
        (kept, IdTranslation { frames, stacks })
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_TEXT)]
}

fn text_at<'t>(texts: &'t str, frames: &[FrameEntry], frame: FrameId) -> &'t str {
    let start = (frame as usize).checked_sub(1).map_or(0, |before| frames[before].end);
    &texts[start as usize..frames[frame as usize].end as usize]
}

fn stack_at<'s>(frames: &'s [FrameId], ends: &[u32], stack: StackId) -> &'s [FrameId] {
    let start = (stack as usize).checked_sub(1).map_or(0, |before| ends[before]);
    &frames[start as usize..ends[stack as usize] as usize]
}

#[cfg(test)]
mod tests {
    use otlpprof_otlp::frames::Naming;

    use super::*;

    fn frame(text: &str, file: &'static str, line: i64) -> Frame<'static> {
        let (text, naming) = (text.to_owned().into(), Naming::Function);
        Frame { text, naming, frame_type: "jvm", is_stub: false, mapping_index: 0, file, line }
    }

    /// Regression: the name was stored again for each line, so that few long names filled the table.
    #[test]
    fn lines_take_no_room_for_names() {
        let name = "n".repeat(LONGEST_TEXT);
        let mut table = FrameTable::default();
        let lines: Vec<_> = (1..=100).map(|line| frame(&name, "F.java", line)).collect();
        table.add_all(&lines);
        assert!(table.bytes() < 3 * LONGEST_TEXT, "{} bytes", table.bytes());
    }

    #[test]
    fn frames_are_written_as_they_are_elsewhere() {
        let mut table = FrameTable::default();
        for (file, line) in [("", 0), ("F.java", 0), ("", 5), ("F.java", 5)] {
            // The brackets of a native function's name are no file.
            for text in ["a.B.c", "f(int)"] {
                let frame = frame(text, file, line);
                let ids = table.add_all(&[frame.clone(), frame.clone()]);
                assert_eq!((ids[0], &*table.text(ids[0])), (ids[1], &*frame.to_string()));
                let function = Frame { line: 0, ..frame };
                assert_eq!(table.text(table.function(ids[0])), function.to_string());
            }
        }
        let (kept, moved) = table.with_only(|_| false, |frame| frame % 2 == 0);
        for frame in (0..table.frames.len() as FrameId).filter(|frame| frame % 2 == 0) {
            assert_eq!(kept.text(moved.frames[frame as usize].unwrap()), table.text(frame));
        }
    }
}

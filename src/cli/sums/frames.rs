//! Interned frames and stacks.

use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;

use crate::otlp::frames::Frame;

/// A frame, by its number in a [`FrameTable`].
pub(in crate::cli) type FrameId = u32;
/// A stack, by its number in a [`FrameTable`].
pub(super) type StackId = u32;

/// A function's or file's name is cut after this many bytes.
const LONGEST_TEXT: usize = 4096;
/// Approximate bytes that a frame, or a stack, occupies besides its text, or its frames.
const OF_ENTRY: usize = 24;

/// Frames, interned by their text, and stacks of them.
#[derive(Debug, Default)]
pub(super) struct FrameTable {
    hasher: RandomState,
    texts: String,
    frames: Vec<FrameEntry>,
    by_text: HashTable<FrameId>,
    /// The frames of all stacks, each leaf first.
    of_stacks: Vec<FrameId>,
    /// The end of each stack in `of_stacks`.
    stack_ends: Vec<u32>,
    by_frames: HashTable<StackId>,
}

#[derive(Clone, Copy, Debug)]
struct FrameEntry {
    /// The end of the frame's text in `texts`.
    end: u32,
    /// The frame without its line number. It may be this frame itself.
    function: FrameId,
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
            + (self.frames.len() + self.stack_ends.len()) * OF_ENTRY
    }

    /// The text of a frame.
    pub(super) fn text(&self, frame: FrameId) -> &str {
        text_at(&self.texts, &self.frames, frame)
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
            let frame = Frame { text: text.into(), file, ..*frame };
            if frame.line == 0 {
                return self.add(&frame.to_string(), None);
            }
            let function = self.add(&Frame { line: 0, ..frame.clone() }.to_string(), None);
            self.add(&frame.to_string(), Some(function))
        };
        frames.iter().map(add).collect()
    }

    /// Interns a frame. A frame for which no function is given is its own function.
    fn add(&mut self, text: &str, function: Option<FrameId>) -> FrameId {
        let hash = self.hasher.hash_one(text);
        if let Some(&known) = self.by_text.find(hash, |&known| self.text(known) == text) {
            return known;
        }
        // SANITY: the bounds on memory keep the number of frames and the length of the texts far below 2^32.
        let id = self.frames.len() as FrameId;
        self.texts.push_str(text);
        self.frames.push(FrameEntry { end: self.texts.len() as u32, function: function.unwrap_or(id) });
        let rehash = |&id: &FrameId| self.hasher.hash_one(text_at(&self.texts, &self.frames, id));
        self.by_text.insert_unique(hash, id, rehash);
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
            let function = self.function(frame);
            let of = (function != frame).then(|| kept.add(self.text(function), None));
            let taken = kept.add(self.text(frame), of);
            frames[function as usize] = of.or(Some(taken));
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

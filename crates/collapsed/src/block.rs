//! A block of lines, whose stacks are divided into frames in any thread.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;

use super::line::{self, LineProblem, Scale};
use super::quantity::Quantity;

/// The longest line, in bytes: far more than a stack of the deepest depth that the JVM walks.
pub(super) const LONGEST_LINE: usize = 1 << 22;

/// The expectations that the beginning of a file sets for all of its lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected<'q> {
    /// The scale of values.
    pub(super) scale: Scale,
    /// The quantity that comments name.
    pub(super) quantity: Option<&'q Quantity<String>>,
}

/// The lines of a block, up to the first that cannot be read.
#[derive(Debug)]
pub(super) struct Block {
    text: String,
    /// The places in the text of the distinct frames.
    distinct: Vec<Range<usize>>,
    /// The lines that are stacks.
    pub(super) rows: Vec<StackRow>,
    /// The frames of all rows, by their numbers in `distinct`, the leaf of each row first.
    frames: Vec<u32>,
    /// The number of lines that are comments, and name no quantity.
    pub(super) comments: u64,
    /// The number of lines.
    pub(super) lines: u64,
    /// The line that cannot be read, counted from 0, and the reason.
    pub(super) problem: Option<(u64, LineProblem)>,
}

/// A line that is a stack.
#[derive(Debug)]
pub(super) struct StackRow {
    /// The line, counted from 0.
    pub(super) line: u64,
    /// The value; not negative.
    pub(super) value: i64,
    /// The length of the stack in bytes.
    pub(super) bytes: usize,
    /// The place of the thread's name in the text, and the thread's id, if the stack states them.
    thread: Option<(Range<usize>, i64)>,
    /// The places in `frames`.
    frames: Range<usize>,
}

impl Block {
    /// Reads the lines of these bytes.
    pub(super) fn of(bytes: Vec<u8>, expected: Expected<'_>) -> Self {
        // Only the last line of a block can be so long.
        let last = bytes.split_inclusive(|&byte| byte == b'\n').next_back();
        let is_long = last.is_some_and(|last| last.len() > LONGEST_LINE);
        let text = String::from_utf8(bytes);
        let text = text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let mut block = Self {
            text: String::new(),
            distinct: Vec::new(),
            rows: Vec::new(),
            frames: Vec::new(),
            comments: 0,
            lines: 0,
            problem: None,
        };
        block.read(&text, is_long, expected);
        block.text = text;
        block
    }

    fn read(&mut self, text: &str, is_long: bool, expected: Expected<'_>) {
        let mut numbers: HashMap<&str, u32, RandomState> = HashMap::default();
        let mut lines = text.split_inclusive('\n').peekable();
        while let Some(whole) = lines.next() {
            let line = self.lines;
            self.lines += 1;
            let parsed = match is_long && lines.peek().is_none() {
                true => Err(LineProblem::TooLong(LONGEST_LINE)),
                false => line::parse(whole, expected.scale),
            };
            match parsed {
                Ok(Some(line::StackLine { stack, value })) => {
                    let (thread, frames) = divide(stack);
                    let thread = thread.map(|(name, id)| (place_of(name, text), id));
                    let first = self.frames.len();
                    let texts = (!frames.is_empty()).then(|| frames.rsplit(';'));
                    for frame in texts.into_iter().flatten() {
                        let number = *numbers.entry(frame).or_insert_with(|| {
                            self.distinct.push(place_of(frame, text));
                            // SANITY: a block has fewer than 2^32 bytes.
                            (self.distinct.len() - 1) as u32
                        });
                        self.frames.push(number);
                    }
                    let frames = first..self.frames.len();
                    self.rows.push(StackRow { line, value, bytes: stack.len(), thread, frames });
                }
                Ok(None) => match Quantity::parse(whole) {
                    // Files that were put together have several.
                    Some(other) if Some(&other) != expected.quantity => {
                        self.problem = Some((line, LineProblem::OtherQuantity));
                        return;
                    }
                    Some(_) => {}
                    None => self.comments += u64::from(line::is_comment(whole)),
                },
                Err(problem) => {
                    self.problem = Some((line, problem));
                    return;
                }
            }
        }
    }

    /// The number of distinct frames.
    pub(super) fn distinct_count(&self) -> usize {
        self.distinct.len()
    }

    /// The text of a distinct frame.
    pub(super) fn text(&self, number: u32) -> &str {
        &self.text[self.distinct[number as usize].clone()]
    }

    /// The frames of a row, by their numbers among the distinct ones, the leaf first.
    pub(super) fn frames(&self, row: &StackRow) -> &[u32] {
        &self.frames[row.frames.clone()]
    }

    /// The name and the id of a row's thread.
    pub(super) fn thread(&self, row: &StackRow) -> Option<(&str, i64)> {
        row.thread.as_ref().map(|(name, id)| (&self.text[name.clone()], *id))
    }
}

/// The place of a part of a text.
fn place_of(part: &str, text: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

/// Divides a stack into the thread's name and id, which a first frame `[NAME tid=ID]` states, and the frames.
pub(super) fn divide(stack: &str) -> (Option<(&str, i64)>, &str) {
    let (first, rest) = stack.split_once(';').unwrap_or((stack, ""));
    let thread = first.strip_prefix('[').and_then(|first| first.strip_suffix(']'));
    let thread = thread.and_then(|thread| thread.rsplit_once(" tid="));
    match thread.and_then(|(name, id)| Some((name, id.parse().ok()?))) {
        Some(thread) => (Some(thread), rest),
        None => (None, stack),
    }
}

//! Reads the lines of collapsed stacks, and sums them.

use std::collections::HashMap;
use std::io::{self, BufRead, Read as _};
use std::mem;

use foldhash::fast::RandomState;
use thiserror::Error;

use super::frame_name;
use super::line::{self, LineProblem};
use crate::model::{
    AttributeSetId, Batch, FrameId, LinkId, Profile, ProfileType, SampleIdentity, Tables, attribute_keys,
    label,
};

/// The longest line, in bytes: far more than a stack of the deepest depth that the JVM walks.
const LONGEST_LINE: usize = 1 << 22;
/// The bytes of lines that one batch sums up. A batch may have more samples than this only if they are equal.
const BATCH_BYTES: usize = 1 << 25;
/// The samples of a batch.
const BATCH_SAMPLES: usize = 1 << 16;

/// The reason why a file of collapsed stacks cannot be read.
#[derive(Debug, Error)]
pub enum CollapsedError {
    /// The reader has failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line cannot be read.
    #[error("line {number}: {problem}")]
    Line {
        /// The number of the line, from 1.
        number: u64,
        /// The reason.
        problem: LineProblem,
    },
}

/// Whether these are the first bytes of collapsed stacks: the first line that is not blank is one. A text of
/// another kind, such as JSON, seldom has a line that ends in a number; a binary file has none without
/// control characters.
pub fn is_collapsed(first: &[u8]) -> bool {
    let mut lines = first.split_inclusive(|&byte| byte == b'\n');
    let Some(line) = lines.find(|line| !line.trim_ascii().is_empty()) else { return false };
    let is_text = |byte: &u8| *byte >= b' ' || [b'\t', b'\r', b'\n'].contains(byte);
    if !line.iter().all(is_text) || line.trim_ascii_start().starts_with(b"{") {
        return false;
    }
    // A long line may be cut off.
    let is_whole = line.ends_with(b"\n");
    let text = String::from_utf8_lossy(line);
    match line::parse(&text) {
        Ok(line) => line.is_some(),
        Err(_) => !is_whole && text.contains(';'),
    }
}

/// Reads collapsed stacks. Passes their sums to `take`, in several batches if there are many.
///
/// # Errors
/// The first line that cannot be read, an error of the reader, or one that `take` returns.
pub fn read<E: From<CollapsedError>>(
    mut from: impl BufRead,
    mut take: impl FnMut(Batch) -> Result<(), E>,
) -> Result<(), E> {
    let mut sums = Sums::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut limited = from.by_ref().take(LONGEST_LINE as u64 + 1);
        if limited.read_until(b'\n', &mut line).map_err(CollapsedError::Io)? == 0 {
            break;
        }
        if line.len() > LONGEST_LINE {
            let problem = LineProblem::TooLong(LONGEST_LINE);
            return Err(CollapsedError::Line { number, problem }.into());
        }
        let text = String::from_utf8_lossy(&line);
        let parsed = line::parse(&text).map_err(|problem| CollapsedError::Line { number, problem })?;
        if let Some(line) = parsed {
            sums.add(line.stack, line.value);
        }
        if sums.is_full() {
            take(mem::replace(&mut sums, Sums::new()).batch())?;
        }
    }
    if sums.bytes > 0 { take(sums.batch()) } else { Ok(()) }
}

/// The sums of lines.
struct Sums {
    tables: Tables,
    profile: Profile,
    /// Cache: frames by their texts.
    frames: HashMap<Box<str>, FrameId, RandomState>,
    /// Scratch space: the frames of a stack, leaf first.
    stack: Vec<FrameId>,
    bytes: usize,
}

impl Sums {
    fn new() -> Self {
        let samples = ("samples", "count");
        Self {
            tables: Tables::new(),
            profile: Profile::new(ProfileType::custom("samples", samples, samples), 1),
            frames: HashMap::default(),
            stack: Vec::new(),
            bytes: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.profile.samples().len() >= BATCH_SAMPLES || self.bytes >= BATCH_BYTES
    }

    fn add(&mut self, stack: &str, value: i64) {
        self.bytes += stack.len();
        let (thread, stack) = divide(stack);
        let attributes = thread.map_or(AttributeSetId::EMPTY, |thread| self.thread(thread));
        self.stack.clear();
        if !stack.is_empty() {
            for text in stack.rsplit(';') {
                let frame = match self.frames.get(text) {
                    Some(&known) => known,
                    None => {
                        let frame = frame_name::frame(text, &mut self.tables);
                        let id = self.tables.frames.intern(frame);
                        self.frames.insert(text.into(), id);
                        id
                    }
                };
                self.stack.push(frame);
            }
        }
        let stack = self.tables.stacks.intern(&self.stack);
        self.profile.add(SampleIdentity { stack, attributes, link: LinkId::NONE }, value, None);
    }

    fn thread(&mut self, (name, id): (&str, i64)) -> AttributeSetId {
        let name = self.tables.string_attribute(attribute_keys::THREAD_NAME, label(name));
        let id = self.tables.int_attribute(attribute_keys::THREAD_OS_ID, id, "");
        self.tables.attribute_set(&[name, id])
    }

    fn batch(self) -> Batch {
        let mut batch = Batch { tables: self.tables, profiles: vec![self.profile], ..Batch::default() };
        batch.resource.set(attribute_keys::SERVICE_NAME, "unknown_service");
        batch
    }
}

/// Divides a stack into the thread's name and id, which a first frame `[NAME tid=ID]` states, and the frames.
fn divide(stack: &str) -> (Option<(&str, i64)>, &str) {
    let (first, rest) = stack.split_once(';').unwrap_or((stack, ""));
    let thread = first.strip_prefix('[').and_then(|first| first.strip_suffix(']'));
    let thread = thread.and_then(|thread| thread.rsplit_once(" tid="));
    match thread.and_then(|(name, id)| Some((name, id.parse().ok()?))) {
        Some(thread) => (Some(thread), rest),
        None => (None, stack),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(text: &[u8]) -> Result<Vec<Batch>, CollapsedError> {
        let mut batches = Vec::new();
        read(text, |batch| {
            batches.push(batch);
            Ok::<_, CollapsedError>(())
        })?;
        Ok(batches)
    }

    #[test]
    fn equal_stacks_are_summed_and_threads_are_labels() {
        let text = b"[a b tid=7];main;run 1\nmain;run 2\n\n[a b tid=7];main;run 40\r\nmain 5";
        let [batch] = &batches(text).unwrap()[..] else { panic!("one batch") };
        let values: Vec<_> = batch.profiles[0].samples().iter().map(|sample| sample.value).collect();
        assert_eq!(values, [41, 2, 5]);
        let first = batch.profiles[0].samples()[0].identity;
        let name = batch.tables.text_of(first.attributes, attribute_keys::THREAD_NAME);
        assert_eq!((name, batch.tables.stacks.get(first.stack).len()), (Some("a b"), 2));
        let second = batch.profiles[0].samples()[1].identity;
        assert_eq!((second.stack, second.attributes), (first.stack, AttributeSetId::EMPTY));
    }

    #[test]
    fn many_stacks_are_several_batches_with_the_same_sum() {
        let text: String = (0..200_000).map(|at| format!("main;f{at} 3\n")).collect();
        let batches = batches(text.as_bytes()).unwrap();
        assert!(batches.len() > 2, "{}", batches.len());
        let samples = batches.iter().flat_map(|batch| batch.profiles[0].samples());
        assert_eq!(samples.map(|sample| sample.value).sum::<i64>(), 600_000);
    }

    #[test]
    fn a_bad_line_is_named_by_its_number() {
        let error = batches(b"main 1\n\nmain;run\n").unwrap_err().to_string();
        assert_eq!(error, "line 3: no value; a line is FRAME;FRAME;FRAME VALUE");
        let long = [b"main 1\n", &vec![b'x'; LONGEST_LINE + 1][..], b" 1"].concat();
        assert_eq!(batches(&long).unwrap_err().to_string(), "line 2: longer than 4194304 bytes");
    }

    #[test]
    fn collapsed_stacks_are_recognised_by_their_first_line() {
        for text in ["a;b 1\n", "\n\nmain 12\r\n", "a 0", "[t tid=1];a;b 7\nrubbish"] {
            assert!(is_collapsed(text.as_bytes()), "{text}");
        }
        assert!(is_collapsed(b"caf\xe9;b 1\n"), "text need not be UTF-8");
        assert!(is_collapsed("long;".repeat(20_000).as_bytes()), "the first line is cut off");
        for bytes in [&b""[..], b"\n", b"hello\n", b"{\"a\": 1}\n", b"\n{ 1", b"42\n", b"FLR\0;a 1\n"] {
            assert!(!is_collapsed(bytes), "{bytes:?}");
        }
        assert!(!is_collapsed(&[0x0a, 5, 0x0a, 3, b'a', b' ', b'1']), "protobuf");
    }
}

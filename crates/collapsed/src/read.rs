//! Reads the lines of collapsed stacks, and sums them.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read};
use std::mem;

use foldhash::fast::RandomState;
use otlpprof_model::{
    AttributeSetId, BILLIONTHS, Batch, FrameId, LinkId, Profile, ProfileType, SampleIdentity, Tables,
    attribute_keys, label,
};
use thiserror::Error;

use super::block::{Block, Expected, StackRow};
use super::blocks::{self, BLOCK_BYTES};
use super::form::{Form, Program};
use super::frame_name;
use super::line::{self, LineProblem, Scale};
use super::quantity::Quantity;
use super::text::text_of;

/// The bytes of lines that one batch sums up. A batch may have more samples than this only if they are equal.
const BATCH_BYTES: usize = 1 << 25;
/// The samples of a batch.
const BATCH_SAMPLES: usize = 1 << 16;
/// The bytes at the beginning of a file that decide the form of its lines.
const FIRST_BYTES: u64 = 1 << 16;

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
    /// A unit is wanted for values with fractions.
    #[error("values with fractions cannot be in {0}: leave the unit out")]
    UnitOfFractions(String),
}

/// The parts of a file that are not shown as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// The number of lines that are comments.
    pub comments: u64,
}

impl Remarks {
    /// Whether everything is shown as it is.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl fmt::Display for Remarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = if self.comments == 1 { "line" } else { "lines" };
        write!(f, "collapsed stacks, without {} {lines} of comments", self.comments)
    }
}

/// Whether these are the first bytes of collapsed stacks: the first line that is neither blank nor a comment
/// is a stack. A text of another kind, such as JSON, seldom has a line that ends in a number; a binary file
/// has none without control characters.
pub fn is_collapsed(first: &[u8]) -> bool {
    let mut text = Vec::new();
    // UTF-16 may be cut within a character.
    let _ = text_of(first).read_to_end(&mut text);
    let mut lines = text.split_inclusive(|&byte| byte == b'\n').map(String::from_utf8_lossy);
    let is_stack = |line: &str| !line.trim_ascii().is_empty() && !line::is_comment(line);
    let Some(line) = lines.find(|line| is_stack(line)) else { return false };
    let is_text = |character: char| !character.is_ascii_control() || ['\t', '\r', '\n'].contains(&character);
    if !line.chars().all(is_text) || line.trim_ascii_start().starts_with('{') {
        return false;
    }
    // A long line may be cut off.
    let is_whole = line.ends_with('\n');
    match line::parse(&line, Scale::Whole).or_else(|_| line::parse(&line, Scale::Billionths)) {
        Ok(line) => line.is_some(),
        Err(_) => !is_whole && line.contains(';'),
    }
}

/// Reads collapsed stacks. Passes their sums to `take`, in several batches if there are many. `unit` is the
/// unit of the values, whatever a comment says.
///
/// # Errors
/// The first line that cannot be read, an error of the reader, or one that `take` returns.
pub fn read<E: From<CollapsedError>>(
    from: impl Read,
    unit: Option<&str>,
    mut take: impl FnMut(Batch) -> Result<(), E>,
) -> Result<Remarks, E> {
    let mut text = text_of(from);
    let mut first = Vec::new();
    text.by_ref().take(FIRST_BYTES).read_to_end(&mut first).map_err(CollapsedError::Io)?;
    let is_whole = (first.len() as u64) < FIRST_BYTES;
    let form = Form::of(&first, is_whole);
    let form = form.map_err(|(number, problem)| CollapsedError::Line { number, problem })?;
    let named = named_quantity(&first);
    let profile_type = profile_type(named.as_ref(), form, unit)?;
    let (mut sums, mut remarks) = (Sums::new(form, profile_type), Remarks::default());
    let (mut lines, mut total) = (1, 0_i64);
    let text = first.as_slice().chain(text);
    let expected = Expected { scale: form.scale, quantity: named.as_ref() };
    blocks::each_block(text, BLOCK_BYTES, expected, |block| -> Result<(), TakeError<E>> {
        let mut frames = vec![None; block.distinct_count()];
        let at_line = |line, problem| CollapsedError::Line { number: lines + line, problem };
        for row in &block.rows {
            let sum = total.checked_add(row.value);
            total = sum.ok_or_else(|| at_line(row.line, LineProblem::SumTooLarge))?;
            sums.add(&block, row, &mut frames);
            if sums.is_full() {
                let full = mem::replace(&mut sums, Sums::new(form, profile_type));
                take(full.batch()).map_err(TakeError::Taker)?;
                frames.fill(None);
            }
        }
        if let Some((line, problem)) = block.problem {
            return Err(at_line(line, problem).into());
        }
        lines += block.lines;
        remarks.comments += block.comments;
        Ok(())
    })
    .map_err(TakeError::into_inner)?;
    if sums.bytes > 0 {
        take(sums.batch())?;
    }
    Ok(remarks)
}

/// The quantity that a comment before the stacks names, in a file that begins with these bytes.
fn named_quantity(first: &[u8]) -> Option<Quantity<String>> {
    let lines = first.split(|&byte| byte == b'\n').map(String::from_utf8_lossy);
    let mut comments = lines.take_while(|line| line.trim_ascii().is_empty() || line::is_comment(line));
    comments.find_map(|line| Quantity::parse(&line))
}

/// The type of the profiles of a file with this quantity; without one values are numbers of samples. `unit`
/// replaces the unit.
fn profile_type(
    named: Option<&Quantity<String>>,
    form: Form,
    unit: Option<&str>,
) -> Result<&'static ProfileType, CollapsedError> {
    let named = named.map_or(Quantity::SAMPLES, |named| Quantity { name: &*named.name, unit: &*named.unit });
    let (name, unit) = match (form.scale, unit) {
        (Scale::Whole, unit) => (named.name, unit.unwrap_or(named.unit)),
        (Scale::Billionths, None) => (named.name, BILLIONTHS),
        (Scale::Billionths, Some(unit)) => return Err(CollapsedError::UnitOfFractions(unit.to_owned())),
    };
    Ok(ProfileType::custom(name, (name, unit), (name, unit)))
}

/// An error while blocks are taken.
enum TakeError<E> {
    Read(CollapsedError),
    Taker(E),
}

impl<E: From<CollapsedError>> TakeError<E> {
    fn into_inner(self) -> E {
        match self {
            Self::Read(error) => error.into(),
            Self::Taker(error) => error,
        }
    }
}

impl<E> From<CollapsedError> for TakeError<E> {
    fn from(error: CollapsedError) -> Self {
        Self::Read(error)
    }
}

impl<E> From<io::Error> for TakeError<E> {
    fn from(error: io::Error) -> Self {
        Self::Read(error.into())
    }
}

/// The sums of lines.
struct Sums {
    program: Program,
    tables: Tables,
    profile: Profile,
    /// Cache: frames by their texts.
    frames: HashMap<Box<str>, FrameId, RandomState>,
    /// Scratch space: the frames of a stack, leaf first.
    stack: Vec<FrameId>,
    bytes: usize,
}

impl Sums {
    fn new(form: Form, profile_type: &'static ProfileType) -> Self {
        Self {
            program: form.program,
            tables: Tables::new(),
            profile: Profile::new(profile_type, 1),
            frames: HashMap::default(),
            stack: Vec::new(),
            bytes: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.profile.samples().len() >= BATCH_SAMPLES || self.bytes >= BATCH_BYTES
    }

    /// Adds a row of a block. `frames` has the known frames of the block's texts.
    fn add(&mut self, block: &Block, row: &StackRow, frames: &mut [Option<FrameId>]) {
        self.bytes += row.bytes;
        let attributes = block.thread(row).map_or(AttributeSetId::EMPTY, |thread| self.thread(thread));
        self.stack.clear();
        for &number in block.frames(row) {
            let known = frames[number as usize];
            let frame = known.unwrap_or_else(|| self.frame(block.text(number)));
            frames[number as usize] = Some(frame);
            self.stack.push(frame);
        }
        let stack = self.tables.stacks.intern(&self.stack);
        self.profile.add(SampleIdentity { stack, attributes, link: LinkId::NONE }, row.value, None);
    }

    fn frame(&mut self, text: &str) -> FrameId {
        if let Some(&known) = self.frames.get(text) {
            return known;
        }
        let frame = frame_name::frame(text, self.program, &mut self.tables);
        let id = self.tables.frames.intern(frame);
        self.frames.insert(text.into(), id);
        id
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::LONGEST_LINE;

    fn batches(text: &[u8]) -> Result<Vec<Batch>, CollapsedError> {
        let mut batches = Vec::new();
        read(text, None, |batch| {
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

    /// Regression: a byte order mark was a part of the first root, and comments that end in numbers were
    /// stacks.
    #[test]
    fn encodings_and_comments_do_not_change_the_sums() {
        let text = "# interval: 100\r\n\r\n  main;run 30\r\nmain;end; 12\r\n# duration: 4200\r\n";
        let utf16: Vec<_> = "\u{feff}".encode_utf16().chain(text.encode_utf16()).collect();
        for bytes in [
            text.as_bytes().to_vec(),
            format!("\u{feff}{text}").into_bytes(),
            utf16.iter().flat_map(|unit| unit.to_le_bytes()).collect(),
            utf16.iter().flat_map(|unit| unit.to_be_bytes()).collect(),
        ] {
            assert!(is_collapsed(&bytes));
            let mut sums = Vec::new();
            let remarks = read(&bytes[..], None, |batch| {
                let samples = batch.profiles[0].samples();
                sums.extend(samples.iter().map(|sample| sample.value));
                let root = |at: usize| batch.tables.stacks.get(samples[at].identity.stack).last().copied();
                assert_eq!(root(0), root(1));
                Ok::<_, CollapsedError>(())
            });
            assert_eq!((remarks.unwrap().comments, &*sums), (2, &[30, 12][..]));
        }
    }

    /// Regression: times in nanoseconds that `export` had written were read as numbers of samples.
    #[test]
    fn a_comment_or_the_caller_names_the_quantity() {
        let of = |text: &str, unit| {
            let mut types = Vec::new();
            let remarks = read(text.as_bytes(), unit, |batch| {
                let known = batch.profiles[0].profile_type;
                types.push([known.sample_type, known.sample_unit]);
                Ok::<_, CollapsedError>(())
            });
            (types, remarks.unwrap().comments)
        };
        let named = "#otlpprof:type=cpu,unit=nanoseconds\n# other\nmain 5\n";
        assert_eq!(of(named, None), (vec![["cpu", "nanoseconds"]], 1));
        assert_eq!(of(named, Some("bytes")), (vec![["cpu", "bytes"]], 1));
        assert_eq!(of("main 5\n", Some("bytes")), (vec![["samples", "bytes"]], 0));
        assert_eq!(of("main 5\n", None), (vec![["samples", "count"]], 0));
        assert_eq!(of(&named.repeat(2), None), (vec![["cpu", "nanoseconds"]], 2));
        for mixed in [&format!("main 5\n{named}"), &format!("{named}#otlpprof:type=cpu,unit=count\nmain 5\n")]
        {
            let error = batches(mixed.as_bytes()).unwrap_err().to_string();
            assert!(error.ends_with(": the values from here on are of another type or unit"), "{error}");
        }
    }

    #[test]
    fn fractions_are_read_where_the_first_values_have_them() {
        let [batch] = &batches(b"main;run 0.75\nmain 2\n").unwrap()[..] else { panic!("one batch") };
        assert_eq!(batch.profiles[0].profile_type.sample_unit, "billionths");
        let values: Vec<_> = batch.profiles[0].samples().iter().map(|sample| sample.value).collect();
        assert_eq!(values, [750_000_000, 2_000_000_000]);
        let late = [&b"main 1\n".repeat(1 << 14)[..], b"main 0.5\n"].concat();
        let error = batches(&late).unwrap_err().to_string();
        let expected = "line 16385: the value \"0.5\" is a fraction, and the values at the beginning are \
                        whole numbers";
        assert_eq!(error, expected);
        let error = batches(b"main;parse 10 25\nmain;gone 5 0\n").unwrap_err().to_string();
        assert!(error.starts_with("line 1: two values, 10 and 25"), "{error}");
    }

    #[test]
    fn collapsed_stacks_are_recognised_by_their_first_line() {
        for text in ["a;b 1\n", "\n\nmain 12\r\n", "a 0", "[t tid=1];a;b 7\nrubbish", "# 1\na .5\n"] {
            assert!(is_collapsed(text.as_bytes()), "{text}");
        }
        assert!(is_collapsed(b"caf\xe9;b 1\n"), "text need not be UTF-8");
        assert!(is_collapsed("long;".repeat(20_000).as_bytes()), "the first line is cut off");
        for bytes in
            [&b""[..], b"\n", b"hello\n", b"# 1\n", b"{\"a\": 1}\n", b"\n{ 1", b"42\n", b"FLR\0;a 1\n"]
        {
            assert!(!is_collapsed(bytes), "{bytes:?}");
        }
        assert!(!is_collapsed(&[0x0a, 5, 0x0a, 3, b'a', b' ', b'1']), "protobuf");
    }
}

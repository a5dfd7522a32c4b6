//! Functions or lines that occur in stacks, interned.

use std::fmt;
use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::objects::ObjectId;
use crate::otlp::frames::{Frame, Naming};

/// A frame, by its number in a [`FrameTable`].
pub type FrameId = u32;

/// A name or file is cut after this many bytes.
const LONGEST_TEXT: usize = 4096;

/// The kind of code that a frame is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// A Java method.
    Java,
    /// A native function.
    Native,
    /// A function of the kernel.
    Kernel,
    /// Other code of the VM, such as a stub.
    Stub,
    /// No code, but a mark such as `[truncated]`.
    Marker,
    /// A function in another language, of this name.
    Other(&'static str),
}

/// The values of `profile.frame.type` for languages other than Java, and the languages' names.
const LANGUAGES: [(&str, &str); 10] = [
    ("beam", "Erlang"),
    ("cpython", "Python"),
    ("dotnet", ".NET"),
    ("go", "Go"),
    ("luajit", "Lua"),
    ("perl", "Perl"),
    ("php", "PHP"),
    ("ruby", "Ruby"),
    ("rust", "Rust"),
    ("v8js", "JS"),
];

/// An interned frame. Its texts are its own, or borrowed for a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameEntry<T = Box<str>> {
    /// The function's name.
    pub name: T,
    /// The source file; empty if unknown.
    pub file: T,
    /// The source line; 0 if unknown, or if lines are not told apart.
    pub line: i64,
    /// The kind of code.
    pub kind: FrameKind,
    /// The object; 0 if it is unknown, or if objects are not told apart.
    pub object: ObjectId,
}

impl FrameEntry {
    fn borrowed(&self) -> FrameEntry<&str> {
        let &Self { ref name, ref file, line, kind, object } = self;
        FrameEntry { name, file, line, kind, object }
    }

    /// The file and line as text; empty if neither is known.
    pub fn detail(&self) -> String {
        match (&*self.file, self.line) {
            (file, 0) => file.to_owned(),
            ("", line) => format!("line {line}"),
            (file, line) => format!("{file}:{line}"),
        }
    }
}

impl fmt::Display for FrameEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.detail() {
            "" => f.write_str(&self.name),
            detail => write!(f, "{} ({detail})", self.name),
        }
    }
}

/// The approximate bytes that a frame occupies besides its texts.
const OF_ENTRY: usize = 96;

/// Frames, each with a number.
#[derive(Debug, Default)]
pub struct FrameTable {
    hasher: RandomState,
    /// The length of all texts, in bytes.
    text_bytes: usize,
    entries: Vec<FrameEntry>,
    by_entry: HashTable<FrameId>,
}

impl FrameTable {
    /// The number of frames.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no frame.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The approximate bytes that the table occupies.
    pub fn bytes(&self) -> usize {
        self.text_bytes + self.entries.len() * OF_ENTRY
    }

    /// The frame of this number.
    pub fn get(&self, id: FrameId) -> &FrameEntry {
        &self.entries[id as usize]
    }

    /// All frames, in the order of their numbers.
    pub fn all(&self) -> &[FrameEntry] {
        &self.entries
    }

    /// Interns a frame: its line as well if `with_line` is set, otherwise its function. `object` is 0 unless
    /// equal functions of different objects are told apart.
    pub fn intern(&mut self, frame: &Frame<'_>, with_line: bool, object: ObjectId) -> FrameId {
        let entry = FrameEntry {
            name: cut(&frame.text),
            file: cut(frame.file),
            line: if with_line { frame.line } else { 0 },
            kind: kind_of(frame),
            object,
        };
        self.intern_entry(entry)
    }

    /// Interns a frame that stands for a thread, a label or another group of stacks.
    pub fn intern_group(&mut self, name: &str) -> FrameId {
        let kind = FrameKind::Marker;
        let entry = FrameEntry { name: cut(name), file: "", line: 0, kind, object: 0 };
        self.intern_entry(entry)
    }

    fn intern_entry(&mut self, entry: FrameEntry<&str>) -> FrameId {
        let Self { hasher, text_bytes, entries, by_entry } = self;
        let hash = hasher.hash_one(entry);
        if let Some(&known) = by_entry.find(hash, |&known| entries[known as usize].borrowed() == entry) {
            return known;
        }
        // SANITY: 2^32 frames do not fit into memory.
        let id = entries.len() as FrameId;
        *text_bytes += entry.name.len() + entry.file.len();
        let FrameEntry { name, file, line, kind, object } = entry;
        entries.push(FrameEntry { name: name.into(), file: file.into(), line, kind, object });
        by_entry.insert_unique(hash, id, |&id| hasher.hash_one(entries[id as usize].borrowed()));
        id
    }
}

fn kind_of(frame: &Frame<'_>) -> FrameKind {
    // `[libc.so.6+0x…]` is a place in an object without symbols.
    let is_marker = frame.naming != Naming::Object
        && frame.text.starts_with('[')
        && frame.text.ends_with(']')
        && !frame.text.contains("+0x");
    match frame.frame_type {
        _ if frame.is_stub => FrameKind::Stub,
        _ if is_marker => FrameKind::Marker,
        "kernel" => FrameKind::Kernel,
        "native" => FrameKind::Native,
        "jvm" => FrameKind::Java,
        "" => match frame.naming {
            // Older converters of recordings leave the type out.
            Naming::Function => FrameKind::Java,
            _ => FrameKind::Native,
        },
        other => {
            let known = LANGUAGES.iter().find(|(value, _)| *value == other);
            FrameKind::Other(known.map_or("other", |&(_, name)| name))
        }
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_TEXT)]
}

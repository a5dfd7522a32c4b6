//! A frame of a stack as reports tell it from others: a function, or one of its lines.

use std::fmt;

use otlpprof_otlp::frames::{Frame, Naming};

use super::objects::ObjectId;

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
    pub(super) fn borrowed(&self) -> FrameEntry<&str> {
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

impl<'f> FrameEntry<&'f str> {
    /// The entry of a frame: its line as well if `with_line` is set, otherwise its function. `object` is 0
    /// unless equal functions of different objects are told apart.
    pub(super) fn of(frame: &'f Frame<'_>, with_line: bool, object: ObjectId) -> Self {
        let line = if with_line { frame.line } else { 0 };
        Self { name: cut(&frame.text), file: cut(frame.file), line, kind: kind_of(frame), object }
    }

    /// The entry with texts of its own.
    pub(super) fn owned(self) -> FrameEntry {
        let Self { name, file, line, kind, object } = self;
        FrameEntry { name: name.into(), file: file.into(), line, kind, object }
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

/// The beginning of a text.
pub(super) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_TEXT)]
}

//! Writes text to a terminal. Text from a file cannot control the terminal.
//!
//! Names of functions and threads, attributes and paths may contain escape sequences, line ends, and marks
//! that change the direction of text. Each `write!` or `writeln!` counts as one line: characters in it that
//! could control a terminal, or look like another line, are written as `\u{…}`. Bytes written by `write`,
//! such as JSON and payloads, pass unchanged.

use std::fmt::{self, Write as _};
use std::io::{self, BufWriter, StdoutLock, Write};

use serde_core::Serialize;
use serde_json::ser::{CompactFormatter, Formatter};

use otlpprof_otlp::json_indent::Indenter;

/// The most bytes that a command prints.
const MOST_PRINTED: u64 = 1 << 30;

/// Whether a character has an effect on a terminal besides being visible: it controls the terminal, ends a
/// line, changes the direction of text, or is invisible (Unicode's Bidi_Control, and format characters
/// without a shape).
pub(super) fn is_harmful(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Whether the reader of standard output has closed it.
pub(super) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io_error = error.downcast_ref::<io::Error>();
    io_error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Displays text in one line, with harmful characters escaped.
pub(super) struct Shown<T>(pub(super) T);

impl<T: fmt::Display> fmt::Display for Shown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<'w, W>(&'w mut W);

impl<W: fmt::Write> fmt::Write for Escaping<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut plain = 0;
        for (at, harmful) in text.char_indices().filter(|&(_, char)| is_harmful(char)) {
            self.0.write_str(&text[plain..at])?;
            write!(self.0, "{}", harmful.escape_unicode())?;
            plain = at + harmful.len_utf8();
        }
        self.0.write_str(&text[plain..])
    }
}

/// A writer of text for people.
#[derive(Debug)]
pub(super) struct Terminal<W> {
    to: W,
    /// The number of bytes that may still be written.
    left: u64,
}

impl<W: Write> Terminal<W> {
    /// Creates a writer to `to`.
    pub(super) fn new(to: W) -> Self {
        Self { to, left: MOST_PRINTED }
    }
}

/// Standard output for people, buffered.
pub(super) fn stdout() -> Terminal<BufWriter<StdoutLock<'static>>> {
    Terminal::new(BufWriter::new(io::stdout().lock()))
}

/// Standard error for people.
pub(super) fn stderr() -> Terminal<io::StderrLock<'static>> {
    Terminal::new(io::stderr().lock())
}

impl<W: Write> Write for Terminal<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.left {
            return Err(io::Error::other(format!(
                "more than {MOST_PRINTED} bytes of output: print less of the file, or fewer files"
            )));
        }
        let written = self.to.write(bytes)?;
        self.left -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// Writes one line, or a part of it.
    fn write_fmt(&mut self, args: fmt::Arguments<'_>) -> io::Result<()> {
        let line = match args.as_str() {
            Some(line) => line.to_owned(),
            None => args.to_string(),
        };
        let (text, end) = line.strip_suffix('\n').map_or((&*line, ""), |text| (text, "\n"));
        if text.contains(is_harmful) {
            self.write_all(Shown(text).to_string().as_bytes())?;
        } else {
            self.write_all(text.as_bytes())?;
        }
        self.write_all(end.as_bytes())
    }
}

/// Writes a value as indented JSON.
pub(super) fn write_json(value: &impl Serialize, to: &mut dyn Write) -> io::Result<()> {
    let mut json = JsonWriter::new(to);
    json.value(value)?;
    json.finish()
}

/// Writes one indented JSON document part by part.
pub(super) struct JsonWriter<'w> {
    indenter: Indenter<'w>,
}

impl<'w> JsonWriter<'w> {
    /// Creates a writer to `to`.
    pub(super) fn new(to: &'w mut dyn Write) -> Self {
        Self { indenter: Indenter::new(to) }
    }

    /// Writes a part of the document that is already JSON, without white space between tokens.
    pub(super) fn raw(&mut self, json: &str) -> io::Result<()> {
        self.indenter.write_all(json.as_bytes())
    }

    /// Writes a value.
    pub(super) fn value(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut json = serde_json::Serializer::with_formatter(&mut self.indenter, HarmlessJson);
        Ok(value.serialize(&mut json)?)
    }

    /// Ends the document.
    pub(super) fn finish(self) -> io::Result<()> {
        self.indenter.finish()
    }
}

/// JSON in which characters that could control a terminal are written as `\uXXXX`.
struct HarmlessJson;

impl Formatter for HarmlessJson {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, to: &mut W, fragment: &str) -> io::Result<()> {
        let mut plain = 0;
        for (at, harmful) in fragment.char_indices().filter(|&(_, char)| is_harmful(char)) {
            to.write_all(&fragment.as_bytes()[plain..at])?;
            for unit in harmful.encode_utf16(&mut [0; 2]) {
                to.write_all(format!("\\u{unit:04x}").as_bytes())?;
            }
            plain = at + harmful.len_utf8();
        }
        CompactFormatter.write_string_fragment(to, &fragment[plain..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut out = Vec::new();
        writeln!(Terminal::new(&mut out), "a {text} b").unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nothing_controls_the_terminal() {
        assert_eq!(shown("x"), "a x b\n");
        assert_eq!(shown("\u{1b}[2J\r\n\t\u{7f}"), "a \\u{1b}[2J\\u{d}\\u{a}\\u{9}\\u{7f} b\n");
        assert_eq!(shown("\u{9b}31m\u{85}"), "a \\u{9b}31m\\u{85} b\n");
        assert_eq!(
            shown("\u{202e}evil\u{2066}\u{2029}\u{e0041}"),
            "a \\u{202e}evil\\u{2066}\\u{2029}\\u{e0041} b\n"
        );
        assert_eq!(shown("Prüfung.größe_λ→日本 e\u{301}"), "a Prüfung.größe_λ→日本 e\u{301} b\n");
    }

    #[test]
    fn json_says_the_same_without_controlling_the_terminal() {
        let value = serde_json::json!({ "a\u{9b}": ["\u{1b}[0m\n\u{202e}\u{e0041}é\"", 1] });
        let mut out = Vec::new();
        write_json(&value, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        assert!(!text.contains(|char| is_harmful(char) && char != '\n'), "{text:?}");
    }

    #[test]
    fn output_has_an_end() {
        let mut out = Terminal { to: io::sink(), left: 5 };
        writeln!(out, "1234").unwrap();
        assert!(writeln!(out, "1").unwrap_err().to_string().contains("bytes of output"));
    }
}

//! Scans JSON (RFC 8259) as a stream. Only the beginning of the last string is kept.
//!
//! This parser is our own for two reasons. serde_json reads every string whole. struson 0.7.2 reads values as
//! a stream, but keeps each key whole: for a file with one key of 256 MiB it takes 264 MB of memory, and this
//! parser 2 MB. Otherwise struson would do: it has offsets, a depth limit and numbers of any length. To find
//! a payload of 256 MiB, struson takes 0.83 s and this parser 0.27 s. To find, decode and write it, struson
//! takes 0.71 s and this parser 0.51 s.

use std::io::{self, BufRead};
use std::ops::Range;

use super::found_payloads::PayloadError;

/// The most bytes that are kept of a string. No caller looks at more.
pub(super) const KEPT: usize = 65;
/// The deepest nesting of arrays and objects. The readers of whole documents accept no more.
const DEEPEST: usize = 128;

/// The result of passing over a part of the text. The error says what was expected instead.
type ScanResult<T> = Result<T, PayloadError>;

/// A text, and the scanner's position in it.
#[derive(Debug)]
pub(super) struct JsonText<F> {
    from: F,
    /// The offset of the next byte.
    at: u64,
    /// The number of arrays and objects around the next byte.
    depth: usize,
    /// The last string, unescaped, as UTF-8; at most its first [`KEPT`] bytes.
    last_string: Vec<u8>,
}

impl<F: BufRead> JsonText<F> {
    pub(super) fn new(from: F) -> Self {
        Self { from, at: 0, depth: 0, last_string: Vec::with_capacity(KEPT) }
    }

    /// The last string, unescaped; at most its first [`KEPT`] bytes.
    pub(super) fn last_string(&self) -> &[u8] {
        &self.last_string
    }

    pub(super) fn expected<T>(&self, what: &'static str) -> ScanResult<T> {
        Err(PayloadError::Json { at: self.at, expected: what })
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            match self.from.fill_buf() {
                Ok(bytes) => return Ok(bytes.first().copied()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Consumes the next byte if `is_wanted` accepts it.
    fn take(&mut self, is_wanted: impl FnOnce(u8) -> bool) -> io::Result<Option<u8>> {
        let byte = self.peek()?.filter(|&byte| is_wanted(byte));
        if byte.is_some() {
            self.from.consume(1);
            self.at += 1;
        }
        Ok(byte)
    }

    /// The next byte that is not white space. White space before it is consumed, the byte itself is not.
    pub(super) fn next(&mut self) -> io::Result<Option<u8>> {
        while self.take(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))?.is_some() {}
        self.peek()
    }

    /// The first byte of the next document. A form feed may precede it: JSON does not allow one, but the
    /// reader of whole documents skips it.
    pub(super) fn next_document(&mut self) -> io::Result<Option<u8>> {
        while self.take(|byte| byte.is_ascii_whitespace())?.is_some() {}
        self.peek()
    }

    fn digits(&mut self) -> ScanResult<()> {
        let mut count = 0_u64;
        while self.take(|byte| byte.is_ascii_digit())?.is_some() {
            count += 1;
        }
        if count > 0 { Ok(()) } else { self.expected("a digit") }
    }

    fn number(&mut self) -> ScanResult<()> {
        self.take(|byte| byte == b'-')?;
        if self.take(|byte| byte == b'0')?.is_none() {
            self.digits()?;
        }
        if self.take(|byte| byte == b'.')?.is_some() {
            self.digits()?;
        }
        if self.take(|byte| matches!(byte, b'e' | b'E'))?.is_some() {
            self.take(|byte| matches!(byte, b'+' | b'-'))?;
            self.digits()?;
        }
        Ok(())
    }

    fn word(&mut self, word: &'static str) -> ScanResult<()> {
        for wanted in word.bytes() {
            if self.take(|byte| byte == wanted)?.is_none() {
                return self.expected(word);
            }
        }
        Ok(())
    }

    /// Passes over a string. Returns its range in the text, without the quotes.
    pub(super) fn string(&mut self) -> ScanResult<Range<u64>> {
        if self.take(|byte| byte == b'"')?.is_none() {
            return self.expected("a string");
        }
        self.last_string.clear();
        let start = self.at;
        let mut escapes = Escapes::default();
        while self.peek()?.is_some() {
            let bytes = self.from.fill_buf()?;
            let (mut taken, mut end) = (0, None);
            while end.is_none() && taken < bytes.len() {
                if !escapes.are_open() {
                    let rest = &bytes[taken..];
                    // A payload consists of such bytes, so they are not processed one by one.
                    let plain = rest.iter().position(|&byte| !is_plain(byte)).unwrap_or(rest.len());
                    self.last_string.extend(rest[..plain].iter().take(KEPT - self.last_string.len()));
                    taken += plain;
                }
                let Some(&byte) = bytes.get(taken) else { break };
                if byte == b'"' && !escapes.are_open() {
                    end = Some(Ok(()));
                    break;
                }
                match escapes.take(byte) {
                    Ok(unescaped) => {
                        if let Some(unescaped) = unescaped {
                            unescaped.add_to(&mut self.last_string);
                        }
                        taken += 1;
                    }
                    Err(expected) => end = Some(Err(expected)),
                }
            }
            self.from.consume(taken);
            self.at += taken as u64;
            match end {
                Some(Ok(())) => {
                    self.from.consume(1);
                    self.at += 1;
                    return Ok(start..self.at - 1);
                }
                Some(Err(expected)) => return self.expected(expected),
                None => {}
            }
        }
        self.expected("a quote")
    }

    /// Passes over a value of any kind.
    pub(super) fn value(&mut self) -> ScanResult<()> {
        match self.next()? {
            Some(b'{') => self.object(|text| text.value()),
            Some(b'[') => self.array(|text| text.value()),
            Some(b'"') => self.string().map(drop),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.expected("a value"),
        }
    }

    /// Passes over an object. `entry` passes over each value; the value's key is in
    /// [last_string](Self::last_string).
    pub(super) fn object(&mut self, mut entry: impl FnMut(&mut Self) -> ScanResult<()>) -> ScanResult<()> {
        self.within([b'{', b'}'], "a comma or a brace", |text| {
            text.string()?;
            if text.next()? != Some(b':') {
                return text.expected("a colon");
            }
            text.take(|_| true)?;
            entry(text)
        })
    }

    /// Passes over an array. `element` passes over each element.
    pub(super) fn array(&mut self, element: impl FnMut(&mut Self) -> ScanResult<()>) -> ScanResult<()> {
        self.within([b'[', b']'], "a comma or a bracket", element)
    }

    fn within(
        &mut self,
        [open, close]: [u8; 2],
        separator: &'static str,
        mut part: impl FnMut(&mut Self) -> ScanResult<()>,
    ) -> ScanResult<()> {
        if self.depth == DEEPEST {
            return self.expected("no deeper nesting");
        }
        if self.take(|byte| byte == open)?.is_none() {
            return self.expected(if open == b'{' { "an object" } else { "an array" });
        }
        self.depth += 1;
        let mut is_end = self.next()? == Some(close);
        while !is_end {
            self.next()?;
            part(self)?;
            is_end = match self.next()? {
                Some(b',') => {
                    self.take(|_| true)?;
                    false
                }
                Some(byte) if byte == close => true,
                _ => return self.expected(separator),
            };
        }
        self.take(|_| true)?;
        self.depth -= 1;
        Ok(())
    }
}

/// Whether a byte of a string needs no unescaping (RFC 8259, 7: `unescaped`).
fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte != b'"' && byte != b'\\'
}

/// Undoes the escapes of a string (RFC 8259, 7), byte by byte. Each half of a surrogate pair becomes U+FFFD,
/// since no text that callers look for has one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Escapes {
    #[default]
    None,
    /// After a backslash.
    Open,
    /// Within the hexadecimal digits of a code; `digits` of them have been read.
    Code { digits: u8, code: u32 },
}

/// A part of a string, unescaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unescaped {
    /// One byte of UTF-8.
    Byte(u8),
    /// A character given by its code.
    Char(char),
}

impl Unescaped {
    fn add_to(self, text: &mut Vec<u8>) {
        let mut utf8 = [0; 4];
        let bytes = match self {
            Self::Byte(byte) => {
                utf8[0] = byte;
                &utf8[..1]
            }
            Self::Char(char) => char.encode_utf8(&mut utf8).as_bytes(),
        };
        text.extend(bytes.iter().take(KEPT - text.len()));
    }
}

impl Escapes {
    /// Whether an escape is incomplete, so that the string cannot end here.
    pub(super) fn are_open(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Consumes the next byte of a string. Returns the unescaped part that this byte completes, if any. The
    /// error says what was expected instead.
    pub(super) fn take(&mut self, byte: u8) -> Result<Option<Unescaped>, &'static str> {
        let (next, unescaped) = match *self {
            Self::None if byte == b'\\' => (Self::Open, None),
            Self::None if byte < b' ' => return Err("no control character"),
            Self::None => (Self::None, Some(Unescaped::Byte(byte))),
            Self::Open => match byte {
                b'u' => (Self::Code { digits: 0, code: 0 }, None),
                b'"' | b'\\' | b'/' => (Self::None, Some(Unescaped::Byte(byte))),
                b'b' => (Self::None, Some(Unescaped::Byte(8))),
                b'f' => (Self::None, Some(Unescaped::Byte(12))),
                b'n' => (Self::None, Some(Unescaped::Byte(b'\n'))),
                b'r' => (Self::None, Some(Unescaped::Byte(b'\r'))),
                b't' => (Self::None, Some(Unescaped::Byte(b'\t'))),
                _ => return Err("an escape"),
            },
            Self::Code { digits, code } => {
                let digit = char::from(byte).to_digit(16).ok_or("a hexadecimal digit")?;
                let code = code << 4 | digit;
                let char = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                match (digits, u8::try_from(code)) {
                    (0..3, _) => (Self::Code { digits: digits + 1, code }, None),
                    (_, Ok(byte)) if byte.is_ascii() => (Self::None, Some(Unescaped::Byte(byte))),
                    _ => (Self::None, Some(Unescaped::Char(char))),
                }
            }
        };
        *self = next;
        Ok(unescaped)
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;
    use serde_core::de::IgnoredAny;

    use super::*;

    /// Passes over a value, reading `at_a_time` bytes at a time. Returns the end's offset and the last
    /// string, or the error.
    fn passed(text: &[u8], at_a_time: usize) -> Result<(u64, Vec<u8>), String> {
        let mut read = JsonText::new(BufReader::with_capacity(at_a_time, text));
        match read.value().and_then(|()| Ok(read.next()?)) {
            Ok(None) => Ok((read.at, read.last_string)),
            Ok(Some(_)) => Err(format!("byte {}: more", read.at)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn is_json(text: &[u8]) -> bool {
        serde_json::from_slice::<IgnoredAny>(text).is_ok()
    }

    #[test]
    fn json_is_accepted_and_anything_else_refused() {
        for text in [
            r#"{}"#,
            r#" [ ] "#,
            r#"{"a" : [1, -2.5e+7 , 0, 0.0E-0, true,false,null, "\u00e9\n\/\"", {"b":{}}]}"#,
            "\"\u{20ac}\"",
            "-0",
        ] {
            assert!(passed(text.as_bytes(), 1).is_ok() && is_json(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "{",
            "}",
            "[1,]",
            "{,}",
            "[,1]",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{a:1}"#,
            "[1 2]",
            "[1}",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "tru",
            "nul",
            "NaN",
            r#""\x""#,
            r#""\u00g0""#,
            r#""\"#,
            r#"""#,
            "\"\n\"",
            "'a'",
            r#"{"a":1}{"#,
            r#"{"a" "b"}"#,
            r#"{1:1}"#,
        ] {
            assert!(passed(text.as_bytes(), 1).is_err() && !is_json(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn errors_say_where_and_what_is_expected() {
        for (text, expected) in [
            (r#"{"a":1"#, "byte 6: bad JSON, expected a comma or a brace"),
            (r#"{"a" 1}"#, "byte 5: bad JSON, expected a colon"),
            (r#"["\q"]"#, "byte 3: bad JSON, expected an escape"),
            (r#"["abc"#, "byte 5: bad JSON, expected a quote"),
            ("[tru]", "byte 4: bad JSON, expected true"),
        ] {
            assert_eq!(passed(text.as_bytes(), 2).unwrap_err(), expected);
        }
    }

    #[test]
    fn depth_has_an_end() {
        let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
        assert!(passed(nested(DEEPEST).as_bytes(), 7).is_ok());
        assert!(passed(nested(DEEPEST + 1).as_bytes(), 7).unwrap_err().contains("no deeper nesting"));
        let wide = format!("[{}]", vec![nested(DEEPEST - 1); 3].join(","));
        assert!(passed(wide.as_bytes(), 7).is_ok(), "it is not a count of all that there are");
    }

    #[test]
    fn strings_are_unescaped_up_to_a_length() {
        let last_string = |text: &str| String::from_utf8(passed(text.as_bytes(), 1).unwrap().1).unwrap();
        assert_eq!(
            last_string(r#""\u006Fri\u0067inal\/\\\"\t\b\f\r\n\u20ac€""#),
            "original/\\\"\t\u{8}\u{c}\r\n€€"
        );
        assert_eq!(last_string(r#""\ud83d\ude00""#), "\u{fffd}\u{fffd}");
        assert_eq!(last_string(&format!("\"{}\"", "x".repeat(KEPT - 1))), "x".repeat(KEPT - 1));
        assert_eq!(last_string(&format!("\"{}\"", "x".repeat(KEPT + 9))), "x".repeat(KEPT));
    }

    /// JSON, valid or nearly so.
    fn near_json() -> impl Strategy<Value = Vec<u8>> {
        let part = prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\\",
            "\\u00",
            "4f",
            "\\\"",
            "\"a\":",
            "\"b\"",
            "1",
            "-",
            "0",
            ".5",
            "e+2",
            "true",
            "null",
            "fals",
            " ",
            "\n",
            "\u{20ac}",
            "\u{1}",
            "[1,2]",
            "{\"k\":\"v\"}",
        ]);
        prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat().into_bytes())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn the_scanner_agrees_with_another_parser_however_text_is_split(
            text in near_json(),
            at_a_time in 1usize..9,
        ) {
            let whole = passed(&text, text.len().max(1));
            prop_assert_eq!(whole.is_ok(), is_json(&text), "{}", String::from_utf8_lossy(&text));
            prop_assert_eq!(passed(&text, at_a_time), whole);
        }
    }
}

//! Pretty-prints JSON for people: adds white space between the tokens of a document while it is written.

use std::io::{self, Write};

/// Indents the JSON that is written to this writer. The JSON must have no white space between its tokens.
pub struct Indenter<'w> {
    to: &'w mut dyn Write,
    level: usize,
    in_string: bool,
    /// Whether the next byte of the string is escaped.
    is_escaped: bool,
    /// Whether an object or array has just been opened and is still empty.
    is_open: bool,
}

impl<'w> Indenter<'w> {
    /// Writes to `to`, with two spaces for each level.
    pub fn new(to: &'w mut dyn Write) -> Self {
        Self { to, level: 0, in_string: false, is_escaped: false, is_open: false }
    }

    /// Ends the document's last line.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn finish(self) -> io::Result<()> {
        self.to.write_all(b"\n")?;
        self.to.flush()
    }

    fn line(&mut self) -> io::Result<()> {
        writeln!(self.to)?;
        write!(self.to, "{:width$}", "", width = 2 * self.level)
    }

    fn token(&mut self, byte: u8) -> io::Result<()> {
        let was_open = std::mem::take(&mut self.is_open);
        if let b'}' | b']' = byte {
            self.level = self.level.saturating_sub(1);
            if !was_open {
                self.line()?;
            }
        } else if was_open {
            self.line()?;
        }
        self.to.write_all(&[byte])?;
        match byte {
            b'{' | b'[' => {
                self.level += 1;
                self.is_open = true;
                Ok(())
            }
            b'"' => {
                self.in_string = true;
                Ok(())
            }
            b',' => self.line(),
            b':' => self.to.write_all(b" "),
            _ => Ok(()),
        }
    }

    /// Writes bytes of a string, up to the string's end or the end of `bytes`. Returns how many were written.
    fn string(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut length = 0;
        for &byte in bytes {
            length += 1;
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => {
                    self.in_string = false;
                    break;
                }
                _ => {}
            }
        }
        self.to.write_all(&bytes[..length]).map(|()| length)
    }
}

impl Write for Indenter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some((&first, others)) = rest.split_first() {
            if self.in_string {
                let length = self.string(rest)?;
                rest = &rest[length..];
            } else {
                self.token(first)?;
                rest = others;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_any_pretty_printer() {
        let document = r#"{"a":[1,{"b":"x,{\"y\\"},[],{}],"c":-1.5}"#;
        let parsed: serde_json::Value = serde_json::from_str(document).unwrap();
        let expected = format!("{}\n", serde_json::to_string_pretty(&parsed).unwrap());
        for split in 0..document.len() {
            let mut out = Vec::new();
            let mut indenter = Indenter::new(&mut out);
            indenter.write_all(&document.as_bytes()[..split]).unwrap();
            indenter.write_all(&document.as_bytes()[split..]).unwrap();
            indenter.finish().unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}

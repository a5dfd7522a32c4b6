//! Finds the end of a JSON document in text that arrives in parts.

/// The scanner's state: the number of open brackets, and whether a string is open.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DocumentEnd {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl DocumentEnd {
    /// The position in `part` of the document's last byte. `part` follows the parts of earlier calls. The end
    /// of a text that is not a JSON document is its first byte, or is never found.
    pub(super) fn position(&mut self, part: &[u8]) -> Option<usize> {
        part.iter().position(|&byte| self.ends_at(byte))
    }

    fn ends_at(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.in_string => self.is_escaped = true,
            b'"' => self.in_string = !self.in_string,
            _ if self.in_string => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => return self.depth == 0,
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_ends_with_its_last_bracket() {
        let end = |text: &str| {
            let mut end = DocumentEnd::default();
            text.bytes().position(|byte| end.position(&[byte]).is_some())
        };
        assert_eq!(end("{}{"), Some(1));
        assert_eq!(end(r#"{"}":["]",{}]} {}"#), Some(13));
        assert_eq!(end(r#"{"\"}":"\\"}x"#), Some(11));
        assert_eq!(end("{\"a\":[1,2"), None);
        assert_eq!(end("x"), Some(0));
    }
}

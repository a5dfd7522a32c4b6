//! The text of a file in any encoding that its first bytes name.

use std::io::{BufRead, BufReader, Read};

use encoding_rs_io::DecodeReaderBytesBuilder;

/// The bytes that are read at once.
const BUFFER: usize = 1 << 16;

/// The text of a file in UTF-8. A byte order mark is left out; that of UTF-16, as some shells on Windows
/// write it, names the encoding to read. Without one the bytes stay as they are.
pub(super) fn text_of(from: impl Read) -> impl BufRead {
    let mut builder = DecodeReaderBytesBuilder::new();
    builder.utf8_passthru(true).strip_bom(true);
    BufReader::with_capacity(BUFFER, builder.build(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_names_the_encoding() {
        let text = "main;café 7\n";
        let units = text.encode_utf16();
        for bytes in [
            text.as_bytes().to_vec(),
            [&b"\xef\xbb\xbf"[..], text.as_bytes()].concat(),
            [b"\xff\xfe".to_vec(), units.clone().flat_map(u16::to_le_bytes).collect()].concat(),
            [b"\xfe\xff".to_vec(), units.flat_map(u16::to_be_bytes).collect()].concat(),
        ] {
            let mut read = String::new();
            text_of(&bytes[..]).read_to_string(&mut read).unwrap();
            assert_eq!(read, text, "{bytes:?}");
        }
        let mut read = Vec::new();
        text_of(&b"caf\xe9 1"[..]).read_to_end(&mut read).unwrap();
        assert_eq!(read, b"caf\xe9 1", "no encoding is named");
    }
}

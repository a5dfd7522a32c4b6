//! GNU build-ids.

use std::fmt;

/// The longest build-id that is stored. Linkers write 8 (lld `fast`), 16 (md5, uuid) or 20 (sha1) bytes;
/// `--build-id=0x…` may give any length.
pub const BUILD_ID_MAX_LEN: usize = 64;

/// The description of an `NT_GNU_BUILD_ID` note: 1 to [`BUILD_ID_MAX_LEN`] bytes, stored inline. Displayed as
/// lower-case hexadecimal, as `readelf -n` prints it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId {
    len: u8,
    bytes: [u8; BUILD_ID_MAX_LEN],
}

impl BuildId {
    /// Returns the build-id of these bytes; `None` if there are no bytes or more than [`BUILD_ID_MAX_LEN`].
    pub fn new(id: &[u8]) -> Option<Self> {
        let len = u8::try_from(id.len()).ok()?;
        let mut bytes = [0; BUILD_ID_MAX_LEN];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        (len > 0).then_some(Self { len, bytes })
    }

    /// Parses hexadecimal digits of either case; `None` if the text is anything else.
    pub fn from_hex(hex: &str) -> Option<Self> {
        let (pairs, odd) = hex.as_bytes().as_chunks::<2>();
        let mut bytes = [0; BUILD_ID_MAX_LEN];
        let id = bytes.get_mut(..pairs.len()).filter(|_| odd.is_empty())?;
        for (byte, &[high, low]) in id.iter_mut().zip(pairs) {
            *byte = (char::from(high).to_digit(16)? << 4 | char::from(low).to_digit(16)?) as u8;
        }
        Self::new(id)
    }

    /// The bytes of the note.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_readelf_does_and_parses_back() {
        let id = BuildId::new(&[0x00, 0x0f, 0xf0, 0xab]).unwrap();
        assert_eq!(id.to_string(), "000ff0ab");
        assert_eq!(BuildId::from_hex("000FF0AB"), Some(id));
    }

    #[test]
    fn refuses_text_that_is_no_build_id() {
        assert_eq!(BuildId::new(&[]), None);
        assert_eq!(BuildId::new(&[1; BUILD_ID_MAX_LEN + 1]), None);
        for bad in ["", "0", "0g", "+1", "é", &"00".repeat(BUILD_ID_MAX_LEN + 1)] {
            assert_eq!(BuildId::from_hex(bad), None, "{bad:?}");
        }
        assert!(BuildId::new(&[1; BUILD_ID_MAX_LEN]).is_some());
    }
}

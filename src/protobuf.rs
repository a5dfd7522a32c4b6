//! Iterates over the protobuf fields of a message as they are encoded, and decodes parts of checked
//! messages.
//!
//! In: the bytes of a message of any format. Out: fields, each a part of these bytes. Nothing is allocated
//! for a declared length. Called by `otlp` and `pprof`.

use prost::Message;

/// The encoding of a field (protobuf's encoding guide, "Message Structure"). Groups have not been in use
/// since 2009.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireType {
    Varint,
    Eight,
    Delimited,
    Four,
}

impl WireType {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Varint => "a varint",
            Self::Eight => "8 bytes",
            Self::Delimited => "length-delimited",
            Self::Four => "4 bytes",
        }
    }
}

/// Reads forward through bytes; `at` is the offset of the next one.
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8], String> {
        let left = self.bytes.len() - self.at;
        let count = usize::try_from(count)
            .ok()
            .filter(|&count| count <= left)
            .ok_or_else(|| format!("truncated: {count} bytes are announced and {left} follow"))?;
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    pub(crate) fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let Some(&byte) = self.bytes.get(self.at) else {
                return Err("truncated within a varint".into());
            };
            self.at += 1;
            // The tenth byte may hold only bit 63.
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a varint of more than 64 bits".into())
    }

    pub(crate) fn key(&mut self) -> Result<(u32, WireType), String> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok().filter(|number| (1..1 << 29).contains(number));
        let number = number.ok_or_else(|| format!("field number {}, which is not valid", key >> 3))?;
        let wire_type = match key & 7 {
            0 => WireType::Varint,
            1 => WireType::Eight,
            2 => WireType::Delimited,
            5 => WireType::Four,
            other => return Err(format!("wire type {other}, which is not in use")),
        };
        Ok((number, wire_type))
    }

    /// The value of a field whose key has just been read: a varint's number, or the payload of any other wire
    /// type.
    pub(crate) fn value(&mut self, wire_type: WireType) -> Result<(u64, &'a [u8]), String> {
        match wire_type {
            WireType::Varint => Ok((self.varint()?, &[])),
            WireType::Eight => Ok((0, self.take(8)?)),
            WireType::Four => Ok((0, self.take(4)?)),
            WireType::Delimited => {
                let length = self.varint()?;
                Ok((0, self.take(length)?))
            }
        }
    }
}

/// A field as it is encoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawField<'a> {
    /// The field's number.
    pub(crate) number: u32,
    /// The value of a varint; 0 for any other wire type.
    pub(crate) value: u64,
    /// The payload; empty for a varint.
    pub(crate) payload: &'a [u8],
    /// The field's key, its length if it has one, and its value.
    pub(crate) whole: &'a [u8],
}

/// The fields of a message that has been checked. The iterator ends at the first field that cannot be read.
pub(crate) fn fields(bytes: &[u8]) -> impl Iterator<Item = RawField<'_>> {
    let mut rest = Cursor::new(bytes);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let start = rest.at;
        let (number, wire_type) = rest.key().ok()?;
        let (value, payload) = rest.value(wire_type).ok()?;
        Some(RawField { number, value, payload, whole: &bytes[start..rest.at] })
    })
}

/// The payloads of all occurrences of a length-delimited field, in a message that has been checked.
pub(crate) fn payloads(bytes: &[u8], number: u32) -> impl Iterator<Item = &[u8]> {
    fields(bytes).filter(move |field| field.number == number).map(|field| field.payload)
}

/// Decodes a part of a message that has been checked.
pub(crate) fn decoded<T: Message + Default>(bytes: &[u8]) -> T {
    // SANITY: every part of a checked message decodes.
    T::decode(bytes).unwrap_or_default()
}

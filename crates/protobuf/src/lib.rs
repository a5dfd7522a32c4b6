//! Iterates over the protobuf fields of a message as they are encoded, and decodes parts of checked
//! messages.
//!
//! In: the bytes of a message of any format. Out: fields, each a part of these bytes. Nothing is allocated
//! for a declared length. Called by `otlp` and `pprof`.

use prost::Message;

/// The encoding of a field (protobuf's encoding guide, "Message Structure"). Groups have not been in use
/// since 2009.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireType {
    /// A number of up to 64 bits, seven bits a byte.
    Varint,
    /// Eight bytes, of a `fixed64` or `double`.
    Eight,
    /// A length and as many bytes: text, a message, a packed field.
    Delimited,
    /// Four bytes, of a `fixed32` or `float`.
    Four,
}

impl WireType {
    /// Returns the name for messages to users.
    pub fn text(self) -> &'static str {
        match self {
            Self::Varint => "a varint",
            Self::Eight => "8 bytes",
            Self::Delimited => "length-delimited",
            Self::Four => "4 bytes",
        }
    }
}

/// The reason why bytes are no sequence of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The bytes end within a varint.
    #[error("truncated within a varint")]
    TruncatedVarint,
    /// A varint does not fit into 64 bits.
    #[error("a varint of more than 64 bits")]
    LongVarint,
    /// A field number is 0, or has more than 29 bits.
    #[error("field number {0}, which is not valid")]
    FieldNumber(u64),
    /// A wire type that is no [`WireType`].
    #[error("wire type {0}, which is not in use")]
    WireType(u8),
    /// The bytes end within a value.
    #[error("truncated: {announced} bytes are announced and {left} follow")]
    Truncated {
        /// The length of the value, in bytes.
        announced: u64,
        /// The number of bytes that are left.
        left: usize,
    },
}

/// Reads forward through bytes.
pub struct ByteCursor<'a> {
    bytes: &'a [u8],
    /// The offset of the next byte.
    pub at: usize,
}

impl<'a> ByteCursor<'a> {
    /// Returns a cursor at the first byte.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Whether no byte is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    #[inline]
    fn take(&mut self, announced: u64) -> Result<&'a [u8], Malformed> {
        let left = self.bytes.len() - self.at;
        let count = usize::try_from(announced).ok().filter(|&count| count <= left);
        let count = count.ok_or(Malformed::Truncated { announced, left })?;
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    /// Reads a varint.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        // Most numbers have one byte or two.
        match self.bytes.get(self.at..) {
            Some(&[byte, ..]) if byte < 0x80 => {
                self.at += 1;
                Ok(byte.into())
            }
            Some(&[low, high, ..]) if high < 0x80 => {
                self.at += 2;
                Ok(u64::from(low & 0x7f) | u64::from(high) << 7)
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or(Malformed::TruncatedVarint)?;
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
        Err(Malformed::LongVarint)
    }

    /// Reads a field's key: the field's number and its wire type.
    #[inline]
    pub fn key(&mut self) -> Result<(u32, WireType), Malformed> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok().filter(|number| (1..1 << 29).contains(number));
        let number = number.ok_or(Malformed::FieldNumber(key >> 3))?;
        let wire_type = match (key & 7) as u8 {
            0 => WireType::Varint,
            1 => WireType::Eight,
            2 => WireType::Delimited,
            5 => WireType::Four,
            other => return Err(Malformed::WireType(other)),
        };
        Ok((number, wire_type))
    }

    /// Reads the value of a field whose key has just been read: a varint's number, or the payload of any
    /// other wire type.
    #[inline]
    pub fn value(&mut self, wire_type: WireType) -> Result<(u64, &'a [u8]), Malformed> {
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

/// The number of varints, if none of them has more than four bytes and thus more than 28 bits.
pub fn count_small_varints(bytes: &[u8]) -> Option<usize> {
    let (mut count, mut before) = (0, 0);
    for byte in bytes {
        if byte & 0x80 == 0 {
            (count, before) = (count + 1, 0);
        } else {
            before += 1;
            if before == 4 {
                return None;
            }
        }
    }
    (before == 0).then_some(count)
}

/// A field as it is encoded.
#[derive(Clone, Copy, Debug)]
pub struct RawField<'a> {
    /// The field's number.
    pub number: u32,
    wire_type: WireType,
    /// The value of a varint; 0 for any other wire type.
    pub value: u64,
    /// The payload; empty for a varint.
    pub payload: &'a [u8],
    /// The field's key, its length if it has one, and its value.
    pub whole: &'a [u8],
}

impl RawField<'_> {
    /// Passes the numbers of a repeated field of varints to `take`, whether they are packed or not.
    #[inline]
    pub fn each_varint(&self, mut take: impl FnMut(u64)) {
        if self.wire_type == WireType::Varint {
            return take(self.value);
        }
        let mut rest = ByteCursor::new(self.payload);
        while !rest.is_empty()
            && let Ok(number) = rest.varint()
        {
            take(number);
        }
    }
}

/// The fields of a message that has been checked. The iterator ends at the first field that cannot be read.
#[inline]
pub fn fields(bytes: &[u8]) -> impl Iterator<Item = RawField<'_>> {
    let mut rest = ByteCursor::new(bytes);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let start = rest.at;
        let (number, wire_type) = rest.key().ok()?;
        let (value, payload) = rest.value(wire_type).ok()?;
        Some(RawField { number, wire_type, value, payload, whole: &bytes[start..rest.at] })
    })
}

/// The payloads of all occurrences of a length-delimited field, in a message that has been checked.
#[inline]
pub fn payloads(bytes: &[u8], number: u32) -> impl Iterator<Item = &[u8]> {
    fields(bytes).filter(move |field| field.number == number).map(|field| field.payload)
}

/// Decodes a part of a message that has been checked.
pub fn decoded<T: Message + Default>(bytes: &[u8]) -> T {
    // SANITY: every part of a checked message decodes.
    T::decode(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The varint of a value.
    fn varint(value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        prost::encoding::encode_varint(value, &mut bytes);
        bytes
    }

    #[test]
    fn varints_of_every_length_are_read() {
        for bits in 0..64 {
            for value in [1 << bits, u64::MAX >> bits] {
                let bytes = varint(value);
                for end in 0..bytes.len() {
                    assert_eq!(ByteCursor::new(&bytes[..end]).varint(), Err(Malformed::TruncatedVarint));
                }
                let followed = [&bytes[..], &[0x80]].concat();
                let mut cursor = ByteCursor::new(&followed);
                assert_eq!((cursor.varint(), cursor.at), (Ok(value), bytes.len()));
            }
        }
    }

    #[test]
    fn small_varints_are_counted_and_others_are_not() {
        let most = (1 << 28) - 1;
        let small = [0, 127, 128, 1 << 14, most].map(varint).concat();
        assert_eq!(count_small_varints(&small), Some(5));
        assert_eq!(count_small_varints(&[]), Some(0));
        assert_eq!(count_small_varints(&small[..small.len() - 1]), None, "truncated");
        assert_eq!(count_small_varints(&[small, varint(most + 1)].concat()), None);
    }
}

//! Reads of a class file's bytes, in order.

use super::error::ClassFileError;

/// The bytes that have not been read yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassReader<'a>(pub(super) &'a [u8]);

impl<'a> ClassReader<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], ClassFileError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(ClassFileError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ClassFileError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(ClassFileError::Truncated)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, ClassFileError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, ClassFileError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, ClassFileError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads an attribute: the index of its name, and its content.
    pub(super) fn attribute(&mut self) -> Result<(u16, &'a [u8]), ClassFileError> {
        let name = self.u16()?;
        let length = self.u32()?;
        Ok((name, self.take(length as usize)?))
    }
}

/// Appends an attribute.
pub(super) fn write_attribute(out: &mut Vec<u8>, name: u16, content: &[u8]) -> Result<(), ClassFileError> {
    let length = u32::try_from(content.len()).map_err(|_| ClassFileError::TooLarge)?;
    out.extend(name.to_be_bytes());
    out.extend(length.to_be_bytes());
    out.extend(content);
    Ok(())
}

/// A count in the class file's format: 16 bits, big-endian.
pub(super) fn count(things: usize) -> Result<[u8; 2], ClassFileError> {
    u16::try_from(things).map(u16::to_be_bytes).map_err(|_| ClassFileError::TooLarge)
}

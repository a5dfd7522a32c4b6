//! Reads the format's primitive values from a chunk's bytes, in either integer encoding.

use super::error::{JfrError, Problem};
use super::integers::{
    read_compressed, read_four_short, read_of_any_length, read_short_pair, read_within_a_word,
    skip_compressed,
};

/// A place in a chunk, from which values are read up to an end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'c> {
    /// Of the chunk, of which more may follow than is to be read: integers are loaded as words.
    bytes: &'c [u8],
    at: usize,
    /// Up to where values are read.
    end: usize,
    /// The chunk's offset in the recording, for errors.
    base: u64,
    compressed: bool,
}

impl<'c> Cursor<'c> {
    /// Reads `bytes[at..]`. `bytes` begins where the chunk does, which is at `base` in the recording; `compressed` is
    /// the header's flag.
    #[inline]
    pub(super) fn new(bytes: &'c [u8], at: usize, base: u64, compressed: bool) -> Self {
        Self { bytes, at, end: bytes.len(), base, compressed }
    }

    /// The same up to an end that lies before this one's.
    #[inline]
    pub(super) fn up_to(self, end: usize) -> Self {
        Self { end: end.min(self.end), ..self }
    }

    /// Offset in the chunk.
    #[inline]
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The chunk's bytes up to the cursor's end.
    #[inline]
    pub(super) fn bytes(&self) -> &'c [u8] {
        &self.bytes[..self.end]
    }

    /// Where it ends.
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Whether integers are compressed.
    #[inline]
    pub(super) fn compressed(&self) -> bool {
        self.compressed
    }

    /// Goes on at an offset that was reached before.
    #[inline]
    pub(super) fn seek(&mut self, at: usize) {
        self.at = at;
    }

    /// Bytes up to the end.
    #[inline]
    pub(super) fn left(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    /// The error of this problem here.
    #[cold]
    pub(super) fn error(&self, problem: Problem) -> JfrError {
        problem.at(self.base + self.at as u64)
    }

    /// The next `len` bytes.
    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Result<&'c [u8], JfrError> {
        let taken = self.bytes().get(self.at..).and_then(|rest| rest.get(..len));
        let Some(taken) = taken else { return Err(self.error(Problem::OutOfBounds)) };
        self.at += len;
        Ok(taken)
    }

    #[inline]
    fn raw<const N: usize>(&mut self) -> Result<[u8; N], JfrError> {
        let taken = self.bytes().get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        let Some(&taken) = taken else { return Err(self.error(Problem::OutOfBounds)) };
        self.at += N;
        Ok(taken)
    }

    /// A compressed integer, if integers are compressed.
    #[inline(always)]
    pub(super) fn compressed_integer(&mut self) -> Result<u64, JfrError> {
        let read = read_compressed(self.bytes, self.at).filter(|(_, next)| *next <= self.end);
        let Some((value, next)) = read else { return Err(self.error(Problem::OutOfBounds)) };
        self.at = next;
        Ok(value)
    }

    /// Two integers that follow one another, the first of at most 28 bits and the second of at most 21; `None` if they are
    /// larger, or not compressed, or if eight bytes do not follow.
    #[inline(always)]
    pub(super) fn short_pair(&mut self) -> Option<(u32, u32)> {
        let read =
            read_short_pair(self.bytes, self.at).filter(|(.., next)| *next <= self.end && self.compressed);
        let (first, second, next) = read?;
        self.at = next;
        Some((first, second))
    }

    /// Four compressed integers that have seven bytes at most together; `None` if they have more, or if eight do not follow.
    #[inline(always)]
    pub(super) fn four_short(&mut self) -> Option<[u32; 4]> {
        let (values, next) = read_four_short(self.bytes, self.at).filter(|(_, next)| *next <= self.end)?;
        self.at = next;
        Some(values)
    }

    /// Gives each of these with a compressed integer that is read for it.
    #[inline(always)]
    pub(super) fn each_compressed<T>(
        &mut self,
        of: &[T],
        mut with: impl FnMut(&T, u64),
    ) -> Result<(), JfrError> {
        let mut at = self.at;
        for one in of {
            let read = read_of_any_length(self.bytes, at).filter(|(_, next)| *next <= self.end);
            let Some((value, next)) = read else {
                self.at = at;
                return Err(self.error(Problem::OutOfBounds));
            };
            with(one, value);
            at = next;
        }
        self.at = at;
        Ok(())
    }

    /// So many compressed integers that have eight bytes at most together; `None` if they have more, or if eight do not
    /// follow.
    #[inline(always)]
    pub(super) fn within_a_word<const N: usize>(&mut self) -> Option<[u64; N]> {
        let (values, next) = read_within_a_word(self.bytes, self.at).filter(|(_, next)| *next <= self.end)?;
        self.at = next;
        Some(values)
    }

    /// A byte, which is never compressed.
    #[inline(always)]
    pub(super) fn byte(&mut self) -> Result<u8, JfrError> {
        self.raw::<1>().map(|[byte]| byte)
    }

    /// 16 bits: short, or a char.
    #[inline(always)]
    pub(super) fn short(&mut self) -> Result<u16, JfrError> {
        if self.compressed {
            self.compressed_integer().map(|value| value as u16)
        } else {
            self.raw().map(u16::from_be_bytes)
        }
    }

    /// 32 bits.
    #[inline(always)]
    pub(super) fn int(&mut self) -> Result<i32, JfrError> {
        if self.compressed {
            self.compressed_integer().map(|value| value as i32)
        } else {
            self.raw().map(i32::from_be_bytes)
        }
    }

    /// 64 bits: long, and every key and type id.
    #[inline(always)]
    pub(super) fn long(&mut self) -> Result<i64, JfrError> {
        if self.compressed {
            self.compressed_integer().map(|value| value as i64)
        } else {
            self.raw().map(i64::from_be_bytes)
        }
    }

    /// A number of elements, each of at least one byte: one that cannot be in the bytes left is an error.
    #[inline]
    pub(super) fn count(&mut self) -> Result<usize, JfrError> {
        let before = self.at;
        // As the JDK reads it: 32 bits. A negative one is a large one.
        let count = self.int()? as u32 as usize;
        if count > self.left() {
            let problem = Problem::Count { count: count as u64, left: self.left() };
            self.at = before;
            return Err(self.error(problem));
        }
        Ok(count)
    }

    /// A float, which is never compressed.
    #[inline]
    pub(super) fn float(&mut self) -> Result<f32, JfrError> {
        self.raw().map(f32::from_be_bytes)
    }

    /// A double, which is never compressed.
    #[inline]
    pub(super) fn double(&mut self) -> Result<f64, JfrError> {
        self.raw().map(f64::from_be_bytes)
    }

    /// Skips bytes.
    #[inline]
    pub(super) fn skip_bytes(&mut self, len: usize) -> Result<(), JfrError> {
        if len > self.left() {
            return Err(self.error(Problem::OutOfBounds));
        }
        self.at += len;
        Ok(())
    }

    /// Skips compressed integers.
    #[inline]
    pub(super) fn skip_compressed(&mut self, count: usize) -> Result<(), JfrError> {
        let next = skip_compressed(self.bytes, self.at, count, self.end).filter(|next| *next <= self.end);
        let Some(next) = next else { return Err(self.error(Problem::OutOfBounds)) };
        self.at = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words are loaded from behind the end, but nothing that is there is a value.
    #[test]
    fn no_value_lies_behind_the_end() {
        let bytes = [0x81, 0x82, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        let cursor = |end| Cursor::new(&bytes, 0, 0, true).up_to(end);
        assert!(cursor(2).long().is_err() && cursor(2).skip_compressed(1).is_err());
        assert_eq!(cursor(3).long().unwrap(), 0xc101);
        assert!(cursor(3).skip_compressed(1).is_ok() && cursor(3).skip_compressed(2).is_err());
        assert!(cursor(3).skip_compressed(usize::MAX).is_err());
        assert!(
            cursor(3).take(4).is_err() && cursor(3).skip_bytes(4).is_err() && cursor(3).double().is_err()
        );
        assert_eq!((cursor(3).left(), cursor(3).bytes()), (3, &bytes[..3]));
        assert!(cursor(0).byte().is_err() && cursor(0).skip_compressed(0).is_ok());
    }
}

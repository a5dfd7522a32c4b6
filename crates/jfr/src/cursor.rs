//! Reads the format's primitive values from a chunk's bytes, in either integer encoding.

use super::error::{JfrError, Problem};
use super::integers::{
    read_compressed, read_four_short, read_of_any_length, read_short_pair, read_within_a_word,
    skip_compressed,
};

/// A position in a chunk. Values are read from there up to an end.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkCursor<'c> {
    /// The chunk's bytes. They may extend beyond `end`, since integers are loaded as whole words.
    bytes: &'c [u8],
    at: usize,
    /// The offset up to which values are read.
    end: usize,
    /// The chunk's offset in the recording, for errors.
    base: u64,
    compressed: bool,
}

impl<'c> ChunkCursor<'c> {
    /// Reads `bytes[at..]`. `bytes` begins with the chunk's first byte, whose offset in the recording is
    /// `base`. `compressed` is the header's flag.
    #[inline]
    pub(super) fn new(bytes: &'c [u8], at: usize, base: u64, compressed: bool) -> Self {
        Self { bytes, at, end: bytes.len(), base, compressed }
    }

    /// This cursor with an earlier end.
    #[inline]
    pub(super) fn up_to(self, end: usize) -> Self {
        Self { end: end.min(self.end), ..self }
    }

    /// The offset in the chunk.
    #[inline]
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The chunk's bytes up to the cursor's end.
    #[inline]
    pub(super) fn bytes(&self) -> &'c [u8] {
        &self.bytes[..self.end]
    }

    /// The offset of the cursor's end.
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Whether integers are compressed.
    #[inline]
    pub(super) fn compressed(&self) -> bool {
        self.compressed
    }

    /// Moves to an offset that was reached before.
    #[inline]
    pub(super) fn seek(&mut self, at: usize) {
        self.at = at;
    }

    /// The number of bytes up to the end.
    #[inline]
    pub(super) fn left(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    /// An error with this problem at the cursor's position.
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

    /// Reads a compressed integer. Integers must be compressed in this chunk.
    #[inline(always)]
    pub(super) fn compressed_integer(&mut self) -> Result<u64, JfrError> {
        let read = read_compressed(self.bytes, self.at).filter(|(_, next)| *next <= self.end);
        let Some((value, next)) = read else { return Err(self.error(Problem::OutOfBounds)) };
        self.at = next;
        Ok(value)
    }

    /// Reads two consecutive compressed integers, of at most 28 and 21 bits. `None` if either is larger, if
    /// integers are not compressed, or if fewer than eight bytes follow.
    #[inline(always)]
    pub(super) fn short_pair(&mut self) -> Option<(u32, u32)> {
        let read =
            read_short_pair(self.bytes, self.at).filter(|(.., next)| *next <= self.end && self.compressed);
        let (first, second, next) = read?;
        self.at = next;
        Some((first, second))
    }

    /// Reads four compressed integers that take at most seven bytes together. `None` if they take more, or if
    /// fewer than eight bytes follow.
    #[inline(always)]
    pub(super) fn four_short(&mut self) -> Option<[u32; 4]> {
        let (values, next) = read_four_short(self.bytes, self.at).filter(|(_, next)| *next <= self.end)?;
        self.at = next;
        Some(values)
    }

    /// Reads a compressed integer for each element of `of`, and calls `with` with both.
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

    /// Reads `N` compressed integers that take at most eight bytes together. `None` if they take more, or if
    /// fewer than eight bytes follow.
    #[inline(always)]
    pub(super) fn within_a_word<const N: usize>(&mut self) -> Option<[u64; N]> {
        let (values, next) = read_within_a_word(self.bytes, self.at).filter(|(_, next)| *next <= self.end)?;
        self.at = next;
        Some(values)
    }

    /// Reads a byte, which is never compressed.
    #[inline(always)]
    pub(super) fn byte(&mut self) -> Result<u8, JfrError> {
        self.raw::<1>().map(|[byte]| byte)
    }

    /// Reads 16 bits: a short or a char.
    #[inline(always)]
    pub(super) fn short(&mut self) -> Result<u16, JfrError> {
        if self.compressed {
            self.compressed_integer().map(|value| value as u16)
        } else {
            self.raw().map(u16::from_be_bytes)
        }
    }

    /// Reads 32 bits: an int.
    #[inline(always)]
    pub(super) fn int(&mut self) -> Result<i32, JfrError> {
        if self.compressed {
            self.compressed_integer().map(|value| value as i32)
        } else {
            self.raw().map(i32::from_be_bytes)
        }
    }

    /// Reads 64 bits: a long, a key or a type id.
    #[inline(always)]
    pub(super) fn long(&mut self) -> Result<i64, JfrError> {
        if self.compressed {
            self.compressed_integer().map(|value| value as i64)
        } else {
            self.raw().map(i64::from_be_bytes)
        }
    }

    /// Reads a number of elements. Each takes at least one byte, so a number above the remaining bytes is an
    /// error.
    #[inline]
    pub(super) fn count(&mut self) -> Result<usize, JfrError> {
        let before = self.at;
        // The JDK reads 32 bits too. A negative number becomes a large one here.
        let count = self.int()? as u32 as usize;
        if count > self.left() {
            let problem = Problem::Count { count: count as u64, left: self.left() };
            self.at = before;
            return Err(self.error(problem));
        }
        Ok(count)
    }

    /// Reads a float, which is never compressed.
    #[inline]
    pub(super) fn float(&mut self) -> Result<f32, JfrError> {
        self.raw().map(f32::from_be_bytes)
    }

    /// Reads a double, which is never compressed.
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

    /// Words are loaded across the cursor's end, but no value extends beyond it.
    #[test]
    fn no_value_extends_beyond_the_end() {
        let bytes = [0x81, 0x82, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        let cursor = |end| ChunkCursor::new(&bytes, 0, 0, true).up_to(end);
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

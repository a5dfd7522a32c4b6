//! Numbers as LEB128, and the entries of the tables.

use super::super::texts::NO_TEXT;

/// The number of entries in a group of each table. A group is decoded from its begin.
pub(super) const ROWS: usize = 32;
pub(super) const FUNCTIONS: usize = 8;
pub(super) const TEXTS: usize = 8;
pub(super) const NAMES: usize = 16;
pub(super) const SYMBOLS: usize = 8;

/// Bytes that end too early, or numbers that are too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Appends a number: seven bits in each byte, the lowest first; the highest bit says that more follow.
pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends the difference of two numbers: twice its value, or one less than twice its negative value.
pub(super) fn put_difference(out: &mut Vec<u8>, before: u32, after: u32) {
    let difference = i64::from(after) - i64::from(before);
    put(out, ((difference << 1) ^ (difference >> 63)) as u64);
}

/// Reads numbers.
#[derive(Clone, Copy)]
pub(super) struct Numbers<'b>(pub(super) &'b [u8]);

impl<'b> Numbers<'b> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        let (&byte, rest) = self.0.split_first().ok_or(Malformed)?;
        self.0 = rest;
        Ok(byte)
    }

    pub(super) fn number(&mut self) -> Result<u64, Malformed> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let (mut number, mut shift) = (u64::from(first & 0x7f), 7);
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return Ok(number);
            }
            if shift > 63 {
                return Err(Malformed);
            }
        }
    }

    pub(super) fn short(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed)
    }

    pub(super) fn difference(&mut self, before: u32) -> Result<u32, Malformed> {
        let number = self.number()?;
        let difference = (number >> 1) as i64 ^ -((number & 1) as i64);
        u32::try_from(i64::from(before).checked_add(difference).ok_or(Malformed)?).map_err(|_| Malformed)
    }

    pub(super) fn bytes(&mut self, len: u64) -> Result<&'b [u8], Malformed> {
        let len = usize::try_from(len).ok().filter(|&len| len <= self.0.len()).ok_or(Malformed)?;
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        Ok(bytes)
    }
}

/// The number of a text, plus 1, or 0 for none.
pub(super) fn optional(number: u32) -> u32 {
    number.wrapping_add(1)
}

/// The inverse of [`optional`].
pub(super) fn required(number: u32) -> u32 {
    number.wrapping_sub(1)
}

/// The state from an address on: all numbers are 0 where nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowState {
    /// The number of the innermost function, plus 1.
    pub(super) function: u32,
    /// The number of the file's path, plus 1.
    pub(super) file: u32,
    pub(super) line: u32,
    pub(super) column: u32,
}

impl RowState {
    const FUNCTION: u8 = 1;
    const FILE: u8 = 2;
    const LINE: u8 = 4;
    const COLUMN: u8 = 8;

    /// Appends the first row of a group, whose address is the group's key.
    pub(super) fn put_first(&self, out: &mut Vec<u8>) {
        [self.function, self.file, self.line, self.column].iter().for_each(|&number| put(out, number.into()));
    }

    pub(super) fn first(numbers: &mut Numbers<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            function: numbers.short()?,
            file: numbers.short()?,
            line: numbers.short()?,
            column: numbers.short()?,
        })
    }

    /// Appends a further row: a byte with the bits of the numbers that change and, above them, the distance
    /// from the row before if it is below 16, else 0 and the distance as a number; then the numbers.
    pub(super) fn put_next(&self, out: &mut Vec<u8>, distance: u64, before: &Self) {
        let bit = |changes: bool, bit: u8| if changes { bit } else { 0 };
        let mut head = bit(self.function != before.function, Self::FUNCTION)
            | bit(self.file != before.file, Self::FILE)
            | bit(self.line != before.line, Self::LINE)
            | bit(self.column != before.column, Self::COLUMN);
        if distance < 16 {
            head |= (distance as u8) << 4;
            out.push(head);
        } else {
            out.push(head);
            put(out, distance);
        }
        if head & Self::FUNCTION != 0 {
            put_difference(out, before.function, self.function);
        }
        if head & Self::FILE != 0 {
            put_difference(out, before.file, self.file);
        }
        if head & Self::LINE != 0 {
            put_difference(out, before.line, self.line);
        }
        if head & Self::COLUMN != 0 {
            put(out, self.column.into());
        }
    }

    /// The next row, and its distance from this one.
    pub(super) fn next(&self, numbers: &mut Numbers<'_>) -> Result<(u64, Self), Malformed> {
        let head = numbers.byte()?;
        let distance = match head >> 4 {
            0 => numbers.number()?,
            distance => u64::from(distance),
        };
        let mut row = *self;
        if head & Self::FUNCTION != 0 {
            row.function = numbers.difference(self.function)?;
        }
        if head & Self::FILE != 0 {
            row.file = numbers.difference(self.file)?;
        }
        if head & Self::LINE != 0 {
            row.line = numbers.difference(self.line)?;
        }
        if head & Self::COLUMN != 0 {
            row.column = numbers.short()?;
        }
        Ok((distance, row))
    }
}

/// A function: its name, and its caller and the place of the call if it is inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FunctionEntry {
    /// The number of the caller, plus 1, or 0 for none.
    pub(super) caller: u32,
    pub(super) name: u32,
    pub(super) file: u32,
    pub(super) line: u32,
    pub(super) column: u32,
}

impl FunctionEntry {
    /// Appends the function with this number. `file` is the file of the call before in this group.
    pub(super) fn put(&self, out: &mut Vec<u8>, number: u32, file: &mut u32) {
        put(out, optional(self.name).into());
        match self.caller {
            0 => put(out, 0),
            caller => {
                put(out, u64::from(number + 1 - caller));
                put_difference(out, *file, optional(self.file));
                put(out, self.line.into());
                put(out, self.column.into());
                *file = optional(self.file);
            }
        }
    }

    pub(super) fn read(numbers: &mut Numbers<'_>, number: u32, file: &mut u32) -> Result<Self, Malformed> {
        let name = required(numbers.short()?);
        let back = numbers.short()?;
        if back == 0 {
            return Ok(Self { caller: 0, name, file: NO_TEXT, line: 0, column: 0 });
        }
        // A caller has a lower number, so that a chain ends.
        let caller =
            (number.checked_add(1)).and_then(|after| after.checked_sub(back)).filter(|&caller| caller > 0);
        *file = numbers.difference(*file)?;
        let (line, column) = (numbers.short()?, numbers.short()?);
        Ok(Self { caller: caller.ok_or(Malformed)?, name, file: required(*file), line, column })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for number in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            put(&mut out, number);
            let mut numbers = Numbers(&out);
            assert_eq!((numbers.number(), numbers.is_empty()), (Ok(number), true));
        }
        for (before, after) in [(0, 0), (5, 3), (3, 5), (0, u32::MAX), (u32::MAX, 0)] {
            let mut out = Vec::new();
            put_difference(&mut out, before, after);
            assert_eq!(Numbers(&out).difference(before), Ok(after));
        }
    }

    #[test]
    fn numbers_that_are_cut_or_too_long_are_malformed() {
        assert_eq!(Numbers(&[]).number(), Err(Malformed));
        assert_eq!(Numbers(&[0x80]).number(), Err(Malformed));
        assert_eq!(Numbers(&[0xff; 12]).number(), Err(Malformed));
        assert_eq!(Numbers(&[1, 2]).bytes(3), Err(Malformed));
        assert_eq!(Numbers(&[1]).difference(0), Err(Malformed));
    }

    #[test]
    fn a_function_that_calls_itself_is_malformed() {
        let mut out = Vec::new();
        [1, 9, 0, 1, 1].into_iter().for_each(|number| put(&mut out, number));
        assert_eq!(FunctionEntry::read(&mut Numbers(&out), 3, &mut 0), Err(Malformed));
    }
}

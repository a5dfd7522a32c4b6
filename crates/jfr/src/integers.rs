//! Reads compressed integers: little-endian groups of seven bits, in at most nine bytes; the ninth byte has
//! eight bits.
//!
//! There is no zigzag encoding: a negative number takes five bytes if it has 32 bits, and nine bytes if it
//! has 64 (JDK 17 `jdk.jfr.internal.consumer.RecordingInput.readLong`).

const TOP_BITS: u64 = 0x8080_8080_8080_8080;

/// Reads the integer at `at`. Returns it and the offset after it; `None` if the bytes end within it.
#[inline(always)]
pub(super) fn read_compressed(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        return Some((u64::from(first), at + 1));
    }
    read_of_any_length(bytes, at)
}

/// Reads the integer at `at`; `word` is the eight bytes there.
#[inline(always)]
fn read_word(bytes: &[u8], at: usize, word: u64) -> Option<(u64, usize)> {
    let ends = !word & TOP_BITS;
    if ends == 0 {
        let ninth = u64::from(*bytes.get(at + 8)?);
        return Some((gather(word) | ninth << 56, at + 9));
    }
    // The lowest set bit of `ends` is the top bit of the integer's last byte. The mask keeps this byte and
    // the ones before it.
    let kept = word & (ends ^ (ends - 1));
    Some((gather(kept), at + 1 + (ends.trailing_zeros() / 8) as usize))
}

/// Reads two consecutive integers at `at`, of at most four and three bytes: nearly every event's size and
/// type id. Returns them and the offset after them; `None` if either is longer, or if fewer than eight bytes
/// follow.
///
/// The code does not branch on the integers' lengths, since a branch for each size and each type id would be
/// mispredicted most of the time. The exception is a first integer of one byte, which nearly all small events
/// have: this branch is well predicted, so a small event does not wait for the decoding of the previous one.
#[inline(always)]
pub(super) fn read_short_pair(bytes: &[u8], at: usize) -> Option<(u32, u32, usize)> {
    let word = word_at(bytes, at)?;
    if word & 0x80 == 0 {
        let (second, bits) = short_second((word >> 8) as u32)?;
        return Some((word as u32 & 0x7f, second, at + 1 + (bits / 8) as usize));
    }
    let first_ends = !word as u32 & TOP_BITS as u32;
    let first_bits = first_ends.trailing_zeros() + 1;
    if first_bits > u32::BITS {
        return None;
    }
    let (second, second_bits) = short_second((word >> first_bits) as u32)?;
    let first = gather_short(word as u32 & (first_ends ^ first_ends.wrapping_sub(1)));
    Some((first, second, at + ((first_bits + second_bits) / 8) as usize))
}

/// Reads the second of the two integers. Returns it and its length in bits.
#[inline(always)]
fn short_second(word: u32) -> Option<(u32, u32)> {
    const TOP_BITS: u32 = 0x0080_8080;
    let ends = !word & TOP_BITS;
    let bits = ends.trailing_zeros() + 1;
    (bits <= u32::BITS).then(|| (gather_short(word & (ends ^ ends.wrapping_sub(1))), bits))
}

/// Reads `N` consecutive integers at `at` that take at most eight bytes together; the four integers of a
/// stack's frame mostly do. Returns them and the offset after them; `None` if they take more, or if fewer
/// than eight bytes follow.
#[inline(always)]
pub(super) fn read_within_a_word<const N: usize>(bytes: &[u8], at: usize) -> Option<([u64; N], usize)> {
    let mut word = word_at(bytes, at)?;
    let mut ends = !word & TOP_BITS;
    if (ends.count_ones() as usize) < N {
        return None;
    }
    let mut after = at;
    let values = std::array::from_fn(|_| {
        let value = gather(word & (ends ^ ends.wrapping_sub(1)));
        // After the eighth byte the shift by 64 bits must clear the word, so it is done in two steps.
        let last_bit = ends.trailing_zeros();
        word = word >> last_bit >> 1;
        ends = ends >> last_bit >> 1;
        after += last_bit as usize / 8 + 1;
        value
    });
    Some((values, after))
}

/// Reads four consecutive integers at `at` that take at most seven bytes together, as in most frames. Returns
/// them and the offset after them; `None` if they take more, or if fewer than eight bytes follow.
///
/// The decoding of each integer does not depend on the others' values. Each takes at most four bytes.
#[inline(always)]
pub(super) fn read_four_short(bytes: &[u8], at: usize) -> Option<([u32; 4], usize)> {
    let word = word_at(bytes, at)?;
    // The lowest set bit of each variable is the top bit of one integer's last byte.
    let first = !word & (TOP_BITS >> 8);
    let second = first & first.wrapping_sub(1);
    let third = second & second.wrapping_sub(1);
    let fourth = third & third.wrapping_sub(1);
    if fourth == 0 {
        return None;
    }
    let value = |end: u64, start: u32| gather_short(((word & (end ^ end.wrapping_sub(1))) >> start) as u32);
    let after = |end: u64| end.trailing_zeros() + 1;
    let values = [
        value(first, 0),
        value(second, after(first)),
        value(third, after(second)),
        value(fourth, after(third)),
    ];
    Some((values, at + (after(fourth) / 8) as usize))
}

/// Reads the integer at `at` like [`read_compressed`], but without a branch for short ones: for integers
/// whose lengths are unpredictable.
#[inline(always)]
pub(super) fn read_of_any_length(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let Some(word) = word_at(bytes, at) else { return read_near_the_end(bytes, at) };
    read_word(bytes, at, word)
}

/// The offset after `count` integers that begin at `at`; `None` if the bytes end first. The search stops once
/// it has reached `end`. The result may lie beyond `end`, so the caller must compare the two.
#[inline]
pub(super) fn skip_compressed(bytes: &[u8], mut at: usize, mut count: usize, end: usize) -> Option<usize> {
    // Each iteration starts at the beginning of an integer. So eight bytes in which no integer ends belong to
    // one of nine bytes.
    while count > 0 {
        if at >= end {
            return None;
        }
        let Some(word) = word_at(bytes, at) else { return skip_near_the_end(bytes, at, count) };
        let mut ends = !word & TOP_BITS;
        let complete = ends.count_ones() as usize;
        if complete == 0 {
            bytes.get(at + 8)?;
            at += 9;
            count -= 1;
        } else if complete <= count {
            at += 8 - (ends.leading_zeros() / 8) as usize;
            count -= complete;
        } else {
            for _ in 1..count {
                ends &= ends - 1;
            }
            return Some(at + 1 + (ends.trailing_zeros() / 8) as usize);
        }
    }
    Some(at)
}

#[inline(always)]
fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk::<8>().map(|word| u64::from_le_bytes(*word))
}

/// Joins the low seven bits of each byte.
#[inline(always)]
fn gather(word: u64) -> u64 {
    let word = word & !TOP_BITS;
    let word = (word & 0x007f_007f_007f_007f) | ((word & 0x7f00_7f00_7f00_7f00) >> 1);
    let word = (word & 0x0000_3fff_0000_3fff) | ((word & 0x3fff_0000_3fff_0000) >> 2);
    (word & 0x0fff_ffff) | ((word & 0x0fff_ffff_0000_0000) >> 4)
}

/// Joins the low seven bits of each of four bytes.
#[inline(always)]
fn gather_short(word: u32) -> u32 {
    let word = word & !(TOP_BITS as u32);
    let word = (word & 0x007f_007f) | ((word & 0x7f00_7f00) >> 1);
    (word & 0x3fff) | ((word & 0x3fff_0000) >> 2)
}

#[cold]
fn read_near_the_end(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0;
    for (index, &byte) in bytes.get(at..)?.iter().take(9).enumerate() {
        let shift = 7 * index as u32;
        if index == 8 {
            return Some((value | u64::from(byte) << shift, at + 9));
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((value, at + index + 1));
        }
    }
    None
}

fn skip_near_the_end(bytes: &[u8], mut at: usize, count: usize) -> Option<usize> {
    for _ in 0..count {
        at = read_near_the_end(bytes, at)?.1;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < 8 {
            if value < 0x80 {
                bytes.push(value as u8);
                return bytes;
            }
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    fn any_size() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift)
    }

    #[test]
    fn the_ninth_byte_has_eight_bits() {
        assert_eq!(encoded(u64::MAX), [0xff; 9]);
        assert_eq!(read_compressed(&[0xff; 9], 0), Some((u64::MAX, 9)));
        assert_eq!(read_compressed(&[0xff; 20], 3), Some((u64::MAX, 12)));
        assert_eq!(read_compressed(&[0xff; 8], 0), None);
        assert_eq!(skip_compressed(&[0xff; 18], 0, 2, 18), Some(18));
        assert_eq!(skip_compressed(&[0xff; 18], 0, 3, 18), None);
    }

    #[test]
    fn sizes_may_be_padded() {
        assert_eq!(read_compressed(&[0x85, 0x80, 0x80, 0x00], 0), Some((5, 4)));
        assert_eq!(read_compressed(&[0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 9], 0), Some((5, 8)));
    }

    proptest! {
        #[test]
        fn integers_are_read_and_skipped_wherever_they_stand(
            values in prop::collection::vec(any_size(), 0..40), tail in 0usize..12,
        ) {
            let mut bytes: Vec<u8> = values.iter().flat_map(|&value| encoded(value)).collect();
            let end = bytes.len();
            bytes.resize(end + tail, 0xff);
            let mut at = 0;
            for (index, &value) in values.iter().enumerate() {
                prop_assert_eq!(skip_compressed(&bytes, 0, index, bytes.len()), Some(at));
                let (read, next) = read_compressed(&bytes, at).unwrap();
                prop_assert_eq!(read, value);
                prop_assert_eq!(read_of_any_length(&bytes, at), Some((read, next)));
                at = next;
            }
            prop_assert_eq!(at, end);
            prop_assert_eq!(skip_compressed(&bytes, 0, values.len(), bytes.len()), Some(end));
        }

        #[test]
        fn a_short_pair_is_two_integers(
            first in any_size(), second in any_size(), before in 0usize..3, tail in 0usize..12,
        ) {
            let mut bytes = vec![0xff; before];
            let (one, other) = (encoded(first), encoded(second));
            bytes.extend(one.iter().chain(&other));
            let end = bytes.len();
            bytes.resize(end + tail, 0xff);
            let is_short = one.len() <= 4 && other.len() <= 3 && bytes.len() - before >= 8;
            let expected = is_short.then_some((first as u32, second as u32, end));
            prop_assert_eq!(read_short_pair(&bytes, before), expected);
        }

        #[test]
        fn integers_within_a_word_are_read_at_once(
            values in prop::array::uniform4(any_size()), shift in 0u32..60, tail in 0usize..12,
        ) {
            let values = values.map(|value| value >> shift);
            let mut bytes: Vec<u8> = values.iter().flat_map(|&value| encoded(value)).collect();
            let end = bytes.len();
            bytes.resize(end + tail, 0xff);
            let is_within = end <= 8 && bytes.len() >= 8;
            prop_assert_eq!(read_within_a_word(&bytes, 0), is_within.then_some((values, end)));
            let is_short = end <= 7 && bytes.len() >= 8;
            let short = is_short.then_some((values.map(|value| value as u32), end));
            prop_assert_eq!(read_four_short(&bytes, 0), short);
        }

        #[test]
        fn a_short_pair_equals_two_integers_read_one_by_one(
            bytes in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            if let Some((first, second, end)) = read_short_pair(&bytes, 0) {
                let (one, at) = read_compressed(&bytes, 0).unwrap();
                let expected = (first.into(), Some((second.into(), end)));
                prop_assert_eq!((one, read_compressed(&bytes, at)), expected);
            }
        }

        #[test]
        fn skipping_is_reading_without_a_value(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            count in 0usize..12,
        ) {
            let mut at = Some(0);
            for _ in 0..count {
                at = at.and_then(|at| read_compressed(&bytes, at)).map(|(_, next)| next);
            }
            prop_assert_eq!(skip_compressed(&bytes, 0, count, bytes.len()), at);
        }
    }
}

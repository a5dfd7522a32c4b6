//! The times and values of one sample's additions, packed. Most additions take three to eight bytes;
//! recordings have tens of millions of them.

/// One addition with a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The added value.
    pub value: i64,
    /// The time, in nanoseconds since 1970-01-01 UTC.
    pub unix_nano: u64,
}

/// Additions in the order in which they were made.
#[derive(Clone, Debug, Default)]
pub(super) struct Observations {
    /// For each addition the time since the previous one, which may be negative, and the value. A number's
    /// lowest bit is its sign. Numbers are stored in groups of seven bits, the lowest first; all bytes but
    /// the last have the top bit set.
    packed: Vec<u8>,
    last_unix_nano: u64,
}

impl Observations {
    #[inline]
    pub(super) fn push(&mut self, Observation { value, unix_nano }: Observation) {
        let since = unix_nano.wrapping_sub(self.last_unix_nano) as i64;
        self.last_unix_nano = unix_nano;
        self.push_number(since);
        self.push_number(value);
    }

    #[inline]
    fn push_number(&mut self, number: i64) {
        let mut rest = ((number << 1) ^ (number >> 63)) as u64;
        while rest >= 0x80 {
            self.packed.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.packed.push(rest as u8);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Observation> {
        let (mut bytes, mut unix_nano) = (self.packed.iter(), 0u64);
        let mut number = move || {
            let mut number = 0;
            for shift in (0..).step_by(7) {
                let byte = *bytes.next()?;
                number |= u64::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    break;
                }
            }
            Some((number >> 1) as i64 ^ -((number & 1) as i64))
        };
        std::iter::from_fn(move || {
            unix_nano = unix_nano.wrapping_add(number()? as u64);
            Some(Observation { value: number()?, unix_nano })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pushed_observations_are_returned_in_their_order(
            pushed in prop::collection::vec((any::<i64>(), 0u32..64, any::<u64>(), 0u32..64), 0..40),
        ) {
            let pushed: Vec<Observation> = pushed
                .into_iter()
                .map(|(value, less, unix_nano, earlier)| Observation {
                    value: value >> less,
                    unix_nano: unix_nano >> earlier,
                })
                .collect();
            let mut observations = Observations::default();
            pushed.iter().for_each(|&one| observations.push(one));
            prop_assert_eq!(observations.iter().collect::<Vec<_>>(), pushed);
        }
    }
}

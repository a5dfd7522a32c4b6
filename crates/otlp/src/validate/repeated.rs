//! Finds repeated elements of a long sequence, with eight bytes of memory for each element.

/// Calls `found`, in order, with the index of each element that occurred before and the index of its first
/// occurrence. Elements are compared by their hashes. `hashes` is iterated three times.
pub(super) fn find<I: Iterator<Item = u64>>(hashes: impl Fn() -> I, mut found: impl FnMut(usize, usize)) {
    let mut all = Vec::with_capacity(hashes().count());
    all.extend(hashes());
    all.sort_unstable();
    let mut repeated = 0;
    for at in 1..all.len() {
        let is_known = repeated > 0 && all[repeated - 1] == all[at];
        if all[at] == all[at - 1] && !is_known {
            // At most every second element starts a repetition, so the overwritten element has already been
            // compared.
            all[repeated] = all[at];
            repeated += 1;
        }
    }
    all.truncate(repeated);
    if all.is_empty() {
        return;
    }
    let mut first = vec![None; all.len()];
    for (index, hash) in hashes().enumerate() {
        let Ok(place) = all.binary_search(&hash) else { continue };
        match first[place] {
            Some(earlier) => found(index, earlier as usize),
            None => first[place] = u32::try_from(index).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_further_occurrence_is_found() {
        let found_in = |hashes: &[u64]| {
            let mut all = Vec::new();
            find(|| hashes.iter().copied(), |index, earlier| all.push((index, earlier)));
            all
        };
        assert_eq!(found_in(&[5, 1, 5, 2, 1, 5, 3]), [(2, 0), (4, 1), (5, 0)]);
        assert_eq!(found_in(&[7; 4]), [(1, 0), (2, 0), (3, 0)]);
        assert_eq!(found_in(&[]), []);
        assert_eq!(found_in(&[1, 2, 3]), []);
    }
}

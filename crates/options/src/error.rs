//! A mistake in the options, as one line, and a search for the known name nearest to an unknown one.

use thiserror::Error;

/// The reason for which the options cannot be used: one line for the user, without a trailing newline.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct OptionError {
    /// The mistake, its place, and the remedy.
    pub message: String,
    /// Whether `strict` demands that the JVM's start fail.
    pub strict: bool,
}

/// Returns "; did you mean 'x'?" if a candidate is near to `name`, otherwise an empty string.
pub(super) fn did_you_mean<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    // Up to a third of the letters may be wrong: beyond that it is another word.
    let limit = (name.chars().count() / 3).max(1);
    candidates
        .map(|candidate| (edit_distance(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| format!("; did you mean '{candidate}'?"))
        .unwrap_or_default()
}

/// Levenshtein's distance, with an exchange of two neighbours as one edit.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut before_last = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let mut previous_char = None;
    for (i, l) in left.chars().enumerate() {
        let mut row = vec![i + 1];
        for (j, r) in right.iter().enumerate() {
            let mut best = (last[j] + usize::from(l != *r)).min(last[j + 1] + 1).min(row[j] + 1);
            if j > 0 && previous_char == Some(*r) && right[j - 1] == l {
                let exchanged: usize = before_last[j - 1];
                best = best.min(exchanged + 1);
            }
            row.push(best);
        }
        previous_char = Some(l);
        before_last = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        for (left, right, distance) in [
            ("", "", 0),
            ("", "abc", 3),
            ("cpu", "cpu", 0),
            ("cpu", "cup", 1),
            ("endpont", "endpoint", 1),
            ("a", "b", 1),
        ] {
            assert_eq!(edit_distance(left, right), distance, "{left} {right}");
            assert_eq!(edit_distance(right, left), distance, "{right} {left}");
        }
    }

    #[test]
    fn suggests_near_names_only() {
        let names = ["cpu", "cpu.clock", "remotesym"];
        assert_eq!(did_you_mean("remotsym", names.into_iter()), "; did you mean 'remotesym'?");
        assert_eq!(did_you_mean("CPU", names.into_iter()), "; did you mean 'cpu'?");
        assert_eq!(did_you_mean("wall", names.into_iter()), "");
    }
}

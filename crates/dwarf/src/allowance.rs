//! Bounds for all units of an object together. The bounds of single units do not hold an object: all of its
//! units may refer to one line table, to one list of address ranges, or to one split unit.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::error::DwarfError;
use super::limits;

/// The amounts that the units of an object may still read and keep.
#[derive(Debug)]
pub(super) struct Allowance {
    line_bytes: AtomicU64,
    head_bytes: AtomicU64,
    split_bytes: AtomicU64,
    ranges: AtomicU64,
    rows: AtomicU64,
    functions: AtomicU64,
    is_exceeded: AtomicBool,
}

impl Allowance {
    /// The allowance of an object whose line tables, lists of address ranges and abbreviations have these
    /// lengths, in bytes.
    pub(super) fn of(line_bytes: u64, range_bytes: u64, abbreviation_bytes: u64) -> Self {
        let shared = |bytes: u64| limits::SHARES.saturating_mul(bytes).saturating_add(limits::SHARED_FREELY);
        let heads =
            |bytes: u64| limits::HEAD_SHARES.saturating_mul(bytes).saturating_add(limits::HEADS_FREELY);
        Self {
            line_bytes: AtomicU64::new(shared(line_bytes)),
            head_bytes: AtomicU64::new(heads(line_bytes.saturating_add(abbreviation_bytes))),
            split_bytes: AtomicU64::new(limits::SPLIT_BYTES),
            ranges: AtomicU64::new(shared(range_bytes)),
            rows: AtomicU64::new(limits::ROWS),
            functions: AtomicU64::new(limits::FUNCTIONS),
            is_exceeded: AtomicBool::new(false),
        }
    }

    /// Adds the length of another file's lists of address ranges, in bytes. A range takes more than a byte.
    pub(super) fn add_ranges(&self, range_bytes: u64) {
        self.ranges.fetch_add(limits::SHARES.saturating_mul(range_bytes), Ordering::Relaxed);
    }

    /// Adds the length of another file's abbreviations and line tables, in bytes.
    pub(super) fn add_heads(&self, bytes: u64) {
        self.head_bytes.fetch_add(limits::HEAD_SHARES.saturating_mul(bytes), Ordering::Relaxed);
    }

    /// Takes bytes of a unit's head. Once some are refused, all others are.
    ///
    /// # Errors
    /// If the units read the same heads too often.
    pub(super) fn take_head(&self, bytes: u64) -> Result<(), DwarfError> {
        let taken = self.take(&self.head_bytes, bytes);
        if taken.is_none() {
            self.head_bytes.store(0, Ordering::Relaxed);
        }
        taken.ok_or(DwarfError::SharedHeads)
    }

    /// Takes the length of a file, or of the part of a package, that has a split unit, in bytes.
    ///
    /// # Errors
    /// If the units have read too many bytes of split units.
    pub(super) fn take_split(&self, bytes: u64) -> Result<(), DwarfError> {
        self.take(&self.split_bytes, bytes).ok_or(DwarfError::SharedSplit)
    }

    /// Takes a unit's line table of this length, in bytes. A row takes at least a byte.
    ///
    /// # Errors
    /// If the units read the same line tables too often.
    pub(super) fn take_lines(&self, bytes: u64) -> Result<(), DwarfError> {
        self.take(&self.line_bytes, bytes).ok_or(DwarfError::SharedLines)
    }

    /// Takes an address range of a list.
    ///
    /// # Errors
    /// If units or functions read the same lists too often.
    pub(super) fn take_range(&self) -> Result<(), DwarfError> {
        self.take(&self.ranges, 1).ok_or(DwarfError::SharedRanges)
    }

    /// Takes the functions and rows of a unit that are kept.
    ///
    /// # Errors
    /// If the units have too many.
    pub(super) fn take_result(&self, functions: usize, rows: usize) -> Result<(), DwarfError> {
        self.take(&self.functions, functions as u64).ok_or(DwarfError::Functions)?;
        self.take(&self.rows, rows as u64).ok_or(DwarfError::Rows)
    }

    /// Whether something was refused: no more units need to be read.
    pub(super) fn is_exceeded(&self) -> bool {
        self.is_exceeded.load(Ordering::Relaxed)
    }

    /// Takes an amount; `None` if less is left.
    fn take(&self, left: &AtomicU64, amount: u64) -> Option<()> {
        let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(amount));
        if before.is_err() {
            self.is_exceeded.store(true, Ordering::Relaxed);
        }
        before.ok().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: an object that took exactly its allowance lost the units that followed, without an error.
    #[test]
    fn an_allowance_is_exceeded_by_what_is_refused_alone() {
        let allowance = Allowance::of(10, 0, 0);
        allowance.take_lines(limits::SHARED_FREELY + 10 * limits::SHARES).unwrap();
        assert!(!allowance.is_exceeded());
        assert!(matches!(allowance.take_lines(1), Err(DwarfError::SharedLines)));
        assert!(allowance.is_exceeded());
    }

    #[test]
    fn no_head_is_read_after_one_that_was_refused() {
        let allowance = Allowance::of(0, 0, 1);
        allowance.take_head(limits::HEADS_FREELY).unwrap();
        assert!(matches!(allowance.take_head(limits::HEAD_SHARES + 1), Err(DwarfError::SharedHeads)));
        assert!(matches!(allowance.take_head(1), Err(DwarfError::SharedHeads)));
    }

    #[test]
    fn results_are_bounded_together() {
        let rows = limits::ROWS as usize;
        let allowance = Allowance::of(0, 0, 0);
        allowance.take_result(1, rows / 2).unwrap();
        assert!(matches!(allowance.take_result(1, rows), Err(DwarfError::Rows)));
        let allowance = Allowance::of(0, 0, 0);
        assert!(matches!(allowance.take_result(usize::MAX, 0), Err(DwarfError::Functions)));
    }
}

//! Unwind tables: an object's call frame information, compiled to flat sorted rows.
//!
//! `elf::unwind` compiles the tables outside of the handler; the native walker looks up rows inside the
//! handler. A row applies to the ELF virtual addresses from its own start to the start of the next row.

use super::address::ElfVaddr;
use super::frame_rules::native;
use super::unwind_rule::UnwindRule;

/// The rows of one object, sorted by address.
///
/// Few different rules occur in an object (60 in the 230,000 rows of JDK 25's libjvm), so a row refers to a
/// shared rule. A row stores only the low 16 bits of its address, because the rows of each block of 64 KiB
/// are found through an index. So a row takes 4 bytes, and a search takes about ten steps.
#[derive(Debug, Default)]
pub struct UnwindTable {
    base: ElfVaddr,
    /// For each block of 64 KiB from `base` on, its first row. The last entry is the number of rows.
    block_rows: Box<[u32]>,
    low_starts: Box<[u16]>,
    rule_indices: Box<[u16]>,
    rules: Box<[UnwindRule]>,
    keeps_frame_pointers: bool,
}

/// The rule index of a row that no call frame information covers.
pub const NO_RULE: u16 = u16::MAX;

/// The number of bits of an offset within its block.
const BLOCK_BITS: u32 = 16;

impl UnwindTable {
    /// Builds a table of rows that begin at `base + starts[i]`, in ascending order, and follow
    /// `rules[rule_indices[i]]`, or are uncovered if that index is [`NO_RULE`]. `None` if the parts are
    /// inconsistent.
    #[allow(clippy::boxed_local, reason = "callers build all parts alike")]
    pub fn new(
        base: ElfVaddr,
        starts: Box<[u32]>,
        rule_indices: Box<[u16]>,
        rules: Box<[UnwindRule]>,
    ) -> Option<Self> {
        let fits = starts.len() == rule_indices.len()
            && starts.is_sorted()
            && rule_indices.iter().all(|&index| index == NO_RULE || usize::from(index) < rules.len());
        let block_count = starts.last().map_or(0, |last| (last >> BLOCK_BITS).wrapping_add(1));
        let keeps_frame_pointers = most_code_keeps_frame_pointers(&starts, &rule_indices, &rules);
        let first_row = |block| starts.partition_point(|&start| start >> BLOCK_BITS < block) as u32;
        let block_rows = (0..=block_count).map(first_row).collect();
        let low_starts = starts.iter().map(|&start| start as u16).collect();
        fits.then_some(Self { base, block_rows, low_starts, rule_indices, rules, keeps_frame_pointers })
    }

    /// Returns the rule that applies at `address`. Allocates nothing, never panics.
    #[inline]
    pub fn rule_at(&self, address: ElfVaddr) -> Option<UnwindRule> {
        let offset = u32::try_from(address.0.checked_sub(self.base.0)?).ok()?;
        let block = (offset >> BLOCK_BITS) as usize;
        let after = match (self.block_rows.get(block), self.block_rows.get(block.checked_add(1)?)) {
            (Some(&first), Some(&end)) => {
                let rows = self.low_starts.get(first as usize..end as usize)?;
                (first as usize).wrapping_add(rows.partition_point(|&low| low <= offset as u16))
            }
            // After the last block the last row continues.
            _ => self.low_starts.len(),
        };
        let index = *self.rule_indices.get(after.checked_sub(1)?)?;
        self.rules.get(usize::from(index)).copied()
    }

    /// Whether the object was compiled to keep frame pointers, so that these lead to the callers of all but a
    /// few of its functions.
    pub fn keeps_frame_pointers(&self) -> bool {
        self.keeps_frame_pointers
    }

    /// The different rules.
    pub fn rules(&self) -> &[UnwindRule] {
        &self.rules
    }

    /// Returns each row's first address and its rule, in ascending order; `None` for code without call frame
    /// information.
    pub fn rows(&self) -> impl Iterator<Item = (ElfVaddr, Option<UnwindRule>)> {
        let ends = self.block_rows.get(1..).unwrap_or_default();
        let blocks = self.block_rows.iter().zip(ends).zip(0u64..);
        let starts = blocks.flat_map(move |((&first, &end), block)| {
            let lows = self.low_starts.get(first as usize..end as usize).unwrap_or_default();
            lows.iter().map(move |&low| self.base.0.wrapping_add(block << BLOCK_BITS | u64::from(low)))
        });
        let rules = self.rule_indices.iter().map(|&index| self.rules.get(usize::from(index)).copied());
        starts.map(ElfVaddr).zip(rules)
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rule_indices.len()
    }

    /// Whether the table has no row.
    pub fn is_empty(&self) -> bool {
        self.rule_indices.is_empty()
    }

    /// The number of bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let parts = [
            size_of_val(&*self.block_rows),
            size_of_val(&*self.low_starts),
            size_of_val(&*self.rule_indices),
            size_of_val(&*self.rules),
        ];
        parts.iter().sum()
    }
}

/// Whether more than three quarters of the code keep frame pointers. Compilers keep frame pointers either in
/// all functions or in the few that need one; hand-written code follows no rule.
fn most_code_keeps_frame_pointers(starts: &[u32], rule_indices: &[u16], rules: &[UnwindRule]) -> bool {
    let keeps: Box<[_]> = rules.iter().map(native::keeps_frame_record).collect();
    let sizes =
        starts.iter().zip(starts.iter().skip(1)).map(|(start, end)| u64::from(end.saturating_sub(*start)));
    let (mut with, mut without) = (0_u64, 0_u64);
    for (bytes, &index) in sizes.zip(rule_indices) {
        match keeps.get(usize::from(index)) {
            Some(Some(true)) => with = with.saturating_add(bytes),
            Some(Some(false)) => without = without.saturating_add(bytes),
            _ => {}
        }
    }
    with > without.saturating_mul(3)
}

#[cfg(test)]
mod tests {
    use super::super::unwind_rule::{CfaRule, FpRule, ReturnAddressRule};
    use super::*;

    fn rule(offset: i32) -> UnwindRule {
        let return_address = ReturnAddressRule::AtCfaPlus(-8);
        UnwindRule { cfa: CfaRule::SpPlus(offset), fp: FpRule::Same, return_address }
    }

    fn table(base: u64, rows: &[(u32, u16)]) -> UnwindTable {
        let starts = rows.iter().map(|row| row.0).collect();
        let indices = rows.iter().map(|row| row.1).collect();
        UnwindTable::new(ElfVaddr(base), starts, indices, [rule(0), rule(1), rule(2)].into()).unwrap()
    }

    #[test]
    fn a_row_holds_to_the_next_one_across_blocks() {
        let table = table(0x1000, &[(0, 0), (0x10, 1), (0x2_0008, 2), (0x5_0000, NO_RULE)]);
        let at = |offset: u64| table.rule_at(ElfVaddr(0x1000 + offset));
        assert_eq!(table.rule_at(ElfVaddr(0xfff)), None);
        for (offsets, expected) in [
            (0..=0xf, Some(rule(0))),
            (0x10..=0x2_0007, Some(rule(1))),
            (0x2_0008..=0x4_ffff, Some(rule(2))),
            (0x5_0000..=0x20_0000, None),
            (u64::MAX - 0x1000..=u64::MAX - 0x1000, None),
        ] {
            assert_eq!(at(*offsets.start()), expected);
            assert_eq!(at(*offsets.end()), expected);
        }
    }

    #[test]
    fn an_empty_table_covers_nothing() {
        for address in [0, 1, u64::MAX] {
            assert_eq!(UnwindTable::default().rule_at(ElfVaddr(address)), None);
            assert_eq!(table(0, &[]).rule_at(ElfVaddr(address)), None);
        }
    }

    #[test]
    fn inconsistent_parts_make_no_table() {
        let make = |starts: &[u32], indices: &[u16]| {
            UnwindTable::new(ElfVaddr(0), starts.into(), indices.into(), [rule(0)].into())
        };
        assert!(make(&[1, 2], &[0, NO_RULE]).is_some());
        assert!(make(&[2, 1], &[0, 0]).is_none());
        assert!(make(&[1], &[0, 0]).is_none());
        assert!(make(&[1], &[1]).is_none());
    }

    #[test]
    fn an_object_keeps_frame_pointers_if_most_of_its_code_does() {
        let keeping = UnwindRule { cfa: CfaRule::FpPlus(16), fp: FpRule::AtCfaPlus(-16), ..rule(0) };
        let keeps = |bytes_with, bytes_without| {
            let starts = [0, bytes_with, bytes_with + bytes_without];
            let rules = [keeping, rule(32)];
            UnwindTable::new(ElfVaddr(0), starts.into(), [0, 1, NO_RULE].into(), rules.into())
                .unwrap()
                .keeps_frame_pointers()
        };
        assert!(keeps(0x1000, 0) && keeps(0x1000, 0x500));
        assert!(!keeps(0x1000, 0x600) && !keeps(0, 0x1000) && !keeps(0, 0));
        assert!(!UnwindTable::default().keeps_frame_pointers());
    }

    proptest::proptest! {
        #[test]
        fn lookups_agree_with_a_linear_search(
            mut starts in proptest::collection::vec(0u32..0x5_0000, 0..40),
            addresses in proptest::collection::vec(0u64..0x6_0000, 40),
        ) {
            starts.sort_unstable();
            starts.dedup();
            let rows: Vec<_> = starts.iter().map(|&start| (start, (start % 3) as u16)).collect();
            let table = table(0x100, &rows);
            proptest::prop_assert_eq!(table.rows().count(), rows.len());
            for ((vaddr, found), row) in table.rows().zip(&rows) {
                let expected = (0x100 + u64::from(row.0), Some(rule(row.1.into())));
                proptest::prop_assert_eq!((vaddr.0, found), expected);
            }
            for address in addresses {
                let row = rows.iter().rev().find(|row| 0x100 + u64::from(row.0) <= address);
                let expected = row.map(|row| rule(row.1.into()));
                proptest::prop_assert_eq!(table.rule_at(ElfVaddr(address)), expected);
            }
        }
    }
}

//! Iterates over the frame descriptions of one section in address order and collects their rows.

use std::collections::HashMap;
use std::ops::Range;

use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, FrameDescriptionEntry, UnwindContext, UnwindOffset,
    UnwindSection,
};

use otlpprof_core::address::{ElfVaddr, LoadBias, RuntimeAddr};
use otlpprof_core::frame_rules::{Architecture, UNSUPPORTED};

use super::parser_types::{Bytes, Storage};
use super::rows::{Rows, RuleSet};
use super::rules::translate;

/// One section to compile, and the meaning of its addresses.
pub struct Input<'a, S> {
    /// The architecture of the code.
    pub architecture: &'a Architecture,
    /// The section.
    pub section: S,
    /// The section's length in bytes, which bounds the work.
    pub section_len: usize,
    /// The bases of encoded pointers.
    pub bases: BaseAddresses,
    /// The bias to subtract from the section's addresses.
    pub bias: LoadBias,
    /// The code that rows may describe. Rows are offsets from its start.
    pub text: Range<ElfVaddr>,
}

/// The rows of the frame descriptions at `offsets`, ascending by code address as far as possible.
///
/// A description that cannot be parsed leaves a gap. If a description's instructions cannot be interpreted to
/// the end, the rest of its range gets the rule `UNSUPPORTED`. The section's length bounds the work, whatever
/// the descriptions declare.
pub fn compile<'a, S>(input: &Input<'_, S>, offsets: &[usize], rules: &mut RuleSet) -> Rows
where
    S: UnwindSection<Bytes<'a>>,
    S::Offset: UnwindOffset<usize>,
{
    let mut rows = Rows::with_capacity(offsets.len().saturating_mul(3));
    let mut context = Box::new(UnwindContext::<usize, Storage>::new_in());
    let mut cies = CieCache::default();
    // Well-formed sections need about twice their length: each description once, plus the few bytes of its
    // CIE each time.
    let mut budget = input.section_len.saturating_mul(8);
    for &offset in offsets {
        let entry =
            input.section.fde_from_offset(&input.bases, S::Offset::from(offset), |section, bases, at| {
                cies.get(section, bases, at)
            });
        let Ok(fde) = entry else { continue };
        let Some(left) = budget.checked_sub(fde.entry_len() + fde.cie().entry_len()) else { break };
        budget = left;
        push_rows(input, &fde, &mut context, rules, &mut rows);
    }
    rows
}

fn push_rows<'a, S>(
    input: &Input<'_, S>,
    fde: &FrameDescriptionEntry<Bytes<'a>>,
    context: &mut UnwindContext<usize, Storage>,
    rules: &mut RuleSet,
    rows: &mut Rows,
) where
    S: UnwindSection<Bytes<'a>>,
{
    let Some(range) = input.text_offsets(fde.initial_address(), fde.end_address()) else { return };
    let mut covered = range.start;
    if let Ok(mut table) = fde.rows(&input.section, &input.bases, context) {
        while let Ok(Some(row)) = table.next_row() {
            let Some(row_range) = input.text_offsets(row.start_address(), row.end_address()) else {
                continue;
            };
            let rule = translate(input.architecture, &input.section, fde.cie(), row);
            let end = row_range.end.min(range.end);
            rows.push(row_range.start.max(range.start), end, rules.index_of(rule));
            covered = covered.max(end);
        }
    }
    rows.push(covered, range.end, rules.index_of(UNSUPPORTED));
}

impl<S> Input<'_, S> {
    /// Converts a range of the section's addresses to offsets in the text; `None` if the range is empty,
    /// wraps or is not entirely inside the text.
    fn text_offsets(&self, start: u64, end: u64) -> Option<Range<u32>> {
        let offset = |address| {
            let vaddr = self.bias.to_elf(RuntimeAddr(address));
            let inside = vaddr <= self.text.end;
            u32::try_from(vaddr.0.checked_sub(self.text.start.0)?).ok().filter(|_| inside)
        };
        let range = offset(start)?..offset(end)?;
        (range.start < range.end).then_some(range)
    }
}

/// The offsets of all frame descriptions in the section, sorted by their first address. Stops at the first
/// entry that cannot be parsed, because its length is unknown.
pub fn offsets_in_section<'a, S>(input: &Input<'_, S>) -> Vec<usize>
where
    S: UnwindSection<Bytes<'a>>,
    S::Offset: UnwindOffset<usize>,
{
    let mut cies = CieCache::default();
    let mut found = Vec::new();
    let mut entries = input.section.entries(&input.bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        if let Ok(fde) = partial.parse(|section, bases, at| cies.get(section, bases, at)) {
            found.push((fde.initial_address(), fde.offset()));
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(_, offset)| offset).collect()
}

/// Parsed CIEs by offset: an object has few CIEs, and thousands of descriptions refer to each.
#[derive(Default)]
struct CieCache<'a> {
    cies: HashMap<usize, CommonInformationEntry<Bytes<'a>>, foldhash::fast::FixedState>,
}

impl<'a> CieCache<'a> {
    fn get<S>(
        &mut self,
        section: &S,
        bases: &BaseAddresses,
        offset: S::Offset,
    ) -> gimli::Result<CommonInformationEntry<Bytes<'a>>>
    where
        S: UnwindSection<Bytes<'a>>,
        S::Offset: UnwindOffset<usize>,
    {
        let key = UnwindOffset::into(offset);
        if let Some(cie) = self.cies.get(&key) {
            return Ok(cie.clone());
        }
        let cie = section.cie_from_offset(bases, offset)?;
        self.cies.insert(key, cie.clone());
        Ok(cie)
    }
}

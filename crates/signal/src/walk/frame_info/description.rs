//! The frame description entry (FDE) of an address, and the common information entry (CIE) that it shares
//! with others.

use otlpprof_core::memory::Memory;

use super::reader::{FrameInfoReader, OMITTED};

/// The form of the search table that linkers write: pairs of 32-bit offsets from the header's start.
const SORTED_PAIRS: u8 = 0x3b;

/// The most bytes of an entry; a longer one is taken for an error. The longest known entries, those of
/// generated interpreters, have some tens of KiB.
const MAX_ENTRY_BYTES: u32 = 1 << 20;

/// The frame description of an address.
#[derive(Debug)]
pub(super) struct Description<'m, M> {
    /// The first address that it describes.
    pub(super) start: u64,
    /// Its instructions.
    pub(super) program: FrameInfoReader<'m, M>,
    /// The contents of its CIE.
    pub(super) common: Cie<'m, M>,
}

/// A CIE.
#[derive(Debug)]
pub(super) struct Cie<'m, M> {
    /// The factor of the location's advances.
    pub(super) code_factor: u64,
    /// The factor of offsets.
    pub(super) data_factor: i64,
    /// The encoding of addresses in descriptions.
    pub(super) encoding: u8,
    /// Whether the code is a signal trampoline.
    pub(super) is_signal_trampoline: bool,
    /// The instructions that make the initial row.
    pub(super) program: FrameInfoReader<'m, M>,
    /// Whether descriptions have augmentation data.
    has_augmentation: bool,
}

/// The description of `pc` by the header at `header`.
#[inline(never)]
pub(super) fn find<M: Memory>(memory: &M, header: u64, pc: u64) -> Option<Description<'_, M>> {
    let description = parse(memory, header, listed(memory, header, pc)?)?;
    let (description, len) = description;
    (pc.checked_sub(description.start)? < len).then_some(description)
}

/// The address of the description of `pc` by the header's search table: the address of the last entry that
/// starts at or before `pc`.
fn listed<M: Memory>(memory: &M, header: u64, pc: u64) -> Option<u64> {
    /// Version, three encodings, and at most two pointers of eight bytes.
    const LONGEST_HEAD: u64 = 4 + 2 * 8;
    let mut head = FrameInfoReader::new(memory, header, LONGEST_HEAD)?;
    let (version, section, count, table) = (head.byte()?, head.byte()?, head.byte()?, head.byte()?);
    if version != 1 || table != SORTED_PAIRS || count == OMITTED {
        return None;
    }
    if section != OMITTED {
        head.offset(section)?;
    }
    let count = head.pointer(count, header)?;
    let pair = |index: u64| index.checked_mul(8).and_then(|offset| head.at.checked_add(offset));
    let address = |at: u64| Some(header.wrapping_add_signed(i64::from(memory.load_u32(at)? as i32)));
    let (mut first, mut after) = (0, count);
    while first < after {
        let middle = first.midpoint(after);
        if address(pair(middle)?)? <= pc {
            first = middle.wrapping_add(1);
        } else {
            after = middle;
        }
    }
    address(pair(first.checked_sub(1)?)?.wrapping_add(4))
}

/// The content of the entry at `at`, after its length field. Loaded sections never use the 64-bit format.
fn entry<M: Memory>(memory: &M, at: u64) -> Option<FrameInfoReader<'_, M>> {
    let len = memory.load_u32(at).filter(|&len| len <= MAX_ENTRY_BYTES)?;
    FrameInfoReader::new(memory, at.wrapping_add(4), u64::from(len))
}

/// The description at `at`, and the number of bytes of code that it describes.
fn parse<M: Memory>(memory: &M, header: u64, at: u64) -> Option<(Description<'_, M>, u64)> {
    let mut program = entry(memory, at)?;
    let common_pointer_at = program.at;
    // The distance back to the CIE, counted from this field.
    let distance = program.word().filter(|&distance| distance != 0)?;
    let common = parse_cie(memory, common_pointer_at.wrapping_sub(u64::from(distance)))?;
    let start = program.pointer(common.encoding, header)?;
    let len = program.offset(common.encoding)?;
    if common.has_augmentation {
        let augmentation_len = program.uleb()?;
        program.block(augmentation_len)?;
    }
    Some((Description { start, program, common }, len))
}

fn parse_cie<M: Memory>(memory: &M, at: u64) -> Option<Cie<'_, M>> {
    let mut entry = entry(memory, at)?;
    if entry.word()? != 0 {
        return None;
    }
    let version = entry.byte()?;
    let mut letters = entry;
    while entry.byte()? != 0 {}
    let code_factor = entry.uleb()?;
    let data_factor = entry.sleb()?;
    // The return address's column is fixed for each architecture.
    match version {
        1 => u64::from(entry.byte()?),
        3 => entry.uleb()?,
        _ => return None,
    };
    let mut common = Cie {
        code_factor,
        data_factor,
        encoding: 0,
        is_signal_trampoline: false,
        program: entry,
        has_augmentation: false,
    };
    match letters.byte()? {
        0 => return Some(common),
        b'z' => common.has_augmentation = true,
        _ => return None,
    }
    let augmentation_len = entry.uleb()?;
    let mut augmentation = entry.block(augmentation_len)?;
    common.program = entry;
    loop {
        match letters.byte()? {
            0 => return Some(common),
            b'R' => common.encoding = augmentation.byte()?,
            b'L' => _ = augmentation.byte()?,
            b'P' => {
                let encoding = augmentation.byte()?;
                augmentation.offset(encoding)?;
            }
            b'S' => common.is_signal_trampoline = true,
            // Return addresses are signed with key B (aarch64).
            b'B' => {}
            _ => return None,
        }
    }
}

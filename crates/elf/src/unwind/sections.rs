//! Finds the call frame information of a loaded object and copies it.

use std::ops::Range;

use gimli::{BaseAddresses, DebugFrame, EhFrame, EhFrameHdr, NativeEndian, ParsedEhFrameHdr, Pointer};
use otlpprof_core::address::{ElfVaddr, LoadBias, RuntimeAddr};
use otlpprof_core::frame_rules::{END_OF_STACK, native};
use otlpprof_core::unwind_table::UnwindTable;

use super::compile::{Input, compile, offsets_in_section};
use super::entries;
use super::parser_types::Bytes;
use super::rows::{Rows, RuleSet};
use crate::arch;
use crate::file::{ElfFile, FileError};
use crate::image::LoadedImage;
use crate::source::Source;

/// The largest section to copy, in bytes. The largest known sections have some tens of MiB.
const MAX_SECTION_LEN: u64 = 256 << 20;

/// The size of an address, in bytes, in the objects that this process can load.
const ADDRESS_SIZE: u8 = 8;

/// The reason why an object has no unwind table.
#[derive(Debug, thiserror::Error)]
pub enum UnwindError {
    /// The object was unloaded before its sections were copied.
    #[error("the object was unloaded")]
    Unloaded,
    /// The object has no executable segment.
    #[error("no executable segment")]
    NoText,
    /// `PT_GNU_EH_FRAME`, or the section that it points to, lies outside the image.
    #[error("call frame information at {at:#x} is not inside one readable segment")]
    Outside {
        /// The declared address.
        at: ElfVaddr,
    },
    /// The header of `.eh_frame` is malformed.
    #[error("malformed .eh_frame_hdr: {0}")]
    Header(gimli::Error),
    /// The file with `.debug_frame` cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A section is implausibly long, or lies outside its file.
    #[error("section of {size} bytes cannot be read")]
    SectionSize {
        /// The section's size, in bytes.
        size: u64,
    },
}

impl From<gimli::Error> for UnwindError {
    fn from(error: gimli::Error) -> Self {
        Self::Header(error)
    }
}

/// A copy of an object's call frame information, ready to be compiled.
#[derive(Debug)]
pub struct FrameSections {
    load_bias: LoadBias,
    text: Range<ElfVaddr>,
    eh_frame: Option<EhFrameCopy>,
    debug_frame: Vec<u8>,
    /// The code at which stacks end, in a C library without call frame information.
    ends: Vec<Range<ElfVaddr>>,
}

#[derive(Debug)]
struct EhFrameCopy {
    header: Vec<u8>,
    header_at: RuntimeAddr,
    frames: Vec<u8>,
    frames_at: RuntimeAddr,
}

impl EhFrameCopy {
    fn bases(&self) -> BaseAddresses {
        BaseAddresses::default().set_eh_frame_hdr(self.header_at.0).set_eh_frame(self.frames_at.0)
    }

    fn parse_header(&self) -> gimli::Result<ParsedEhFrameHdr<Bytes<'_>>> {
        EhFrameHdr::new(&self.header, NativeEndian).parse(&self.bases(), ADDRESS_SIZE)
    }
}

impl FrameSections {
    /// Copies the `.eh_frame` that `image` has in memory. To be called by [`LoadedImage::read_while_loaded`].
    /// An object without `PT_GNU_EH_FRAME` has no rows, unless [`FrameSections::add_debug_frame`] adds some,
    /// or it is a C library in which stacks end.
    ///
    /// # Errors
    /// If the image is malformed, or the object was unloaded.
    pub fn of_image(image: &LoadedImage) -> Result<Self, UnwindError> {
        let text = executable_range(image).ok_or(UnwindError::NoText)?;
        let eh_frame = copy_eh_frame(image)?;
        let frames_len = eh_frame.as_ref().map_or(0, |copy| copy.frames.len());
        let ends = entries::of_image(image, &text, frames_len);
        Ok(Self { load_bias: image.load_bias(), text, eh_frame, debug_frame: Vec::new(), ends })
    }

    /// Adds the `.debug_frame` section of `file`, which must be the file that the image was loaded from. Its
    /// rows apply where `.eh_frame` has no rule. A compressed section is ignored.
    ///
    /// # Errors
    /// If the file is malformed.
    pub fn add_debug_frame<S: Source>(&mut self, file: &ElfFile<S>) -> Result<(), UnwindError> {
        const SHF_COMPRESSED: u64 = 0x800;
        let Some(section) = file.section(".debug_frame")? else { return Ok(()) };
        if !file.is_64() || !file.is_native_endian() || section.sh_flags & SHF_COMPRESSED != 0 {
            return Ok(());
        }
        let size = section.sh_size;
        let read = Some(size).filter(|&size| size <= MAX_SECTION_LEN);
        let bytes = read.and_then(|size| file.source().read(section.sh_offset, size).ok());
        self.debug_frame = bytes.ok_or(UnwindError::SectionSize { size })?;
        Ok(())
    }

    /// The size of the copies, in bytes.
    pub fn heap_bytes(&self) -> usize {
        let eh_frame = self.eh_frame.as_ref().map_or(0, |copy| copy.header.len() + copy.frames.len());
        eh_frame + self.debug_frame.len()
    }

    /// Compiles the unwind table.
    pub fn compile(&self) -> UnwindTable {
        let mut rules = RuleSet::default();
        let mut rows = self.eh_frame.as_ref().map(|copy| self.eh_frame_rows(copy, &mut rules));
        if !self.debug_frame.is_empty() {
            let fill = self.debug_frame_rows(&mut rules);
            rows = Some(rows.unwrap_or_else(|| Rows::with_capacity(0)).filled_with(fill));
        }
        if !self.ends.is_empty() {
            let fill = self.rows_of_ends(&mut rules);
            rows = Some(rows.unwrap_or_else(|| Rows::with_capacity(0)).filled_with(fill));
        }
        rows.map_or_else(UnwindTable::default, |rows| rows.into_table(self.text.start, rules))
    }

    fn rows_of_ends(&self, rules: &mut RuleSet) -> Rows {
        let mut rows = Rows::with_capacity(2 * self.ends.len());
        let offset = |at: ElfVaddr| u32::try_from(at.0.wrapping_sub(self.text.start.0)).unwrap_or(u32::MAX);
        for end in &self.ends {
            rows.push(offset(end.start), offset(end.end), rules.index_of(END_OF_STACK));
        }
        rows
    }

    fn eh_frame_rows(&self, copy: &EhFrameCopy, rules: &mut RuleSet) -> Rows {
        let mut section = EhFrame::new(&copy.frames, NativeEndian);
        section.set_address_size(ADDRESS_SIZE);
        section.set_vendor(arch::native::CALL_FRAME_EXTENSIONS);
        let input = Input {
            architecture: &native::ARCHITECTURE,
            section,
            section_len: copy.frames.len(),
            bases: copy.bases(),
            // Pointers in memory are run-time addresses, even if the dynamic linker relocated them.
            bias: self.load_bias,
            text: self.text.clone(),
        };
        let offsets = offsets_in_header(copy).unwrap_or_else(|| offsets_in_section(&input));
        compile(&input, &offsets, rules)
    }

    fn debug_frame_rows(&self, rules: &mut RuleSet) -> Rows {
        let mut section = DebugFrame::new(&self.debug_frame, NativeEndian);
        section.set_address_size(ADDRESS_SIZE);
        section.set_vendor(arch::native::CALL_FRAME_EXTENSIONS);
        let input = Input {
            architecture: &native::ARCHITECTURE,
            section,
            section_len: self.debug_frame.len(),
            bases: BaseAddresses::default(),
            bias: LoadBias(0),
            text: self.text.clone(),
        };
        let offsets = offsets_in_section(&input);
        compile(&input, &offsets, rules)
    }
}

/// The range from the first to the last address of the executable segments.
pub fn executable_range(image: &LoadedImage) -> Option<Range<ElfVaddr>> {
    let executable = || image.program_headers().iter().filter(|header| header.is_executable());
    let start = executable().map(|header| header.vaddrs().start).min()?;
    let end = executable().map(|header| header.vaddrs().end).max()?;
    Some(start..end)
}

/// Copies `.eh_frame_hdr`, which `PT_GNU_EH_FRAME` describes, and `.eh_frame`, whose start is in that header.
/// The end of `.eh_frame` is not declared anywhere, so everything up to the end of its segment is copied.
fn copy_eh_frame(image: &LoadedImage) -> Result<Option<EhFrameCopy>, UnwindError> {
    let Some(program_header) = image.program_header(libc::PT_GNU_EH_FRAME) else { return Ok(None) };
    let at = program_header.vaddr;
    let size = Some(program_header.memory_size).filter(|&size| size <= MAX_SECTION_LEN);
    let header = size.and_then(|size| image.read(at, size)).ok_or(UnwindError::Outside { at })?;
    let mut copy = EhFrameCopy {
        header,
        header_at: image.load_bias().to_runtime(at),
        frames: Vec::new(),
        frames_at: RuntimeAddr(0),
    };
    copy.frames_at = RuntimeAddr(copy.parse_header()?.eh_frame_ptr().direct()?);
    let at = image.load_bias().to_elf(copy.frames_at);
    let size = Some(image.readable_from(at)).filter(|size| (1..=MAX_SECTION_LEN).contains(size));
    copy.frames = size.and_then(|size| image.read(at, size)).ok_or(UnwindError::Outside { at })?;
    Ok(Some(copy))
}

/// The offsets of the frame descriptions in the header's search table, sorted by first address. `None` if
/// there is no table, or it is malformed.
fn offsets_in_header(copy: &EhFrameCopy) -> Option<Vec<usize>> {
    let (header, bases) = (copy.parse_header().ok()?, copy.bases());
    let table = header.table()?;
    let mut entries = table.iter(&bases);
    let mut found = Vec::new();
    while let Some((address, fde)) = entries.next().ok()? {
        let (Pointer::Direct(address), Pointer::Direct(fde)) = (address, fde) else { return None };
        found.push((address, usize::try_from(fde.checked_sub(copy.frames_at.0)?).ok()?));
    }
    found.sort_unstable();
    (!found.is_empty()).then(|| found.into_iter().map(|(_, offset)| offset).collect())
}

//! Reads the fields and parts of code blobs through the layout.

use otlpprof_core::address::CodeRange;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{BlobPart, CodeBlobLayout};

use crate::c_string;

/// The field of [`BlobKinds`](otlpprof_core::vm_layout::BlobKinds), in refusals.
pub(in crate::layout) const KIND: &str = "_kind";

/// A failed check: structure, field, reason.
pub(super) type Refusal = (&'static str, &'static str, String);

/// Reads the fields and parts of code blobs.
#[derive(Clone, Copy)]
pub(in crate::layout) struct BlobReader<'a> {
    pub(in crate::layout) blobs: &'a CodeBlobLayout,
    pub(in crate::layout) memory: &'a dyn Memory,
}

impl BlobReader<'_> {
    pub(in crate::layout) fn int(&self, blob: u64, offset: u32) -> Option<i32> {
        self.memory.load_u32(blob.checked_add(u64::from(offset))?).map(|value| value as i32)
    }

    pub(super) fn word(&self, blob: u64, offset: u32) -> Option<u64> {
        self.memory.load_u64(blob.checked_add(u64::from(offset))?)
    }

    pub(in crate::layout) fn part(&self, blob: u64, part: BlobPart) -> Option<u64> {
        match part {
            BlobPart::Pointer(field) => self.word(blob, field),
            BlobPart::FromBlob(field) => blob.checked_add_signed(i64::from(self.int(blob, field)?)),
            BlobPart::FromPointer { base, offset } => {
                self.word(blob, base)?.checked_add_signed(i64::from(self.int(blob, offset)?))
            }
        }
    }

    /// Checks that the compiled method at `blob` states this kind, if blobs have one.
    pub(super) fn check_kind(&self, blob: u64) -> Result<(), Refusal> {
        let Some(kinds) = self.blobs.kinds else { return Ok(()) };
        match self.memory.load_u8(blob.wrapping_add(u64::from(kinds.field))) {
            Some(kind) if kind == kinds.nmethod => Ok(()),
            kind => Err(("CodeBlob", KIND, format!("a compiled method at {blob:#x} has the kind {kind:?}"))),
        }
    }

    /// A blob with its name and its address range, if its header is plausible.
    pub(super) fn name_and_range(&self, blob: u64) -> Result<(u64, String, CodeRange), Refusal> {
        let layout = self.blobs;
        let refuse = |field, reason: String| Err(("CodeBlob", field, format!("{reason} at {blob:#x}")));
        let name = self.word(blob, layout.name).and_then(|name| c_string::read(self.memory, name, 200));
        let Some(name) = name.filter(|name| !name.is_empty() && name.chars().all(|c| !c.is_control())) else {
            return refuse("_name", "no name".to_owned());
        };
        let size = u64::try_from(self.int(blob, layout.size).unwrap_or(0)).unwrap_or(0);
        let range = CodeRange { start: blob, end: blob.saturating_add(size) };
        let (begin, end) = (self.part(blob, layout.code_begin), self.part(blob, layout.code_end));
        match (begin, end) {
            (Some(begin), Some(end)) if blob < begin && begin <= end && end <= range.end => {}
            _ => {
                return refuse(
                    "_code_begin",
                    format!("{name} of {size} bytes has code {begin:x?} to {end:x?}"),
                );
            }
        }
        match self.int(blob, layout.frame_size) {
            Some(-1..=0xffff) => Ok((blob, name, range)),
            frame_size => refuse("_frame_size", format!("{name} has a frame of {frame_size:?} words")),
        }
    }
}

//! Checks one compiled method, read through the layout down to the methods of its scopes.

use std::ops::RangeInclusive;

use otlpprof_core::address::CodeRange;
use otlpprof_core::unsigned5;
use otlpprof_core::vm_layout::{DeoptimizationLayout, NmethodLayout, VmLayout};

use super::blob_reader::{BlobReader, Refusal};
use crate::arch::compiled_prologue;
use crate::method_reader::MethodReader;

/// A field of an nmethod, in refusals.
pub(in crate::layout) const ORIG_PC_OFFSET: &str = "_orig_pc_offset";
/// See [`ORIG_PC_OFFSET`].
pub(in crate::layout) const DEOPT_HANDLER: &str = "_deopt_handler";
/// See [`ORIG_PC_OFFSET`].
pub(in crate::layout) const COMP_LEVEL: &str = "_comp_level";
/// See [`ORIG_PC_OFFSET`].
pub(in crate::layout) const STUB_OFFSET: &str = "_stub_offset";
/// The field that is refused where scopes do not lead to their method.
pub(in crate::layout) const SCOPES_DATA_OFFSET: &str = "_scopes_data_offset";

/// The compilation levels of compiled methods (`compiler/compilationPolicy.hpp`, CompLevel). A wrapper of a
/// native method has level 0.
pub(in crate::layout) const LEVELS: RangeInclusive<u8> = 1..=4;

/// The offset of the sentinel before the first PcDesc (`PcDesc::lower_offset_limit`, `code/pcDesc.hpp`). The
/// sentinel after the last lies beyond the content: its offset is the content's size plus 1
/// (`nmethod::copy_scopes_pcs`, `code/nmethod.cpp`).
const FIRST_PC_OFFSET: i32 = -1;

/// An upper bound of the length of the code that builds a method's frame.
const MAX_PROLOGUE_BYTES: u64 = 1024;

/// An upper bound of the inlining depth (`MaxInlineLevel` and `MaxRecursiveInlineLevel` are far below).
const MAX_SCOPES: usize = 256;

/// Checks the parts of the compiled method at `blob`, which occupies `range`. Returns the number of its
/// scopes.
pub(super) fn check(
    reader: BlobReader<'_>,
    vm: &VmLayout,
    blob: u64,
    range: CodeRange,
) -> Result<usize, Refusal> {
    let layout = &vm.nmethod;
    let refuse = |field, reason: String| Err(("nmethod", field, format!("{reason} at {blob:#x}")));
    let method = reader.word(blob, layout.method).unwrap_or(0);
    if MethodReader::new(vm.method).parts(reader.memory, method).is_none() {
        return refuse("_method", format!("{method:#x} is not a method"));
    }
    let level = reader.memory.load_u8(blob + u64::from(layout.comp_level));
    if !level.is_some_and(|level| LEVELS.contains(&level)) {
        return refuse(COMP_LEVEL, format!("it is {level:?}"));
    }
    let frame_bytes = check_frame(reader, blob)?;
    let code_end = reader.part(blob, reader.blobs.code_end).unwrap_or(0);
    let stubs = match reader.part(blob, layout.stub_begin) {
        // Each method has a handler in its stubs, so that the place of the stubs is not known.
        Some(start) if start == code_end => {
            CodeRange { start: reader.part(blob, reader.blobs.code_begin).unwrap_or(0), end: code_end }
        }
        Some(start) if range.contains(start) => CodeRange { start, end: code_end },
        start => return refuse(STUB_OFFSET, format!("stubs begin at {start:x?}, outside of the blob")),
    };
    let first_stub = reader.part(blob, layout.stub_begin).filter(|&start| start != code_end);
    if let Some(deoptimization) = &layout.deoptimization {
        check_deoptimization(reader, blob, deoptimization, frame_bytes, stubs)?;
    }
    check_pc_descs(reader, layout, blob, method, first_stub)
}

/// Checks that the wrapper of a native method at `blob` has no compilation level.
pub(super) fn check_wrapper(
    reader: BlobReader<'_>,
    layout: &NmethodLayout,
    blob: u64,
) -> Result<(), Refusal> {
    match reader.memory.load_u8(blob + u64::from(layout.comp_level)) {
        Some(0) => Ok(()),
        level => {
            Err(("nmethod", COMP_LEVEL, format!("a native method at {blob:#x} has the level {level:?}")))
        }
    }
}

/// Checks that a frame of `frame_bytes` has the slot of its original PC, and that the handler is in `stubs`,
/// whose last part the handlers are (`nmethod::nmethod`, `code/nmethod.cpp`).
fn check_deoptimization(
    reader: BlobReader<'_>,
    blob: u64,
    layout: &DeoptimizationLayout,
    frame_bytes: u64,
    stubs: CodeRange,
) -> Result<(), Refusal> {
    let refuse = |field, reason: String| Err(("nmethod", field, format!("{reason} at {blob:#x}")));
    let orig_pc = reader.int(blob, layout.orig_pc_offset);
    let kept_at = orig_pc.and_then(|offset| u64::try_from(offset).ok());
    if kept_at.is_none_or(|offset| !offset.is_multiple_of(8) || offset >= frame_bytes) {
        return refuse(ORIG_PC_OFFSET, format!("it is {orig_pc:?} in a frame of {frame_bytes} bytes"));
    }
    match reader.part(blob, layout.handlers[0]) {
        Some(handler) if stubs.contains(handler) => Ok(()),
        handler => refuse(DEOPT_HANDLER, format!("it is {handler:x?}, stubs are {stubs:x?}")),
    }
}

/// Checks that the frame's described size is the size that the code builds, and returns that size in bytes.
fn check_frame(reader: BlobReader<'_>, blob: u64) -> Result<u64, Refusal> {
    let layout = reader.blobs;
    let refuse = |structure, field, reason: String| Err((structure, field, format!("{reason} at {blob:#x}")));
    let frame_words = reader.int(blob, layout.frame_size).and_then(|words| u64::try_from(words).ok());
    let frame_bytes = frame_words.unwrap_or(0) * 8;
    let complete = match layout.frame_complete_width {
        2 => reader.memory.load_u16(blob + u64::from(layout.frame_complete)).map(|at| i64::from(at as i16)),
        _ => reader.int(blob, layout.frame_complete).map(i64::from),
    };
    let code = reader.part(blob, layout.code_begin).zip(reader.part(blob, layout.code_end));
    let prologue = complete.and_then(|at| u64::try_from(at).ok()).zip(code).and_then(|(at, (begin, end))| {
        let mut bytes = vec![0; at.min(MAX_PROLOGUE_BYTES) as usize];
        (begin + at <= end && reader.memory.read_bytes(begin, &mut bytes)).then_some(bytes)
    });
    if !prologue.is_some_and(|code| compiled_prologue::builds_frame(&code, frame_bytes)) {
        let reason = format!("no frame of {frame_bytes} bytes is made before {complete:?}");
        return refuse("CodeBlob", "_frame_complete_offset", reason);
    }
    Ok(frame_bytes)
}

/// Checks that PcDescs ascend from a sentinel on up to the stubs, and that the outermost scope of each is the
/// compiled method itself. Returns the number of scopes.
fn check_pc_descs(
    reader: BlobReader<'_>,
    layout: &NmethodLayout,
    blob: u64,
    method: u64,
    first_stub: Option<u64>,
) -> Result<usize, Refusal> {
    let refuse = |field, reason: String| Err(("nmethod", field, format!("{reason} at {blob:#x}")));
    let begin = reader.part(blob, layout.scopes_pcs_begin).unwrap_or(0);
    let end = reader.part(blob, layout.scopes_pcs_end).unwrap_or(0);
    let size = u64::from(layout.pc_desc_size);
    let bytes = end.wrapping_sub(begin);
    if begin == 0 || end < begin || bytes < 2 * size || !bytes.is_multiple_of(size) {
        return refuse("_scopes_pcs_offset", format!("PcDescs from {begin:#x} to {end:#x}"));
    }
    let pc_descs = || (begin..end).step_by(size as usize);
    let offsets: Option<Vec<_>> =
        pc_descs().map(|pc_desc| reader.int(pc_desc, layout.pc_desc_pc_offset)).collect();
    let offsets = offsets.unwrap_or_default();
    let ascend = offsets.is_sorted_by(|one, next| one < next);
    if !ascend || offsets.first() != Some(&FIRST_PC_OFFSET) || offsets.last() <= Some(&0) {
        return refuse("_scopes_pcs_offset", format!("PcDescs at the offsets {offsets:x?}"));
    }
    let code = reader.part(blob, reader.blobs.code_begin).unwrap_or(0);
    let last = offsets[offsets.len() - 2];
    if let Some(stubs) = first_stub.filter(|&stubs| stubs < code.wrapping_add_signed(last.into())) {
        let reason = format!("stubs begin at {stubs:#x}, before the PcDesc at {last:#x} from {code:#x}");
        return refuse(STUB_OFFSET, reason);
    }
    let scope = |pc_desc| reader.int(pc_desc, layout.pc_desc_scope_decode_offset).map(|scope| scope as u32);
    // 0 stands for no scope. A small method that calls nothing may have no scope at all.
    let scopes: Vec<_> = pc_descs().filter_map(scope).filter(|&scope| scope != 0).collect();
    if !scopes.iter().all(|&scope| outermost_method(reader, layout, blob, scope) == Some(method)) {
        return refuse(SCOPES_DATA_OFFSET, format!("{} scopes do not all lead to {method:#x}", scopes.len()));
    }
    Ok(scopes.len())
}

/// The method of the outermost scope around the scope at `scope`. A scope begins with the offset of the
/// sender's scope and the method's index in the metadata, counted from 1 (`code/scopeDesc.cpp`).
fn outermost_method(
    reader: BlobReader<'_>,
    layout: &NmethodLayout,
    blob: u64,
    mut scope: u32,
) -> Option<u64> {
    let scopes = reader.part(blob, layout.scopes_data_begin)?;
    let metadata = reader.part(blob, layout.metadata_begin)?;
    for _ in 0..MAX_SCOPES {
        let mut at = scopes.checked_add(u64::from(scope))?;
        let mut read = || {
            let next_byte = || {
                at += 1;
                reader.memory.load_u8(at - 1)
            };
            unsigned5::read(next_byte, layout.unsigned5_excluded)
        };
        let (sender, method) = (read()?, read()?);
        if sender == 0 {
            return reader.word(metadata, method.checked_sub(1)?.checked_mul(8)?);
        }
        scope = sender;
    }
    None
}

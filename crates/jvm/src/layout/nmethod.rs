//! Compiled methods (`code/nmethod.hpp`; until 22 partly `code/compiledMethod.hpp`; `code/pcDesc.hpp`).

use otlpprof_core::vm_layout::{BlobPart, DeoptimizationLayout, NmethodLayout};

use super::check::STUB_OFFSET;
use super::error::LayoutError;
use crate::vm_structs::VmStructs;

/// Compiled methods.
///
/// Without `_stub_offset` no part of a method counts as its stubs.
pub(super) fn nmethod(
    structs: &VmStructs,
    code_end: BlobPart,
    unsigned5_excluded: u8,
) -> Result<NmethodLayout, LayoutError> {
    let field = |name| structs.offset("nmethod", name);
    let scopes = scopes(structs)?;
    Ok(NmethodLayout {
        method: structs.offset_in_any(&["nmethod", "CompiledMethod"], "_method")?,
        comp_level: field("_comp_level")?,
        deoptimization: None,
        stub_begin: stub_offset(structs).map_or(code_end, BlobPart::FromBlob),
        scopes_pcs_begin: scopes.pcs_begin,
        scopes_pcs_end: scopes.pcs_end,
        scopes_data_begin: scopes.data_begin,
        metadata_begin: metadata_begin(structs)?,
        pc_desc_size: structs.size_of("PcDesc")?,
        pc_desc_pc_offset: structs.offset("PcDesc", "_pc_offset")?,
        pc_desc_scope_decode_offset: structs.offset("PcDesc", "_scope_decode_offset")?,
        unsigned5_excluded,
    })
}

/// The field that leads to a method's stubs.
pub(super) fn stub_offset(structs: &VmStructs) -> Result<u32, LayoutError> {
    structs.offset("nmethod", STUB_OFFSET)
}

/// Frames that are to be deoptimised.
pub(super) fn deoptimization(structs: &VmStructs) -> Result<DeoptimizationLayout, LayoutError> {
    Ok(DeoptimizationLayout {
        orig_pc_offset: structs.offset("nmethod", "_orig_pc_offset")?,
        handlers: deopt_handlers(structs)?,
    })
}

/// The deoptimisation handlers of calls, and of method handles' calls. 26 has one handler for both, and its
/// field has another name.
fn deopt_handlers(structs: &VmStructs) -> Result<[BlobPart; 2], LayoutError> {
    // Until 22 (JDK-8329332) an nmethod is a CompiledMethod, which has pointers.
    if structs.has_type("CompiledMethod") {
        let pointer = |name| structs.offset("CompiledMethod", name).map(BlobPart::Pointer);
        return Ok([pointer("_deopt_handler_begin")?, pointer("_deopt_mh_handler_begin")?]);
    }
    let from_blob = |name| structs.offset("nmethod", name).map(BlobPart::FromBlob);
    if !cfg!(without_rules_of_26)
        && let Ok(entry) = from_blob("_deopt_handler_entry_offset")
    {
        return Ok([entry, from_blob("_deopt_mh_handler_entry_offset").unwrap_or(entry)]);
    }
    Ok([from_blob("_deopt_handler_offset")?, from_blob("_deopt_mh_handler_offset")?])
}

/// The places of the PcDescs and the compressed scopes.
pub(super) struct Scopes {
    pub(super) pcs_begin: BlobPart,
    pub(super) pcs_end: BlobPart,
    data_begin: BlobPart,
}

pub(super) fn scopes(structs: &VmStructs) -> Result<Scopes, LayoutError> {
    let field = |name| structs.offset("nmethod", name);
    // From 23 on (JDK-8331087) the scopes are outside the code cache.
    if let Ok(base) = field("_immutable_data") {
        let in_immutable = |name| field(name).map(|offset| BlobPart::FromPointer { base, offset });
        return Ok(Scopes {
            pcs_begin: in_immutable("_scopes_pcs_offset")?,
            pcs_end: in_immutable("_scopes_data_offset")?,
            data_begin: in_immutable("_scopes_data_offset")?,
        });
    }
    Ok(Scopes {
        pcs_begin: field("_scopes_pcs_offset").map(BlobPart::FromBlob)?,
        pcs_end: field("_dependencies_offset").map(BlobPart::FromBlob)?,
        data_begin: structs.offset("CompiledMethod", "_scopes_data_begin").map(BlobPart::Pointer)?,
    })
}

/// The start of the metadata.
fn metadata_begin(structs: &VmStructs) -> Result<BlobPart, LayoutError> {
    // From 25 on (JDK-8343789) the metadata is outside the code cache.
    if let Ok(base) = structs.offset("CodeBlob", "_mutable_data") {
        let offset = structs.offset("CodeBlob", "_relocation_size")?;
        return Ok(BlobPart::FromPointer { base, offset });
    }
    // Releases 23 and 24 have an offset of two bytes from the start of the blob's data, which is not read:
    // the check of the scopes refuses their layout.
    structs.offset("nmethod", "_metadata_offset").map(BlobPart::FromBlob)
}

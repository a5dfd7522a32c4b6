//! Compiled methods (`code/nmethod.hpp`; until 22 partly `code/compiledMethod.hpp`; `code/pcDesc.hpp`).

use super::{LayoutError, Release};
use crate::core::vm_layout::{BlobPart, NmethodLayout};
use crate::jvm::vm_structs::VmStructs;

/// Compiled methods.
pub(super) fn nmethod(structs: &VmStructs, release: Release) -> Result<NmethodLayout, LayoutError> {
    let field = |name| structs.offset("nmethod", name);
    let [deopt_handler, deopt_method_handle_handler] = deopt_handlers(structs, release)?;
    let scopes = scopes(structs, release)?;
    Ok(NmethodLayout {
        method: structs.offset_in_any(&["nmethod", "CompiledMethod"], "_method")?,
        entry_bci: field("_entry_bci")?,
        state: field("_state")?,
        comp_level: field("_comp_level")?,
        comp_level_width: if release.has_comp_level_byte() { 1 } else { 4 },
        orig_pc_offset: field("_orig_pc_offset")?,
        deopt_handler,
        deopt_method_handle_handler,
        stub_begin: BlobPart::FromBlob(field("_stub_offset")?),
        scopes_pcs_begin: scopes.pcs_begin,
        scopes_pcs_end: scopes.pcs_end,
        scopes_data_begin: scopes.data_begin,
        metadata_begin: metadata_begin(structs, release)?,
        pc_desc_size: structs.size_of("PcDesc")?,
        pc_desc_pc_offset: structs.offset("PcDesc", "_pc_offset")?,
        pc_desc_scope_decode_offset: structs.offset("PcDesc", "_scope_decode_offset")?,
        unsigned5_excluded: release.unsigned5_excludes_zero().into(),
    })
}

/// The deoptimisation handlers of calls, and of method handles' calls.
fn deopt_handlers(structs: &VmStructs, release: Release) -> Result<[BlobPart; 2], LayoutError> {
    if release.has_compiled_method() {
        let pointer = |name| structs.offset("CompiledMethod", name).map(BlobPart::Pointer);
        return Ok([pointer("_deopt_handler_begin")?, pointer("_deopt_mh_handler_begin")?]);
    }
    let from_blob = |name| structs.offset("nmethod", name).map(BlobPart::FromBlob);
    Ok([from_blob("_deopt_handler_offset")?, from_blob("_deopt_mh_handler_offset")?])
}

/// The places of the PcDescs and the compressed scopes.
struct Scopes {
    pcs_begin: BlobPart,
    pcs_end: BlobPart,
    data_begin: BlobPart,
}

fn scopes(structs: &VmStructs, release: Release) -> Result<Scopes, LayoutError> {
    let field = |name| structs.offset("nmethod", name);
    if release.has_immutable_nmethod_data() {
        let base = field("_immutable_data")?;
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
fn metadata_begin(structs: &VmStructs, release: Release) -> Result<BlobPart, LayoutError> {
    if release.has_mutable_nmethod_data() {
        return Ok(BlobPart::FromPointer {
            base: structs.offset("CodeBlob", "_mutable_data")?,
            offset: structs.offset("CodeBlob", "_relocation_size")?,
        });
    }
    // Releases 23 and 24, which are not known, have an offset of two bytes from the start of the blob's data.
    structs.offset("nmethod", "_metadata_offset").map(BlobPart::FromBlob)
}

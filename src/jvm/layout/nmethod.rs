//! Compiled methods (`code/nmethod.hpp`; until 21 partly `code/compiledMethod.hpp`; `code/pcDesc.hpp`).

use super::LayoutError;
use crate::core::vm_layout::{BlobPart, NmethodLayout};
use crate::jvm::vm_structs::VmStructs;

/// Compiled methods. In 25 the scopes are in `_immutable_data` and the metadata in `_mutable_data`, outside
/// the code cache. Until 21 both follow the code.
pub(super) fn nmethod(
    structs: &VmStructs,
    version: u32,
    unsigned5_excluded: u8,
) -> Result<NmethodLayout, LayoutError> {
    let field = |name| structs.offset("nmethod", name);
    let parts = if version >= 25 { split(structs)? } else { contiguous(structs)? };
    Ok(NmethodLayout {
        method: structs.offset_in_any(&["nmethod", "CompiledMethod"], "_method")?,
        entry_bci: field("_entry_bci")?,
        state: field("_state")?,
        comp_level: field("_comp_level")?,
        comp_level_width: if version >= 21 { 1 } else { 4 },
        orig_pc_offset: field("_orig_pc_offset")?,
        deopt_handler: parts.deopt_handler,
        deopt_method_handle_handler: parts.deopt_method_handle_handler,
        stub_begin: BlobPart::FromBlob(field("_stub_offset")?),
        scopes_pcs_begin: parts.scopes_pcs_begin,
        scopes_pcs_end: parts.scopes_pcs_end,
        scopes_data_begin: parts.scopes_data_begin,
        metadata_begin: parts.metadata_begin,
        pc_desc_size: structs.size_of("PcDesc")?,
        pc_desc_pc_offset: structs.offset("PcDesc", "_pc_offset")?,
        pc_desc_scope_decode_offset: structs.offset("PcDesc", "_scope_decode_offset")?,
        unsigned5_excluded,
    })
}

struct Parts {
    deopt_handler: BlobPart,
    deopt_method_handle_handler: BlobPart,
    scopes_pcs_begin: BlobPart,
    scopes_pcs_end: BlobPart,
    scopes_data_begin: BlobPart,
    metadata_begin: BlobPart,
}

fn contiguous(structs: &VmStructs) -> Result<Parts, LayoutError> {
    let pointer = |name| structs.offset("CompiledMethod", name).map(BlobPart::Pointer);
    let from_blob = |name| structs.offset("nmethod", name).map(BlobPart::FromBlob);
    Ok(Parts {
        deopt_handler: pointer("_deopt_handler_begin")?,
        deopt_method_handle_handler: pointer("_deopt_mh_handler_begin")?,
        scopes_pcs_begin: from_blob("_scopes_pcs_offset")?,
        scopes_pcs_end: from_blob("_dependencies_offset")?,
        scopes_data_begin: pointer("_scopes_data_begin")?,
        metadata_begin: from_blob("_metadata_offset")?,
    })
}

fn split(structs: &VmStructs) -> Result<Parts, LayoutError> {
    let from_blob = |name| structs.offset("nmethod", name).map(BlobPart::FromBlob);
    let immutable = structs.offset("nmethod", "_immutable_data")?;
    let from_immutable = |name| {
        structs.offset("nmethod", name).map(|offset| BlobPart::FromPointer { base: immutable, offset })
    };
    Ok(Parts {
        deopt_handler: from_blob("_deopt_handler_offset")?,
        deopt_method_handle_handler: from_blob("_deopt_mh_handler_offset")?,
        scopes_pcs_begin: from_immutable("_scopes_pcs_offset")?,
        scopes_pcs_end: from_immutable("_scopes_data_offset")?,
        scopes_data_begin: from_immutable("_scopes_data_offset")?,
        metadata_begin: BlobPart::FromPointer {
            base: structs.offset("CodeBlob", "_mutable_data")?,
            offset: structs.offset("CodeBlob", "_relocation_size")?,
        },
    })
}

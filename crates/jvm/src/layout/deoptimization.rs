//! The search for the deoptimisation handlers of compiled methods, where libjvm does not describe their
//! fields by a name that is known: the handlers' code is recognised.

use otlpprof_core::deoptimization_handler::is_handler;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{BlobPart, DeoptimizationLayout, NmethodLayout, VmLayout};

use super::check::{self, BlobReader};
use super::learnt::Found;
use crate::vm_structs::VmStructs;

/// The alignment of an nmethod's fields, in bytes.
const ALIGNMENT: usize = 4;
/// A method may be freed while it is read. So many readings are tried.
const READINGS: usize = 4;
const STRUCTURE: &str = "nmethod";

/// The layout of frames that are to be deoptimised, and the fields that lead to the handlers: in each
/// compiled method such a field leads to a handler's code, or out of the stubs where the method has no such
/// handler. Of two fields, one is for method handles' calls, which few methods have. `None` if no field leads
/// to handlers, or more than two do.
pub(super) fn find(
    structs: &VmStructs,
    memory: &dyn Memory,
    layout: &VmLayout,
) -> Option<(DeoptimizationLayout, Vec<Found>)> {
    (0..READINGS).find_map(|_| find_now(structs, memory, layout))
}

fn find_now(
    structs: &VmStructs,
    memory: &dyn Memory,
    layout: &VmLayout,
) -> Option<(DeoptimizationLayout, Vec<Found>)> {
    let orig_pc_offset = structs.offset(STRUCTURE, "_orig_pc_offset").ok()?;
    let size = structs.size_of(STRUCTURE).ok()?;
    let sections = check::stub_sections(layout, memory);
    let reader = BlobReader { blobs: &layout.code_blob, memory };
    // The number of handlers to which a field leads.
    let handlers = |part: BlobPart| {
        let places = sections.iter().filter_map(|&(blob, stubs)| {
            reader.part(blob, part).filter(|&at| stubs.contains(at)).map(|at| (stubs, at))
        });
        let mut handlers = 0;
        for (stubs, at) in places {
            // Each method is complete, and its handler is never patched: none may be anything else.
            if !is_handler(memory, stubs, at) {
                return None;
            }
            handlers += 1;
        }
        Some(handlers).filter(|&handlers| handlers > 0)
    };
    let mut found = Vec::new();
    for offset in (0..size).step_by(ALIGNMENT) {
        for part in [BlobPart::FromBlob(offset), BlobPart::Pointer(offset)] {
            found.extend(handlers(part).map(|handlers| (handlers, offset, part)));
        }
    }
    found.sort_by_key(|&(handlers, ..)| std::cmp::Reverse(handlers));
    let (&[(.., all)] | &[(.., all), _]) = &found[..] else { return None };
    let of_method_handles = found.get(1).map_or(all, |&(.., part)| part);
    let deoptimization = DeoptimizationLayout { orig_pc_offset, handlers: [all, of_method_handles] };
    let nmethod = NmethodLayout { deoptimization: Some(deoptimization), ..layout.nmethod };
    check::check_code(&VmLayout { nmethod, ..*layout }, memory).ok()?;
    let named = found.iter().zip([check::DEOPT_HANDLER, "_deopt_mh_handler"]);
    let field = |(&(_, offset, _), field)| Found { structure: STRUCTURE, field, offset };
    Some((deoptimization, named.map(field).collect()))
}

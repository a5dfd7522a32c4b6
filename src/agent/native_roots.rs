//! Names the two frames at the root of a native thread where glibc's symbol table does not: distributions
//! strip the C library, and its `.dynsym` has neither function.
//!
//! `clone3` (or `clone`, which `.dynsym` has) starts a thread in `start_thread`
//! (glibc: sysdeps/unix/sysv/linux/ARCHITECTURE/clone3.S, nptl/pthread_create.c). Its call frame information
//! says that the return address is undefined, as it does of the entry of contexts that `makecontext` makes.
//! These call a function of the program, and `clone3` calls one of the C library. So the root of a stack is
//! `clone3` if it has no caller by its call frame information, and both it and the frame that it has called
//! are in the C library. An offset in the library decides nothing.

use std::collections::HashSet;

use crate::core::address::ElfVaddr;
use crate::core::object::ObjectIndex;
use crate::elf::objects::ObjectDetails;

/// The most places that are remembered. A library has two call sites, and some instructions after each.
const MAX_PLACES: usize = 256;

/// The function that the kernel starts a thread in.
const ROOT: &str = "clone3";

/// The function that it calls.
const START: &str = "start_thread";

/// The addresses of the two functions that stacks have shown so far.
#[derive(Debug, Default)]
pub(super) struct NativeRoots {
    roots: HashSet<(ObjectIndex, ElfVaddr)>,
    starts: HashSet<(ObjectIndex, ElfVaddr)>,
}

impl NativeRoots {
    /// Learns from the two outermost frames of a stack. `is_outermost` says whether the code of the outermost
    /// frame has no caller by its call frame information.
    pub(super) fn learn(
        &mut self,
        (callee, callee_at): (&ObjectDetails, ElfVaddr),
        (root, root_at): (&ObjectDetails, ElfVaddr),
        is_outermost: impl Fn(ObjectIndex, ElfVaddr) -> bool,
    ) {
        if is_c_library(root) && is_thread_library(callee) && is_outermost(root.index, root_at) {
            for (places, place) in
                [(&mut self.roots, (root.index, root_at)), (&mut self.starts, (callee.index, callee_at))]
            {
                if places.len() < MAX_PLACES {
                    places.insert(place);
                }
            }
        }
    }

    /// Returns the name of the function at `address`, if it is one of the two.
    pub(super) fn name(&self, object: ObjectIndex, address: ElfVaddr) -> Option<&'static str> {
        let place = (object, address);
        if self.roots.contains(&place) { Some(ROOT) } else { self.starts.contains(&place).then_some(START) }
    }
}

/// Whether the object is glibc's C library, `libc.so.6` or, until glibc 2.33, a link to `libc-2.33.so`.
fn is_c_library(details: &ObjectDetails) -> bool {
    is_named(details, "libc.so.6", "libc-2.")
}

/// Whether the object is the library with glibc's threads: a library of its own until glibc 2.33.
fn is_thread_library(details: &ObjectDetails) -> bool {
    is_c_library(details) || is_named(details, "libpthread.so.0", "libpthread-2.")
}

fn is_named(details: &ObjectDetails, name: &str, or_prefix: &str) -> bool {
    let found = details.name().to_string_lossy();
    found == name || found.starts_with(or_prefix)
}

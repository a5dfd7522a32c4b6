//! The loaded objects as the dynamic linker knows them.
//!
//! Code of a library can run before the agent has read the library: its initializers, and the first calls
//! from the thread that has loaded it. The dynamic linker knows the library by then. glibc tells where the
//! call frame information of any loaded object is through `_dl_find_object`, which takes no lock and may be
//! called in a signal handler (The GNU C Library manual, "Dynamic Linker Introspection"; glibc 2.35 on).

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// `struct dl_find_object` on 64-bit machines (dlfcn.h, glibc 2.35 on).
#[repr(C)]
struct FoundObject {
    flags: u64,
    map_start: *mut c_void,
    map_end: *mut c_void,
    link_map: *mut c_void,
    eh_frame: *mut c_void,
    reserved: [u64; 7],
}

type DlFindObject = unsafe extern "C" fn(*mut c_void, *mut FoundObject) -> i32;

static DL_FIND_OBJECT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// From now on [`frame_header_at`] asks `function`; with null it returns `None`, as before the first call.
///
/// # Safety
/// `function` is null or glibc's `_dl_find_object`.
pub unsafe fn ask(function: *mut c_void) {
    DL_FIND_OBJECT.store(function, Ordering::Release);
}

/// The run-time address of `.eh_frame_hdr` of the object that is loaded at run-time address `pc`.
pub fn frame_header_at(pc: u64) -> Option<u64> {
    let function = DL_FIND_OBJECT.load(Ordering::Acquire);
    if function.is_null() {
        return None;
    }
    let null = ptr::null_mut();
    let mut found = FoundObject {
        flags: 0,
        map_start: null,
        map_end: null,
        link_map: null,
        eh_frame: null,
        reserved: [0; 7],
    };
    // SAFETY: by the contract of `ask` the function belongs to glibc, and has this type. It reads its own
    // tables alone, whatever `pc` is, and writes one `dl_find_object`.
    let result = unsafe {
        let function = std::mem::transmute::<*mut c_void, DlFindObject>(function);
        function(ptr::without_provenance_mut(pc as usize), &raw mut found)
    };
    (result == 0 && !found.eh_frame.is_null()).then(|| found.eh_frame.addr() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dynamic_linker_knows_this_function_and_no_data() {
        // SAFETY: the name is a C string; nothing is loaded.
        let linkers = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
        // SAFETY: the address is null or leads to glibc's `_dl_find_object`.
        unsafe { ask(linkers) };
        let function = frame_header_at as *const () as u64;
        assert_eq!(frame_header_at(function).is_some(), !linkers.is_null());
        let local = 0_u64;
        assert_eq!(frame_header_at((&raw const local).addr() as u64), None);
        assert_eq!(frame_header_at(0), None);
    }
}

//! Other copies of this library in the process, under other names: each would be an agent of its own, that takes the others'
//! events, stands in for the same functions and samples the same threads. The first that is started stays the only one.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::elf::image::LoadedImage;
use crate::elf::loader_list::loaded_objects;

/// 1 once this copy has been started. All copies have it by the same name, and so a later version must too.
#[unsafe(export_name = "otlpprof_is_started")]
static IS_STARTED: AtomicU32 = AtomicU32::new(0);
const NAME: &CStr = c"otlpprof_is_started";

/// This copy is the agent of the process.
pub(super) fn note_start() {
    IS_STARTED.store(1, Ordering::Release);
}

/// The file of another copy that is the agent of the process.
pub(super) fn started() -> Option<PathBuf> {
    if IS_STARTED.load(Ordering::Acquire) != 0 {
        return None;
    }
    let images = loaded_objects().images;
    images.iter().map(LoadedImage::name).find(|name| is_started(name)).map(Path::to_owned)
}

/// Whether the object of this name is another copy, and was started.
fn is_started(name: &Path) -> bool {
    // With the program's own name, which is empty, all objects would be searched.
    let Some(name) = CString::new(name.as_os_str().as_bytes()).ok().filter(|name| !name.is_empty()) else {
        return false;
    };
    // SAFETY: what is loaded already is not loaded anew, and runs nothing; the symbol is looked for while the object is held.
    unsafe {
        let object = libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if object.is_null() {
            return false;
        }
        let symbol = libc::dlsym(object, NAME.as_ptr()).cast::<AtomicU32>().cast_const();
        let is_started =
            !symbol.is_null() && symbol != &raw const IS_STARTED && (*symbol).load(Ordering::Acquire) != 0;
        libc::dlclose(object);
        is_started
    }
}

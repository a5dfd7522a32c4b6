//! Detects other copies of this library in the process, loaded under other names. Each copy would be an agent
//! of its own, take the others' events, replace the same functions and sample the same threads. So the first
//! copy that is started stays the only one.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use otlpprof_elf::image::LoadedImage;
use otlpprof_elf::loader_list::loaded_objects;

/// 1 once this copy has been started. All copies export this variable by the same name, so later versions
/// must keep it.
#[unsafe(export_name = "otlpprof_is_started")]
static IS_STARTED: AtomicU32 = AtomicU32::new(0);
const NAME: &CStr = c"otlpprof_is_started";

/// Notes that this copy is the agent of the process.
pub(super) fn note_start() {
    IS_STARTED.store(1, Ordering::Release);
}

/// Returns the file of another copy that is the agent of the process.
pub(super) fn started() -> Option<PathBuf> {
    if IS_STARTED.load(Ordering::Acquire) != 0 {
        return None;
    }
    let images = loaded_objects().images;
    images.iter().map(LoadedImage::name).find(|name| is_started(name)).map(Path::to_owned)
}

/// Whether the object of this name is another copy, and was started.
fn is_started(name: &Path) -> bool {
    // The program's own name is empty. With it, all objects would be searched.
    let Some(name) = CString::new(name.as_os_str().as_bytes()).ok().filter(|name| !name.is_empty()) else {
        return false;
    };
    // SAFETY: RTLD_NOLOAD loads nothing and runs no code; the symbol is used only while the object is held.
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

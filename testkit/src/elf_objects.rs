//! Loaded objects of this process, and libraries to load.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use otlpprof_core::address::RuntimeAddr;
use otlpprof_elf::image::LoadedImage;
use otlpprof_elf::loader_list::loaded_objects;

use crate::commands::output_of;
use crate::jdk;

/// The libjvm.so of one JDK of each version that this process can load.
pub fn libjvms() -> Vec<PathBuf> {
    jdk::loadable_homes().iter().map(|home| jdk::libjvm(home)).collect()
}

/// The file of the C library in this process.
pub fn libc_path() -> PathBuf {
    image_at(libc::getpid as *const () as u64).name().canonicalize().unwrap()
}

/// The loaded object that contains an address.
#[track_caller]
pub fn image_at(address: u64) -> LoadedImage {
    let mut images = loaded_objects().images.into_iter();
    images.find(|image| image.contains(RuntimeAddr(address))).expect("an object at this address")
}

/// The loaded object with this file name.
pub fn image_of(path: &Path) -> Option<LoadedImage> {
    loaded_objects().images.into_iter().find(|image| image.name() == path)
}

/// A library that stays loaded until this value is dropped.
pub struct Library(*mut libc::c_void);

impl Library {
    /// Loads `path`, whose constructors must be harmless.
    #[track_caller]
    pub fn open(path: &Path) -> Self {
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the name is NUL-terminated; the callers pass libraries whose constructors are harmless.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "dlopen {}", path.display());
        Self(handle)
    }

    /// The address of an exported symbol.
    pub fn symbol(&self, name: &str) -> u64 {
        let name = CString::new(name).unwrap();
        // SAFETY: the handle is open until this value is dropped, and the name is NUL-terminated.
        unsafe { libc::dlsym(self.0, name.as_ptr()) as u64 }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle comes from dlopen and is closed only here.
        unsafe { libc::dlclose(self.0) };
    }
}

/// Compiles C source to a shared library `name` in `directory`.
#[track_caller]
pub fn compile_library(directory: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let source_path = directory.join(name).with_extension("c");
    std::fs::write(&source_path, source).unwrap();
    let library = directory.join(name);
    let arguments: Vec<&str> = ["-shared", "-fPIC", "-O1", "-o"]
        .into_iter()
        .chain([library.to_str().unwrap(), source_path.to_str().unwrap()])
        .chain(flags.iter().copied())
        .collect();
    output_of("cc", &arguments);
    library
}

//! The libjvm of this process.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use jni::sys;
use thiserror::Error;

/// The reason why libjvm could not be opened.
#[derive(Debug, Error)]
pub enum LibjvmError {
    /// The dynamic linker knows no object at the address of the JavaVM's functions.
    #[error("no loaded library holds the JavaVM's functions")]
    NotLoaded,
    /// The dynamic linker refuses to open a handle.
    #[error("cannot open {path}: {reason}")]
    NotOpened {
        /// The library's path, as the dynamic linker reports it.
        path: String,
        /// The dynamic linker's message.
        reason: String,
    },
}

/// A handle to libjvm.
#[derive(Debug)]
pub struct Libjvm {
    handle: *mut c_void,
    path: CString,
}

// SAFETY: a handle of dlopen may be used and closed from any thread.
unsafe impl Send for Libjvm {}
// SAFETY: dlsym is thread-safe (POSIX).
unsafe impl Sync for Libjvm {}

impl Libjvm {
    /// The library that contains `vm`'s functions.
    ///
    /// # Safety
    ///
    /// `vm` must be a JavaVM of this process.
    pub unsafe fn of(vm: *mut sys::JavaVM) -> Result<Self, LibjvmError> {
        // The invocation interface begins with three reserved words; DestroyJavaVM follows (JNI
        // specification, "Invocation API").
        // SAFETY: a JavaVM points to its function table.
        let destroy_java_vm = unsafe { *(*vm).cast::<*const c_void>().add(3) };
        let mut info = libc::Dl_info {
            dli_fname: std::ptr::null(),
            dli_fbase: std::ptr::null_mut(),
            dli_sname: std::ptr::null(),
            dli_saddr: std::ptr::null_mut(),
        };
        // SAFETY: dladdr takes any address and fills `info`.
        if unsafe { libc::dladdr(destroy_java_vm, &mut info) } == 0 || info.dli_fname.is_null() {
            return Err(LibjvmError::NotLoaded);
        }
        // SAFETY: dladdr's name is a C string that lives as long as the object.
        let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_owned();
        // SAFETY: with RTLD_NOLOAD dlopen runs no initialiser; it only finds a loaded object.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            let reason = dl_error();
            return Err(LibjvmError::NotOpened { path: path.to_string_lossy().into_owned(), reason });
        }
        Ok(Self { handle, path })
    }

    /// The address of an exported symbol.
    pub fn symbol(&self, name: &str) -> Option<u64> {
        let name = CString::new(name).ok()?;
        // SAFETY: the handle is open.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        (!address.is_null()).then_some(address as u64)
    }

    /// The library's path, as the dynamic linker reports it.
    pub fn path(&self) -> &CStr {
        &self.path
    }
}

impl Drop for Libjvm {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and dlopen counted each. libjvm itself stays loaded.
        let _: c_int = unsafe { libc::dlclose(self.handle) };
    }
}

fn dl_error() -> String {
    // SAFETY: dlerror returns a C string or null, valid until this thread's next call.
    let message: *const c_char = unsafe { libc::dlerror() };
    if message.is_null() {
        return "it is not loaded under that name".to_owned();
    }
    // SAFETY: the string is not null, and this thread has not called dlerror again.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}

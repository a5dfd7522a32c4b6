//! The agent's own classes in the boot loader.

use std::ffi::{CString, c_void};

use jni::sys::{JNI_OK, JNIEnv, JNINativeMethod, jclass, jint};
use thiserror::Error;

use super::class_file::{ClassFileError, OwnNativeMethod};
use super::jvmti::{Jvmti, check};
use super::jvmti_error::JvmtiError;

/// The reason why a class of the agent could not be prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BootClassError {
    /// The class file cannot be generated.
    #[error("{0}: {1}")]
    File(&'static str, ClassFileError),
    /// The VM does not define the class.
    #[error("the VM rejects the agent's class {0}")]
    Class(&'static str),
    /// The VM does not bind the class's native method.
    #[error("the VM rejects the native method of {0}")]
    Method(&'static str),
    /// The module of the instrumented classes cannot be made to read the module of the agent's class.
    #[error("java.base cannot be allowed to call the agent ({0})")]
    Module(JvmtiError),
}

/// Lets the module of `class`, java.base, read the module of `other`.
///
/// # Safety
/// `env` must belong to the current thread; `class` and `other` must be live references to classes.
pub unsafe fn let_module_read(
    jvmti: Jvmti,
    env: *mut JNIEnv,
    class: jclass,
    other: jclass,
) -> Result<(), BootClassError> {
    let table = jvmti.live_table("AddModuleReads").map_err(BootClassError::Module)?;
    // SAFETY: the contract gives the current thread's `env`, and live references to both classes. Every class
    // has a module, and each module reference is deleted once.
    unsafe {
        let modules = [class, other].map(|class| ((**env).v9.GetModule)(env, class));
        let code = table.add_module_reads()(jvmti.as_raw(), modules[0], modules[1]);
        for module in modules {
            ((**env).v1_2.DeleteLocalRef)(env, module);
        }
        check("AddModuleReads", code).map_err(BootClassError::Module)
    }
}

/// Whether an exception is pending; clears the exception.
///
/// # Safety
/// `env` must belong to the current thread.
unsafe fn take_exception(env: *mut JNIEnv) -> bool {
    // SAFETY: `env` belongs to the current thread by this function's contract.
    unsafe {
        let is_pending = ((**env).v1_2.ExceptionCheck)(env);
        if is_pending {
            ((**env).v1_1.ExceptionClear)(env);
        }
        is_pending
    }
}

/// Defines a class in the boot loader, or finds it if it has been defined before. Returns a local reference,
/// or `None` if the VM refuses. `name` has slashes.
///
/// # Safety
/// `env` must belong to the current thread, which has no pending exception.
pub unsafe fn boot_class(env: *mut JNIEnv, name: &str, class_file: &[u8]) -> Option<jclass> {
    let name = CString::new(name).ok()?;
    let length = jint::try_from(class_file.len()).ok()?;
    // SAFETY: `env` belongs to the current thread by this function's contract. `bytes` has `length` bytes,
    // and a null loader means the boot loader. An exception that was thrown is cleared.
    unsafe {
        let no_loader = std::ptr::null_mut();
        let bytes = class_file.as_ptr().cast();
        let defined = ((**env).v1_1.DefineClass)(env, name.as_ptr(), no_loader, bytes, length);
        if !take_exception(env) {
            return (!defined.is_null()).then_some(defined);
        }
        let found = ((**env).v1_1.FindClass)(env, name.as_ptr());
        (!take_exception(env) && !found.is_null()).then_some(found)
    }
}

/// Defines, or finds, the boot loader's class of a native method and binds the method to `function`. Returns
/// a local reference to the class.
///
/// # Safety
/// As for [`boot_class`]. `function` must have the method's signature and stay mapped.
pub unsafe fn class_of_native(
    env: *mut JNIEnv,
    method: OwnNativeMethod,
    function: *mut c_void,
) -> Result<jclass, BootClassError> {
    // SAFETY: this function has the same contract.
    unsafe { class_with_native(env, method, method.class_file(), function) }
}

/// The same for a class that has more methods. `file` is its class file.
///
/// # Safety
/// As for [`class_of_native`].
pub unsafe fn class_with_native(
    env: *mut JNIEnv,
    method: OwnNativeMethod,
    file: Result<Vec<u8>, ClassFileError>,
    function: *mut c_void,
) -> Result<jclass, BootClassError> {
    let file = file.map_err(|error| BootClassError::File(method.class, error))?;
    // SAFETY: `env` belongs to the current thread, which has no pending exception, by this function's
    // contract.
    let class = unsafe { boot_class(env, method.class, &file) }.ok_or(BootClassError::Class(method.class))?;
    let [Ok(name), Ok(descriptor)] = [method.name, method.descriptor].map(CString::new) else {
        return Err(BootClassError::Method(method.class));
    };
    let native = JNINativeMethod {
        name: name.as_ptr().cast_mut(),
        signature: descriptor.as_ptr().cast_mut(),
        fnPtr: function,
    };
    // SAFETY: the contract gives the current thread's `env`, and a function that has the method's signature
    // and stays mapped. The class has a native method of that type, and the strings outlive the call.
    let registered = unsafe {
        let registered = ((**env).v1_1.RegisterNatives)(env, class, &raw const native, 1);
        !take_exception(env) && registered == JNI_OK
    };
    if !registered {
        // SAFETY: this function owns the reference.
        unsafe { ((**env).v1_2.DeleteLocalRef)(env, class) };
        return Err(BootClassError::Method(method.class));
    }
    Ok(class)
}

//! Classes of ours in the boot loader, which changed classes call.

use std::ffi::{CString, c_void};

use jni::sys::{JNI_OK, JNIEnv, JNINativeMethod, jclass, jint};
use thiserror::Error;

use super::class_file::{ClassFileError, OwnNativeMethod};
use super::jvmti::{Jvmti, check};
use super::jvmti_error::JvmtiError;

/// Why there is no class with a native method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BootClassError {
    /// Its file cannot be written.
    #[error("{0}: {1}")]
    File(&'static str, ClassFileError),
    /// The VM does not define it.
    #[error("the VM does not take the class {0}, which changed classes call")]
    Class(&'static str),
    /// The VM does not bind its method.
    #[error("the VM does not take the native method of {0}")]
    Method(&'static str),
    /// The module of the changed classes may not use it.
    #[error("java.base may not call the agent ({0})")]
    Module(JvmtiError),
}

/// Lets the module of one class, which is java.base, use the module of another.
///
/// # Safety
/// `env` is the current thread's, `class` and `other` live references to classes.
pub unsafe fn let_module_read(
    jvmti: Jvmti,
    env: *mut JNIEnv,
    class: jclass,
    other: jclass,
) -> Result<(), BootClassError> {
    let table = jvmti.live_table("AddModuleReads").map_err(BootClassError::Module)?;
    // SAFETY: by the contract; a class has a module, and the references are deleted once.
    unsafe {
        let modules = [class, other].map(|class| ((**env).v9.GetModule)(env, class));
        let code = table.add_module_reads()(jvmti.as_raw(), modules[0], modules[1]);
        for module in modules {
            ((**env).v1_2.DeleteLocalRef)(env, module);
        }
        check("AddModuleReads", code).map_err(BootClassError::Module)
    }
}

/// Takes back an exception, if there is one.
///
/// # Safety
/// `env` is the current thread's.
unsafe fn has_thrown(env: *mut JNIEnv) -> bool {
    // SAFETY: by the contract.
    unsafe {
        let has_thrown = ((**env).v1_2.ExceptionCheck)(env);
        if has_thrown {
            ((**env).v1_1.ExceptionClear)(env);
        }
        has_thrown
    }
}

/// Defines a class of the boot loader's, or finds it if it is there: a local reference; `None` if the VM refuses. `name` has
/// slashes.
///
/// # Safety
/// `env` is the current thread's, without a pending exception.
pub unsafe fn boot_class(env: *mut JNIEnv, name: &str, class_file: &[u8]) -> Option<jclass> {
    let name = CString::new(name).ok()?;
    let length = jint::try_from(class_file.len()).ok()?;
    // SAFETY: by the contract; the bytes are that many, and a null loader is the boot loader. An exception that has been
    // thrown is taken back.
    unsafe {
        let no_loader = std::ptr::null_mut();
        let bytes = class_file.as_ptr().cast();
        let defined = ((**env).v1_1.DefineClass)(env, name.as_ptr(), no_loader, bytes, length);
        if !has_thrown(env) {
            return (!defined.is_null()).then_some(defined);
        }
        let found = ((**env).v1_1.FindClass)(env, name.as_ptr());
        (!has_thrown(env) && !found.is_null()).then_some(found)
    }
}

/// Defines the class of a native method of the boot loader's, or finds it, and binds the method: a local reference.
///
/// # Safety
/// As for [`boot_class`]; `function` must be one for this method, and stay.
pub unsafe fn class_of_native(
    env: *mut JNIEnv,
    method: OwnNativeMethod,
    function: *mut c_void,
) -> Result<jclass, BootClassError> {
    let file = method.class_file().map_err(|error| BootClassError::File(method.class, error))?;
    // SAFETY: by the contract.
    let class = unsafe { boot_class(env, method.class, &file) }.ok_or(BootClassError::Class(method.class))?;
    let [Ok(name), Ok(descriptor)] = [method.name, method.descriptor].map(CString::new) else {
        return Err(BootClassError::Method(method.class));
    };
    let native = JNINativeMethod {
        name: name.as_ptr().cast_mut(),
        signature: descriptor.as_ptr().cast_mut(),
        fnPtr: function,
    };
    // SAFETY: by the contract; the class has a native method of that type, and the texts live for the call.
    let registered = unsafe {
        let registered = ((**env).v1_1.RegisterNatives)(env, class, &raw const native, 1);
        !has_thrown(env) && registered == JNI_OK
    };
    if !registered {
        // SAFETY: the reference is this function's.
        unsafe { ((**env).v1_2.DeleteLocalRef)(env, class) };
        return Err(BootClassError::Method(method.class));
    }
    Ok(class)
}

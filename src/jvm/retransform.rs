//! Classes that are changed while they are in use, by JVMTI's RetransformClasses, and classes that are defined.

use std::ffi::CStr;

use jni::sys::{JNIEnv, jclass, jint, jobject};

use super::jvmti::{Jvmti, check};
use super::jvmti_error::JvmtiError;

/// `JVMTI_CLASS_STATUS_PREPARED`.
const PREPARED: jint = 2;

impl Jvmti {
    /// Whether the class has been linked, and may be changed.
    ///
    /// # Safety
    /// `class` must be a live reference to a class.
    pub unsafe fn can_be_changed(self, class: jobject) -> Result<bool, JvmtiError> {
        let (mut status, mut is_modifiable) = (0, false);
        // SAFETY: the caller answers for the reference; the out parameters are valid.
        unsafe {
            check("GetClassStatus", self.table().get_class_status()(self.as_raw(), class, &mut status))?;
            let code = self.table().is_modifiable_class()(self.as_raw(), class, &mut is_modifiable);
            check("IsModifiableClass", code)?;
        }
        Ok(status & PREPARED != 0 && is_modifiable)
    }

    /// Has the ClassFileLoadHook of all environments make these classes anew. All are changed, or none: then the VM has not
    /// accepted one of them, which the program does not notice.
    ///
    /// # Safety
    /// `classes` must be live references to classes.
    pub unsafe fn retransform_classes(self, classes: &[jobject]) -> Result<(), JvmtiError> {
        let count = jint::try_from(classes.len()).unwrap_or(jint::MAX);
        // SAFETY: the caller answers for the references, of which there are that many.
        let code = unsafe { self.table().retransform_classes()(self.as_raw(), count, classes.as_ptr()) };
        check("RetransformClasses", code)
    }
}

/// Lets the module of one class use the module of another.
///
/// # Safety
/// `env` is the current thread's, `class` and `other` live references to classes.
pub unsafe fn let_module_read(
    jvmti: Jvmti,
    env: *mut JNIEnv,
    class: jclass,
    other: jclass,
) -> Result<(), JvmtiError> {
    // SAFETY: by the contract; a class has a module, and the references are deleted once.
    unsafe {
        let modules = [class, other].map(|class| ((**env).v9.GetModule)(env, class));
        let code = jvmti.table().add_module_reads()(jvmti.as_raw(), modules[0], modules[1]);
        for module in modules {
            ((**env).v1_2.DeleteLocalRef)(env, module);
        }
        check("AddModuleReads", code)
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

/// Defines a class of the boot loader's, or finds it if it is there: a local reference; `None` if the VM refuses.
///
/// # Safety
/// `env` is the current thread's, without a pending exception.
pub unsafe fn boot_class(env: *mut JNIEnv, name: &CStr, class_file: &[u8]) -> Option<jclass> {
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

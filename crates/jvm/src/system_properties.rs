//! Java's system properties. JVMTI knows only the VM's own; Java code sets the others.

use std::ffi::CStr;

use jni::sys::{JNIEnv, jclass, jobject, jvalue};

use super::modified_utf8;

/// `System.getProperty(name)`; `None` if the property does not exist or cannot be read.
///
/// # Safety
///
/// `env` must belong to the current thread, which has no pending exception, in the VM's live phase.
pub unsafe fn system_property(env: *mut JNIEnv, name: &CStr) -> Option<String> {
    // SAFETY: the contract gives the current thread's `env`, without a pending exception. The references
    // belong to the pushed frame, and PopLocalFrame deletes them.
    unsafe {
        let functions = &(**env).v1_2;
        if (functions.PushLocalFrame)(env, 4) != 0 {
            (functions.ExceptionClear)(env);
            return None;
        }
        let class = (functions.FindClass)(env, c"java/lang/System".as_ptr());
        let value = if class.is_null() { None } else { property_of(env, class, name) };
        (functions.ExceptionClear)(env);
        (functions.PopLocalFrame)(env, std::ptr::null_mut());
        value
    }
}

/// # Safety
///
/// As for [`system_property`]; `system` must be `java.lang.System`. May leave an exception pending.
unsafe fn property_of(env: *mut JNIEnv, system: jclass, name: &CStr) -> Option<String> {
    // SAFETY: the contract gives the current thread's `env`, and the class java.lang.System; each reference
    // is checked before it is used.
    unsafe {
        let functions = &(**env).v1_2;
        let signature = c"(Ljava/lang/String;)Ljava/lang/String;";
        let get = (functions.GetStaticMethodID)(env, system, c"getProperty".as_ptr(), signature.as_ptr());
        let key = (functions.NewStringUTF)(env, name.as_ptr());
        if get.is_null() || key.is_null() {
            return None;
        }
        let arguments = [jvalue { l: key as jobject }];
        let value: jobject = (functions.CallStaticObjectMethodA)(env, system, get, arguments.as_ptr());
        if (functions.ExceptionCheck)(env) || value.is_null() {
            return None;
        }
        let chars = (functions.GetStringUTFChars)(env, value, std::ptr::null_mut());
        if chars.is_null() {
            return None;
        }
        let text = modified_utf8::decode(CStr::from_ptr(chars).to_bytes()).into_owned();
        (functions.ReleaseStringUTFChars)(env, value, chars);
        Some(text)
    }
}

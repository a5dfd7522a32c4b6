//! Strings and exceptions that are passed between Java and the agent, through JNI.

use std::ffi::CStr;
use std::ptr::null_mut;

use jni::sys::{JNIEnv, jint, jobjectArray, jstring, jvalue};

/// Makes a Java string; null, with an exception pending, if the heap is full.
///
/// # Safety
/// `env` belongs to the current thread, which has no pending exception.
pub(super) unsafe fn new_string(env: *mut JNIEnv, text: &str) -> jstring {
    let utf16: Vec<u16> = text.encode_utf16().collect();
    // SAFETY: the contract gives the current thread's `env`, without a pending exception; the text is that
    // long.
    unsafe { ((**env).v1_1.NewString)(env, utf16.as_ptr(), utf16.len() as jint) }
}

/// Returns the text of a string of at most `longest` UTF-16 units; `None` for a longer string or null.
///
/// # Safety
/// `env` belongs to the current thread. `string` is null or a live reference to a string.
pub(super) unsafe fn text_of(env: *mut JNIEnv, string: jstring, longest: usize) -> Option<String> {
    if string.is_null() {
        return None;
    }
    // SAFETY: the contract gives `env` and a live `string`; the region is within the string and the buffer.
    unsafe {
        let length = ((**env).v1_1.GetStringLength)(env, string);
        let mut units = vec![0; usize::try_from(length).ok().filter(|&length| length <= longest)?];
        ((**env).v1_2.GetStringRegion)(env, string, 0, length, units.as_mut_ptr());
        Some(String::from_utf16_lossy(&units))
    }
}

/// Returns the strings of an array. An element may be null.
///
/// # Safety
/// `env` belongs to the current thread. `texts` is a live reference to an array of strings.
pub(super) unsafe fn texts_of(env: *mut JNIEnv, texts: jobjectArray) -> Vec<Option<String>> {
    let mut all = Vec::new();
    // SAFETY: the contract gives `env` and a live array of strings; the indices are within the array.
    unsafe {
        for index in 0..((**env).v1_1.GetArrayLength)(env, texts) {
            let text = ((**env).v1_1.GetObjectArrayElement)(env, texts, index);
            all.push(text_of(env, text, usize::MAX));
            ((**env).v1_1.DeleteLocalRef)(env, text);
        }
    }
    all
}

/// Throws an exception of a class of the boot loader whose constructor takes a message.
///
/// # Safety
/// `env` belongs to the current thread, which has no pending exception.
pub(super) unsafe fn throw(env: *mut JNIEnv, class: &CStr, message: &str) {
    // SAFETY: the contract gives the current thread's `env`, without a pending exception. A null result is
    // not used further; an exception is pending then. ThrowNew is avoided, since it takes the VM's modified
    // UTF-8, in which supplementary characters are encoded differently.
    unsafe {
        let class = ((**env).v1_2.FindClass)(env, class.as_ptr());
        if class.is_null() {
            return;
        }
        let (name, signature) = (c"<init>".as_ptr(), c"(Ljava/lang/String;)V".as_ptr());
        let constructor = ((**env).v1_2.GetMethodID)(env, class, name, signature);
        let message = if constructor.is_null() { null_mut() } else { new_string(env, message) };
        if !message.is_null() {
            let arguments = [jvalue { l: message }];
            let exception = ((**env).v1_2.NewObjectA)(env, class, constructor, arguments.as_ptr());
            if !((**env).v1_2.ExceptionCheck)(env) && !exception.is_null() {
                ((**env).v1_1.Throw)(env, exception);
            }
        }
    }
}

//! Local references that JVMTI makes many of at once.

use jni::sys::{JNIEnv, jint};

/// More are refused (`MaxJNILocalCapacity` in runtime/globals.hpp, 11-25).
const MOST: usize = 65_536;

/// Says that the current thread has so many references more. The VM makes them all the same: -Xcheck:jni
/// wants to know.
///
/// # Safety
///
/// `env` must be the current thread's JNIEnv, without a pending exception.
pub unsafe fn expect(env: *mut JNIEnv, count: usize) {
    // SAFETY: the caller answers for `env`. Where the VM refuses nothing is lost but a warning of its own.
    unsafe {
        if ((**env).v1_2.EnsureLocalCapacity)(env, count.min(MOST) as jint) != 0 {
            ((**env).v1_2.ExceptionClear)(env);
        }
    }
}

//! Capacity for the many local references that JVMTI creates at once.

use jni::sys::{JNIEnv, jint};

/// The VM refuses a larger capacity (`MaxJNILocalCapacity` in runtime/globals.hpp, 11-25).
const MAX_REFERENCES: usize = 65_536;

/// Announces `count` more local references of the current thread. The VM would create them without the
/// announcement too, but -Xcheck:jni would warn.
///
/// # Safety
///
/// `env` must belong to the current thread, which has no pending exception.
pub unsafe fn expect(env: *mut JNIEnv, count: usize) {
    // SAFETY: the contract gives the current thread's `env`, without a pending exception. If the VM refuses,
    // the only effect is a warning of -Xcheck:jni.
    unsafe {
        if ((**env).v1_2.EnsureLocalCapacity)(env, count.min(MAX_REFERENCES) as jint) != 0 {
            ((**env).v1_2.ExceptionClear)(env);
        }
    }
}

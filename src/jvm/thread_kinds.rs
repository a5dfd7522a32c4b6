//! What kind of thread a `java.lang.Thread` is.

use std::ffi::CStr;
use std::sync::OnceLock;

use jni::sys::{JNIEnv, jclass, jobject};

/// The kinds of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// A thread of the kernel's.
    Platform,
    /// One that is mounted on carriers (21 on).
    Virtual,
    /// One that is virtual by name alone, where the VM has no continuations.
    BoundVirtual,
}

/// Global references, which are never given back.
struct Classes {
    virtual_thread: Option<jclass>,
    base_virtual_thread: Option<jclass>,
}

// SAFETY: global references may be used from any thread.
unsafe impl Send for Classes {}
// SAFETY: as above.
unsafe impl Sync for Classes {}

static CLASSES: OnceLock<Classes> = OnceLock::new();

impl ThreadKind {
    /// The kind of `thread`.
    ///
    /// # Safety
    ///
    /// `env` must be the current thread's JNIEnv, without a pending exception; `thread` a live reference to a thread.
    pub unsafe fn of(env: *mut JNIEnv, thread: jobject) -> Self {
        // SAFETY: the caller answers for `env`.
        let classes = CLASSES.get_or_init(|| unsafe {
            Classes {
                virtual_thread: class(env, c"java/lang/VirtualThread"),
                base_virtual_thread: class(env, c"java/lang/BaseVirtualThread"),
            }
        });
        let is = |class: Option<jclass>| {
            // SAFETY: the caller answers for both; the class is a live reference.
            class.is_some_and(|class| unsafe { ((**env).v1_1.IsInstanceOf)(env, thread, class) })
        };
        if is(classes.virtual_thread) {
            Self::Virtual
        } else if is(classes.base_virtual_thread) {
            Self::BoundVirtual
        } else {
            Self::Platform
        }
    }
}

/// A global reference to a class of the boot loader; `None`, and no exception pending, if there is none of that name.
///
/// # Safety
///
/// `env` must be the current thread's JNIEnv.
unsafe fn class(env: *mut JNIEnv, name: &CStr) -> Option<jclass> {
    // SAFETY: the caller answers for `env`; the name is a C string.
    unsafe {
        let local = ((**env).v1_2.FindClass)(env, name.as_ptr());
        ((**env).v1_1.ExceptionClear)(env);
        if local.is_null() {
            return None;
        }
        let global = ((**env).v1_1.NewGlobalRef)(env, local);
        ((**env).v1_1.DeleteLocalRef)(env, local);
        (!global.is_null()).then_some(global)
    }
}

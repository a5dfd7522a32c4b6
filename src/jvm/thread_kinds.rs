//! What kind of thread a `java.lang.Thread` is.

use jni::sys::{JNIEnv, jobject};

use super::jvmti::Jvmti;
use super::jvmti_error::JvmtiError;

/// The kinds of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// A thread of the kernel's.
    Platform,
    /// One that the VM's own scheduler runs virtual threads on.
    Carrier,
    /// One that is mounted on carriers (21 on).
    Virtual,
    /// One that is virtual by name alone, where the VM has no continuations.
    BoundVirtual,
}

impl ThreadKind {
    /// The kind of `thread`. Its class says so, asked by name: to look a class up may run a class loader of the
    /// application's, which may do anything, and wait for whoever waits for us.
    ///
    /// # Safety
    ///
    /// `env` must be the current thread's JNIEnv, without a pending exception; `thread` a live reference to a thread.
    pub unsafe fn of(jvmti: Jvmti, env: *mut JNIEnv, thread: jobject) -> Result<Self, JvmtiError> {
        // SAFETY: the caller answers for both; the class is a live reference until it is deleted.
        let signature = unsafe {
            let class = ((**env).v1_1.GetObjectClass)(env, thread);
            let signature = jvmti.class_signature(class);
            ((**env).v1_2.DeleteLocalRef)(env, class);
            signature?
        };
        Ok(Self::of_class(&signature))
    }

    /// Both classes of virtual threads are final, and no other extends BaseVirtualThread; no other extends CarrierThread
    /// (java.base of 21 and 25). No application's class can be in their packages.
    fn of_class(signature: &str) -> Self {
        match signature {
            "Ljava/lang/VirtualThread;" => Self::Virtual,
            "Ljava/lang/ThreadBuilders$BoundVirtualThread;" => Self::BoundVirtual,
            "Ljdk/internal/misc/CarrierThread;" => Self::Carrier,
            _ => Self::Platform,
        }
    }
}

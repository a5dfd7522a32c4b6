//! The kind of thread that a `java.lang.Thread` represents.

use jni::sys::{JNIEnv, jobject};

use super::jvmti::Jvmti;
use super::jvmti_error::JvmtiError;

/// The kinds of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// A thread of the kernel.
    Platform,
    /// A platform thread on which the VM's own scheduler runs virtual threads.
    Carrier,
    /// A virtual thread that is mounted on carriers (21 on).
    Virtual,
    /// A virtual thread that permanently has a platform thread, in a VM without continuations.
    BoundVirtual,
}

impl ThreadKind {
    /// The kind of `thread`, recognised by the name of its class. Comparing with looked-up classes is not an
    /// option: looking up a class may run an application's class loader, which may do anything, and may wait
    /// for a thread that waits for this one.
    ///
    /// # Safety
    ///
    /// `env` must belong to the current thread, which has no pending exception; `thread` must be a live
    /// reference to a thread.
    pub unsafe fn of(jvmti: Jvmti, env: *mut JNIEnv, thread: jobject) -> Result<Self, JvmtiError> {
        // SAFETY: the contract gives the current thread's `env` and a live `thread`; the class is a live
        // reference until it is deleted.
        let signature = unsafe {
            let class = ((**env).v1_1.GetObjectClass)(env, thread);
            let signature = jvmti.class_signature(class);
            ((**env).v1_2.DeleteLocalRef)(env, class);
            signature?
        };
        Ok(Self::of_class(&signature))
    }

    /// Comparing names is exact. Both classes of virtual threads are final, no other class extends
    /// BaseVirtualThread, and none extends CarrierThread (java.base of 21 and 25). An application cannot
    /// define classes in their packages.
    fn of_class(signature: &str) -> Self {
        match signature {
            "Ljava/lang/VirtualThread;" => Self::Virtual,
            "Ljava/lang/ThreadBuilders$BoundVirtualThread;" => Self::BoundVirtual,
            "Ljdk/internal/misc/CarrierThread;" => Self::Carrier,
            _ => Self::Platform,
        }
    }
}

//! The owner of a lock of `java.util.concurrent`: `AbstractOwnableSynchronizer.exclusiveOwnerThread` (11-25).

use std::ptr::null_mut;

use jni::sys::{JNIEnv, jclass, jfieldID, jobject};

/// The field with the owner, and its class.
#[derive(Clone, Copy, Debug)]
pub struct SynchronizerOwner {
    /// A global reference, never deleted.
    class: jclass,
    owner: jfieldID,
}

// SAFETY: field ids and global references may be used from any thread; a class of the boot loader is never
// unloaded.
unsafe impl Send for SynchronizerOwner {}
// SAFETY: field ids and global references may be used from any thread.
unsafe impl Sync for SynchronizerOwner {}

impl SynchronizerOwner {
    /// Looks up the field; `None` if it does not exist. Leaves no exception pending.
    ///
    /// # Safety
    /// `env` must belong to the current thread, which has no pending exception.
    pub unsafe fn new(env: *mut JNIEnv) -> Option<Self> {
        // SAFETY: the contract gives the current thread's `env`, without a pending exception. Names are C
        // strings, and null references are not used.
        unsafe {
            let name = c"java/util/concurrent/locks/AbstractOwnableSynchronizer";
            let class = ((**env).v1_2.FindClass)(env, name.as_ptr());
            let (name, descriptor) = (c"exclusiveOwnerThread".as_ptr(), c"Ljava/lang/Thread;".as_ptr());
            let mut found = (null_mut(), null_mut());
            if !class.is_null() {
                found.1 = ((**env).v1_2.GetFieldID)(env, class, name, descriptor);
                found.0 = ((**env).v1_2.NewGlobalRef)(env, class);
            }
            ((**env).v1_2.ExceptionClear)(env);
            ((**env).v1_2.DeleteLocalRef)(env, class);
            let (class, owner) = found;
            (!class.is_null() && !owner.is_null()).then_some(Self { class, owner })
        }
    }

    /// The thread that owns the lock `synchronizer`, as a local reference. Null if the lock is free or
    /// shared, or if `synchronizer` is not an AbstractOwnableSynchronizer.
    ///
    /// # Safety
    /// `env` as for [`SynchronizerOwner::new`]; `synchronizer` must be a live reference.
    pub unsafe fn of(&self, env: *mut JNIEnv, synchronizer: jobject) -> jobject {
        // SAFETY: the contract gives the current thread's `env`, and a live `synchronizer`. Every object of
        // the class has the field.
        unsafe {
            match ((**env).v1_2.IsInstanceOf)(env, synchronizer, self.class) {
                false => null_mut(),
                true => ((**env).v1_2.GetObjectField)(env, synchronizer, self.owner),
            }
        }
    }
}

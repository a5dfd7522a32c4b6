//! Who has a lock of `java.util.concurrent`: `AbstractOwnableSynchronizer.exclusiveOwnerThread` (11-25).

use std::ptr::null_mut;

use jni::sys::{JNIEnv, jclass, jfieldID, jobject};

/// The field, and whose it is.
#[derive(Clone, Copy, Debug)]
pub struct SynchronizerOwner {
    /// A global reference, which is kept.
    class: jclass,
    owner: jfieldID,
}

// SAFETY: ids of fields and global references may be used from any thread; a class of the boot loader stays loaded.
unsafe impl Send for SynchronizerOwner {}
// SAFETY: as above.
unsafe impl Sync for SynchronizerOwner {}

impl SynchronizerOwner {
    /// Finds the field; `None`, and no exception pending, where there is none.
    ///
    /// # Safety
    /// `env` is the current thread's, without a pending exception.
    pub unsafe fn new(env: *mut JNIEnv) -> Option<Self> {
        // SAFETY: by the contract; names are C strings, and what is null is not used.
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

    /// The thread that has the lock `synchronizer`, a local reference; null if nobody has, if it is shared, or if that is no lock
    /// of the kind.
    ///
    /// # Safety
    /// `env` as for [`SynchronizerOwner::new`]; `synchronizer` is a live reference.
    pub unsafe fn of(&self, env: *mut JNIEnv, synchronizer: jobject) -> jobject {
        // SAFETY: by the contract; the field is one of every object of the class.
        unsafe {
            match ((**env).v1_2.IsInstanceOf)(env, synchronizer, self.class) {
                false => null_mut(),
                true => ((**env).v1_2.GetObjectField)(env, synchronizer, self.owner),
            }
        }
    }
}

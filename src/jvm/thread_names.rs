//! What Java knows of its threads: names and `Thread.threadId()`.

use std::ffi::CStr;

use jni::sys::{JNIEnv, jclass, jfieldID, jlong, jobject};
use thiserror::Error;

use super::java_threads;
use super::jvmti::Jvmti;
use super::jvmti_error::{JvmtiError, THREAD_NOT_ALIVE};
use super::local_references;
use crate::core::memory::Memory;
use crate::core::vm_layout::ThreadLayout;

/// Why threads cannot be named.
#[derive(Debug, Error)]
pub enum ThreadNamesError {
    /// `java.lang.Thread` is not as it was in 11 to 25.
    #[error("java.lang.Thread has no field {field}")]
    MissingField {
        /// The field.
        field: &'static str,
    },
    /// JVMTI refuses.
    #[error(transparent)]
    Jvmti(#[from] JvmtiError),
}

/// One live platform thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedThread {
    /// The kernel's thread id.
    pub os_tid: i32,
    /// `Thread.threadId()`; `getId()` before 19, which it replaces.
    pub thread_id: i64,
    /// Its name now; it may change.
    pub name: String,
}

/// The fields of `java.lang.Thread` that are read. Reading them runs no Java code, which an overridden
/// `getId()` would.
#[derive(Clone, Copy, Debug)]
pub struct ThreadNames {
    tid: jfieldID,
    /// The `JavaThread*`; 0 before the thread starts and once it has ended.
    eetop: jfieldID,
}

// SAFETY: field IDs are the process's, valid while their class is loaded; java.lang.Thread never unloads.
unsafe impl Send for ThreadNames {}
// SAFETY: as above.
unsafe impl Sync for ThreadNames {}

impl ThreadNames {
    /// Finds the fields.
    ///
    /// # Safety
    ///
    /// `env` must be the current thread's JNIEnv, without a pending exception.
    pub unsafe fn new(env: *mut JNIEnv) -> Result<Self, ThreadNamesError> {
        // SAFETY: the caller answers for `env`; names and signatures are C strings.
        unsafe {
            let class = ((**env).v1_2.FindClass)(env, c"java/lang/Thread".as_ptr());
            let ids = (field(env, class, c"tid"), field(env, class, c"eetop"));
            ((**env).v1_2.DeleteLocalRef)(env, class);
            Ok(Self {
                tid: ids.0.ok_or(ThreadNamesError::MissingField { field: "tid" })?,
                eetop: ids.1.ok_or(ThreadNamesError::MissingField { field: "eetop" })?,
            })
        }
    }

    /// `Thread.threadId()` of a thread.
    ///
    /// # Safety
    ///
    /// `env` as for [`ThreadNames::new`]; `thread` must be a live reference to a `java.lang.Thread`.
    pub unsafe fn thread_id(&self, env: *mut JNIEnv, thread: jobject) -> i64 {
        // SAFETY: the caller answers for both.
        unsafe { self.long_field(env, thread, self.tid) }
    }

    /// The `JavaThread*` of a thread; 0 before it starts and once it has ended.
    ///
    /// # Safety
    ///
    /// As for [`ThreadNames::thread_id`].
    pub unsafe fn java_thread(&self, env: *mut JNIEnv, thread: jobject) -> u64 {
        // SAFETY: the caller answers for both.
        unsafe { self.long_field(env, thread, self.eetop) as u64 }
    }

    /// All live platform threads with their names as they are now.
    ///
    /// # Safety
    ///
    /// `env` as for [`ThreadNames::new`], and `jvmti` of the same VM in its live phase.
    pub unsafe fn list(
        &self,
        jvmti: Jvmti,
        env: *mut JNIEnv,
        memory: &dyn Memory,
        layout: &ThreadLayout,
    ) -> Result<Vec<NamedThread>, ThreadNamesError> {
        let mut named = Vec::new();
        let mut failure = None;
        let threads = jvmti.all_threads()?;
        // SAFETY: by the contract.
        unsafe { local_references::expect(env, threads.len()) };
        for thread in threads {
            // SAFETY: the reference is this thread's own and not used after its deletion.
            unsafe {
                match self.name_one(jvmti, env, thread, memory, layout) {
                    Ok(found) => named.extend(found),
                    Err(error) => failure = Some(error),
                }
                ((**env).v1_2.DeleteLocalRef)(env, thread);
            }
        }
        match failure {
            Some(error) => Err(error.into()),
            None => Ok(named),
        }
    }

    /// # Safety
    ///
    /// As for [`ThreadNames::list`], and `thread` must be a live reference.
    unsafe fn name_one(
        &self,
        jvmti: Jvmti,
        env: *mut JNIEnv,
        thread: jobject,
        memory: &dyn Memory,
        layout: &ThreadLayout,
    ) -> Result<Option<NamedThread>, JvmtiError> {
        // SAFETY: the caller answers for the references; those that JVMTI makes are deleted here.
        unsafe {
            let info = match jvmti.thread_info(thread) {
                Err(error) if error.code == THREAD_NOT_ALIVE => return Ok(None),
                info => info?,
            };
            for reference in [info.thread_group, info.context_class_loader] {
                ((**env).v1_2.DeleteLocalRef)(env, reference);
            }
            let java_thread = self.long_field(env, thread, self.eetop) as u64;
            let os_tid = java_threads::os_tid(memory, layout, java_thread);
            // A thread clears `eetop` before the VM frees its JavaThread: if it is still set, what was read is its.
            let alive = self.long_field(env, thread, self.eetop) as u64 == java_thread;
            let thread_id = self.thread_id(env, thread);
            let os_tid = os_tid.filter(|_| alive && java_thread != 0);
            Ok(os_tid.map(|os_tid| NamedThread { os_tid, thread_id, name: info.name }))
        }
    }

    /// # Safety
    ///
    /// As for [`ThreadNames::thread_id`]; `field` must be a `long` of `java.lang.Thread`.
    unsafe fn long_field(&self, env: *mut JNIEnv, thread: jobject, field: jfieldID) -> jlong {
        // SAFETY: the caller answers for all three.
        unsafe { ((**env).v1_2.GetLongField)(env, thread, field) }
    }
}

/// A `long` field; `None`, and no exception pending, if the class is null or has none of that name.
///
/// # Safety
///
/// `env` must be the current thread's JNIEnv; `class` null or a live reference to a class.
unsafe fn field(env: *mut JNIEnv, class: jclass, name: &CStr) -> Option<jfieldID> {
    // SAFETY: the caller answers for `env` and `class`.
    unsafe {
        let id = if class.is_null() {
            std::ptr::null_mut()
        } else {
            ((**env).v1_2.GetFieldID)(env, class, name.as_ptr(), c"J".as_ptr())
        };
        ((**env).v1_2.ExceptionClear)(env);
        (!id.is_null()).then_some(id)
    }
}

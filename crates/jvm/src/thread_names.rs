//! Java's view of its threads: names and `Thread.threadId()`.

use std::ffi::CStr;

use jni::sys::{JNIEnv, jclass, jfieldID, jlong, jobject};
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::ThreadLayout;
use thiserror::Error;

use super::java_threads;
use super::jvmti::Jvmti;
use super::jvmti_error::{JvmtiError, THREAD_NOT_ALIVE};
use super::local_references;

/// The reason why threads cannot be named.
#[derive(Debug, Error)]
pub enum ThreadNamesError {
    /// `java.lang.Thread` lacks a field that it has in 11 to 25.
    #[error("java.lang.Thread has no field {field}")]
    MissingField {
        /// The name of the field.
        field: &'static str,
    },
    /// JVMTI returned an error.
    #[error(transparent)]
    Jvmti(#[from] JvmtiError),
}

/// One live platform thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedThread {
    /// The kernel's thread id.
    pub os_tid: i32,
    /// `Thread.threadId()`, which replaced `getId()` in 19.
    pub thread_id: i64,
    /// The thread's current name; it may change.
    pub name: String,
}

/// The fields of `java.lang.Thread` to read. Reading a field runs no Java code; calling an overridden
/// `getId()` would.
#[derive(Clone, Copy, Debug)]
pub struct ThreadNames {
    tid: jfieldID,
    /// The `JavaThread*`; 0 before the thread starts and after it has ended.
    eetop: jfieldID,
}

// SAFETY: field ids are valid on any thread while their class is loaded; java.lang.Thread is never unloaded.
unsafe impl Send for ThreadNames {}
// SAFETY: field ids are valid on any thread while their class is loaded; java.lang.Thread is never unloaded.
unsafe impl Sync for ThreadNames {}

impl ThreadNames {
    /// Looks up the fields.
    ///
    /// # Safety
    ///
    /// `env` must belong to the current thread, which has no pending exception.
    pub unsafe fn new(env: *mut JNIEnv) -> Result<Self, ThreadNamesError> {
        // SAFETY: the contract gives the current thread's `env`, without a pending exception; names and
        // signatures are C strings.
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
        // SAFETY: the contract gives the current thread's `env`, and a live reference to a java.lang.Thread,
        // which has the field.
        unsafe { self.long_field(env, thread, self.tid) }
    }

    /// The `JavaThread*` of a thread; 0 before the thread starts and after it has ended.
    ///
    /// # Safety
    ///
    /// As for [`ThreadNames::thread_id`].
    pub unsafe fn java_thread(&self, env: *mut JNIEnv, thread: jobject) -> u64 {
        // SAFETY: the contract gives the current thread's `env`, and a live reference to a java.lang.Thread,
        // which has the field.
        unsafe { self.long_field(env, thread, self.eetop) as u64 }
    }

    /// All live platform threads with their current names.
    ///
    /// # Safety
    ///
    /// `env` as for [`ThreadNames::new`]; `jvmti` must belong to the same VM, in its live phase.
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
        // SAFETY: `env` belongs to the current thread by this function's contract.
        unsafe { local_references::expect(env, threads.len()) };
        for thread in threads {
            // SAFETY: this thread owns the reference, and does not use it after its deletion.
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
        // SAFETY: the contract gives the current thread's `env` and a live `thread`; the references that
        // JVMTI creates are deleted here.
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
            // A thread clears `eetop` before the VM frees its JavaThread. If `eetop` is unchanged, `os_tid`
            // was read from a valid JavaThread.
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
        // SAFETY: the contract gives the current thread's `env`, a live `thread`, and a `long` field of
        // java.lang.Thread.
        unsafe { ((**env).v1_2.GetLongField)(env, thread, field) }
    }
}

/// Looks up a `long` field; `None` if `class` is null or has no such field. Leaves no exception pending.
///
/// # Safety
///
/// `env` must belong to the current thread; `class` null or a live reference to a class.
unsafe fn field(env: *mut JNIEnv, class: jclass, name: &CStr) -> Option<jfieldID> {
    // SAFETY: the contract gives the current thread's `env`, and a class that is null or a live reference.
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

//! Facts about this process that the layout must agree with, learnt from JNI and the kernel instead of the
//! layout.

use jni::sys::JNIEnv;

use super::super::LayoutError;
use crate::core::memory::Memory;
use crate::core::method_ids::MethodIds;
use crate::core::thread::current_os_tid;

/// Facts about the current thread and one method.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// The thread's `JNIEnv*`.
    pub jni_environment: u64,
    /// The kernel's id of the thread.
    pub os_tid: i32,
    /// An address on the thread's stack.
    pub stack_address: u64,
    /// The `Method*` of [`Probe::method_name`].
    pub method: u64,
    /// Class, name and descriptor of the method.
    pub method_name: &'static str,
}

impl Probe {
    /// Gathers the facts about the current thread. The thread must not run Java code while the result is
    /// used.
    ///
    /// # Safety
    ///
    /// `env` must be the current thread's JNIEnv, without a pending exception.
    pub unsafe fn of_current_thread(
        env: *mut JNIEnv,
        memory: &dyn Memory,
        ids: MethodIds,
    ) -> Result<Self, LayoutError> {
        let local = 0u8;
        // SAFETY: the contract gives the current thread's `env`, without a pending exception.
        let id = unsafe {
            let class = ((**env).v1_2.FindClass)(env, c"java/lang/Thread".as_ptr());
            if class.is_null() {
                ((**env).v1_2.ExceptionClear)(env);
                return Err(LayoutError::Jni { call: "FindClass(java/lang/Thread)" });
            }
            let id = ((**env).v1_2.GetMethodID)(env, class, c"run".as_ptr(), c"()V".as_ptr());
            ((**env).v1_2.DeleteLocalRef)(env, class);
            if id.is_null() {
                ((**env).v1_2.ExceptionClear)(env);
                return Err(LayoutError::Jni { call: "GetMethodID(java.lang.Thread.run)" });
            }
            id as u64
        };
        // java.lang.Thread never unloads, so neither does its method.
        let method = ids
            .method(memory, id)
            .ok_or(LayoutError::Unreadable { what: "the method of java.lang.Thread.run's jmethodID" })?;
        Ok(Self {
            jni_environment: env as u64,
            os_tid: current_os_tid(),
            stack_address: &raw const local as u64,
            method,
            method_name: "java.lang.Thread.run()V",
        })
    }
}

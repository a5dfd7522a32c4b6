//! Facts about this process that the layout must agree with, learnt from JNI and the kernel instead of the
//! layout.

use jni::sys::JNIEnv;
use otlpprof_core::memory::Memory;
use otlpprof_core::method_ids::MethodIds;
use otlpprof_core::thread::current_os_tid;
use otlpprof_core::vm_layout::MethodLayout;

use super::super::current_thread::CurrentThread;
use super::super::error::LayoutError;
use crate::class_methods;

/// The most methods of [`Probe::class_methods`].
const MAX_CLASS_METHODS: usize = 64;

/// Facts about the current thread and one method.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// The thread's `JNIEnv*`.
    pub jni_environment: u64,
    /// The thread's `JavaThread*`; 0 if it is not known.
    pub java_thread: u64,
    /// The kernel's id of the thread.
    pub os_tid: i32,
    /// An address on the thread's stack.
    pub stack_address: u64,
    /// The `Method*` of [`Probe::method_name`].
    pub method: u64,
    /// Class, name and descriptor of the method.
    pub method_name: &'static str,
    /// The `Method*`s of the method's class, as far as there is room; 0 after the last.
    pub class_methods: [u64; MAX_CLASS_METHODS],
    /// The meaning of the VM's jmethodIDs: cells if the method's id leads to the method.
    pub method_ids: MethodIds,
}

impl Probe {
    /// The offset of the JNIEnv in a JavaThread, if the `JavaThread*` is known.
    pub(in crate::layout) fn jni_environment_offset(&self) -> Option<u32> {
        let offset = self.jni_environment.checked_sub(self.java_thread).filter(|_| self.java_thread != 0);
        u32::try_from(offset?).ok()
    }

    /// Gathers the facts about the current thread. The thread must not run Java code while the result is
    /// used.
    ///
    /// # Safety
    ///
    /// `env` must be the current thread's JNIEnv, without a pending exception.
    pub unsafe fn of_current_thread(
        env: *mut JNIEnv,
        memory: &dyn Memory,
        layout: &MethodLayout,
    ) -> Result<Self, LayoutError> {
        let local = 0u8;
        // SAFETY: the contract gives the current thread's `env`, without a pending exception.
        let (method, class_methods) = unsafe {
            let class = ((**env).v1_2.FindClass)(env, c"java/lang/Thread".as_ptr());
            if class.is_null() {
                ((**env).v1_2.ExceptionClear)(env);
                return Err(LayoutError::Jni { call: "FindClass(java/lang/Thread)" });
            }
            let id = ((**env).v1_2.GetMethodID)(env, class, c"run".as_ptr(), c"()V".as_ptr());
            if id.is_null() {
                ((**env).v1_2.ExceptionClear)(env);
                ((**env).v1_2.DeleteLocalRef)(env, class);
                return Err(LayoutError::Jni { call: "GetMethodID(java.lang.Thread.run)" });
            }
            let found = class_methods::by_name(memory, layout, class, c"run", c"()V");
            let all = class_methods::all(memory, layout, class);
            ((**env).v1_2.DeleteLocalRef)(env, class);
            ((found, MethodIds::Cells.method(memory, id as u64)), all)
        };
        // java.lang.Thread never unloads, so neither does its method.
        let (method, method_ids) = match method {
            (Some(found), Some(in_cell)) if found == in_cell => (found, MethodIds::Cells),
            (Some(found), _) => (found, MethodIds::Opaque),
            // Its name is checked.
            (None, Some(in_cell)) => (in_cell, MethodIds::Cells),
            (None, None) => {
                return Err(LayoutError::Unreadable { what: "the method java.lang.Thread.run" });
            }
        };
        Ok(Self {
            jni_environment: env as u64,
            // SAFETY: the contract gives the current thread's `env`, without a pending exception.
            java_thread: unsafe { CurrentThread::read(env, memory) }.java_thread,
            os_tid: current_os_tid(),
            stack_address: &raw const local as u64,
            method,
            class_methods: first(class_methods),
            method_name: "java.lang.Thread.run()V",
            method_ids,
        })
    }
}

/// As many methods as there is room for.
fn first(methods: Vec<u64>) -> [u64; MAX_CLASS_METHODS] {
    let mut first = [0; MAX_CLASS_METHODS];
    first.iter_mut().zip(methods).for_each(|(place, method)| *place = method);
    first
}

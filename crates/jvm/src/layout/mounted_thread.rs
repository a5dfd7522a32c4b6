//! The layout through which a mounted virtual thread is recognised (`runtime/javaThread.hpp`,
//! `classfile/javaClasses.hpp`), 21 and 25.
//!
//! If a JavaThread has the current thread's id (24 on), libjvm exports the field.
//! Otherwise libjvm exports the handle of the current thread's object, and JNI provides the offset of the id
//! in that object.

use std::ffi::CStr;

use jni::sys::{JNIEnv, jclass, jlong};
use otlpprof_core::continuation::{MountedThreadLayout, References, ThreadObjectLayout};
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::continuation::Learner;
use super::error::LayoutError;
use super::monitor::MONITOR_OWNER_ID;
use crate::vm_structs::VmStructs;

const THREAD: &CStr = c"java/lang/Thread";
const VIRTUAL_THREAD: &CStr = c"java/lang/VirtualThread";
const CONTINUATION: &CStr = c"jdk/internal/vm/Continuation";
const TARGET: &CStr = c"java/lang/VirtualThread$VThreadContinuation$1";

/// Learns how to recognise the mounted virtual thread, and checks the result on the current thread, virtual
/// or not. `None` if the VM has no continuations. `layout` must contain the result of
/// [`frozen_frames`](super::frozen_frames).
///
/// # Safety
///
/// As for [`frozen_frames`](super::frozen_frames).
pub unsafe fn mounted_thread(
    env: *mut JNIEnv,
    structs: &VmStructs,
    memory: &dyn Memory,
    layout: &VmLayout,
) -> Result<Option<MountedThreadLayout>, LayoutError> {
    if layout.continuation.is_none() {
        return Ok(None);
    }
    // SAFETY: the contract gives the current thread's `env`, without a pending exception.
    let learner = unsafe { Learner::new(env, structs, memory, layout) };
    // SAFETY: the contract gives the current thread's `env`, without a pending exception; local references
    // live until the frame is popped.
    let learnt = unsafe {
        if ((**env).v1_2.PushLocalFrame)(env, 8) != 0 {
            ((**env).v1_2.ExceptionClear)(env);
            return Err(LayoutError::Jni { call: "PushLocalFrame" });
        }
        let learnt = learner.learn_mounted_thread();
        ((**env).v1_2.ExceptionClear)(env);
        ((**env).v1_2.PopLocalFrame)(env, std::ptr::null_mut());
        learnt?
    };
    Ok(Some(learnt))
}

impl Learner<'_> {
    /// # Safety
    ///
    /// As for [`mounted_thread`]; may leave an exception pending.
    unsafe fn learn_mounted_thread(&self) -> Result<MountedThreadLayout, LayoutError> {
        // SAFETY: `env` is the current thread's by this function's contract. The references belong to
        // `mounted_thread`'s local frame.
        unsafe {
            let thread = self.class(THREAD)?;
            let (id, tid) = (self.current_thread_id(thread)?, self.field(thread, c"tid", c"J")?);
            let java_thread = (self.env as u64).wrapping_sub(u64::from(self.layout.thread.jni_environment));
            if let Ok(offset) = self.structs.offset("JavaThread", MONITOR_OWNER_ID) {
                let found = self.memory.load_u64(java_thread.wrapping_add(u64::from(offset)));
                return match found {
                    Some(found) if found == id => Ok(MountedThreadLayout::Id(offset)),
                    found => {
                        let reason = format!("thread {id} reads as {found:?}");
                        Err(LayoutError::implausible("JavaThread", MONITOR_OWNER_ID, reason))
                    }
                };
            }
            self.learn_mounted_object(java_thread, id, tid)
        }
    }

    /// # Safety
    ///
    /// As for [`mounted_thread`]; may leave an exception pending.
    unsafe fn learn_mounted_object(
        &self,
        java_thread: u64,
        id: u64,
        tid: u32,
    ) -> Result<MountedThreadLayout, LayoutError> {
        let handle = self.structs.offset("JavaThread", "_vthread")?;
        // `_vthread` stands between the carrier's handle and a handle for JVMTI that may refer to the same
        // object (runtime/javaThread.hpp, 21).
        let carrier = self.structs.offset("JavaThread", "_threadObj")?;
        if handle != carrier + 8 {
            let reason = format!("it is at {handle}, and _threadObj at {carrier}");
            return Err(LayoutError::implausible("JavaThread", "_vthread", reason));
        }
        let frozen = self.layout.continuation.and_then(|continuation| continuation.frozen);
        // `frozen_frames` has learnt how to read objects.
        let frozen = frozen.ok_or(LayoutError::Unreadable { what: "an object's header" })?;
        // SAFETY: `env` is the current thread's by this function's contract. The references belong to
        // `mounted_thread`'s local frame.
        let (klass, target, target_thread, target_klass) = unsafe {
            let class = self.class(VIRTUAL_THREAD)?;
            let klass = self.klass_of(self.method(class, c"mount", c"()V")?, VIRTUAL_THREAD)?;
            let continuation = self.class(CONTINUATION)?;
            let target = self.field(continuation, c"target", c"Ljava/lang/Runnable;")?;
            let class = self.class(TARGET)?;
            let target_thread = self.field(class, c"val$vthread", c"Ljava/lang/VirtualThread;")?;
            (klass, target, target_thread, self.klass_of(self.method(class, c"run", c"()V")?, TARGET)?)
        };
        let layout = ThreadObjectLayout {
            handle,
            klass: self.class_word(frozen.klass_word, klass)?,
            tid,
            target,
            target_thread,
            target_klass: self.class_word(frozen.klass_word, target_klass)?,
            continuation_klass: frozen.continuation_klasses[1],
        };
        // ZGC's references may be stale, and only the handlers' reader follows stale ones.
        if matches!(frozen.references, References::Plain | References::Narrow { .. }) {
            // A collector may move the object meanwhile, so read again.
            let found: Vec<_> = (0..4).map(|_| self.id_of_mounted(java_thread, handle, tid)).collect();
            if !found.contains(&Some(id)) {
                let reason = format!("thread {id} reads as {found:?}");
                return Err(LayoutError::implausible("JavaThread", "_vthread", reason));
            }
        }
        Ok(MountedThreadLayout::Object(layout))
    }

    fn id_of_mounted(&self, java_thread: u64, handle: u32, tid: u32) -> Option<u64> {
        let place = self.memory.load_u64(java_thread.wrapping_add(u64::from(handle)))?;
        let object = self.memory.load_u64(place)?;
        self.memory.load_u64(object.checked_add(u64::from(tid))?)
    }

    /// The id of `Thread.currentThread()`, read from its field.
    ///
    /// # Safety
    ///
    /// As for [`mounted_thread`]; may leave an exception pending.
    unsafe fn current_thread_id(&self, class: jclass) -> Result<u64, LayoutError> {
        let env = self.env;
        // SAFETY: `env` is the current thread's by this function's contract. The method and the field belong
        // to `class`.
        unsafe {
            let (name, signature) = (c"currentThread", c"()Ljava/lang/Thread;");
            let method = ((**env).v1_2.GetStaticMethodID)(env, class, name.as_ptr(), signature.as_ptr());
            let tid = ((**env).v1_2.GetFieldID)(env, class, c"tid".as_ptr(), c"J".as_ptr());
            if method.is_null() || tid.is_null() {
                return Err(LayoutError::Jni { call: "GetFieldID(java.lang.Thread.tid)" });
            }
            let thread = ((**env).v1_2.CallStaticObjectMethod)(env, class, method);
            if ((**env).v1_2.ExceptionCheck)(env) || thread.is_null() {
                return Err(LayoutError::Jni { call: "Thread.currentThread" });
            }
            let id: jlong = ((**env).v1_2.GetLongField)(env, thread, tid);
            Ok(id.cast_unsigned())
        }
    }
}

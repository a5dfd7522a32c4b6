//! Which virtual thread is mounted (`runtime/javaThread.hpp`, `classfile/javaClasses.hpp`), 21 and 25.
//!
//! From 24 on libjvm exports a field that has the current thread's id. Before, it exports the handle that leads to the
//! current thread's object, and JNI tells where that has its id.

use std::ffi::CStr;

use jni::sys::{JNIEnv, jclass, jlong};

use super::LayoutError;
use super::continuation::Learner;
use crate::core::continuation::{MountedThreadLayout, References, ThreadObjectLayout};
use crate::core::memory::Memory;
use crate::core::vm_layout::VmLayout;
use crate::jvm::vm_structs::VmStructs;

const THREAD: &CStr = c"java/lang/Thread";
const VIRTUAL_THREAD: &CStr = c"java/lang/VirtualThread";
const CONTINUATION: &CStr = c"jdk/internal/vm/Continuation";
const TARGET: &CStr = c"java/lang/VirtualThread$VThreadContinuation$1";

/// `Thread.setCurrentThread` stores the id in the JavaThread.
const FIRST_WITH_ID: u32 = 24;

/// Learns how the mounted virtual thread is told, and checks it by the current thread, virtual or not. `None` where there are
/// no continuations. `layout` has what [`frozen_frames`](super::frozen_frames) learnt.
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
    let learner = Learner { env, structs, memory, layout };
    // SAFETY: the caller answers for `env`; local references live until the frame is popped.
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
        // SAFETY: by the contract; the references are this frame's own.
        unsafe {
            let thread = self.class(THREAD)?;
            let (id, tid) = (self.current_thread_id(thread)?, self.field(thread, c"tid", c"J")?);
            let java_thread = (self.env as u64).wrapping_sub(u64::from(self.layout.thread.jni_environment));
            if self.layout.java_version >= FIRST_WITH_ID {
                let offset = self.structs.offset("JavaThread", "_monitor_owner_id")?;
                let found = self.memory.load_u64(java_thread.wrapping_add(u64::from(offset)));
                return match found {
                    Some(found) if found == id => Ok(MountedThreadLayout::Id(offset)),
                    found => {
                        let reason = format!("thread {id} reads as {found:?}");
                        Err(LayoutError::implausible("JavaThread", "_monitor_owner_id", reason))
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
        // Between the carrier's handle and one for JVMTI, which may lead to the same object (runtime/javaThread.hpp, 21).
        let carrier = self.structs.offset("JavaThread", "_threadObj")?;
        if handle != carrier + 8 {
            let reason = format!("it is at {handle}, and _threadObj at {carrier}");
            return Err(LayoutError::implausible("JavaThread", "_vthread", reason));
        }
        let frozen = self.layout.continuation.and_then(|continuation| continuation.frozen);
        // How objects are read has been learnt with the frames.
        let frozen = frozen.ok_or(LayoutError::Unreadable { what: "an object's header" })?;
        // SAFETY: by the contract; the reference is this frame's own.
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
        // ZGC's references are read in handlers alone, where they need not be up to date.
        if matches!(frozen.references, References::Plain | References::Narrow { .. }) {
            // A collector may move the object meanwhile.
            let found: Vec<_> = (0..4).map(|_| self.id_behind(java_thread, handle, tid)).collect();
            if !found.contains(&Some(id)) {
                let reason = format!("thread {id} reads as {found:?}");
                return Err(LayoutError::implausible("JavaThread", "_vthread", reason));
            }
        }
        Ok(MountedThreadLayout::Object(layout))
    }

    fn id_behind(&self, java_thread: u64, handle: u32, tid: u32) -> Option<u64> {
        let place = self.memory.load_u64(java_thread.wrapping_add(u64::from(handle)))?;
        let object = self.memory.load_u64(place)?;
        self.memory.load_u64(object.checked_add(u64::from(tid))?)
    }

    /// `Thread.currentThread()`'s id, as its field has it.
    ///
    /// # Safety
    ///
    /// As for [`mounted_thread`]; may leave an exception pending.
    unsafe fn current_thread_id(&self, class: jclass) -> Result<u64, LayoutError> {
        let env = self.env;
        // SAFETY: by the contract; the method and the field are of that class.
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

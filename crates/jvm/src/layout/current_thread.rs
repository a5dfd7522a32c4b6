//! The current thread as Java sees it: what its field `eetop` tells of the VM.
//!
//! `java.lang.Thread.eetop` has the address of the thread's JavaThread (`classfile/javaClasses.cpp`,
//! java_lang_Thread::set_thread). JNI reads the field by its id; the field's place in memory shows how the id
//! encodes the offset.

use jni::sys::{JNIEnv, jobject};

use otlpprof_core::memory::Memory;

/// The numbers of tag bits below the offset in the jfieldID of an instance field
/// (`runtime/jfieldIDWorkaround.hpp`) that are tried: more than any release has.
const TAG_BITS: std::ops::RangeInclusive<u32> = 0..=16;

/// A collector may move the thread's object while it is read. So many readings are tried.
const READINGS: usize = 4;

/// Facts of the current thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CurrentThread {
    /// The thread's `JavaThread*`; 0 if `java.lang.Thread` has no field `eetop`.
    pub(super) java_thread: u64,
    /// The number of tag bits below the offset in an instance field's id. `None` if the object cannot be
    /// read.
    pub(super) field_tag_bits: Option<u32>,
}

impl CurrentThread {
    /// # Safety
    ///
    /// `env` must be the current thread's JNIEnv, without a pending exception.
    pub(super) unsafe fn read(env: *mut JNIEnv, memory: &dyn Memory) -> Self {
        // SAFETY: the contract gives the current thread's `env`, without a pending exception. Local
        // references live until the frame is popped.
        unsafe {
            if ((**env).v1_2.PushLocalFrame)(env, 4) != 0 {
                ((**env).v1_2.ExceptionClear)(env);
                return Self::default();
            }
            let read = Self::read_in_frame(env, memory);
            ((**env).v1_2.ExceptionClear)(env);
            ((**env).v1_2.PopLocalFrame)(env, std::ptr::null_mut());
            read.unwrap_or_default()
        }
    }

    /// # Safety
    ///
    /// As for [`CurrentThread::read`]; may leave an exception pending.
    unsafe fn read_in_frame(env: *mut JNIEnv, memory: &dyn Memory) -> Option<Self> {
        // SAFETY: `env` is the current thread's by this function's contract. The method and the field belong
        // to the class.
        unsafe {
            let functions = &(**env).v1_2;
            let class = (functions.FindClass)(env, c"java/lang/Thread".as_ptr());
            if class.is_null() {
                return None;
            }
            let (name, signature) = (c"currentThread", c"()Ljava/lang/Thread;");
            let current = (functions.GetStaticMethodID)(env, class, name.as_ptr(), signature.as_ptr());
            if current.is_null() {
                return None;
            }
            let eetop = (functions.GetFieldID)(env, class, c"eetop".as_ptr(), c"J".as_ptr());
            if eetop.is_null() {
                return None;
            }
            let thread = (functions.CallStaticObjectMethodA)(env, class, current, std::ptr::null());
            if (functions.ExceptionCheck)(env) || thread.is_null() {
                return None;
            }
            let java_thread = (functions.GetLongField)(env, thread, eetop).cast_unsigned();
            let field_tag_bits = tag_bits(memory, thread, eetop as u64, java_thread);
            Some(Self { java_thread, field_tag_bits })
        }
    }
}

/// The number of tag bits by which the id leads to the value in the object. A local reference points to the
/// object's plain address, under every collector.
fn tag_bits(memory: &dyn Memory, object: jobject, id: u64, value: u64) -> Option<u32> {
    (0..READINGS).find_map(|_| {
        let object = memory.load_u64(object as u64)?;
        TAG_BITS.into_iter().find(|bits| memory.load_u64(object.wrapping_add(id >> bits)) == Some(value))
    })
}

#[cfg(test)]
mod tests {
    use otlpprof_core::memory::RecordedMemory;

    use super::*;

    #[test]
    fn the_place_of_a_value_shows_the_tag_bits_of_its_id() {
        const REFERENCE: u64 = 0x1000;
        let mut memory = RecordedMemory::default();
        memory.put_u64(REFERENCE, 0x2000).put(0x2000, [0; 64]).put_u64(0x2018, 0x7777);
        let tag_bits = |id, value| tag_bits(&memory, REFERENCE as jobject, id, value);
        assert_eq!(tag_bits(0x18 << 2 | 2, 0x7777), Some(2));
        assert_eq!(tag_bits(0x18 << 3 | 2, 0x7777), Some(3));
        assert_eq!(tag_bits(0x18 << 2 | 2, 0x8888), None);
    }
}

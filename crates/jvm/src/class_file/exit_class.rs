//! The classes that timed methods call:
//!
//! ```java
//! package java.lang;
//!
//! public final class OtlpprofTrace {
//!     public static void exited(long start, long shortest) {
//!         start = System.nanoTime() - start;
//!         if (start >= shortest) {
//!             io.otlpprof.agent.LongCall.record(start);
//!         }
//!     }
//! }
//!
//! package io.otlpprof.agent;
//!
//! public final class LongCall {
//!     public static native void record(long took);
//! }
//! ```
//!
//! `OtlpprofTrace` is in `java.lang`, whose classes every class loader finds and every module reads. The
//! native method is in another package, because the VM warns the user when natives are registered in the
//! JDK's modules (prims/jni.cpp, RegisterNatives, 17-25).

use super::error::ClassFileError;
use super::own_class::{OwnNativeMethod, class_of_one_method};
use super::pool::ConstantPool;
use super::reader::write_attribute;

/// The name of the class that timed methods call.
pub const EXIT_CLASS: &str = "java/lang/OtlpprofTrace";
pub(super) const EXITED: &str = "exited";
pub(super) const EXITED_DESCRIPTOR: &str = "(JJ)V";
/// The native method that [`EXIT_CLASS`] calls. Its argument is the duration of a call, in nanoseconds.
pub const RECORD: OwnNativeMethod =
    OwnNativeMethod { class: "io/otlpprof/agent/LongCall", name: "record", descriptor: "(J)V" };

/// The class file of [`EXIT_CLASS`].
pub fn exit_class() -> Result<Vec<u8>, ClassFileError> {
    let mut pool = ConstantPool::new();
    let [clock_high, clock_low] = pool.add_method("java/lang/System", "nanoTime", "()J")?.to_be_bytes();
    let [record_high, record_low] =
        pool.add_method(RECORD.class, RECORD.name, RECORD.descriptor)?.to_be_bytes();
    #[rustfmt::skip]
    let code = [
        0xb8, clock_high, clock_low, // invokestatic nanoTime
        0x1e, // lload_0
        0x65, // lsub
        0x3f, // lstore_0
        0x1e, // lload_0
        0x20, // lload_2
        0x94, // lcmp
        0x9b, 0, 7, // iflt to the return
        0x1e, // lload_0
        0xb8, record_high, record_low, // invokestatic record
        0xb1, // return
    ];
    let return_at = code.len() as u8 - 1;
    let mut code_attribute = Vec::new();
    // max_stack, max_locals and code_length.
    code_attribute.extend([0, 4, 0, 4, 0, 0, 0, code.len() as u8]);
    code_attribute.extend(code);
    // No exception handlers, one attribute. At the return, the frame is the one of the method's beginning.
    code_attribute.extend([0, 0, 0, 1]);
    write_attribute(&mut code_attribute, pool.add_text(b"StackMapTable")?, &[0, 1, return_at])?;
    class_of_one_method(pool, EXIT_CLASS, (EXITED, EXITED_DESCRIPTOR), Some(&code_attribute))
}

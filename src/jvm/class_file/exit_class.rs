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
//! The first is in `java.lang`, whose classes every class loader finds and every module reads. The native method is not: the
//! VM warns the user of natives that others register in the JDK's modules (prims/jni.cpp, RegisterNatives, 17-25).

use super::ClassFileError;
use super::pool::ConstantPool;
use super::reader::{count, write_attribute};

/// The name of the class that timed methods call.
pub const EXIT_CLASS: &str = "java/lang/OtlpprofTrace";
pub(super) const EXITED: &str = "exited";
pub(super) const EXITED_DESCRIPTOR: &str = "(JJ)V";
/// The name of the class that has the native method.
pub const RECORD_CLASS: &str = "io/otlpprof/agent/LongCall";
/// Its native method, which is given the nanoseconds that a call took.
pub const RECORD: &str = "record";
/// See [`RECORD`].
pub const RECORD_DESCRIPTOR: &str = "(J)V";

/// Java 8's, which the oldest VM that is supported knows.
const VERSION: u16 = 52;
/// ACC_PUBLIC, ACC_FINAL, ACC_SUPER, ACC_SYNTHETIC.
const CLASS_ACCESS: u16 = 0x1031;
/// ACC_PUBLIC, ACC_STATIC.
const PUBLIC_STATIC: u16 = 0x0009;
const ACC_NATIVE: u16 = 0x0100;

/// The class file of [`EXIT_CLASS`].
pub fn exit_class() -> Result<Vec<u8>, ClassFileError> {
    let mut pool = ConstantPool::new();
    let [clock_high, clock_low] = pool.add_method("java/lang/System", "nanoTime", "()J")?.to_be_bytes();
    let [record_high, record_low] = pool.add_method(RECORD_CLASS, RECORD, RECORD_DESCRIPTOR)?.to_be_bytes();
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
    // The most on the stack, local variables, the code's length.
    code_attribute.extend([0, 4, 0, 4, 0, 0, 0, code.len() as u8]);
    code_attribute.extend(code);
    // No exception handler, one attribute: at the return, all is as at the beginning.
    code_attribute.extend([0, 0, 0, 1]);
    write_attribute(&mut code_attribute, pool.add_text(b"StackMapTable")?, &[0, 1, return_at])?;
    class_of_one_method(pool, EXIT_CLASS, PUBLIC_STATIC, (EXITED, EXITED_DESCRIPTOR), Some(&code_attribute))
}

/// The class file of [`RECORD_CLASS`].
pub fn record_class() -> Result<Vec<u8>, ClassFileError> {
    let access = PUBLIC_STATIC | ACC_NATIVE;
    class_of_one_method(ConstantPool::new(), RECORD_CLASS, access, (RECORD, RECORD_DESCRIPTOR), None)
}

fn class_of_one_method(
    mut pool: ConstantPool,
    class: &str,
    access: u16,
    (name, descriptor): (&str, &str),
    code: Option<&[u8]>,
) -> Result<Vec<u8>, ClassFileError> {
    let (this, object) = (pool.add_class(class.as_bytes())?, pool.add_class(b"java/lang/Object")?);
    let (name, descriptor) = (pool.add_text(name.as_bytes())?, pool.add_text(descriptor.as_bytes())?);
    let code_name = pool.add_text(b"Code")?;
    let mut out = 0xcafe_babe_u32.to_be_bytes().to_vec();
    out.extend([0, VERSION].map(u16::to_be_bytes).as_flattened());
    pool.write(&mut out)?;
    // No interfaces, no fields, one method.
    out.extend([CLASS_ACCESS, this, object, 0, 0, 1].map(u16::to_be_bytes).as_flattened());
    out.extend([access, name, descriptor].map(u16::to_be_bytes).as_flattened());
    out.extend(count(usize::from(code.is_some()))?);
    code.map_or(Ok(()), |code| write_attribute(&mut out, code_name, code))?;
    // The class has no attributes.
    out.extend([0, 0]);
    Ok(out)
}

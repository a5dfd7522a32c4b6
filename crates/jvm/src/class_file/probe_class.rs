//! The class of stacks that the VM describes and the agent walks:
//!
//! ```java
//! package io.otlpprof.agent;
//!
//! public final class StackProbe implements Runnable {
//!     public static native void look();
//!
//!     public static Object descend(int depth, int yields) {
//!         if (depth != 0) {
//!             return descend(depth - 1, yields);
//!         }
//!         if (yields != 0) {
//!             Thread.yield();
//!         }
//!         look();
//!         return null;
//!     }
//!
//!     public void run() {
//!         descend(20, 1);
//!     }
//! }
//! ```
//!
//! On a virtual thread the yield freezes the frames of `descend`. When the thread goes on, the youngest of
//! them return to its stack, and the others stay frozen while `look` runs.

use super::error::ClassFileError;
use super::instructions::{INVOKESTATIC, with_constant};
use super::own_class::{
    ACC_NATIVE, ACC_PUBLIC, OwnMethod, OwnNativeMethod, PUBLIC_STATIC, class_without_stack_maps,
    code_attribute,
};
use super::pool::ConstantPool;

/// The native method that looks at the stack.
pub const LOOK: OwnNativeMethod =
    OwnNativeMethod { class: "io/otlpprof/agent/StackProbe", name: "look", descriptor: "()V" };
/// The method that calls itself: its name and its descriptor. Its arguments are the number of calls, and 1 to
/// yield before the look.
pub const DESCEND: (&str, &str) = ("descend", "(II)Ljava/lang/Object;");
/// The method of the interface Runnable.
pub const RUN: (&str, &str) = ("run", "()V");

/// The calls of [`DESCEND`] below [`RUN`].
const DEPTH: u8 = 20;

/// The class file.
///
/// # Errors
/// Never in practice: the class is small.
pub fn probe_class() -> Result<Vec<u8>, ClassFileError> {
    let mut pool = ConstantPool::new();
    let mut calls = |class, name, descriptor| {
        let method = pool.add_method(class, name, descriptor)?;
        Ok::<_, ClassFileError>(with_constant(INVOKESTATIC, method))
    };
    let look = calls(LOOK.class, LOOK.name, LOOK.descriptor)?;
    let descend = calls(LOOK.class, DESCEND.0, DESCEND.1)?;
    let yields = calls("java/lang/Thread", "yield", "()V")?;
    #[rustfmt::skip]
    let descending = [
        &[
            0x1a, // iload_0
            0x99, 0, 11, // ifeq to the second iload_1
            0x1a, // iload_0
            0x04, // iconst_1
            0x64, // isub
            0x1b, // iload_1
        ][..],
        &descend,
        &[
            0xb0, // areturn
            0x1b, // iload_1
            0x99, 0, 6, // ifeq to the call of look
        ],
        &yields,
        &look,
        &[
            0x01, // aconst_null
            0xb0, // areturn
        ],
    ].concat();
    // bipush, iconst_1, the call, pop, return.
    let running = [&[0x10, DEPTH, 0x04][..], &descend, &[0x57, 0xb1]].concat();
    let (descending, running) = (code_attribute(2, 2, &descending), code_attribute(2, 1, &running));
    let method = |access, (name, descriptor), code| OwnMethod { access, name, descriptor, code };
    let methods = [
        method(PUBLIC_STATIC | ACC_NATIVE, (LOOK.name, LOOK.descriptor), None),
        method(PUBLIC_STATIC, DESCEND, Some(&*descending)),
        method(ACC_PUBLIC, RUN, Some(&*running)),
    ];
    class_without_stack_maps(pool, LOOK.class, &["java/lang/Runnable"], &methods)
}

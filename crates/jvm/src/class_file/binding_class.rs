//! The class that binds native methods:
//!
//! ```java
//! package io.otlpprof;
//!
//! public final class NativeBinding {
//!     public static native void bind0();
//!
//!     public static void bind() {
//!         bind0();
//!     }
//! }
//! ```
//!
//! RegisterNatives checks the class loader of the Java method that called the native method. So the native
//! method that calls RegisterNatives has a caller in Java.

use std::ffi::CStr;

use super::error::ClassFileError;
use super::instructions::{INVOKESTATIC, with_constant};
use super::own_class::{
    ACC_NATIVE, OwnMethod, OwnNativeMethod, PUBLIC_STATIC, class_without_stack_maps, code_attribute,
};
use super::pool::ConstantPool;

/// The native method that calls RegisterNatives.
pub const BIND_NATIVE: OwnNativeMethod =
    OwnNativeMethod { class: "io/otlpprof/NativeBinding", name: "bind0", descriptor: "()V" };
/// The name of the method that calls [`BIND_NATIVE`]; its descriptor is the same.
pub const BIND: &CStr = c"bind";

/// The class file.
///
/// # Errors
/// Never in practice: the class is small.
pub fn binding_class() -> Result<Vec<u8>, ClassFileError> {
    let OwnNativeMethod { class, name, descriptor } = BIND_NATIVE;
    let bind = BIND.to_str().map_err(|_| ClassFileError::Malformed)?;
    let mut pool = ConstantPool::new();
    let call = with_constant(INVOKESTATIC, pool.add_method(class, name, descriptor)?);
    // The call, return.
    let binding = code_attribute(0, 0, &[&call[..], &[0xb1]].concat());
    let methods = [
        OwnMethod { access: PUBLIC_STATIC | ACC_NATIVE, name, descriptor, code: None },
        OwnMethod { access: PUBLIC_STATIC, name: bind, descriptor, code: Some(&binding) },
    ];
    class_without_stack_maps(pool, class, &[], &methods)
}

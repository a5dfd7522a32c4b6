//! The target of a `jvmtiEnv*`, in the JVM's layout (JVM Tool Interface 11-25, `jvmti.h`).

use std::ffi::c_void;

/// The number of slots of the table, including the reserved first one.
pub const SLOTS: usize = 156;

/// The target of a `jvmtiEnv*`: a pointer to the function table.
pub type RawEnv = *const Interface;

/// The function table.
#[derive(Debug)]
#[repr(C)]
pub struct Interface {
    pub(super) slots: [*const c_void; SLOTS],
}

//! Compares walks with the VM's own description of the same stacks: one stack on each JVM, and several on
//! JVMs of releases that the walker was not tried on.
//!
//! | Module | Duty |
//! |---|---|
//! | `class_preparation` | the stack in which the VM prepares a class |
//! | `own_stacks` | stacks of a class of the agent, on the current and on a virtual thread |
//! | `comparison` | one stack by a walk and by JVMTI |

mod class_preparation;
mod comparison;
mod own_stacks;

use jni::sys::{JNIEnv, JavaVM};

use otlpprof_core::vm_layout::VmLayout;
use otlpprof_jvm::jvmti::Jvmti;
use otlpprof_jvm::layout::LayoutError;

use self::own_stacks::OwnStacks;

/// The Java frames that walks and the VM agree on.
#[derive(Debug)]
pub(super) struct Agreed {
    /// The number of frames of the current thread.
    pub(super) frames: usize,
    /// The number of them that are in compiled code, inlined there, or wrappers of native methods. 0 if the
    /// VM compiled nothing.
    pub(super) compiled: usize,
    /// The number of frames of a virtual thread, most of which were frozen; 0 if the VM has no virtual
    /// threads. The error is for frozen frames only.
    pub(super) of_virtual_thread: Result<usize, LayoutError>,
}

/// Compares stacks of the current thread, and one of a virtual thread.
///
/// # Errors
/// If a stack of the current thread differs.
///
/// # Safety
/// `env` belongs to the current thread, which has no pending exception, and `java_vm` is the VM of this
/// process, whose live phase has begun.
pub(super) unsafe fn check(
    java_vm: *mut JavaVM,
    jvmti: Jvmti,
    env: *mut JNIEnv,
    layout: &VmLayout,
) -> Result<Agreed, LayoutError> {
    // SAFETY: the contract gives the current thread's `env` and its VM.
    let (prepared, own) = unsafe {
        let prepared = class_preparation::check(java_vm, env, layout).map_err(other_stack)?;
        (prepared, own_stacks(jvmti, env, layout, true))
    };
    let of_thread = own.as_ref().map(|own| own.of_thread.clone()).transpose().map_err(other_stack)?;
    let of_thread = of_thread.unwrap_or_default();
    Ok(Agreed {
        frames: prepared + of_thread.frames,
        compiled: of_thread.compiled,
        of_virtual_thread: own.map_or(Ok(0), |own| own.of_virtual_thread).map_err(other_stack),
    })
}

/// Compares one stack of the current thread.
///
/// # Errors
/// If the stack differs.
///
/// # Safety
/// As for [`check`].
pub(super) unsafe fn check_one(jvmti: Jvmti, env: *mut JNIEnv, layout: &VmLayout) -> Result<(), LayoutError> {
    // SAFETY: the contract gives the current thread's `env`.
    let own = unsafe { own_stacks(jvmti, env, layout, false) };
    own.map_or(Ok(()), |own| own.of_thread.map(drop)).map_err(other_stack)
}

/// The stacks of the agent's own. `None` if the VM does not take the class for them.
///
/// # Safety
/// As for [`check`].
unsafe fn own_stacks(
    jvmti: Jvmti,
    env: *mut JNIEnv,
    layout: &VmLayout,
    is_untried: bool,
) -> Option<OwnStacks> {
    // SAFETY: the contract gives the current thread's `env`.
    let own = unsafe { own_stacks::check(jvmti, env, layout, is_untried) };
    own.inspect_err(|error| log::debug!("the agent has no stacks of its own: {error}")).ok()
}

fn other_stack(reason: String) -> LayoutError {
    LayoutError::OtherStack { reason }
}

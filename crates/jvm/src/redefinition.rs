//! Notices that classes are redefined or retransformed, by any agent of the process.
//!
//! The VM frees the former methods of such classes without an event, and uses their memory again, mostly for
//! other methods of the class. But it has one table of functions for all JVMTI environments, in its writable
//! data (`jvmti_Interface`, made by `prims/jvmtiEnter.xsl`; `JvmtiEnvBase::JvmtiEnvBase`,
//! `prims/jvmtiEnvBase.cpp`, 11-27), through which libinstrument, the debugger's agent and JFR call.

use std::ffi::c_void;
use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use jni::sys::jint;

use super::jvmti::Jvmti;
use super::jvmti_env::{Interface, RawEnv};
use super::jvmti_error::NOT_AVAILABLE;
use super::jvmti_table::REPLACED;

/// `RedefineClasses` and `RetransformClasses`: the number of classes, and their descriptions.
type ChangeClasses = unsafe extern "system" fn(*mut RawEnv, jint, *const c_void) -> jint;

/// Called before and after classes are changed.
static NOTIFY: OnceLock<fn()> = OnceLock::new();

/// The VM's functions.
static REDEFINE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static RETRANSFORM: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

impl Jvmti {
    /// Calls `notify` before and after each later change of classes, in the thread that makes it. Only the
    /// first call of this function has an effect.
    ///
    /// # Safety
    /// The VM must be HotSpot, and this library must stay loaded.
    pub unsafe fn watch_redefinitions(self, notify: fn()) {
        if NOTIFY.set(notify).is_err() {
            return;
        }
        let stand_ins = [(&REDEFINE, redefine_classes as ChangeClasses), (&RETRANSFORM, retransform_classes)];
        for ((_, slot), (original, stand_in)) in REPLACED.into_iter().zip(stand_ins) {
            // SAFETY: slots are numbered from 1. The table is in HotSpot's writable data for the life of the
            // VM, and others read its slots as a whole.
            let slot = unsafe {
                let table: *const Interface = *self.as_raw();
                AtomicPtr::from_ptr(table.cast_mut().cast::<*mut c_void>().add(slot - 1))
            };
            // The stand-in finds the VM's function from its first call on.
            original.store(slot.load(Ordering::Acquire), Ordering::Release);
            slot.store(stand_in as *mut c_void, Ordering::Release);
        }
    }
}

unsafe extern "system" fn redefine_classes(
    env: *mut RawEnv,
    count: jint,
    definitions: *const c_void,
) -> jint {
    // SAFETY: the caller's arguments are valid for the VM's function.
    catch_unwind(|| unsafe { changed(&REDEFINE, env, count, definitions) }).unwrap_or(NOT_AVAILABLE)
}

unsafe extern "system" fn retransform_classes(env: *mut RawEnv, count: jint, classes: *const c_void) -> jint {
    // SAFETY: the caller's arguments are valid for the VM's function.
    catch_unwind(|| unsafe { changed(&RETRANSFORM, env, count, classes) }).unwrap_or(NOT_AVAILABLE)
}

/// Calls the VM's function.
///
/// # Safety
/// The arguments must be valid for the VM's function.
unsafe fn changed(
    original: &AtomicPtr<c_void>,
    env: *mut RawEnv,
    count: jint,
    classes: *const c_void,
) -> jint {
    let original = original.load(Ordering::Acquire);
    let Some(notify) = NOTIFY.get().filter(|_| !original.is_null()) else { return NOT_AVAILABLE };
    notify();
    // SAFETY: the VM's function of this type, with its arguments.
    let code = unsafe {
        let original: ChangeClasses = std::mem::transmute(original);
        original(env, count, classes)
    };
    notify();
    code
}

//! The VM's ClassFileLoadHook, in which engines change classes. The VM sends it while any of them wants it to.

use std::ffi::{CStr, c_char, c_uchar};

use jni::sys::{JNIEnv, jclass, jint, jobject};

use super::{method_traces, new_throwables};
use crate::agent::callbacks::guarded;
use crate::jvm::jvmti::Jvmti;
use crate::jvm::jvmti_error::JvmtiError;
use crate::jvm::jvmti_events::Event;
use crate::jvm::jvmti_table::RawEnv;
use crate::jvm::live_phase::LivePhaseMutex;

/// The number of engines that want it.
static LISTENERS: LivePhaseMutex<usize> = LivePhaseMutex::new(0);

/// One more wants it.
pub(super) fn listen(jvmti: Jvmti) -> Result<(), JvmtiError> {
    let Some(mut listeners) = LISTENERS.lock() else { return Ok(()) };
    if *listeners == 0 {
        jvmti.set_event_enabled(Event::ClassFileLoadHook, true)?;
    }
    *listeners += 1;
    Ok(())
}

/// One less wants it.
pub(super) fn ignore(jvmti: Jvmti) {
    let Some(mut listeners) = LISTENERS.lock() else { return };
    *listeners -= 1;
    if *listeners == 0 {
        // What is still sent is not changed.
        let _ = jvmti.set_event_enabled(Event::ClassFileLoadHook, false);
    }
}

pub(super) unsafe extern "system" fn class_file_load_hook(
    _: *mut RawEnv,
    _: *mut JNIEnv,
    class_being_redefined: jclass,
    _loader: jobject,
    name: *const c_char,
    _protection_domain: jobject,
    length: jint,
    bytes: *const c_uchar,
    new_length: *mut jint,
    new_bytes: *mut *mut c_uchar,
) {
    // A class that is loaded is left alone: an error in it would be the program's.
    if class_being_redefined.is_null() || name.is_null() {
        return;
    }
    guarded("ClassFileLoadHook", |agent| {
        // SAFETY: the VM passes a C string and the bytes of the class, which live for the call.
        let (name, bytes) = unsafe {
            let length = usize::try_from(length).unwrap_or(0);
            (CStr::from_ptr(name).to_string_lossy(), std::slice::from_raw_parts(bytes, length))
        };
        let telling = new_throwables::changed(&name, bytes);
        let timed = method_traces::changed(&name, telling.as_deref().unwrap_or(bytes));
        let Some(changed) = timed.or(telling) else { return };
        let (Ok(memory), Ok(length)) =
            (agent.vm.jvmti.allocate(changed.len()), jint::try_from(changed.len()))
        else {
            return;
        };
        // SAFETY: the memory is that large, and the VM's from here on; the out parameters are valid.
        unsafe {
            memory.as_ptr().copy_from_nonoverlapping(changed.as_ptr(), changed.len());
            new_bytes.write(memory.as_ptr());
            new_length.write(length);
        }
    });
}

/// A class's name, as class files have it; empty for an array.
///
/// # Safety
/// `class` is a live reference to a class.
pub(super) unsafe fn name_of(jvmti: Jvmti, class: jobject) -> String {
    // SAFETY: by the contract.
    let signature = unsafe { jvmti.class_signature(class) }.unwrap_or_default();
    let name = signature.strip_prefix('L').and_then(|name| name.strip_suffix(';'));
    name.unwrap_or_default().to_owned()
}

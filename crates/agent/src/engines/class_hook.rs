//! The VM's ClassFileLoadHook, in which engines change classes. The event is enabled while at least one
//! engine needs it.

use std::ffi::{CStr, c_char, c_uchar};

use jni::sys::{JNIEnv, jclass, jint, jobject};
use otlpprof_core::engine::Engine;
use otlpprof_jvm::jvmti::Jvmti;
use otlpprof_jvm::jvmti_env::RawEnv;
use otlpprof_jvm::jvmti_error::JvmtiError;
use otlpprof_jvm::jvmti_events::{EventCallbacks, JvmtiEvent};
use otlpprof_jvm::live_phase::LivePhaseMutex;
use parking_lot::Mutex;

use crate::guarded::guarded;

/// A function that returns the changed bytes of a class, by the class's name in the form of class files and
/// its bytes; `None` if the class stays as it is.
pub(super) type ClassChanger = fn(&str, &[u8]) -> Option<Vec<u8>>;

/// Held while the event is enabled or disabled.
static SWITCHING: LivePhaseMutex<()> = LivePhaseMutex::new(());
/// The engines that change classes, in the order in which they do.
static CHANGERS: Mutex<Vec<(Engine, ClassChanger)>> = Mutex::new(Vec::new());

/// Registers an engine that changes classes, and enables the event for the first.
pub(super) fn listen(jvmti: Jvmti, engine: Engine, changer: ClassChanger) -> Result<(), JvmtiError> {
    let Some(_switching) = SWITCHING.lock() else { return Ok(()) };
    if CHANGERS.lock().is_empty() {
        jvmti.set_event_enabled(JvmtiEvent::ClassFileLoadHook, true)?;
    }
    let mut changers = CHANGERS.lock();
    changers.push((engine, changer));
    changers.sort_by_key(|(engine, _)| *engine as u8);
    Ok(())
}

/// Unregisters an engine, and disables the event after the last.
pub(super) fn unlisten(jvmti: Jvmti, engine: Engine) {
    let Some(_switching) = SWITCHING.lock() else { return };
    let is_unused = {
        let mut changers = CHANGERS.lock();
        changers.retain(|(other, _)| *other != engine);
        changers.is_empty()
    };
    if is_unused {
        // Should the event still arrive, no engine changes the class.
        let _ = jvmti.set_event_enabled(JvmtiEvent::ClassFileLoadHook, false);
    }
}

/// Enters the event's callback, for an engine that changes classes.
pub(super) fn set_callback(callbacks: &mut EventCallbacks) {
    callbacks.class_file_load_hook = Some(class_file_load_hook);
}

unsafe extern "system" fn class_file_load_hook(
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
    // Only classes that are being retransformed are changed. An error in a class that is being loaded would
    // be an error of the program.
    if class_being_redefined.is_null() || name.is_null() {
        return;
    }
    guarded("ClassFileLoadHook", |vm| {
        // SAFETY: the VM passes a C string and the bytes of the class, which live for the call.
        let (name, bytes) = unsafe {
            let length = usize::try_from(length).unwrap_or(0);
            (CStr::from_ptr(name).to_string_lossy(), std::slice::from_raw_parts(bytes, length))
        };
        let changers = CHANGERS.lock().clone();
        let changed = changers.into_iter().fold(None::<Vec<u8>>, |changed, (_, changer)| {
            changer(&name, changed.as_deref().unwrap_or(bytes)).or(changed)
        });
        let Some(changed) = changed else { return };
        let (Ok(memory), Ok(length)) = (vm.jvmti.allocate(changed.len()), jint::try_from(changed.len()))
        else {
            return;
        };
        // SAFETY: the memory is that large, and belongs to the VM from here on; the out parameters are valid.
        unsafe {
            memory.as_ptr().copy_from_nonoverlapping(changed.as_ptr(), changed.len());
            new_bytes.write(memory.as_ptr());
            new_length.write(length);
        }
    });
}

/// Returns a class's name in the form of class files; an empty string for an array.
///
/// # Safety
/// `class` is a live reference to a class.
pub(super) unsafe fn name_of(jvmti: Jvmti, class: jobject) -> String {
    // SAFETY: the contract requires a live reference to a class.
    let signature = unsafe { jvmti.class_signature(class) }.unwrap_or_default();
    let name = signature.strip_prefix('L').and_then(|name| name.strip_suffix(';'));
    name.unwrap_or_default().to_owned()
}

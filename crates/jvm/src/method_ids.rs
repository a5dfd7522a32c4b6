//! Makes the VM create the jmethodIDs of all methods, because AsyncGetCallTrace returns only existing ones.
//! The VM keeps them until it ends.

use std::sync::atomic::{AtomicBool, Ordering};

use jni::sys::{JNIEnv, jobject};

use super::jvmti::Jvmti;
use super::jvmti_error::JvmtiError;
use super::jvmti_events::JvmtiEvent;
use super::local_references;

/// The events on which ids are created for newly loaded classes. AsyncGetCallTrace refuses to work unless
/// ClassLoad is enabled (prims/forte.cpp, JvmtiExport::should_post_class_load).
const EVENTS: [JvmtiEvent; 2] = [JvmtiEvent::ClassLoad, JvmtiEvent::ClassPrepare];

/// Needed because ClassPrepare is also enabled for other purposes.
static ARE_WANTED: AtomicBool = AtomicBool::new(false);

/// Whether ids are to be created for newly loaded classes.
pub fn are_wanted() -> bool {
    ARE_WANTED.load(Ordering::Acquire)
}

/// Creates ids for the methods of all loaded classes, and enables the events whose callback calls
/// [`make_ids_of`] for new classes. Live phase only.
///
/// # Safety
/// `env` must belong to the current thread.
pub unsafe fn make_all_ids(jvmti: Jvmti, env: *mut JNIEnv) -> Result<(), JvmtiError> {
    ARE_WANTED.store(true, Ordering::Release);
    for event in EVENTS {
        jvmti.set_event_enabled(event, true)?;
    }
    let classes = jvmti.loaded_classes()?;
    // SAFETY: `env` belongs to the current thread by this function's contract.
    unsafe { local_references::expect(env, classes.len()) };
    for class in classes {
        // SAFETY: the reference is this thread's own, and not used after its deletion.
        unsafe {
            make_ids_of(jvmti, class);
            ((**env).v1_2.DeleteLocalRef)(env, class);
        }
    }
    Ok(())
}

/// Creates the ids of a class's methods. A class that is not prepared yet gets its ids when it is prepared.
///
/// # Safety
/// `class` must be a live reference to a class.
pub unsafe fn make_ids_of(jvmti: Jvmti, class: jobject) {
    // SAFETY: `class` is live by this function's contract. Errors are harmless: frames without ids are walked
    // by other means.
    let _ = unsafe { jvmti.class_methods(class) };
}

/// Stops creating ids.
pub fn make_no_more_ids(jvmti: Jvmti) -> Result<(), JvmtiError> {
    ARE_WANTED.store(false, Ordering::Release);
    EVENTS.into_iter().try_for_each(|event| jvmti.set_event_enabled(event, false))
}

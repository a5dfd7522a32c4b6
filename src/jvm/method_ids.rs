//! Has the VM make the ids of all methods, which it hands out in AsyncGetCallTrace if they exist. It keeps them for
//! as long as it runs.

use std::sync::atomic::{AtomicBool, Ordering};

use jni::sys::{JNIEnv, jobject};

use super::jvmti::Jvmti;
use super::jvmti_error::JvmtiError;
use super::jvmti_events::Event;
use super::local_references;

/// The events in which ids are made of what is loaded from now on. AsyncGetCallTrace refuses to work unless ClassLoad
/// is enabled (prims/forte.cpp, JvmtiExport::should_post_class_load).
const EVENTS: [Event; 2] = [Event::ClassLoad, Event::ClassPrepare];

/// Others have the VM tell of prepared classes too.
static ARE_WANTED: AtomicBool = AtomicBool::new(false);

/// Whether ids are to be made of what is loaded.
pub fn are_wanted() -> bool {
    ARE_WANTED.load(Ordering::Acquire)
}

/// Makes ids of the methods of all classes that are there, and has [`make_ids_of`] called for those that come.
/// Live phase only.
///
/// # Safety
/// `env` is the current thread's.
pub unsafe fn make_all_ids(jvmti: Jvmti, env: *mut JNIEnv) -> Result<(), JvmtiError> {
    ARE_WANTED.store(true, Ordering::Release);
    for event in EVENTS {
        jvmti.set_event_enabled(event, true)?;
    }
    let classes = jvmti.loaded_classes()?;
    // SAFETY: by the contract.
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

/// Makes the ids of a class's methods. A class that is not prepared yet gets them when it is.
///
/// # Safety
/// `class` is a live reference to a class.
pub unsafe fn make_ids_of(jvmti: Jvmti, class: jobject) {
    // SAFETY: by the contract. What the class cannot give now is not missed: frames without ids are walked otherwise.
    let _ = unsafe { jvmti.class_methods(class) };
}

/// Makes no more ids.
pub fn make_no_more_ids(jvmti: Jvmti) -> Result<(), JvmtiError> {
    ARE_WANTED.store(false, Ordering::Release);
    EVENTS.into_iter().try_for_each(|event| jvmti.set_event_enabled(event, false))
}

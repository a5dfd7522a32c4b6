//! Idle threads that are not the program's Java threads: the VM's own, and those of native code. They have
//! most of the time of a wall-clock profile.

use super::measure::Measure;
use super::selection::text_of;
use crate::model::{attribute_keys, types};
use crate::otlp::encoded::EncodedTables;

/// The states of a thread that is not idle.
const BUSY: [&str; 2] = ["running", "runnable"];
/// The state of a thread in Object.wait.
const WAITING: &str = "waiting";

/// Java threads of the VM that run none of the program's code (HotSpot: `os.cpp`, `notificationThread.cpp`,
/// `attachListener.cpp`, `jni.cpp`; the JDK: `java.lang.ref.Reference`).
const OF_VM: [&str; 5] =
    ["Attach Listener", "DestroyJavaVM", "Notification Thread", "Reference Handler", "Signal Dispatcher"];
/// Java threads that may run the program's code, and are in Object.wait while there is none to run (the JDK:
/// `java.lang.ref.Finalizer`, `jdk.internal.ref.CleanerFactory`). In another state they may wait for one of
/// the program's locks.
const OF_LIBRARY: [&str; 2] = ["Common-Cleaner", "Finalizer"];

/// Whether samples of a measure with these attributes are waits of a thread that is not one of the program's
/// Java threads. A thread without an id, such as a virtual one, is taken for one of those, and a thread
/// without a state for busy.
pub(super) fn are_idle(measure: &Measure, tables: EncodedTables<'_>, attribute_indices: &[i32]) -> bool {
    if measure.name != types::WALL.name {
        return false;
    }
    let (mut has_java_id, mut has_os_id, mut name, mut state) = (false, false, None, None);
    for (key, value) in tables.attributes(attribute_indices) {
        let text = || Some(text_of(tables, value.as_ref()).into_owned());
        match key {
            attribute_keys::THREAD_ID => has_java_id = true,
            attribute_keys::THREAD_OS_ID => has_os_id = true,
            attribute_keys::THREAD_NAME => name = text(),
            attribute_keys::THREAD_STATE => state = text(),
            _ => {}
        }
    }
    let Some(state) = state.filter(|state| !BUSY.contains(&&**state)) else { return false };
    let is_one_of = |names: &[&str]| name.as_deref().is_some_and(|name| names.contains(&name));
    match has_java_id {
        true => is_one_of(&OF_VM) || (is_one_of(&OF_LIBRARY) && state == WAITING),
        false => has_os_id,
    }
}

//! Idle threads that are not the program's Java threads: the VM's own, and those of native code. They have
//! most of the time of a wall-clock profile.

use otlpprof_model::attribute_keys;
use otlpprof_model::thread_states::{PARKED, WAITING};
use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::lookup::DictionaryTables as _;

use super::measure::Measure;
use super::selection::text_of;
use super::thread_activity::Activity;
use super::thread_role::OwnCode;

/// The methods in which a thread waits for references to objects that are garbage. JDK 19 to 21 park there.
const QUEUE: &str = "java.lang.ref.ReferenceQueue.remove";

/// Whether a thread is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idleness {
    Busy,
    Idle,
    /// Idle if the thread waits in a reference queue, and not for one of the program's locks.
    IdleInQueue,
}

impl Idleness {
    /// By attributes of samples of a measure: whether they are waits of a thread that is not one of the
    /// program's Java threads. A thread without an id, such as a virtual one, is taken for one of those, and
    /// a thread without a state for busy.
    pub(super) fn of(measure: &Measure, tables: EncodedTables<'_>, attribute_indices: &[i32]) -> Self {
        if !measure.is_wall_clock() {
            return Self::Busy;
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
        let state = state.filter(|state| Activity::of(state) == Activity::Waits);
        let Some(state) = state else { return Self::Busy };
        if !has_java_id {
            return if has_os_id { Self::Idle } else { Self::Busy };
        }
        match (name.as_deref().and_then(OwnCode::of_java_thread), &*state) {
            (Some(OwnCode::Vm | OwnCode::Jdk), _) | (Some(OwnCode::Program), WAITING) => Self::Idle,
            // In another state the thread may wait for one of the program's locks.
            (Some(OwnCode::Program), PARKED) => Self::IdleInQueue,
            _ => Self::Busy,
        }
    }

    /// Whether a sample with this stack is idle.
    pub(super) fn is_idle(self, tables: EncodedTables<'_>, stack_index: i32) -> bool {
        match self {
            Self::Busy => false,
            Self::Idle => true,
            Self::IdleInQueue => waits_in_queue(tables, stack_index),
        }
    }
}

fn waits_in_queue(tables: EncodedTables<'_>, stack_index: i32) -> bool {
    let locations = tables.stack(stack_index).unwrap_or_default();
    let lines =
        locations.into_iter().filter_map(|index| tables.location(index)).flat_map(|found| found.lines);
    let functions = lines.filter_map(|line| tables.function(line.function_index));
    functions.map(|function| tables.text(function.name_strindex)).any(|name| name.starts_with(QUEUE))
}

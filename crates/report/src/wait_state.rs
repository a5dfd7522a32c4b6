//! The states of threads that wait, by the samples' attributes.

use otlpprof_model::thread_states::{RUNNABLE, RUNNING};
use otlpprof_model::{attribute_keys, types};
use otlpprof_otlp::wire::Sample;

use super::sample_reader::ProfileContext;
use super::selection::text_of;

/// Whether the samples of a profile have states.
pub(super) fn has_states(profile: &ProfileContext<'_>) -> bool {
    profile.measure.name == types::WALL.name
}

/// The state of a sample's thread; `None` if the thread does not wait, or if the state is unknown.
pub(super) fn wait_state(profile: &ProfileContext<'_>, sample: &Sample) -> Option<String> {
    let of = |indices, wanted: &str| {
        let mut attributes = profile.tables.attributes(indices);
        let found = attributes.find(|(key, _)| *key == wanted);
        found.map(|(_, value)| text_of(profile.tables, value.as_ref()).into_owned())
    };
    let state = of(&sample.attribute_indices, attribute_keys::THREAD_STATE)?;
    match &*state {
        "" | RUNNING => None,
        // Recorders call running threads runnable, too.
        RUNNABLE if of(&profile.header.attribute_indices, attribute_keys::JFR_EVENT).is_some() => None,
        _ => Some(state),
    }
}

//! The states of threads that wait, by the samples' attributes.

use otlpprof_model::attribute_keys;
use otlpprof_otlp::wire::Sample;

use super::profile_context::ProfileContext;
use super::selection::text_of;
use super::thread_activity::Activity;

/// The state of a sample's thread; `None` if the thread does not wait, if the state is unknown, or if the
/// profile is not one of wall-clock time.
pub(super) fn wait_state(profile: &ProfileContext<'_>, sample: &Sample) -> Option<String> {
    if !profile.measure.is_wall_clock() {
        return None;
    }
    let of = |indices, wanted: &str| {
        let mut attributes = profile.tables.attributes(indices);
        let found = attributes.find(|(key, _)| *key == wanted);
        found.map(|(_, value)| text_of(profile.tables, value.as_ref()).into_owned())
    };
    let state = of(&sample.attribute_indices, attribute_keys::THREAD_STATE)?;
    let is_recorded = || of(&profile.header.attribute_indices, attribute_keys::JFR_EVENT).is_some();
    match Activity::of(&state) {
        Activity::Runs => None,
        // Recorders call running threads runnable, too.
        Activity::AwaitsProcessor if is_recorded() => None,
        Activity::AwaitsProcessor | Activity::Waits => Some(state),
    }
}

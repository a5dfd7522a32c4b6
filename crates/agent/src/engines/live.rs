//! The engine `live`: sampled objects that may still be alive.

use otlpprof_jvm::jvmti::Capability;
use otlpprof_model::{attribute_keys, types};

use super::description::{EngineDescription, EssentialParts, NeededCapabilities, both, started};
use super::{allocations, live_objects};
use crate::resolve::SubjectForm;

/// The engine. Live objects have no profile of their allocation: they are reported for as long as they live.
pub(super) static ENGINE: EngineDescription = EngineDescription {
    profiles_of_survivors: |options| {
        both([&types::LIVE_SPACE, &types::LIVE_OBJECTS], options.live.unwrap_or(1))
    },
    subject: SubjectForm::Class(attribute_keys::OBJECT_CLASS),
    replaces: &["jdk.OldObjectSample"],
    needs: |_| NeededCapabilities::of("live", &[Capability::SampledObjectAllocEvents]),
    set_callbacks: allocations::set_callbacks,
    stretched: allocations::stretched,
    sweep: Some(live_objects::sweep),
    forget: live_objects::forget,
    add_alive: |_, alive| live_objects::add_alive(alive),
    ..EngineDescription::of(EssentialParts {
        is_on: |options| options.live.is_some(),
        turn_off: |options| options.live = None,
        profiles: |_| [None, None],
        start: |vm, options| started([allocations::start_live(vm, options.live)]),
    })
};

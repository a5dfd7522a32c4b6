//! The engine `alloc`: allocations of objects.

use otlpprof_jvm::jvmti::Capability;
use otlpprof_model::{attribute_keys, types};

use super::allocations;
use super::description::{EngineDescription, EssentialParts, NeededCapabilities, both, started};
use crate::resolve::SubjectForm;

/// The engine.
pub(super) static ENGINE: EngineDescription = EngineDescription {
    subject: SubjectForm::Class(attribute_keys::OBJECT_CLASS),
    replaces: &[
        "jdk.ObjectAllocationInNewTLAB",
        "jdk.ObjectAllocationOutsideTLAB",
        "jdk.ObjectAllocationSample",
    ],
    needs: |_| NeededCapabilities::of("alloc", &[Capability::SampledObjectAllocEvents]),
    set_callbacks: allocations::set_callbacks,
    stretched: allocations::stretched,
    ..EngineDescription::of(EssentialParts {
        is_on: |options| options.alloc.is_some(),
        turn_off: |options| options.alloc = None,
        profiles: |options| both([&types::ALLOC_SPACE, &types::ALLOC_OBJECTS], options.alloc.unwrap_or(1)),
        start: |vm, options| started([allocations::start_alloc(vm, options.alloc)]),
    })
};

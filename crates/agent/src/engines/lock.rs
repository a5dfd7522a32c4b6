//! The engine `lock`: waits to enter monitors and to acquire locks.

use otlpprof_jvm::jvmti::Capability;
use otlpprof_model::types;

use super::description::{EngineDescription, EssentialParts, NeededCapabilities, both, started};
use super::{monitors, parking};
use crate::resolve::SubjectForm;

/// The engine.
pub(super) static ENGINE: EngineDescription = EngineDescription {
    subject: SubjectForm::Lock,
    replaces: &["jdk.JavaMonitorEnter", "jdk.ThreadPark"],
    needs: |_| NeededCapabilities::of("lock", &[Capability::MonitorEvents]),
    set_callbacks: monitors::set_callbacks_of_entering,
    ..EngineDescription::of(EssentialParts {
        is_on: |options| options.lock.is_some(),
        turn_off: |options| options.lock = None,
        profiles: |_| both([&types::LOCK_COUNT, &types::LOCK_TIME], 1),
        start: |vm, options| {
            started([monitors::start_entering(vm, options.lock), parking::start(vm, options.lock)])
        },
    })
};

//! The engine `wait`: waits for notifications.

use otlpprof_jvm::jvmti::Capability;
use otlpprof_model::{attribute_keys, types};

use super::description::{EngineDescription, EssentialParts, NeededCapabilities, both, started};
use super::monitors;
use crate::resolve::SubjectForm;

/// The engine.
pub(super) static ENGINE: EngineDescription = EngineDescription {
    subject: SubjectForm::Class(attribute_keys::MONITOR_CLASS),
    replaces: &["jdk.JavaMonitorWait"],
    needs: |_| NeededCapabilities::of("wait", &[Capability::MonitorEvents]),
    set_callbacks: monitors::set_callbacks_of_notifications,
    ..EngineDescription::of(EssentialParts {
        is_on: |options| options.wait.is_some(),
        turn_off: |options| options.wait = None,
        profiles: |_| both([&types::WAIT_COUNT, &types::WAIT_TIME], 1),
        start: |vm, options| started([monitors::start_notifications(vm, options.wait)]),
    })
};

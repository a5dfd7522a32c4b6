//! The JVMTI capabilities that engines need. Some can be held by only one agent of a process, and some are
//! granted only while the VM starts.

use otlpprof_jvm::jvmti::{Capability, Jvmti};
use otlpprof_jvm::jvmti_error::JvmtiError;
use otlpprof_jvm::jvmti_table::Capabilities;
use otlpprof_options::Options;

use super::table::{description, enabled};

/// Acquires the capabilities that the engines need. An engine without its capabilities is turned off, with a
/// line in the log.
pub(super) fn acquire(jvmti: Jvmti, options: &mut Options) {
    let engines: Vec<_> = enabled(options).collect();
    for engine in engines {
        let needs = (description(engine).needs)(options);
        if !needs.capabilities.iter().all(|&capability| grants(jvmti, needs.option, capability)) {
            (description(engine).turn_off)(options);
        }
    }
    if need_any(options)
        && let Err(error) = support_virtual_threads(jvmti)
    {
        log::warn!(
            "the VM sends no events of virtual threads ({error}): engines that need these events do not \
             sample them"
        );
    }
}

/// Whether an engine is enabled that needs a capability: all of these use the VM's events.
pub(super) fn need_any(options: &Options) -> bool {
    enabled(options).any(|engine| !(description(engine).needs)(options).capabilities.is_empty())
}

/// Whether the VM grants the capability that `option` needs. Logs the reason if it does not.
fn grants(jvmti: Jvmti, option: &str, capability: Capability) -> bool {
    if jvmti.capabilities().is_ok_and(|had| had.has(capability)) {
        return true;
    }
    let is_to_be_had = jvmti.potential_capabilities().is_ok_and(|potential| potential.has(capability));
    if !is_to_be_had {
        log::warn!("{option} is off: {}", reason(capability));
        return false;
    }
    let added = jvmti.add_capabilities(Capabilities::default().with(capability));
    added.inspect_err(|error| log::warn!("{option} is off: the VM refuses its events ({error})")).is_ok()
}

/// Returns the reason for which a capability is not available, and the remedy if there is one.
fn reason(capability: Capability) -> &'static str {
    match capability {
        Capability::SampledObjectAllocEvents => {
            "another agent of this process receives the VM's allocation events; only one agent can"
        }
        Capability::ExceptionEvents => {
            "the VM reports throws only to agents that are loaded at its start (-agentpath)"
        }
        _ => {
            "the VM does not support its events, or supports them only for agents that are loaded at its \
             start"
        }
    }
}

/// Acquires the capability to support virtual threads, without which JVMTI sends no events of them (21 on).
fn support_virtual_threads(jvmti: Jvmti) -> Result<(), JvmtiError> {
    let wanted = Capability::SupportVirtualThreads;
    if !jvmti.potential_capabilities()?.has(wanted) {
        return Ok(());
    }
    jvmti.add_capabilities(Capabilities::default().with(wanted))
}

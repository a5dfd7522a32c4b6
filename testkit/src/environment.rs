//! The environment of programs whose profiler only the test configures.

use std::process::Command;

/// Removes the variables that configure agents or JVMs, and permits tests to sample often.
pub fn remove_configuration(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("OTEL_") || text.starts_with("OTLPPROF_") || text.contains("JAVA_") {
            command.env_remove(&name);
        }
    }
    // Cargo's value, with which the JVM would find agents of other builds.
    command.env_remove("LD_LIBRARY_PATH");
    // Tests sample more often than the default budget and limit allow. Agent options override these
    // variables.
    command.env("OTLPPROF_BUDGET", "off").env("OTLPPROF_LIMIT", "off");
}

//! The options of commands to a JVM: the JVM, and the agent that is loaded.

use std::path::PathBuf;
use std::time::Duration;

use super::error::AttachError;
use super::jvm_name::JvmName;
use crate::duration;
use crate::event_args::EventArgs;

/// The JVM.
#[derive(Debug, clap::Args)]
pub(super) struct Target {
    /// The JVM's process id, or a part of its main class's name
    pub(super) jvm: JvmName,
    /// Give up if the JVM does not answer within this time
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "30s")]
    pub(super) timeout: Duration,
}

/// The agent that is loaded.
#[derive(Debug, clap::Args)]
pub(super) struct AgentArgs {
    /// Options of the agent, such as cpu=5ms,wall. Relative paths begin at the current folder
    #[arg(value_name = "AGENT_OPTIONS", default_value = "", hide_default_value = true)]
    pub(super) options: String,
    #[command(flatten)]
    pub(super) events: EventArgs,
    /// The agent's library. The default is libotlpprof.so beside this command, in ../lib, or in
    /// ../lib/otlpprof
    #[arg(long, value_name = "PATH")]
    pub(super) library: Option<PathBuf>,
}

impl AgentArgs {
    /// The agent string, with the chosen events.
    pub(super) fn options(&self) -> Result<String, AttachError> {
        Ok(self.events.with_events(&self.options)?)
    }
}

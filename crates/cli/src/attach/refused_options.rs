//! Options that a command does not take: those that it sets itself, and the agent's commands among them.

use super::error::AttachError;
use crate::agent_string;

/// Fails if the agent string has one of the `refused` options, for which `why` makes the error, or a command
/// of the agent. `by` is the command that takes the options.
pub(super) fn refuse(
    options: &str,
    refused: &[&str],
    why: fn(String) -> AttachError,
    by: &'static str,
) -> Result<(), AttachError> {
    for item in agent_string::items(options) {
        if refused.contains(&agent_string::name(item)) {
            return Err(why(item.to_owned()));
        }
        if agent_string::is_command(item) {
            return Err(AttachError::CommandAmongOptions { word: item.to_owned(), by });
        }
    }
    Ok(())
}

//! One chain for all frames of a message that have no name: tests of hostile messages need no object files.

use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_otlp::read_error::ReadError;

use super::names::{CodeLine, NamedFunction, Names};
use super::objects::Objects;
use super::remote_frames;
use super::rewrite::{self, Resolved};

/// The message with these functions, innermost first, in every frame without a name. `None` if there is no
/// such frame.
///
/// # Errors
/// If the result would exceed the bounds of messages.
#[doc(hidden)]
pub fn with_names(message: &EncodedMessage, functions: &[&str]) -> Option<Result<EncodedMessage, ReadError>> {
    let unnamed = remote_frames::find(message, &mut Objects::default());
    let mut names = Names::default();
    let lines: Vec<_> = functions
        .iter()
        .map(|name| {
            let name = names.text(name);
            let function = names.functions.intern(NamedFunction { name, system_name: name, filename: name });
            CodeLine { function, line: 1, column: 0 }
        })
        .collect();
    let chain = names.chain(&lines);
    let resolved: Vec<_> = unnamed
        .iter()
        .map(|frame| Resolved { location: frame.location, chain, address: frame.place.address })
        .collect();
    (!resolved.is_empty()).then(|| rewrite::rewritten(message, &resolved, &names))
}

//! Turns the agent string and the environment into a request.

use std::borrow::Cow;

use super::agent_string::{self, Command, GivenOption};
use super::draft::Draft;
use super::environment::Environment;
use super::error::{OptionError, did_you_mean};
use super::option_spec::{ENVIRONMENT_PREFIX, OptionSpec};
use super::table;
use super::types::Options;
use super::{otel, value};

const NOT_UTF8: &str = "must be UTF-8";

/// The request that a load of the agent makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Profile, with these options.
    Start(Box<Options>),
    /// Flush and stop.
    Stop,
    /// Flush and go on.
    Flush,
    /// Report what the agent is doing.
    Status,
    /// Print the help.
    Help,
    /// Nothing: the variable or the property of this name disables OpenTelemetry in this process.
    Disabled(String),
}

/// [`parse`] for an agent string of any bytes, as the JVM passes it. If a command reads the profiles along,
/// no other destination is needed.
pub fn parse_bytes(
    agent_string: &[u8],
    environment: &Environment,
    is_read_along: bool,
) -> Result<Request, OptionError> {
    let text = String::from_utf8_lossy(agent_string);
    // Replacement characters must not turn into another path or name. The text is parsed nevertheless, to
    // find `strict`.
    parse_text(&text, environment, is_read_along).and_then(|request| match text {
        Cow::Borrowed(_) => Ok(request),
        Cow::Owned(_) => {
            let strict = matches!(&request, Request::Start(options) if options.strict);
            Err(OptionError { message: format!("the options: {NOT_UTF8}"), strict })
        }
    })
}

/// Parses the agent string (the text after `=` in `-agentpath:…=`, or the argument of `JVMTI.agent_load`) and
/// the environment.
pub fn parse(agent_string: &str, environment: &Environment) -> Result<Request, OptionError> {
    parse_text(agent_string, environment, false)
}

fn parse_text(
    agent_string: &str,
    environment: &Environment,
    is_read_along: bool,
) -> Result<Request, OptionError> {
    request(agent_string, environment, is_read_along).map_err(|message| {
        let strict = agent_string::find_strict(agent_string).or_else(|| environment.get("OTLPPROF_STRICT"));
        OptionError { message, strict: strict.is_some_and(|text| value::boolean(text) == Ok(true)) }
    })
}

fn request(agent_string: &str, environment: &Environment, is_read_along: bool) -> Result<Request, String> {
    let (command, given) = agent_string::split(agent_string)?;
    if let (Command::Start, Some(name)) = (command, otel::disabled_by(environment)) {
        return Ok(Request::Disabled(name.to_owned()));
    }
    Ok(match command {
        Command::Start => Request::Start(Box::new(options(&given, environment, is_read_along)?)),
        Command::Stop => Request::Stop,
        Command::Flush => Request::Flush,
        Command::Status => Request::Status,
        Command::Help => Request::Help,
    })
}

/// Reads the options from the source of lowest precedence to the source of highest precedence: each
/// overwrites the earlier ones.
fn options(
    given: &[GivenOption<'_>],
    environment: &Environment,
    is_read_along: bool,
) -> Result<Options, String> {
    let mut draft = Draft { is_read_along, ..Draft::default() };
    for option in table::all() {
        option.default.map_or(Ok(()), |text| read(option, option.name, text, &mut draft))?;
    }
    // A stronger source hides a variable, even one with a mistake in its value.
    let hiding = given.iter().map(|given| given.option).filter(|option| !option.adds);
    let hidden: Vec<_> = hiding.map(OptionSpec::environment_variable).collect();
    let is_hidden = |variable: &str| hidden.iter().any(|hidden| hidden == variable);
    let mut unreadable = environment.unreadable_with_prefix(ENVIRONMENT_PREFIX);
    if let Some(name) = unreadable.find(|name| !is_hidden(name)) {
        return Err(format!("{name}: {NOT_UTF8}"));
    }
    for name in environment.unreadable_with_prefix("OTEL_") {
        draft.options.warnings.push(format!("{name} is ignored: {NOT_UTF8}"));
    }
    otel::apply(environment, &mut draft);
    for option in table::all() {
        let variable = option.environment_variable();
        if let Some(text) = environment.get(&variable).filter(|_| !is_hidden(&variable)) {
            read(option, &variable, text, &mut draft)?;
            draft.variables.push((option.name, variable));
        }
    }
    warn_of_unknown_variables(environment, &mut draft);
    for given in given {
        read(given.option, given.option.name, given.value, &mut draft)?;
    }
    draft.finish()
}

fn read(option: &OptionSpec, name: &str, text: &str, draft: &mut Draft) -> Result<(), String> {
    (option.read)(draft, text).map_err(|message| {
        if option.secret { format!("{name}: {message}") } else { format!("{name}={text}: {message}") }
    })
}

/// Warns of unknown variables. They are no error, since other parts of an installation may use the prefix as
/// well.
fn warn_of_unknown_variables(environment: &Environment, draft: &mut Draft) {
    let known: Vec<_> = table::all().map(OptionSpec::environment_variable).collect();
    for name in environment.names_with_prefix(ENVIRONMENT_PREFIX) {
        if !known.iter().any(|variable| variable == name) {
            let hint = did_you_mean(name, known.iter().map(String::as_str));
            draft.options.warnings.push(format!("{name} is ignored: no such option{hint}"));
        }
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "destination_tests.rs"]
mod destination_tests;

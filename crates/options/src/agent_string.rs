//! The agent string: `[COMMAND,]KEY=VALUE,KEY,…`.

use super::error::did_you_mean;
use super::option_spec::OptionSpec;
use super::table;

/// Splits a leading option, such as `answer=/tmp/NAME`, off an agent string. Returns its value and the rest.
/// `option` is the name with the equals sign.
pub fn split_leading<'o>(options: &'o [u8], option: &str) -> Option<(&'o [u8], &'o [u8])> {
    let rest = options.strip_prefix(option.as_bytes())?;
    let end = rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
    let (value, rest) = rest.split_at(end);
    Some((value, rest.strip_prefix(b",").unwrap_or(rest)))
}

/// The commands that the first word may give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Start,
    Stop,
    Flush,
    Status,
    Help,
}

/// The commands, for the parser and the help.
pub(super) const COMMANDS: [(&str, Command, &str); 5] = [
    ("start", Command::Start, "start profiling (as without a command)"),
    ("stop", Command::Stop, "write and upload pending profiles, and stop"),
    ("flush", Command::Flush, "write pending profiles, queue them for upload, and continue"),
    ("status", Command::Status, "print the agent's state"),
    ("help", Command::Help, "print this text"),
];

/// One option as given; its value has not yet been parsed.
#[derive(Clone, Copy)]
pub(super) struct GivenOption<'a> {
    pub(super) option: &'static OptionSpec,
    pub(super) value: &'a str,
}

/// Splits an agent string into its command and options. The options are returned in the table's order. Empty
/// items, from superfluous commas, are ignored.
pub(super) fn split(text: &str) -> Result<(Command, Vec<GivenOption<'_>>), String> {
    let mut items = text.split(',').filter(|item| !item.is_empty()).peekable();
    let command = items.next_if(|item| command(item).is_some()).and_then(command).unwrap_or(Command::Start);
    if command == Command::Help {
        return Ok((command, Vec::new()));
    }
    let mut given: Vec<GivenOption<'_>> = Vec::new();
    for item in items {
        let (name, value) = match item.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (item, None),
        };
        let option = table::find(name).ok_or_else(|| unknown(name, value.is_none()))?;
        if given.iter().any(|earlier| earlier.option.name == name) {
            return Err(format!("option '{name}' is given twice"));
        }
        let value = value
            .or(option.bare)
            .ok_or_else(|| format!("option '{name}' needs a value: {name}={}", option.value))?;
        given.push(GivenOption { option, value });
    }
    if command != Command::Start && !given.is_empty() {
        return Err(format!("'{}' takes no options, got '{}'", name_of(command), given[0].option.name));
    }
    given.sort_by_key(|given| table::all().position(|option| option.name == given.option.name));
    Ok((command, given))
}

/// Whether an item of an agent string names an option or a command, whatever its value.
pub fn is_known(item: &str) -> bool {
    let name = item.split_once('=').map_or(item, |(name, _)| name);
    table::find(name).is_some() || command(name).is_some()
}

/// Returns the value of `strict`, as far as it can be found in a string that has mistakes in it.
pub(super) fn find_strict(text: &str) -> Option<&str> {
    text.split(',').find_map(|item| match item.strip_prefix("strict")? {
        "" => Some("true"),
        value => value.strip_prefix('='),
    })
}

fn command(item: &str) -> Option<Command> {
    COMMANDS.iter().find(|(name, ..)| *name == item).map(|(_, command, _)| *command)
}

fn name_of(command: Command) -> &'static str {
    COMMANDS.iter().find(|(_, other, _)| *other == command).map_or("", |(name, ..)| name)
}

fn unknown(name: &str, is_bare: bool) -> String {
    if ["answer", "stream"].contains(&name) {
        return "answer=SOCKET and stream=INTERVAL come from commands such as `otlpprof top`, in this order \
                before all other options"
            .to_owned();
    }
    if is_bare && command(name).is_some() {
        return format!("'{name}' must be the first word of the options");
    }
    let options = table::all().map(|option| option.name);
    let commands = COMMANDS.iter().map(|(name, ..)| *name).filter(|_| is_bare);
    let hint = did_you_mean(name, options.chain(commands));
    let hint = if hint.is_empty() { "; 'help' lists them" } else { &hint };
    format!("unknown option '{name}'{hint}")
}

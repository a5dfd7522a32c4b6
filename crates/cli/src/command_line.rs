//! The command line as people type it: parsed, with the forms that other profilers have taught them.
//!
//! `otlpprof run java -jar app.jar` needs no `--` before the program, as with `perf record` and `samply
//! record`. `otlpprof run help` prints the help. `otlpprof record java …` is answered by the command that
//! starts a program.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use otlpprof_options::shell_word::quoted;

use super::exit_codes::EXIT_BAD_INPUT;
use super::{
    agent_string, attach, check_stacks, collect, completions, convert, executable, export, flamegraph, merge,
    payload, print, report, run, symbolize, symbols, terminal, top, validate,
};

/// Profile Java programs; read, check and receive OpenTelemetry profiles.
#[derive(Debug, Parser)]
#[command(name = "otlpprof", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Run(run::Args),
    Record(attach::RecordArgs),
    Top(top::Args),
    Attach(attach::AttachArgs),
    Status(attach::StatusArgs),
    Flush(attach::FlushArgs),
    Stop(attach::StopArgs),
    List(attach::ListArgs),
    /// List the options of the agent, with their defaults and variables
    Options,
    Report(report::Args),
    Flamegraph(flamegraph::Args),
    Diff(flamegraph::DiffArgs),
    Print(print::Args),
    Export(export::Args),
    Merge(merge::Args),
    Convert(convert::Args),
    Payload(payload::Args),
    Collect(collect::Args),
    Symbolize(symbolize::Args),
    Symbols(symbols::Args),
    Validate(validate::Args),
    CheckStacks(check_stacks::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    Man(completions::ManArgs),
}

/// The commands by what they are for, as the help lists them.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Profile Java programs", &["run", "record", "top"]),
    ("Control the agent in a JVM", &["list", "attach", "status", "flush", "stop", "options"]),
    ("Show profiles", &["report", "flamegraph", "diff", "print"]),
    (
        "Receive and transform profiles",
        &["collect", "convert", "merge", "export", "payload", "symbolize", "symbols"],
    ),
    ("Check and complete", &["validate", "check-stacks", "completions", "help"]),
];

/// The line after a mistake in the arguments of commands that take the agent's options.
const ADVICE_ON_OPTIONS: &str = "The agent's options are one word, separated by commas: cpu=5ms,alloc. \
                                 `otlpprof options` lists them.";

/// Commands to a JVM.
const TO_A_JVM: [&str; 3] = ["record", "attach", "top"];
/// Commands whose first word is never a file, so that the word `help` has no other meaning.
const WITHOUT_FILES: [&str; 7] = ["run", "record", "attach", "top", "status", "flush", "stop"];

/// Parses the arguments of this process, of which the first is the command's name.
///
/// # Errors
/// The exit code, when the help or a mistake has been printed.
pub(super) fn parse(arguments: Vec<OsString>) -> Result<Command, ExitCode> {
    let mut command = command();
    let path = std::env::var_os("PATH");
    let is_executable = |word: &OsStr| executable::find(word, path.as_deref()).is_some();
    let words = match normal_form(&command, &arguments, is_executable) {
        Ok(words) => words,
        Err(advice) => {
            let _ = writeln!(terminal::stderr(), "otlpprof: {advice}");
            return Err(ExitCode::from(EXIT_BAD_INPUT));
        }
    };
    let matches = command.try_get_matches_from_mut(words);
    match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => Ok(cli.command),
        Err(error) => {
            // Standard error may be closed, but the exit code reports the error all the same.
            let _ = error.print();
            let name = arguments.get(1).and_then(|name| name.to_str()).unwrap_or_default();
            let takes_options = name == "run" || TO_A_JVM.contains(&name);
            if takes_options && error.kind() == ErrorKind::UnknownArgument {
                let mut err = terminal::stderr();
                let _ = writeln!(err).and_then(|()| writeln!(err, "{ADVICE_ON_OPTIONS}"));
            }
            Err(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(EXIT_BAD_INPUT)))
        }
    }
}

/// The command line's grammar.
pub(super) fn command() -> clap::Command {
    let command = Cli::command();
    let listed = commands_by_group(&command);
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{listed}Options:\n{{options}}\n\n\
         `otlpprof COMMAND --help` describes a command.\n"
    ))
}

/// The commands in their groups, a line for each.
fn commands_by_group(command: &clap::Command) -> String {
    let mut text = String::new();
    for (title, names) in GROUPS {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{title}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map_or_else(|| "Describe a command".to_owned(), ToString::to_string);
            let _ = writeln!(text, "  {name:<14}{about}");
        }
        text.push('\n');
    }
    text
}

/// The arguments as the grammar has them: with `--` before the program of `run`, and `--help` in place of
/// `help`.
///
/// # Errors
/// The line that corrects a command which names a program in place of a JVM.
fn normal_form(
    command: &clap::Command,
    arguments: &[OsString],
    is_executable: impl Fn(&OsStr) -> bool,
) -> Result<Vec<OsString>, String> {
    let (Some(name), Some(words)) = (arguments.get(1).and_then(|name| name.to_str()), arguments.get(2..))
    else {
        return Ok(arguments.to_vec());
    };
    let Some(command) = command.find_subcommand(name) else { return Ok(arguments.to_vec()) };
    let mut words = words.to_vec();
    if WITHOUT_FILES.contains(&name) && words.first().is_some_and(|word| word == "help") {
        words[0] = "--help".into();
    } else if name == "run" {
        if let Some(program) = program_of_run(command, &words, is_executable) {
            words.insert(program, "--".into());
        }
    } else if TO_A_JVM.contains(&name)
        && let Some(advice) = started_instead(command, name, &words, is_executable)
    {
        return Err(advice);
    }
    Ok(arguments[..2].iter().cloned().chain(words).collect())
}

/// The place of the program among the words after `run`, if no `--` marks the program: the first word that is
/// neither an option nor the agent's options.
fn program_of_run(
    command: &clap::Command,
    words: &[OsString],
    is_executable: impl Fn(&OsStr) -> bool,
) -> Option<usize> {
    let places = positional_places(command, words);
    let (&first, rest) = places.split_first()?;
    if !is_agent_options(&words[first], &words[first + 1..], &is_executable) {
        return Some(first);
    }
    let second = *rest.first()?;
    // A second word of options is a mistake, which the parser reports.
    (!is_agent_options(&words[second], &words[second + 1..], &is_executable)).then_some(second)
}

/// Whether a word is the agent's options rather than a program: all of its items are options that the agent
/// knows. A word with a mistake is taken for options if there is no such program and the word has the form of
/// options, or stands before a `--`.
fn is_agent_options(word: &OsStr, after: &[OsString], is_executable: impl Fn(&OsStr) -> bool) -> bool {
    let Some(text) = word.to_str() else { return false };
    if agent_string::items(text).all(otlpprof_options::is_known) {
        return true;
    }
    !is_executable(word) && (text.contains(['=', ',']) || after.iter().any(|word| word == "--"))
}

/// The line for a command to a JVM that names a program to start.
fn started_instead(
    command: &clap::Command,
    name: &str,
    words: &[OsString],
    is_executable: impl Fn(&OsStr) -> bool,
) -> Option<String> {
    let places = positional_places(command, words);
    let is_options = |&place: &usize| is_agent_options(&words[place], &[], &is_executable);
    let has_words = |place: usize| {
        let next = words.get(place + 1);
        next.is_some_and(|next| !is_agent_options(next, &[], &is_executable) && is_no_option(command, next))
    };
    let (end_of_options, program) = match (words.iter().position(|word| word == "--"), places.first()) {
        (Some(mark), _) if places.iter().all(is_options) => (mark, mark + 1),
        (_, Some(&first)) if has_words(first) => (first, first),
        _ => return None,
    };
    let program = &words[program..];
    if !program.first().is_some_and(|program| is_executable(program)) {
        return None;
    }
    // `run` has the options of `record`.
    let options = if name == "record" { &words[..end_of_options] } else { &[] };
    let all = options.iter().map(OsString::as_os_str).chain([OsStr::new("--")]);
    let all = all.chain(program.iter().map(OsString::as_os_str));
    let line: Vec<_> = all.map(|word| quoted(&word.to_string_lossy())).collect();
    Some(format!("{name} takes a running JVM; to start a program: otlpprof run {}", line.join(" ")))
}

/// Whether a word is no option that the command has.
fn is_no_option(command: &clap::Command, word: &OsStr) -> bool {
    let text = word.to_string_lossy();
    match text.strip_prefix("--") {
        Some(long) => long_option(command, long.split('=').next().unwrap_or(long)).is_none(),
        None if text.starts_with('-') => {
            // A single dash and several letters, such as -jar, is the style of Java's launcher.
            let mut letters = text.chars().skip(1);
            letters.next().and_then(|letter| short_option(command, letter)).is_none()
        }
        None => true,
    }
}

/// The places of the words before `--` that are neither options nor their values.
fn positional_places(command: &clap::Command, words: &[OsString]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let text = word.to_string_lossy();
        if text == "--" {
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            let takes_next = long_option(command, long).is_some_and(takes_value);
            at += usize::from(takes_next);
        } else if let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            // Letters after the first option with a value are its value.
            let is_valued = |letter| short_option(command, letter).is_some_and(takes_value);
            let valued = letters.char_indices().find(|(_, letter)| is_valued(*letter));
            let takes_next = valued.is_some_and(|(place, letter)| place + letter.len_utf8() == letters.len());
            at += usize::from(takes_next);
        } else {
            places.push(at);
        }
        at += 1;
    }
    places
}

fn long_option<'c>(command: &'c clap::Command, name: &str) -> Option<&'c clap::Arg> {
    let has_alias = |arg: &clap::Arg| arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name));
    command.get_arguments().find(|arg| arg.get_long() == Some(name) || has_alias(arg))
}

fn short_option(command: &clap::Command, letter: char) -> Option<&clap::Arg> {
    command.get_arguments().find(|arg| arg.get_short() == Some(letter))
}

fn takes_value(arg: &clap::Arg) -> bool {
    arg.get_action().takes_values()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn normal(line: &str) -> Result<String, String> {
        let is_executable = |word: &OsStr| ["java", "./start.sh", "file"].contains(&word.to_str().unwrap());
        let words = normal_form(&command(), &words(line), is_executable)?;
        Ok(words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn each_command_is_in_one_group_of_the_help() {
        let command = command();
        let listed: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        for name in shown.map(clap::Command::get_name) {
            assert_eq!(listed.iter().filter(|listed| **listed == name).count(), 1, "{name}");
        }
        for name in listed.iter().filter(|name| **name != "help") {
            assert!(command.find_subcommand(name).is_some(), "{name}");
        }
        for line in commands_by_group(&command).lines() {
            assert!(line.len() <= 80, "{line}");
        }
    }

    /// Regression: `run` took `java` for the agent's options, and refused `-jar`.
    #[test]
    fn the_program_of_run_needs_no_mark() {
        for (line, expected) in [
            ("otlpprof run java -jar app.jar", "otlpprof run -- java -jar app.jar"),
            ("otlpprof run cpu=5ms java -jar app.jar", "otlpprof run cpu=5ms -- java -jar app.jar"),
            ("otlpprof run cpu,alloc ./start.sh -x", "otlpprof run cpu,alloc -- ./start.sh -x"),
            ("otlpprof run -o a.html --open java -o b", "otlpprof run -o a.html --open -- java -o b"),
            ("otlpprof run cpu -oa.html java -o b", "otlpprof run cpu -oa.html -- java -o b"),
            ("otlpprof run --top=3 --agent x.so java A", "otlpprof run --top=3 --agent x.so -- java A"),
            ("otlpprof run java A -- b", "otlpprof run -- java A -- b"),
            // No program of this name exists: the shell's code and message say that a program is missing.
            ("otlpprof run jaav -jar a.jar", "otlpprof run -- jaav -jar a.jar"),
        ] {
            assert_eq!(normal(line).unwrap(), expected);
        }
        for unchanged in [
            "otlpprof run",
            "otlpprof run cpu=5ms",
            "otlpprof run -- java -jar app.jar",
            "otlpprof run cpu=5ms -o a.html -- java -jar app.jar",
            // Mistakes in options are the agent's to report.
            "otlpprof run cup=5ms -- java A",
            "otlpprof run cup -- java A",
            "otlpprof run cpu alloc java A",
            "otlpprof report java",
            "otlpprof",
            "otlpprof --help",
        ] {
            assert_eq!(normal(unchanged).unwrap(), unchanged);
        }
        assert_eq!(normal("otlpprof run cup=5ms java A").unwrap(), "otlpprof run cup=5ms -- java A");
    }

    #[test]
    fn options_of_the_agent_come_before_programs_of_their_names() {
        assert_eq!(normal("otlpprof run file x").unwrap(), "otlpprof run file -- x");
        assert_eq!(normal("otlpprof run -- file x").unwrap(), "otlpprof run -- file x");
    }

    #[test]
    fn help_is_a_word_of_commands_without_files() {
        assert_eq!(normal("otlpprof run help").unwrap(), "otlpprof run --help");
        assert_eq!(normal("otlpprof record help").unwrap(), "otlpprof record --help");
        assert_eq!(normal("otlpprof report help").unwrap(), "otlpprof report help");
    }

    #[test]
    fn a_program_in_place_of_a_jvm_is_answered_by_the_command_that_starts_it() {
        for (line, expected) in [
            ("otlpprof record -- java -jar a.jar", "otlpprof run -- java -jar a.jar"),
            ("otlpprof record java -jar a.jar", "otlpprof run -- java -jar a.jar"),
            ("otlpprof record cpu=5ms -- java Main", "otlpprof run cpu=5ms -- java Main"),
            ("otlpprof record -d 30 -o a.html java Main", "otlpprof run -d 30 -o a.html -- java Main"),
            ("otlpprof attach -- ./start.sh", "otlpprof run -- ./start.sh"),
            ("otlpprof top --count 1 java A'b", "otlpprof run -- java 'A'\\''b'"),
        ] {
            let advice = normal(line).unwrap_err();
            assert!(
                advice.ends_with(&format!("takes a running JVM; to start a program: {expected}")),
                "{advice}"
            );
        }
        for running in [
            "otlpprof record 4711 cpu=5ms",
            "otlpprof record java cpu=5ms -o a.html",
            "otlpprof record java",
            "otlpprof record java -d 30",
            "otlpprof record Shop -x",
            "otlpprof attach -- 4711",
        ] {
            assert_eq!(normal(running).unwrap(), running);
        }
    }
}

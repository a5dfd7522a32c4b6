//! `otlpprof validate`: checks files against every rule of OTLP profiles.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use otlpprof_options::shell_word::quoted;
use otlpprof_otlp::validate::report::Report;
use otlpprof_otlp::validate::rules::{RULES, Severity};
use otlpprof_otlp::validate::validate_stream;
use serde_json::{Value, json};

use super::counted::counted;
use super::exit_codes::{EXIT_BAD_INPUT, EXIT_FAILED};
use super::format_args::{Format, FormatArgs};
use super::input::Input;
use super::report::content::Content;
use super::report::profile_file::ProfileFile;
use super::terminal::{self, write_json};

/// Check files against every rule of OTLP profiles
///
/// Prints each breach with the name of the rule and the place: message of the file, profile of the message,
/// sample of the profile, each counted from 0. The exit code is 0 without errors, 1 with errors, and 2 if a
/// file cannot be read to its end; then a line on standard error gives the reason.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files to check: OTLP protobuf, plain or length-prefixed, or OTLP/JSON, gzipped or not; - is standard
    /// input
    #[arg(required_unless_present = "rules", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Count warnings as errors
    #[arg(long)]
    strict: bool,
    /// Print at most this many breaches of each rule, and the number of the others
    #[arg(long, value_name = "N", default_value_t = 5)]
    show: usize,
    #[command(flatten)]
    form: FormatArgs,
    /// List the rules, and check nothing
    #[arg(long)]
    rules: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut out = terminal::stdout();
    if args.rules {
        print_rules(args.form.format(), &mut out)?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    // A file that cannot be opened is a mistake in the command line, so that nothing is reported then.
    let inputs = args.files.iter().map(|path| open(path)).collect::<Result<Vec<_>, _>>()?;
    let mut worst = None;
    let mut documents = Vec::new();
    for input in &inputs {
        let path = &input.path;
        let report =
            validate_stream(input.bytes()?, args.show).with_context(|| path.display().to_string())?;
        worst = worst.max(severities(&report, args.strict).max());
        match args.form.format() {
            Format::Text => print_text(path, &report, args.strict, &mut out)?,
            Format::Json => documents.push(to_json(path, &report, args.strict)),
        }
        if let Some(line) = unreadable(path, &report, args.strict) {
            // Flushed first, so that the line appears in its place if both streams go to one terminal.
            out.flush()?;
            let _ = writeln!(terminal::stderr(), "otlpprof: {line}");
        }
    }
    if args.form.format() == Format::Json {
        write_json(&Value::from(documents), &mut out)?;
    }
    out.flush()?;
    Ok(match worst {
        None | Some(Severity::Warning) => ExitCode::SUCCESS,
        Some(Severity::Error) => ExitCode::from(EXIT_FAILED),
        Some(Severity::Unreadable) => ExitCode::from(EXIT_BAD_INPUT),
    })
}

/// Opens a file. Other formats of profiles have no rules here.
fn open(path: &Path) -> anyhow::Result<Input> {
    let ProfileFile { input, content, .. } = ProfileFile::open(path)?;
    let command = match content {
        Content::Otlp => return Ok(input),
        Content::Recording => "convert",
        Content::Pprof | Content::Collapsed => "merge",
    };
    let (file, other) = (path.display(), content.description());
    let word = quoted(&path.to_string_lossy());
    bail!("{file}: {other}, not OTLP; `otlpprof {command} {word} -o NAME.otlp` writes OTLP of it")
}

/// Prints the breaches of rules in a result that is to be written to `path`. Returns whether there is no
/// error.
pub(super) fn print_verdict(
    path: &Path,
    report: &Report,
    strict: bool,
    out: &mut dyn Write,
) -> io::Result<bool> {
    print_text(path, report, strict, out)?;
    if let Some(line) = unreadable(path, report, strict) {
        writeln!(out, "otlpprof: {line}")?;
    }
    Ok(severities(report, strict).all(|severity| severity == Severity::Warning))
}

fn severity(of_rule: Severity, strict: bool) -> Severity {
    match of_rule {
        Severity::Warning if strict => Severity::Error,
        other => other,
    }
}

fn severities(report: &Report, strict: bool) -> impl Iterator<Item = Severity> {
    report.breaches().map(move |(rule, _)| severity(rule.rule().severity, strict))
}

fn print_rules(format: Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Text => {
            for rule in RULES {
                writeln!(
                    out,
                    "{:<10} {:<24} {} ({})",
                    rule.severity.name(),
                    rule.name,
                    rule.reason,
                    rule.source
                )?;
            }
            Ok(())
        }
        Format::Json => {
            let rule = |rule: &otlpprof_otlp::validate::rules::Rule| {
                json!({
                    "name": rule.name, "severity": rule.severity.name(),
                    "reason": rule.reason, "source": rule.source,
                })
            };
            write_json(&RULES.iter().map(rule).collect::<Value>(), out)
        }
    }
}

fn print_text(path: &Path, report: &Report, strict: bool, out: &mut dyn Write) -> io::Result<()> {
    let file = path.display();
    let mut is_whole = true;
    for (rule, breaches) in report.breaches() {
        let rule = rule.rule();
        if rule.severity == Severity::Unreadable {
            is_whole = false;
            continue;
        }
        let severity = severity(rule.severity, strict).name();
        for finding in &breaches.first {
            let place = &finding.place;
            let detail = if finding.detail.is_empty() { rule.reason } else { &finding.detail };
            writeln!(out, "{file}: {severity}: {}: {place}: {detail}", rule.name)?;
        }
        let more = breaches.count - breaches.first.len() as u64;
        if more > 0 {
            writeln!(out, "{file}: {severity}: {}: and {more} more", rule.name)?;
        }
    }
    if is_whole { writeln!(out, "{file}: {}", sums(report, strict)) } else { Ok(()) }
}

fn sums(report: &Report, strict: bool) -> String {
    let [errors, warnings] = [Severity::Error, Severity::Warning].map(|one| {
        let breaches = report.breaches().filter(|(rule, _)| severity(rule.rule().severity, strict) == one);
        breaches.map(|(_, breaches)| breaches.count).sum::<u64>()
    });
    let [messages, profiles, samples, errors, warnings] = [
        (report.messages, "message"),
        (report.profiles, "profile"),
        (report.samples, "sample"),
        (errors, "error"),
        (warnings, "warning"),
    ]
    .map(|(count, noun)| counted(count, noun));
    format!("{messages}, {profiles}, {samples}; {errors}, {warnings}")
}

/// Says in one line why a file cannot be read to its end. Reading stops at the first reason, so there is only
/// one.
fn unreadable(path: &Path, report: &Report, strict: bool) -> Option<String> {
    let (rule, breaches) =
        report.breaches().find(|(rule, _)| rule.rule().severity == Severity::Unreadable)?;
    let rule = rule.rule();
    let why = match breaches.first.first() {
        Some(finding) => format!("{}: {}", finding.place, finding.detail),
        None => rule.reason.to_owned(),
    };
    let before = match report.messages {
        0 => String::new(),
        _ => format!(" (before it: {})", sums(report, strict)),
    };
    Some(format!("{}: {}: {}: {why}{before}", path.display(), rule.severity.name(), rule.name))
}

fn to_json(path: &Path, report: &Report, strict: bool) -> Value {
    let breaches = report.breaches().map(|(rule, breaches)| {
        let rule = rule.rule();
        let first = breaches
            .first
            .iter()
            .map(|finding| json!({ "place": finding.place.to_string(), "detail": finding.detail }));
        json!({
            "rule": rule.name,
            "severity": severity(rule.severity, strict).name(),
            "reason": rule.reason,
            "count": breaches.count,
            "first": first.collect::<Value>(),
        })
    });
    json!({
        "file": path.display().to_string(),
        "messages": report.messages,
        "profiles": report.profiles,
        "samples": report.samples,
        "breaches": breaches.collect::<Value>(),
    })
}

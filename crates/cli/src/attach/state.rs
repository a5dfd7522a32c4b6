//! The agent's answer for people.

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use otlpprof_export::answer::{Answer, LoggedError, SessionState};

use crate::counted::counted;
use crate::terminal;

/// Prints the answer in a few lines.
pub(super) fn print(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    // The agent's line for `status` has all counters; the lines below say the same in words.
    match &answer.session {
        Some(_) if answer.message.starts_with("profiling for") => writeln!(out, "profiling")?,
        _ => {
            for line in answer.message.lines() {
                writeln!(out, "{line}")?;
            }
        }
    }
    let session = answer.session.as_ref().or(answer.ended_session.as_ref());
    if let Some(session) = session {
        print_session(session, out)?;
    }
    for line in &answer.log {
        writeln!(out, "log          {line}")?;
    }
    // The caller of a command that was refused earlier has seen the reason.
    let since = session.map_or(0, |session| session.started_unix_ms);
    let is_new = |error: &&LoggedError| error.unix_ms >= since && !answer.log.contains(&error.line);
    if let Some(error) = answer.last_error.as_ref().filter(is_new) {
        let line = error.line.strip_prefix("error: ").unwrap_or(&error.line);
        writeln!(out, "last error   {line} at {}", time(error.unix_ms))?;
    }
    Ok(())
}

/// Prints the warnings that the agent has logged while it carried out a request.
pub(super) fn print_warnings(answer: &Answer) -> io::Result<()> {
    answer.warnings().try_for_each(|line| writeln!(terminal::stderr(), "the agent: {line}"))
}

fn print_session(session: &SessionState, out: &mut impl Write) -> io::Result<()> {
    let count = |name: &str| session.counter(name);
    let clock = session.cpu_clock.as_ref().map(|clock| format!(", cpu clock {clock}")).unwrap_or_default();
    let elapsed = Duration::from_secs(session.elapsed_ms / 1000);
    writeln!(out, "engines      {}", session.engines.join(", "))?;
    writeln!(out, "walker       {}{clock}", session.stack_walker)?;
    writeln!(
        out,
        "since        {} ({})",
        time(session.started_unix_ms),
        humantime::format_duration(elapsed)
    )?;
    writeln!(out, "destination  {}", session.destinations.join(" and "))?;
    writeln!(
        out,
        "samples      {} recorded, {} dropped",
        count("handler.samples_recorded"),
        count("handler.samples_dropped")
    )?;
    let written = count("file.written.messages") + count("file.failed.messages");
    if written > 0 {
        writeln!(
            out,
            "file         {} written, {} failed",
            counted(count("file.written.messages"), "message"),
            count("file.failed.messages")
        )?;
    }
    let submitted = count("upload.submitted.messages");
    if submitted > 0 {
        let done = ["upload.sent.messages", "upload.split.messages", "upload.pending.messages"].map(count);
        writeln!(
            out,
            "upload       {} uploaded, {} pending, {} not uploaded",
            counted(count("upload.sent.messages"), "message"),
            count("upload.pending.messages"),
            submitted.saturating_sub(done.iter().sum())
        )?;
    }
    let along = ["stream.readers", "stream.sent.messages", "stream.lost.messages"].map(count);
    if along.iter().any(|&count| count > 0) {
        let [readers, sent, lost] = along;
        writeln!(out, "readers      {readers} now, {} sent, {lost} lost", counted(sent, "message"))?;
    }
    Ok(())
}

fn time(unix_ms: u64) -> String {
    let time: SystemTime = UNIX_EPOCH + Duration::from_millis(unix_ms);
    humantime::format_rfc3339_seconds(time).to_string()
}

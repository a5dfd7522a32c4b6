//! `otlpprof top`: the functions and threads with the highest values now.
//!
//! Input: messages of the agent in a JVM, which come every interval, a file that grows, or a whole file.
//! Output: a view in the terminal that keys control, or tables.
//!
//! | Module | Duty |
//! |---|---|
//! | `source` | the origin of messages: an agent, a file that grows, or a whole file |
//! | `growing_file` | a file of messages that grows |
//! | `message_sums` | the sums of one message, by measure and by stack below its thread |
//! | `recent` | the sums of the last seconds |
//! | `ranking` | the functions and threads with the highest values |
//! | `view` | the state of the view, and the keys that change it |
//! | `lines` | the lines of the view as text |
//! | `draw` | the drawing of the view |
//! | `screen` | the terminal as a full screen, which is left again however the command ends |

mod draw;
mod growing_file;
mod lines;
mod message_sums;
mod ranking;
mod recent;
mod screen;
mod source;
mod view;

use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use otlpprof_report::selection::Window;
use ratatui::crossterm::event::{self, Event};

use self::lines::Lines;
use self::recent::Recent;
use self::screen::Screen;
use self::source::{OpenedSource, Source};
use self::view::{Effect, View};
use super::attach::{AttachError, Interrupts, JvmName, StreamArgs};
use super::exit_codes::EXIT_FAILED;
use super::report::Sort;
use super::report::selection_args::SampleArgs;
use super::{duration, terminal};

/// The bounds of the interval. The agent has the same.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);
const LONGEST_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The time between two looks at a file.
const LOOK: Duration = Duration::from_millis(200);
/// The most functions and threads that can be scrolled to.
const MOST_LINES: usize = 500;

/// Show the methods and threads on top now
///
/// Reads the profiles of the agent in a JVM along, without a change of its session. If no session runs, one
/// is started, whose profiles go nowhere else unless the options name a file or an endpoint, and which ends
/// with this command. Keys: q ends, t switches the type, / filters, s sorts, p pauses, Tab switches the
/// tables.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The JVM's process id, a part of its main class's name, a file that an agent is writing, or a file of
    /// another format, which is shown whole
    #[arg(value_name = "JVM|FILE")]
    source: String,
    /// Options of the agent if no session runs, such as cpu=5ms,wall
    #[arg(default_value = "")]
    options: String,
    /// The agent's library. The default is libotlpprof.so beside this command, in ../lib, or in
    /// ../lib/otlpprof
    #[arg(long, value_name = "PATH")]
    library: Option<PathBuf>,
    #[command(flatten)]
    samples: SampleArgs,
    /// The time between two updates, from 100ms to 1h
    #[arg(short, long, value_name = "DURATION", value_parser = parse_interval, default_value = "1s")]
    interval: Duration,
    /// Show the sums of this much time, unless the file is shown whole
    #[arg(short, long, value_name = "DURATION", value_parser = parse_window, default_value = "10s")]
    window: Duration,
    /// The order of functions
    #[arg(long, value_enum, default_value_t)]
    sort: Sort,
    /// Print a table after each interval, this many times, and end
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
    /// With --count: print this many functions and threads
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Give up if the JVM does not answer within this time
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "30s")]
    timeout: Duration,
}

/// The reason for which the view ends.
enum End {
    Quit,
    Signal(u8),
    /// No more messages come, for this reason.
    Source(String),
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.count.is_none() && !(io::stdout().is_terminal() && io::stdin().is_terminal()) {
        bail!("top needs a terminal for its view; --count N prints N tables instead");
    }
    let selection = args.samples.selection(Window::default())?;
    let mut interrupts = Interrupts::new(args.timeout)?;
    let mut source = match open(args, &mut interrupts) {
        Ok(OpenedSource::Source(source)) => source,
        Ok(OpenedSource::Refused(reason)) => {
            writeln!(terminal::stderr(), "otlpprof: {reason}")?;
            return Ok(ExitCode::from(EXIT_FAILED));
        }
        Err(error) => match error.downcast_ref() {
            // All files have been removed by now. A shell sees the signal in the exit code.
            Some(AttachError::Interrupted(signal)) => return Ok(ExitCode::from(128 + *signal)),
            _ => return Err(error),
        },
    };
    source.warnings().iter().try_for_each(|line| writeln!(terminal::stderr(), "the agent: {line}"))?;
    let mut recent = Recent::new(&selection, source.window(args.window), source.succession());
    let ended = match args.count {
        Some(count) => print_tables(args, count, &mut source, &mut recent, &interrupts),
        None => show(args, &mut source, &mut recent, &interrupts),
    };
    // The session ends whatever happened.
    let closed = source.close(&mut interrupts);
    let end = ended?;
    closed?;
    Ok(match end {
        End::Quit => ExitCode::SUCCESS,
        End::Signal(signal) => ExitCode::from(128 + signal),
        End::Source(reason) => {
            writeln!(terminal::stderr(), "otlpprof: {reason}")?;
            ExitCode::SUCCESS
        }
    })
}

fn open(args: &Args, interrupts: &mut Interrupts) -> anyhow::Result<OpenedSource> {
    if is_file(&args.source) {
        if !args.options.is_empty() || args.library.is_some() {
            bail!("{}: a file takes neither options of the agent nor --library", args.source);
        }
        return Source::of_file(Path::new(&args.source), args.window);
    }
    let pid = args.source.parse::<JvmName>().map_err(anyhow::Error::msg)?.pid()?;
    let (options, library) = (args.options.clone(), args.library.clone());
    let args = StreamArgs { pid, options, library, interval: args.interval };
    Ok(Source::of_agent(&args, interrupts)?)
}

/// Whether the source is a file rather than a JVM. A word without a slash that names no file is a JVM's name.
fn is_file(source: &str) -> bool {
    source.parse::<u32>().is_err() && (source.contains('/') || Path::new(source).exists())
}

/// The name of the source, escaped.
fn name(args: &Args) -> String {
    let kind = if is_file(&args.source) { "" } else { "JVM " };
    terminal::Shown(format!("{kind}{}", args.source)).to_string()
}

/// Prints a table after each interval.
fn print_tables(
    args: &Args,
    count: u32,
    source: &mut Source,
    recent: &mut Recent<'_>,
    interrupts: &Interrupts,
) -> anyhow::Result<End> {
    let view = View::new(args.samples.measure.clone(), args.sort.by());
    let mut next = Instant::now() + args.interval;
    let mut left = count;
    loop {
        match wait(source, [], next.saturating_duration_since(Instant::now()), interrupts) {
            Err(AttachError::Interrupted(signal)) => return Ok(End::Signal(signal)),
            waited => waited.map(|[]| ())?,
        }
        let end = source.read(|message| _ = recent.add(message))?;
        recent.pass_time();
        if end.is_some() || next <= Instant::now() {
            let mut out = terminal::stdout();
            Lines::new(&name(args), recent, &view, args.top).write(&mut out)?;
            out.flush()?;
            left -= 1;
            next += args.interval;
        }
        match end {
            Some(reason) => return Ok(End::Source(reason)),
            None if left == 0 => return Ok(End::Quit),
            None => {}
        }
    }
}

/// Shows the view until it ends.
fn show(
    args: &Args,
    source: &mut Source,
    recent: &mut Recent<'_>,
    interrupts: &Interrupts,
) -> anyhow::Result<End> {
    let mut view = View::new(args.samples.measure.clone(), args.sort.by());
    let mut screen = Screen::open()?;
    let stdin = io::stdin();
    loop {
        let shown = Lines::new(&name(args), recent, &view, MOST_LINES);
        screen.terminal.draw(|frame| draw::draw(frame, &view, &shown))?;
        let others = [stdin.as_fd(), screen.signal.as_fd()];
        let [is_typed, has_signal] = match wait(source, others, args.interval, interrupts) {
            Err(AttachError::Interrupted(signal)) => return Ok(End::Signal(signal)),
            waited => waited?,
        };
        if has_signal {
            screen.heed_signal()?;
        }
        let mut begins_again = false;
        if let Some(reason) = source.read(|message| begins_again |= recent.add(message))? {
            return Ok(End::Source(reason));
        }
        recent.pass_time();
        if begins_again {
            view.frozen = None;
        }
        if is_typed && !stdin.is_terminal() {
            return Ok(End::Source("the terminal is gone".to_owned()));
        }
        while event::poll(Duration::ZERO)? {
            let Event::Key(key) = event::read()? else { continue };
            match view.press(key, &recent.totals) {
                Effect::None => {}
                Effect::Quit => return Ok(End::Quit),
                // The signal goes to all processes of the job, and to this one by its descriptor.
                // SAFETY: the call accesses no memory.
                Effect::Suspend => drop(unsafe { libc::kill(0, libc::SIGTSTP) }),
            }
        }
    }
}

/// Waits until messages or one of the other descriptors can be read, or until the time has passed. Returns
/// which of the others can.
fn wait<const N: usize>(
    source: &Source,
    others: [BorrowedFd<'_>; N],
    time: Duration,
    interrupts: &Interrupts,
) -> Result<[bool; N], AttachError> {
    let mut descriptors = others.to_vec();
    descriptors.extend(source.descriptor());
    let time = if source.descriptor().is_some() { time } else { time.min(LOOK) };
    let ready = interrupts.wait_any(&descriptors, time)?;
    Ok(std::array::from_fn(|index| ready[index]))
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = duration::parse(text)?;
    match (SHORTEST_INTERVAL..=LONGEST_INTERVAL).contains(&interval) {
        true => Ok(interval),
        false => Err("must be 100ms to 1h".to_owned()),
    }
}

fn parse_window(text: &str) -> Result<Duration, String> {
    let window = duration::parse(text)?;
    if window.is_zero() { Err("must be more than 0".to_owned()) } else { Ok(window) }
}

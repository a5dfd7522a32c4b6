//! `otlpprof report`: the functions in which the time went, of the selected samples.
//!
//! | Input | Duty |
//! |---|---|
//! | `args` | the options of `otlpprof report` |
//! | `selection_args` | the options that select samples |
//! | `stack_args` | the options for the form of stacks and values |
//! | `idle_args` | the options about idle threads |
//! | `compare_args` | the options of a comparison of two sets of profiles |
//! | `option_check` | the options that the wanted form of a report has no use for |
//! | `inputs` | the files whose profiles are shown, read twice |
//! | `profile_file` | an input file with its content |
//! | `content` | the format of an input file, by its first bytes |
//! | `messages` | the messages of a file of any format, converted while it is read |
//! | `made_messages` | the messages of a converted file, in a temporary file |
//! | `read_ahead` | messages that other threads read and prepare |
//!
//! | Report | Duty |
//! |---|---|
//! | `single` | a report of one set of profiles |
//! | `compared` | a report of the change between two sets of profiles |
//! | `head` | the lines above a report: measure, total, services, time, processes |
//! | `groups` | the groups of a report, in their order |
//! | `conditions` | the conditions of a selection in words, compared with the attributes that exist |
//! | `processes` | the processes of profiles, in words and as JSON |
//! | `kinds` | the names of the kinds of code, and their shares |
//! | `waits` | the waits of threads, by state and by what is waited for |
//! | `table` | the functions with the highest sums |
//! | `diff` | the change of each function's sums |
//! | `tree` | the tree of calls as text |
//! | `calls` | the calls of a tree that are shown, from the callers down or from the functions up |
//! | `peek` | the callers and callees of functions |
//! | `labels` | the attributes of samples, profiles and resources, each value with its sum |
//! | `json` | a report as one JSON document |
//!
//! | Text | Duty |
//! |---|---|
//! | `amount` | amounts in units that people read |
//! | `fitted` | text that fits into the columns of a terminal |
//! | `style` | colours and columns of a terminal |

pub(super) mod amount;
mod args;
mod calls;
pub(super) mod compare_args;
mod compared;
pub(super) mod conditions;
pub(super) mod content;
mod diff;
mod fitted;
mod groups;
mod head;
pub(super) mod idle_args;
pub(super) mod inputs;
mod json;
pub(super) mod kinds;
mod labels;
mod made_messages;
mod messages;
mod option_check;
mod peek;
pub(super) mod processes;
pub(super) mod profile_file;
pub(super) mod read_ahead;
pub(super) mod selection_args;
pub(super) mod single;
pub(super) mod stack_args;
mod style;
mod table;
mod tree;
mod waits;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;

pub(super) use self::args::{Args, DEFAULT_TOP, Sort};
use self::inputs::ProfileInputs;
use self::style::Style;
pub(super) use self::table::{kind_name, print_rest};
use super::terminal::{self, Terminal};

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut out = terminal::stdout();
    let code = print(args, Style::of_stdout(), &mut out)?;
    out.flush()?;
    Ok(code)
}

/// Prints the report to standard error, for a command whose standard output belongs to another program.
pub(super) fn print_to_stderr(args: &Args) -> anyhow::Result<()> {
    let mut out = Terminal::new(BufWriter::new(io::stderr().lock()));
    print(args, Style::of_stderr(), &mut out)?;
    Ok(out.flush()?)
}

/// Writes the report. Returns the exit code, which says whether a file is damaged.
fn print(args: &Args, style: Style, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    args.check_options()?;
    if args.diff.is_empty()
        && let Some(option) = args.compare.without_comparison()
    {
        bail!("{option}: there is nothing to compare with; name a file with --diff");
    }
    let open = |files: &[PathBuf]| {
        let inputs = ProfileInputs::open_with(files, args.selection.unit(), |_| {})?;
        anyhow::Ok(inputs.symbolized_by(args.symbols.symbolizer()?))
    };
    let inputs = open(&args.files)?;
    if args.diff.is_empty() {
        single::run(args, style, &inputs, out)?;
        inputs.print_symbols()?;
        return Ok(ProfileInputs::exit_code([&inputs]));
    }
    let base = open(&args.diff)?;
    compared::run(args, style, &base, &inputs, out)?;
    base.print_symbols()?;
    inputs.print_symbols()?;
    Ok(ProfileInputs::exit_code([&inputs, &base]))
}

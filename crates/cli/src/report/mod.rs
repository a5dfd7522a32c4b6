//! `otlpprof report`: the functions in which the time went, of the selected samples.
//!
//! | Input | Duty |
//! |---|---|
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
//! | `conditions` | the conditions of a selection in words, compared with the attributes that exist |
//! | `processes` | the processes of profiles, in words and as JSON |
//! | `kinds` | the names of the kinds of code, and their shares |
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
mod calls;
pub(super) mod compare_args;
mod compared;
pub(super) mod conditions;
pub(super) mod content;
mod diff;
mod fitted;
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

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use otlpprof_model::attribute_keys;
use otlpprof_report::call_tree::CallTree;
use otlpprof_report::collect::SelfValues;
use otlpprof_report::function_sums::SortBy;
use regex::Regex;

use self::calls::{CallBounds, Calls};
use self::compare_args::CompareArgs;
use self::conditions::Condition;
use self::inputs::ProfileInputs;
use self::selection_args::SelectionArgs;
use self::stack_args::StackArgs;
use self::style::Style;
pub(super) use self::table::{kind_name, print_rest};
use super::Format;
use super::format_args::FormatArgs;
use super::symbolize::symbols_args::SymbolsArgs;
use super::terminal::{self, Terminal};

/// The number of functions in a table, unless another number is wanted.
pub(super) const DEFAULT_TOP: usize = 20;

/// The number of levels of a tree, unless another number is wanted.
const DEFAULT_DEPTH: usize = 256;

/// Show in which functions the time went
///
/// Prints the functions with the highest values over all files: self (the function itself) and total (with
/// the functions that it calls).
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Profiles: OTLP (protobuf, plain or length-prefixed, or JSON), recordings of JDK Flight Recorder,
    /// pprof, collapsed stacks; gzipped or not. - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    stacks: StackArgs,
    /// Print this many functions, or values of a label [default: 20, all with --format json or --peek]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// The order of functions [default: self; total with --peek]
    #[arg(long, value_enum)]
    sort: Option<Sort>,
    /// Group samples by this attribute, of the sample, its profile or its resource; `thread` is the thread's
    /// name, `process` the process's id
    #[arg(long, value_name = "KEY")]
    by: Option<String>,
    /// Print the functions of the VM's own threads too, which are otherwise a row each for JIT compilers,
    /// garbage collection and the rest
    #[arg(long)]
    vm: bool,
    /// Print the tree of calls
    #[arg(long)]
    tree: bool,
    /// With --tree: fold calls below this share, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, requires = "tree")]
    least: f64,
    /// With --tree: elide calls in deeper levels than this many [default: 256, or all with --format json]
    #[arg(long, value_name = "N", requires = "tree")]
    depth: Option<usize>,
    /// With --tree: invert the tree, with the callers below the functions that they call
    #[arg(long, requires = "tree")]
    inverted: bool,
    /// Print the callers and callees of the functions that match this regular expression
    #[arg(long, value_name = "REGEX")]
    peek: Option<Regex>,
    /// Print the attributes of samples, their profiles and their resources, with the sums of their values
    #[arg(long)]
    labels: bool,
    /// Print the change since this file; may be given several times
    #[arg(long, value_name = "BASE")]
    diff: Vec<PathBuf>,
    #[command(flatten)]
    compare: CompareArgs,
    #[command(flatten)]
    symbols: SymbolsArgs,
    #[command(flatten)]
    form: FormatArgs,
}

/// The order of functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Sort {
    /// The function itself
    #[default]
    #[value(name = "self")]
    Own,
    /// With the functions that it calls
    Total,
}

impl Sort {
    pub(super) fn by(self) -> SortBy {
        match self {
            Self::Own => SortBy::Own,
            Self::Total => SortBy::Total,
        }
    }
}

impl Args {
    /// The report of these files: `top` functions of the selected samples, grouped by an attribute, those of
    /// the VM's own threads too if `vm` is set.
    pub(super) fn of_files(
        files: Vec<PathBuf>,
        selection: SelectionArgs,
        top: usize,
        by: Option<&str>,
        vm: bool,
    ) -> Self {
        Self {
            files,
            selection,
            stacks: StackArgs::default(),
            top: Some(top),
            sort: None,
            by: by.map(str::to_owned),
            vm,
            tree: false,
            least: 0.0,
            depth: None,
            inverted: false,
            peek: None,
            labels: false,
            diff: Vec::new(),
            compare: CompareArgs::default(),
            symbols: SymbolsArgs::default(),
            form: FormatArgs::default(),
        }
    }

    /// The order of functions.
    fn sort_by(&self) -> SortBy {
        match (self.sort, &self.peek) {
            (Some(sort), _) => sort.by(),
            (None, Some(_)) => SortBy::Total,
            (None, None) => SortBy::Own,
        }
    }

    /// The most functions.
    fn most(&self) -> usize {
        self.top.unwrap_or(match (self.form.format(), &self.peek) {
            (Format::Text, None) => DEFAULT_TOP,
            (Format::Json, _) | (Format::Text, Some(_)) => usize::MAX,
        })
    }

    /// The calls of the wanted tree. `whole` is the total of which shares are taken.
    fn calls(&self, tree: &CallTree, own: &SelfValues, whole: i64) -> Calls {
        let most_levels = self.depth.unwrap_or(match self.form.format() {
            Format::Text => DEFAULT_DEPTH,
            Format::Json => usize::MAX,
        });
        let bounds = CallBounds { least_percent: self.least, whole, most_levels };
        match self.inverted {
            true => calls::inverted(tree, own, bounds),
            false => calls::calls(tree, own, bounds),
        }
    }

    /// Whether the VM's own threads are a row for each kind of code: in a table in which no threads are told
    /// apart, of samples that are not selected by their thread or their functions.
    fn folds_vm_threads(&self) -> bool {
        let is_table = !self.tree && self.peek.is_none() && matches!(self.form.format(), Format::Text);
        let has_threads = self.stacks.has_threads() || self.group_key() == Some(attribute_keys::THREAD_NAME);
        is_table && !self.vm && !has_threads && !self.selection.has_threads_or_functions()
    }

    /// The attribute by which samples are grouped.
    fn group_key(&self) -> Option<&str> {
        match self.by.as_deref()? {
            "thread" => Some(attribute_keys::THREAD_NAME),
            "process" => Some(attribute_keys::PROCESS_PID),
            key => Some(key),
        }
    }

    /// The condition that samples have the attribute by which they are grouped.
    fn group_condition(&self) -> Option<Condition> {
        let (by, key) = (self.by.as_ref()?, self.group_key()?.to_owned());
        Some(Condition { option: format!("--by {by}"), key, value: None })
    }
}

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

//! The options of `otlpprof report`.

use std::path::PathBuf;

use otlpprof_model::attribute_keys;
use otlpprof_report::call_tree::CallTree;
use otlpprof_report::collect::SelfValues;
use otlpprof_report::function_sums::SortBy;
use regex::Regex;

use super::calls::{self, CallBounds, Calls};
use super::compare_args::CompareArgs;
use super::conditions::Condition;
use super::selection_args::SelectionArgs;
use super::stack_args::StackArgs;
use crate::format_args::{Format, FormatArgs};
use crate::symbolize::symbols_args::SymbolsArgs;

/// The number of functions in a table, unless another number is wanted.
pub(crate) const DEFAULT_TOP: usize = 20;

/// The number of levels of a tree, unless another number is wanted.
const DEFAULT_DEPTH: usize = 256;

/// Show in which functions the time went
///
/// Prints the functions with the highest values over all files: self (the function itself) and total (with
/// the functions that it calls).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Profiles: OTLP (protobuf, plain or length-prefixed, or JSON), recordings of JDK Flight Recorder,
    /// pprof, collapsed stacks; gzipped or not. - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) selection: SelectionArgs,
    #[command(flatten)]
    pub(super) stacks: StackArgs,
    /// Print this many functions, or values of a label [default: 20, all with --format json or --peek]
    #[arg(long, value_name = "N")]
    pub(super) top: Option<usize>,
    /// The order of functions [default: self; total with --peek]
    #[arg(long, value_enum)]
    pub(super) sort: Option<Sort>,
    /// Group samples by this attribute, of the sample, its profile or its resource; `thread` is the thread's
    /// name, `process` the process's id
    #[arg(long, value_name = "KEY")]
    pub(super) by: Option<String>,
    /// Print the functions of the VM's own threads too, which are otherwise a row each for JIT compilers,
    /// garbage collection and the rest
    #[arg(long)]
    pub(super) vm: bool,
    /// Print the tree of calls
    #[arg(long)]
    pub(super) tree: bool,
    /// With --tree: fold calls below this share, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, requires = "tree")]
    pub(super) least: f64,
    /// With --tree: elide calls in deeper levels than this many [default: 256, or all with --format json]
    #[arg(long, value_name = "N", requires = "tree")]
    pub(super) depth: Option<usize>,
    /// With --tree: invert the tree, with the callers below the functions that they call
    #[arg(long, requires = "tree")]
    pub(super) inverted: bool,
    /// Print the callers and callees of the functions that match this regular expression
    #[arg(long, value_name = "REGEX")]
    pub(super) peek: Option<Regex>,
    /// Print the attributes of samples, their profiles and their resources, with the sums of their values
    #[arg(long)]
    pub(super) labels: bool,
    /// Print the change since this file; may be given several times
    #[arg(long, value_name = "BASE")]
    pub(super) diff: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) compare: CompareArgs,
    #[command(flatten)]
    pub(super) symbols: SymbolsArgs,
    #[command(flatten)]
    pub(super) form: FormatArgs,
}

/// The order of functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sort {
    /// The function itself
    #[default]
    #[value(name = "self")]
    Own,
    /// With the functions that it calls
    Total,
}

impl Sort {
    pub(crate) fn by(self) -> SortBy {
        match self {
            Self::Own => SortBy::Own,
            Self::Total => SortBy::Total,
        }
    }
}

impl Args {
    /// The report of these files: `top` functions of the selected samples, grouped by an attribute, those of
    /// the VM's own threads too if `vm` is set.
    pub(crate) fn of_files(
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
    pub(super) fn sort_by(&self) -> SortBy {
        match (self.sort, &self.peek) {
            (Some(sort), _) => sort.by(),
            (None, Some(_)) => SortBy::Total,
            (None, None) => SortBy::Own,
        }
    }

    /// The most functions.
    pub(super) fn most(&self) -> usize {
        self.top.unwrap_or(match (self.form.format(), &self.peek) {
            (Format::Text, None) => DEFAULT_TOP,
            (Format::Json, _) | (Format::Text, Some(_)) => usize::MAX,
        })
    }

    /// The calls of the wanted tree. `whole` is the total of which shares are taken.
    pub(super) fn calls(&self, tree: &CallTree, own: &SelfValues, whole: i64) -> Calls {
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
    pub(super) fn folds_vm_threads(&self) -> bool {
        let is_table = !self.tree && self.peek.is_none() && matches!(self.form.format(), Format::Text);
        let has_threads = self.stacks.has_threads() || self.group_key() == Some(attribute_keys::THREAD_NAME);
        is_table && !self.vm && !has_threads && !self.selection.has_threads_or_functions()
    }

    /// The attribute by which samples are grouped.
    pub(super) fn group_key(&self) -> Option<&str> {
        match self.by.as_deref()? {
            "thread" => Some(attribute_keys::THREAD_NAME),
            "process" => Some(attribute_keys::PROCESS_PID),
            key => Some(key),
        }
    }

    /// The condition that samples have the attribute by which they are grouped.
    pub(super) fn group_condition(&self) -> Option<Condition> {
        let (by, key) = (self.by.as_ref()?, self.group_key()?.to_owned());
        Some(Condition { option: format!("--by {by}"), key, value: None })
    }
}

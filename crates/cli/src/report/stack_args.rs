//! The options for the form of stacks and values, shared by all commands that show profiles.

use otlpprof_report::measure::Weight;
use otlpprof_report::sample_reader::SampleForm;

/// The options for the form of stacks and values.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct StackArgs {
    /// Make each source line a frame of its own
    #[arg(long)]
    lines: bool,
    /// Make the thread's name the root frame of each stack
    #[arg(long)]
    threads: bool,
    /// Weigh stacks by the measured amount, such as time or bytes [default]
    #[arg(long, conflicts_with = "count")]
    total: bool,
    /// Weigh stacks by their number of samples
    #[arg(long)]
    count: bool,
}

impl StackArgs {
    /// The form in which samples are read.
    pub(crate) fn form(self) -> SampleForm {
        let (lines, threads, weight) = (self.lines, self.threads, self.weight());
        SampleForm { lines, threads, weight, ..SampleForm::default() }
    }

    /// Whether each source line is a frame of its own.
    pub(crate) fn has_lines(self) -> bool {
        self.lines
    }

    /// Whether the thread's name is the root frame of each stack.
    pub(crate) fn has_threads(self) -> bool {
        self.threads
    }

    /// The quantity by which stacks are weighed.
    pub(crate) fn weight(self) -> Weight {
        match self {
            Self { count: true, total: false, .. } => Weight::Samples,
            _ => Weight::Amount,
        }
    }
}

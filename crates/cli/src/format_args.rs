//! The form of a result, with one word for JSON in all commands.

use clap::ValueEnum;

/// The format of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    #[default]
    Text,
    /// One JSON document
    Json,
}

/// The option for the form of a result.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(super) struct FormatArgs {
    /// The form of the output
    #[arg(long, value_enum, default_value_t, conflicts_with = "json")]
    format: Format,
    /// Short for --format json
    #[arg(long)]
    json: bool,
}

impl FormatArgs {
    /// The form of the output.
    pub(super) fn format(self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

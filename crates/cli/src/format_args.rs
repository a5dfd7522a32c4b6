//! The form of a result, with one word for JSON in all commands.

use super::Format;

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

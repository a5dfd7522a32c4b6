//! The option of commands that show profiles to resolve their frames.

use anyhow::bail;

use crate::cli::symbols::{PlaceArgs, default_cache};
use crate::debug_files::Locator;
use crate::symbolize::{IndexCache, Symbolizer};

/// Names for native frames, as an option of a command that shows profiles.
#[derive(Clone, Debug, Default, clap::Args)]
pub(in crate::cli) struct SymbolsArgs {
    /// Resolve native frames without names as `otlpprof symbolize` does
    #[arg(long)]
    symbols: bool,
    #[command(flatten)]
    places: PlaceArgs,
}

impl SymbolsArgs {
    /// The resolver, if frames are to be resolved.
    ///
    /// # Errors
    /// If a place cannot be searched, or is given for nothing.
    pub(in crate::cli) fn symbolizer(&self) -> anyhow::Result<Option<Symbolizer>> {
        match (self.symbols, self.places.given()) {
            (true, _) => symbolizer(&self.places).map(Some),
            (false, Some(option)) => bail!("{option}: needs --symbols"),
            (false, None) => Ok(None),
        }
    }
}

/// The resolver that searches these places.
///
/// # Errors
/// If a place cannot be searched.
pub(super) fn symbolizer(places: &PlaceArgs) -> anyhow::Result<Symbolizer> {
    let indexes = default_cache().map_or_else(IndexCache::default, |folder| IndexCache::in_folder(&folder));
    Ok(Symbolizer::new(Locator::new(places.places()?), indexes))
}

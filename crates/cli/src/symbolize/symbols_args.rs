//! The option of commands that show profiles to resolve their frames.

use anyhow::bail;
use otlpprof_debug_files::Locator;
use otlpprof_symbolize::{IndexCache, Symbolizer};

use crate::symbols::{PlaceArgs, default_cache};

/// Names for native frames, as an option of a command that shows profiles.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SymbolsArgs {
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
    pub(crate) fn symbolizer(&self) -> anyhow::Result<Option<Symbolizer>> {
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

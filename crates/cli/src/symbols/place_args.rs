//! The options of commands that search for files of objects.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use otlpprof_debug_files::Places;
use otlpprof_debug_files::debuginfod::{DebuginfodClient, Settings};
use otlpprof_debug_files::store::Store;
use otlpprof_elf::debug_file_places::DEBUG_ROOT;

use crate::terminal;

/// The option for the store.
#[derive(Debug, clap::Args)]
pub(super) struct StoreArg {
    /// The store's folder, in place of OTLPPROF_SYMBOLS
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

impl StoreArg {
    /// The store.
    ///
    /// # Errors
    /// If neither the option nor the environment names a folder.
    pub(super) fn store(&self) -> anyhow::Result<Store> {
        let folder = self.store.clone().or_else(default_store);
        let advice = "no folder for the store: name one by --store, OTLPPROF_SYMBOLS or HOME";
        Ok(Store::at(folder.context(advice)?))
    }
}

/// The places of executables and debug files.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct PlaceArgs {
    /// Search this folder, and all folders below it, for executables and debug files. May be repeated
    #[arg(long, value_name = "DIR")]
    path: Vec<PathBuf>,
    /// Search for debug files where distributions install them, in this folder instead of /usr/lib/debug. May
    /// be repeated
    #[arg(long, value_name = "DIR")]
    debug_root: Vec<PathBuf>,
    /// The folder of `otlpprof symbols`, in place of OTLPPROF_SYMBOLS
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Ask this debuginfod server, in place of the ones of DEBUGINFOD_URLS. May be repeated
    #[arg(long, value_name = "URL")]
    debuginfod: Vec<String>,
    /// Ask no debuginfod server
    #[arg(long, conflicts_with = "debuginfod")]
    no_debuginfod: bool,
    /// Do not search at the profile's paths on this machine, nor in /usr/lib/debug
    #[arg(long)]
    not_this_machine: bool,
}

impl PlaceArgs {
    /// An option that was given; `None` if none was.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            (!self.path.is_empty(), "--path"),
            (!self.debug_root.is_empty(), "--debug-root"),
            (self.store.is_some(), "--store"),
            (!self.debuginfod.is_empty(), "--debuginfod"),
            (self.no_debuginfod, "--no-debuginfod"),
            (self.not_this_machine, "--not-this-machine"),
        ];
        given.into_iter().find_map(|(is_given, option)| is_given.then_some(option))
    }

    /// The places.
    ///
    /// # Errors
    /// If a folder does not exist, or a setting of debuginfod's cannot work.
    pub(crate) fn places(&self) -> anyhow::Result<Places> {
        for path in self.path.iter().chain(&self.debug_root) {
            path.metadata().with_context(|| path.display().to_string())?;
        }
        if let Some(file) = self.debug_root.iter().find(|path| !path.is_dir()) {
            bail!("{}: not a folder", file.display());
        }
        let debug_roots = match self.debug_root.is_empty() && !self.not_this_machine {
            true => vec![DEBUG_ROOT.into()],
            false => self.debug_root.clone(),
        };
        let mut settings = Settings::of_environment();
        if self.no_debuginfod {
            settings.urls.clear();
        } else if !self.debuginfod.is_empty() {
            settings.urls.clone_from(&self.debuginfod);
        }
        Ok(Places {
            paths: self.path.clone(),
            debug_roots,
            machine: !self.not_this_machine,
            store: self.store.clone().or_else(default_store),
            debuginfod: DebuginfodClient::new(settings, tell)?,
            cache: default_cache(),
        })
    }
}

/// Shows a line of the client of debuginfod servers.
fn tell(line: &str) {
    // A closed standard error is no reason to fail.
    let _ = writeln!(terminal::stderr(), "{line}");
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A folder of otlpprof's in a folder that a variable names (XDG Base Directory Specification), or below
/// HOME.
fn own_folder(xdg: &str, below_home: &str) -> Option<PathBuf> {
    let given = variable(xdg).map(PathBuf::from).filter(|path| path.is_absolute());
    let usual = || Some(PathBuf::from(variable("HOME")?).join(below_home));
    Some(given.or_else(usual)?.join("otlpprof"))
}

/// The store's folder where no option names one.
fn default_store() -> Option<PathBuf> {
    if let Some(folder) = variable("OTLPPROF_SYMBOLS") {
        return Some(folder.into());
    }
    Some(own_folder("XDG_DATA_HOME", ".local/share")?.join("symbols"))
}

/// The folder of what is kept to be faster the next time.
pub(crate) fn default_cache() -> Option<PathBuf> {
    if let Some(folder) = variable("OTLPPROF_CACHE") {
        return Some(folder.into());
    }
    own_folder("XDG_CACHE_HOME", ".cache")
}

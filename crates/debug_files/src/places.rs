//! The places at which files are searched.

use std::path::PathBuf;

use super::debuginfod::DebuginfodClient;

/// The places at which files are searched, in this order.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Folders that are searched with all folders below them.
    pub paths: Vec<PathBuf>,
    /// Folders with a `.build-id` tree, and with debug files at their objects' paths.
    pub debug_roots: Vec<PathBuf>,
    /// Whether objects are searched on this machine, at the paths in the profile.
    pub machine: bool,
    /// The store of `otlpprof symbols`.
    pub store: Option<PathBuf>,
    /// The debuginfod servers.
    pub debuginfod: Option<DebuginfodClient>,
    /// The folder in which the contents of `paths` are remembered.
    pub cache: Option<PathBuf>,
}

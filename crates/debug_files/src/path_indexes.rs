//! The indexes of all folders to search, made when the first object is searched.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use otlpprof_core::build_id::BuildId;
use otlpprof_elf::htlhash::HtlHash;

use super::path_index::PathIndex;

/// The indexes of all folders to search.
#[derive(Debug)]
pub(super) struct PathIndexes {
    folders: Vec<PathBuf>,
    cache: Option<PathBuf>,
    indexes: OnceLock<Vec<PathIndex>>,
}

impl PathIndexes {
    pub(super) fn new(folders: Vec<PathBuf>, cache: Option<PathBuf>) -> Self {
        Self { folders, cache, indexes: OnceLock::new() }
    }

    fn all(&self) -> &[PathIndex] {
        self.indexes.get_or_init(|| {
            self.folders.iter().map(|folder| PathIndex::of(folder, self.cache.as_deref())).collect()
        })
    }

    /// Parts of the folders that could not be read: one line each.
    pub(super) fn problems(&self) -> impl Iterator<Item = &String> {
        self.all().iter().flat_map(|index| &index.problems)
    }

    pub(super) fn with_build_id(&self, build_id: &BuildId) -> impl Iterator<Item = &Path> {
        self.all().iter().flat_map(move |index| index.with_build_id(build_id))
    }

    pub(super) fn with_hash(&self, htlhash: &HtlHash) -> impl Iterator<Item = &Path> {
        self.all().iter().flat_map(move |index| index.with_hash(htlhash))
    }

    pub(super) fn called<'a>(&'a self, name: &'a OsStr) -> impl Iterator<Item = &'a Path> {
        self.all().iter().flat_map(move |index| index.called(name))
    }
}

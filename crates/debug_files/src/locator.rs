//! Searches the places for the files of an object.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use otlpprof_elf::debug_file_places::{DEBUG_ROOT, below, build_id_places, debug_link_places};
use otlpprof_elf::file::{ElfFile, FileError};
use otlpprof_elf::mini_debug_info;

use super::candidates::{Candidate, Candidates};
use super::debuginfod::error::FetchError;
use super::examined::{has_profiled_form, open};
use super::files::{FileKind, ObjectFiles, Quality};
use super::identity::{IdError, ObjectIdentity};
use super::links::SupplementaryLink;
use super::names_beside::names_beside;
use super::not_located::NotLocated;
use super::path_indexes::PathIndexes;
use super::places::Places;
use super::split_units::SplitUnits;
use super::store::Store;
use super::vdso;

/// The most objects that are located at a time. Most of the time passes in waiting for servers.
const LOCATED_AT_ONCE: usize = 10;

/// Finds files of objects. May be used by several threads at once.
#[derive(Debug)]
pub struct Locator {
    places: Places,
    indexes: Arc<PathIndexes>,
    store: Option<Store>,
}

impl Locator {
    /// A locator of these places. They are read when the first object is searched.
    pub fn new(places: Places) -> Self {
        let indexes = Arc::new(PathIndexes::new(places.paths.clone(), places.cache.clone()));
        let store = places.store.clone().map(Store::at);
        Self { places, indexes, store }
    }

    /// The files of an object.
    ///
    /// # Errors
    /// If no place has a file of the object.
    pub fn locate(&self, identity: &ObjectIdentity) -> Result<ObjectFiles, NotLocated> {
        let mut found = Candidates::new(identity);
        self.add_objects(&mut found)?;
        if found.widen() {
            self.add_objects(&mut found)?;
        }
        self.add_linked(&mut found);
        let failures = self.add_served(&mut found);
        if !found.has_any() {
            let rejected = found.into_rejected().map(Box::new);
            let places = self.described(identity, failures.first());
            return Err(NotLocated::NotFound { identity: Box::new(identity.clone()), places, rejected });
        }
        let of_servers = failures.iter().filter(|failure| !failure.is_absence()).map(FetchError::to_string);
        let problems = of_servers.chain(found.problems()).collect();
        Ok(self.completed(&found, problems))
    }

    /// The files of several objects, in their order, located by several threads.
    ///
    /// # Panics
    /// If [`Self::locate`] panics.
    pub fn locate_all(&self, identities: &[&ObjectIdentity]) -> Vec<Result<ObjectFiles, NotLocated>> {
        let located: Vec<OnceLock<_>> = identities.iter().map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(identity) = identities.get(at) else { return };
                located[at].get_or_init(|| self.locate(identity));
            }
        };
        thread::scope(|scope| {
            // This thread works, too.
            for _ in 1..identities.len().min(LOCATED_AT_ONCE) {
                scope.spawn(work);
            }
            work();
        });
        // SANITY: each number below the number of identities was taken by a thread, which has ended.
        located.into_iter().map(|found| found.into_inner().expect("located")).collect()
    }

    /// Finds the split units of an object with these files.
    pub fn split_units(&self, files: &ObjectFiles) -> SplitUnits {
        let files = [&files.debug, &files.executable].into_iter().flatten();
        let folders = files.filter_map(|path| path.parent().map(Path::to_owned)).collect();
        SplitUnits::new(folders, self.indexes.clone())
    }

    /// Parts of the folders to search that could not be read: one line each.
    pub fn problems(&self) -> Vec<String> {
        self.indexes.problems().cloned().collect()
    }

    /// Adds the files that have the identity themselves.
    fn add_objects(&self, found: &mut Candidates) -> Result<(), IdError> {
        let identity = found.identity().clone();
        let id = identity.file_id()?;
        if let Some(build_id) = &identity.build_id {
            self.indexes.with_build_id(build_id).for_each(|path| found.add(path));
        }
        if let Some(htlhash) = &identity.htlhash {
            self.indexes.with_hash(htlhash).for_each(|path| found.add(path));
        }
        let roots = &self.places.debug_roots;
        let trees = roots.iter().filter_map(|root| build_id_places(root, id.as_build_id()));
        trees.flatten().for_each(|place| found.add(&place));
        if let Some(path) = identity.usable_path() {
            // Debug files that have a build-id, at the place of their object, as before `.build-id` trees.
            if let (Some(folder), Some(name)) = (path.parent(), path.file_name()) {
                let folders = roots.iter().map(|root| below(root, folder));
                folders.flat_map(|folder| names_beside(&folder, name)).for_each(|place| found.add(&place));
                if self.places.machine {
                    names_beside(folder, name).iter().for_each(|place| found.add(place));
                }
            }
        }
        if self.may_be_own_vdso(&identity)
            && let Some(copy) = self.places.cache.as_deref().and_then(vdso::copy_in)
        {
            found.add(&copy);
        }
        if let Some(store) = &self.store {
            for kind in [FileKind::DebugInfo, FileKind::Executable] {
                found.add_stored(&store.path_of(&id, kind), kind);
            }
        }
        Ok(())
    }

    /// Whether an object may be this machine's vDSO.
    fn may_be_own_vdso(&self, identity: &ObjectIdentity) -> bool {
        self.places.machine && identity.path.as_deref() == Some(vdso::NAME)
    }

    /// Adds the debug files of executables that were found: by their debug link, or by their name.
    fn add_linked(&self, found: &mut Candidates) {
        let identity = found.identity().clone();
        for object in found.objects() {
            if found.quality() == Quality::DebugInfo {
                return;
            }
            if let Some(link) = &object.examined.debug_link {
                let original = identity.usable_path();
                let places = debug_link_places(&object.path, original, &link.name, &self.places.debug_roots);
                let indexed = self.indexes.called(&link.name).map(Path::to_owned);
                let mut is_found = false;
                for place in places.into_iter().chain(indexed) {
                    is_found |= found.add_linked(&place, link, &object);
                }
                if !is_found {
                    found.add_dangling(link, &object);
                }
            }
            if let (Some(folder), Some(name)) = (object.path.parent(), object.path.file_name()) {
                names_beside(folder, name).iter().for_each(|place| found.add_beside(place, &object));
            }
        }
    }

    /// Adds the files of servers, which may have better files than the files that were found. Returns the
    /// reasons why servers have not given one.
    fn add_served(&self, found: &mut Candidates) -> Vec<FetchError> {
        let mut failures = Vec::new();
        // The debug file of an object without a build-id is known only by the object.
        let is_by_hash = found.identity().build_id.is_none();
        let order = match is_by_hash {
            true => [FileKind::Executable, FileKind::DebugInfo],
            false => [FileKind::DebugInfo, FileKind::Executable],
        };
        for kind in order {
            let is_needed = match kind {
                FileKind::DebugInfo => found.quality() < Quality::DebugInfo,
                FileKind::Executable => !found.has_object() && (is_by_hash || !found.has_symbols()),
                FileKind::Package => false,
            };
            if is_needed {
                failures.extend(self.fetch(found, kind));
            }
        }
        failures
    }

    /// Adds a file of servers, if one of them has the file. Returns the reason why servers have not given it,
    /// unless they have just answered that they do not have it.
    fn fetch(&self, found: &mut Candidates, kind: FileKind) -> Option<FetchError> {
        let client = self.places.debuginfod.as_ref()?;
        let id = found.identity().file_id().ok()?;
        let link = found.objects().into_iter().find_map(|object| object.examined.debug_link);
        match client.fetch(&id, kind, link.as_ref()) {
            Ok(path) => found.add_served(&path, link.as_ref()),
            Err(FetchError::Absent) => {}
            Err(error) => return Some(error),
        }
        None
    }

    /// The files with their companions.
    fn completed(&self, found: &Candidates, mut problems: Vec<String>) -> ObjectFiles {
        let executable = found.best(|candidate| candidate.examined.has_code);
        let debug = found.best(|candidate| candidate.examined.quality == Quality::DebugInfo);
        let separate = || found.best(|candidate| !candidate.examined.has_code && candidate.has_symbols());
        let debug = debug.or_else(separate);
        let path_of = |candidate: Option<&Candidate>| candidate.map(|candidate| candidate.path.clone());
        let mut files = ObjectFiles {
            executable: path_of(executable),
            debug: path_of(debug),
            quality: found.quality(),
            ..ObjectFiles::default()
        };
        if let Some(debug) = debug
            && let Some(link) = &debug.examined.supplementary
        {
            match self.supplementary(link, &debug.path) {
                Ok(path) => files.supplementary = Some(path),
                Err(not_served) => {
                    let (path, id) = (link.path.display(), link.build_id);
                    let why = not_served.map_or_else(String::new, |why| format!(" ({why})"));
                    problems.push(format!(
                        "{} needs a supplementary file, which is not found: {path} with build-id {id}{why}",
                        debug.path.display()
                    ));
                }
            }
        }
        files.package = self.package(&files).or_else(|| self.stored_package(found.identity()));
        let both = [executable, debug].into_iter().flatten();
        if !both.clone().any(|candidate| candidate.examined.has_symbol_table) {
            let mini = both.clone().find_map(|candidate| {
                let file = ElfFile::parse(open(&candidate.path).ok()?).ok()?;
                match mini_debug_info::of_file(&file) {
                    Ok(mini) => mini,
                    Err(error) => {
                        problems.push(format!("{}: {error}", candidate.path.display()));
                        None
                    }
                }
            });
            files.mini = mini;
        }
        if let Some(store) = &self.store {
            let used = [&files.debug, &files.executable, &files.supplementary, &files.package];
            used.into_iter().flatten().for_each(|path| store.note_use(path));
        }
        files.problems = problems;
        files
    }

    /// The supplementary file that a debug file names.
    ///
    /// # Errors
    /// If the file is not found; with the reason why servers have not given it, unless they have just
    /// answered that they do not have it.
    fn supplementary(&self, link: &SupplementaryLink, debug: &Path) -> Result<PathBuf, Option<String>> {
        let identity = ObjectIdentity { build_id: Some(link.build_id), ..ObjectIdentity::default() };
        let mut found = Candidates::new(&identity);
        // A debug file in a `.build-id` tree may be a link, and the name is relative to the file itself.
        let real = debug.canonicalize().ok();
        for folder in [Some(debug), real.as_deref()].into_iter().flatten().filter_map(Path::parent) {
            found.add(&folder.join(&link.path));
        }
        if let Some(name) = link.path.file_name() {
            self.indexes.called(name).for_each(|path| found.add(path));
            for root in &self.places.debug_roots {
                found.add(&root.join(".dwz").join(name));
                if let Ok(inside) = link.path.strip_prefix(DEBUG_ROOT) {
                    found.add(&root.join(inside));
                }
            }
        }
        self.add_objects(&mut found).map_err(|error| error.to_string())?;
        let is_here = found.quality() == Quality::DebugInfo;
        // The file has no code, so that no server has it as an executable.
        let not_served = if is_here { None } else { self.fetch(&mut found, FileKind::DebugInfo) };
        let best = found.best(|candidate| candidate.examined.quality == Quality::DebugInfo);
        best.map(|best| best.path.clone()).ok_or(not_served.map(|error| error.to_string()))
    }

    /// The package of split units beside the object's files, or of its name below the folders to search.
    fn package(&self, files: &ObjectFiles) -> Option<PathBuf> {
        let named = |path: &PathBuf| {
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(".dwp");
            (path.with_file_name(&name), name)
        };
        let candidates = [&files.debug, &files.executable].into_iter().flatten().map(named);
        for (beside, name) in candidates {
            let indexed = self.indexes.called(&name).map(Path::to_owned);
            let mut all = [beside].into_iter().chain(indexed);
            if let Some(package) = all.find(|path| is_package(path)) {
                return Some(package);
            }
        }
        None
    }

    /// The package of split units in the store.
    fn stored_package(&self, identity: &ObjectIdentity) -> Option<PathBuf> {
        let path = self.store.as_ref()?.path_of(&identity.file_id().ok()?, FileKind::Package);
        is_package(&path).then_some(path)
    }

    /// The places, as a message names them.
    fn described(&self, identity: &ObjectIdentity, failure: Option<&FetchError>) -> Vec<String> {
        let Places { paths, debug_roots, machine, store, debuginfod, .. } = &self.places;
        let folders = paths.iter().chain(debug_roots).map(|path| path.display().to_string());
        let mut places: Vec<String> = folders.collect();
        places.extend(identity.usable_path().filter(|_| *machine).map(|path| path.display().to_string()));
        places.extend(self.may_be_own_vdso(identity).then(|| "this machine's vDSO".to_owned()));
        places.extend(store.iter().map(|store| format!("the store {}", store.display())));
        places.extend(debuginfod.iter().flat_map(|client| client.servers()).map(str::to_owned));
        if let (Some(last), Some(failure)) = (places.last_mut(), failure) {
            *last = format!("{last} ({failure})");
        }
        places
    }
}

fn is_package(path: &Path) -> bool {
    let Ok(elf) = open(path).map_err(FileError::from).and_then(ElfFile::parse) else { return false };
    has_profiled_form(&elf) && elf.section(".debug_cu_index").is_ok_and(|section| section.is_some())
}

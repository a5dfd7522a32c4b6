//! The objects of this process: who is where now, and who was.
//!
//! In: the dynamic linker's list. Out: [`ObjectMap`]s for handlers, and [`ObjectDetails`] by [`ObjectIndex`]
//! for whoever renders frames. Who calls what:
//!
//! - whoever learns that objects may have come or gone (a poller, a dlopen hook) calls
//!   [`ObjectRegistry::refresh`] and, when the map changed, publishes it to the handlers;
//! - a background thread calls [`ObjectRegistry::compile_next`] until nothing is left to compile;
//! - whoever drains samples looks details up, and when all samples that were taken with maps older than number
//!   *n* have been drained, calls [`ObjectRegistry::retire`] with *n*.
//!
//! | Module | Duty |
//! |---|---|
//! | [`scan`] | one look at all loaded objects |
//! | [`details`] | what is known of one loading |
//! | [`backing_file`] | whether the file on disk is the one that was loaded |
//! | [`memory_maps`] | `/proc/self/maps` |
//! | [`build_ids`] | build-id records that live for ever |

pub mod backing_file;
pub mod build_ids;
pub mod details;
pub mod memory_maps;
pub mod scan;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use self::backing_file::{FileIdentity, build_id_of_mapped};
pub use self::details::{CodeSegment, ObjectDetails, ObjectKind};
use self::memory_maps::MemoryMaps;
use self::scan::Sighting;
use super::file::ElfFile;
use super::loader_list::{LoadCounts, load_counts};
use super::program_header::ProgramHeader;
use super::unwind::sections::executable_range;
use super::unwind::{FrameSections, UnwindError};
use crate::core::address::RuntimeAddr;
use crate::core::object::{LoadedObject, ObjectIndex, ObjectMap, TextRange};
use crate::core::unwind::UnwindTable;

/// So many unloaded objects are remembered, whatever the callers of [`ObjectRegistry::retire`] do; then the
/// oldest are forgotten. Each takes about a kilobyte.
pub const MAX_UNLOADED: usize = 16_384;

/// What [`ObjectRegistry::refresh`] found.
#[derive(Clone, Debug)]
pub struct Refreshed {
    /// The current map.
    pub map: Arc<ObjectMap>,
    /// Whether it is another one than before.
    pub changed: bool,
    /// The counts that belong to it.
    pub counts: LoadCounts,
}

/// The objects of this process. Shared by reference; all methods may be called from any thread of the
/// ordinary zone, at the same time.
#[derive(Debug, Default)]
pub struct ObjectRegistry {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    counts: Option<LoadCounts>,
    map: Arc<ObjectMap>,
    live: Vec<Live>,
    by_index: HashMap<ObjectIndex, Arc<ObjectDetails>>,
    /// The objects that are gone, with the number of the first map without them; ascending.
    unloaded: VecDeque<(u64, ObjectIndex)>,
    forgotten: u64,
}

#[derive(Clone, Debug)]
struct Live {
    sighting: Sighting,
    loaded: Arc<LoadedObject>,
    details: Arc<ObjectDetails>,
}

impl ObjectRegistry {
    /// A registry that knows no objects; [`ObjectRegistry::refresh`] finds them.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks whether objects came or went, and if so, who is where. Costs a microsecond if nothing changed.
    ///
    /// An object that is gone and back between two calls, in the same place with the same content, keeps its
    /// index: nobody can tell the difference.
    pub fn refresh(&self) -> Refreshed {
        let mut state = self.state.lock();
        if state.counts == Some(load_counts()) {
            return state.refreshed(false);
        }
        let scan = scan::scan();
        let may_be_replaced = state.counts.is_none_or(|before| before.unloaded != scan.counts.unloaded);
        state.counts = Some(scan.counts);
        let changed = state.take_over(scan.objects, may_be_replaced);
        state.refreshed(changed)
    }

    /// The map of the last [`ObjectRegistry::refresh`].
    pub fn map(&self) -> Arc<ObjectMap> {
        self.state.lock().map.clone()
    }

    /// What is known of an object, loaded or not yet retired.
    pub fn details(&self, index: ObjectIndex) -> Option<Arc<ObjectDetails>> {
        self.state.lock().by_index.get(&index).cloned()
    }

    /// The details of all objects of the last [`ObjectRegistry::refresh`].
    pub fn loaded(&self) -> Vec<Arc<ObjectDetails>> {
        self.state.lock().live.iter().map(|live| live.details.clone()).collect()
    }

    /// For a PC that no object had when it was sampled (the map was a little behind): whose it is now, if that
    /// must be whose it was. That is so if nothing was unloaded since `since`, the counts of a
    /// [`Refreshed`] from before the sample was taken.
    pub fn find_late(&self, pc: RuntimeAddr, since: LoadCounts) -> Option<Arc<ObjectDetails>> {
        let now = self.refresh();
        if now.counts.unloaded != since.unloaded {
            return None;
        }
        self.details(now.map.find(pc)?.index)
    }

    /// Forgets the objects that are in no map from number `map_number` on. The caller knows that all samples
    /// taken with earlier maps have been drained, and their frames resolved.
    pub fn retire(&self, map_number: u64) {
        let mut state = self.state.lock();
        while state.unloaded.front().is_some_and(|&(gone_in, _)| gone_in <= map_number) {
            state.forget_oldest();
        }
    }

    /// How many unloaded objects are remembered.
    pub fn unloaded_count(&self) -> usize {
        self.state.lock().unloaded.len()
    }

    /// How many were forgotten because there were more than [`MAX_UNLOADED`].
    pub fn forgotten_count(&self) -> u64 {
        self.state.lock().forgotten
    }

    /// Compiles the unwind table of one loaded object that has none yet; false if all have theirs. An object
    /// whose table cannot be had gets an empty one. Takes up to some tens of milliseconds.
    ///
    /// Objects of more than `code_bytes` of code are left out, for callers that cannot wait: a table takes about a
    /// millisecond for each 100 KiB.
    pub fn compile_next(&self, code_bytes: u64) -> bool {
        let size = |live: &Live| live.loaded.text.end.0.saturating_sub(live.loaded.text.start.0);
        let is_wanted = |live: &&Live| live.loaded.unwind.get().is_none() && size(live) <= code_bytes;
        // Small ones first: nobody's stacks wait for the VM's table then but its own.
        let next = self.state.lock().live.iter().filter(is_wanted).min_by_key(|live| size(live)).cloned();
        let Some(live) = next else { return false };
        let table = compile(&live.details).unwrap_or_else(|error| {
            log::debug!("no unwind table for {}: {error}", live.details.path.display());
            UnwindTable::default()
        });
        // Another thread may have been faster.
        let _ = live.loaded.unwind.set(table);
        true
    }
}

fn compile(details: &ObjectDetails) -> Result<UnwindTable, UnwindError> {
    let mut sections = details.read_while_loaded(FrameSections::of_image).ok_or(UnwindError::Unloaded)??;
    if let Some(file) = details.open_file().ok().and_then(|file| ElfFile::parse(file).ok())
        && let Err(error) = sections.add_debug_frame(&file)
    {
        log::debug!("no .debug_frame of {}: {error}", details.path.display());
    }
    Ok(sections.compile())
}

impl State {
    fn refreshed(&self, changed: bool) -> Refreshed {
        Refreshed { map: self.map.clone(), changed, counts: self.counts.unwrap_or_default() }
    }

    /// Replaces the live objects by those seen now; whether that made another map.
    fn take_over(&mut self, seen: Vec<Sighting>, may_be_replaced: bool) -> bool {
        let mut before = std::mem::take(&mut self.live);
        let mut maps = None;
        let mut came = false;
        for sighting in seen {
            let same = before.iter().position(|live| {
                live.sighting == sighting && !(may_be_replaced && live.details.is_another_file(&mut maps))
            });
            if let Some(position) = same {
                self.live.push(before.swap_remove(position));
            } else if let Some(live) = Live::new(sighting, &mut maps) {
                self.by_index.insert(live.details.index, live.details.clone());
                self.live.push(live);
                came = true;
            }
        }
        if !came && before.is_empty() {
            return false;
        }
        let number = self.map.generation + 1;
        self.unloaded.extend(before.into_iter().map(|gone| (number, gone.details.index)));
        while self.unloaded.len() > MAX_UNLOADED {
            self.forget_oldest();
            self.forgotten += 1;
        }
        let ranges = self.live.iter().flat_map(Live::text_ranges).collect();
        self.map = Arc::new(ObjectMap::new(ranges, number));
        true
    }

    fn forget_oldest(&mut self) {
        if let Some((_, index)) = self.unloaded.pop_front() {
            self.by_index.remove(&index);
        }
    }
}

impl Live {
    /// `None` if all indices have been given out.
    fn new(sighting: Sighting, maps: &mut Option<MemoryMaps>) -> Option<Self> {
        let image = &sighting.image;
        let index = ObjectIndex::next()?;
        let text = executable_range(image)?;
        let kind = match (sighting.is_vdso, image.name().as_os_str().is_empty()) {
            (true, _) => ObjectKind::Vdso,
            (false, true) => ObjectKind::Program,
            (false, false) => ObjectKind::Library,
        };
        let path = path_of(&sighting, kind, maps);
        let file_identity = match (kind, sighting.build_id) {
            (ObjectKind::Program | ObjectKind::Library, None) => {
                let maps = maps.get_or_insert_with(MemoryMaps::read);
                let mapped = maps.file_at(image.load_bias().to_runtime(text.start));
                mapped.and_then(|mapped| FileIdentity::of_mapped(&path, mapped))
            }
            _ => None,
        };
        let from_file = || match kind {
            ObjectKind::Vdso => None,
            ObjectKind::Program | ObjectKind::Library => build_id_of_mapped(&path, file_identity, image),
        };
        let build_id = sighting.build_id.or_else(from_file).map(build_ids::record_of);
        let code = image.program_headers().iter().filter(|header| header.is_executable());
        let code = code.map(|header| CodeSegment { vaddrs: header.vaddrs(), file_offset: header.offset });
        let details = ObjectDetails {
            index,
            kind,
            path,
            build_id,
            code: code.collect(),
            image: image.clone(),
            file_identity,
            htlhash: OnceLock::new(),
        };
        let frame_header = image.program_header(libc::PT_GNU_EH_FRAME);
        let frame_header = frame_header.map(|header| image.runtime_range(header).start);
        let loaded = LoadedObject {
            index,
            load_bias: image.load_bias(),
            build_id,
            identity: sighting.identity,
            unwind: OnceLock::new(),
            frame_header,
            text,
        };
        Some(Self { loaded: Arc::new(loaded), details: Arc::new(details), sighting })
    }

    fn text_ranges(&self) -> impl Iterator<Item = TextRange> {
        let executable = self.sighting.image.program_headers().iter().filter(|header| header.is_executable());
        executable.map(|header: &ProgramHeader| {
            let range = self.sighting.image.runtime_range(header);
            TextRange { start: range.start, end: range.end, object: self.loaded.clone() }
        })
    }
}

impl ObjectDetails {
    /// Whether another file is mapped now where this object was. Only objects without a build-id in memory need this:
    /// two builds of such a library can look alike up to their section table's offset.
    fn is_another_file(&self, maps: &mut Option<MemoryMaps>) -> bool {
        let Some(identity) = self.file_identity else { return false };
        let Some(code) = self.code.first() else { return false };
        let maps = maps.get_or_insert_with(MemoryMaps::read);
        let mapped = maps.file_at(self.load_bias().to_runtime(code.vaddrs.start));
        mapped.is_none_or(|mapped| !identity.is_file(mapped))
    }
}

/// The dynamic linker's name where it is absolute; otherwise the kernel's.
fn path_of(sighting: &Sighting, kind: ObjectKind, maps: &mut Option<MemoryMaps>) -> PathBuf {
    let name = sighting.image.name();
    if kind == ObjectKind::Vdso {
        return "[vdso]".into();
    }
    if name.is_absolute() {
        return name.into();
    }
    let maps = maps.get_or_insert_with(MemoryMaps::read);
    let text = sighting.image.program_headers().iter().find(|header| header.is_executable());
    let mapped = text.and_then(|header| maps.file_at(sighting.image.runtime_range(header).start));
    match mapped {
        Some(mapped) => mapped.path.into(),
        None if kind == ObjectKind::Program => std::fs::read_link("/proc/self/exe").unwrap_or_default(),
        None => name.into(),
    }
}

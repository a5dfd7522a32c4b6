//! The objects of this process: the loaded ones with their addresses, and unloaded ones.
//!
//! In: the dynamic linker's list. Out: [`ObjectMap`]s for handlers, and [`ObjectDetails`] by [`ObjectIndex`]
//! for the rendering of frames. The callers:
//!
//! - code that notices that objects may have been loaded or unloaded (a poller, a dlopen hook) calls
//!   [`ObjectRegistry::refresh`] and publishes a changed map to the handlers;
//! - a background thread calls [`ObjectRegistry::compile_next`] until all unwind tables are compiled;
//! - the drainer of samples looks up details. When all samples taken with maps before number *n* have been
//!   drained, the drainer calls [`ObjectRegistry::retire`] with *n*.
//!
//! | Module | Duty |
//! |---|---|
//! | [`scan`] | lists and reads all loaded objects once |
//! | [`details`] | the description of one loading |
//! | [`backing_file`] | whether the file on disk is the one that was loaded |
//! | [`memory_maps`] | `/proc/self/maps` |
//! | [`build_ids`] | build-id records that are never freed |

pub mod backing_file;
pub mod build_ids;
pub mod details;
pub mod memory_maps;
pub mod scan;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use otlpprof_core::address::{ElfVaddr, RuntimeAddr};
use otlpprof_core::object::{LoadedObject, ObjectIndex, ObjectMap, TextRange};
use otlpprof_core::unwind_rule::UnwindRule;
use otlpprof_core::unwind_table::UnwindTable;
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

/// The most unloaded objects to remember, even if [`ObjectRegistry::retire`] is not called. Beyond this
/// number the oldest are forgotten. Each takes about a kilobyte.
pub const MAX_UNLOADED: usize = 16_384;

/// The result of [`ObjectRegistry::refresh`].
#[derive(Clone, Debug)]
pub struct Refreshed {
    /// The current map.
    pub map: Arc<ObjectMap>,
    /// Whether the map differs from the one before.
    pub changed: bool,
    /// The load counts of the map.
    pub counts: LoadCounts,
}

/// The objects of this process. Shared by reference. Any threads of the ordinary zone may call all methods
/// concurrently.
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
    /// The unloaded objects, each with the number of the first map that lacks it; ascending.
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
    /// A registry without objects; [`ObjectRegistry::refresh`] finds them.
    pub fn new() -> Self {
        Self::default()
    }

    /// Updates the map if objects were loaded or unloaded. Costs a microsecond if nothing changed.
    ///
    /// An object that is unloaded and loaded again between two calls, at the same address with the same
    /// content, keeps its index, because the two loadings cannot be told apart.
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

    /// The details of an object that is loaded, or unloaded but not yet retired.
    pub fn details(&self, index: ObjectIndex) -> Option<Arc<ObjectDetails>> {
        self.state.lock().by_index.get(&index).cloned()
    }

    /// The details of all objects of the last [`ObjectRegistry::refresh`].
    pub fn loaded(&self) -> Vec<Arc<ObjectDetails>> {
        self.state.lock().live.iter().map(|live| live.details.clone()).collect()
    }

    /// The rule of a loaded object's call frame information at `address`; `None` also while the object's
    /// table has not been compiled.
    pub fn rule_at(&self, index: ObjectIndex, address: ElfVaddr) -> Option<UnwindRule> {
        let state = self.state.lock();
        let live = state.live.iter().find(|live| live.loaded.index == index)?;
        live.loaded.unwind.get()?.rule_at(address)
    }

    /// Resolves a PC that was in no object of the map when it was sampled, because the map was slightly
    /// outdated. Returns the object that contains the PC now, if the same object must have contained it then:
    /// nothing was unloaded since `since`, the counts of a [`Refreshed`] from before the sample was taken.
    pub fn find_late(&self, pc: RuntimeAddr, since: LoadCounts) -> Option<Arc<ObjectDetails>> {
        let now = self.refresh();
        if now.counts.unloaded != since.unloaded {
            return None;
        }
        self.details(now.map.find(pc)?.index)
    }

    /// Forgets the objects that are in no map from number `map_number` on. The caller guarantees that all
    /// samples taken with earlier maps have been drained, and their frames resolved.
    pub fn retire(&self, map_number: u64) {
        let mut state = self.state.lock();
        while state.unloaded.front().is_some_and(|&(unloaded_in, _)| unloaded_in <= map_number) {
            state.forget_oldest();
        }
    }

    /// The number of unloaded objects that are remembered.
    pub fn unloaded_count(&self) -> usize {
        self.state.lock().unloaded.len()
    }

    /// The number of objects that were forgotten because there were more than [`MAX_UNLOADED`].
    pub fn forgotten_count(&self) -> u64 {
        self.state.lock().forgotten
    }

    /// Compiles the unwind table of one loaded object that has none yet; false if there is no such object. An
    /// object whose table cannot be compiled gets an empty one. Takes up to some tens of milliseconds.
    ///
    /// Skips objects with more than `code_bytes` bytes of code, for callers that cannot wait: a table takes
    /// about a millisecond for each 100 KiB of code.
    pub fn compile_next(&self, code_bytes: u64) -> bool {
        let size = |live: &Live| live.loaded.text.end.0.saturating_sub(live.loaded.text.start.0);
        let is_wanted = |live: &&Live| live.loaded.unwind.get().is_none() && size(live) <= code_bytes;
        // Small objects come first, so that only stacks in the VM's own code wait for the VM's large table.
        let next = self.state.lock().live.iter().filter(is_wanted).min_by_key(|live| size(live)).cloned();
        let Some(live) = next else { return false };
        let table = compile(&live.details).unwrap_or_else(|error| {
            log::debug!("no unwind table for {}: {error}", live.details.path.display());
            UnwindTable::default()
        });
        // Another thread may have set the table first.
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

    /// Replaces the live objects by the objects seen now. Returns whether the map changed.
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
    /// A newly seen object; `None` if all indices are used up, or the object has no executable segment.
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
    /// Whether another file is mapped now in this object's place. Only objects without a build-id in memory
    /// need this check: two builds of such a library may be equal up to the offset of their section table.
    fn is_another_file(&self, maps: &mut Option<MemoryMaps>) -> bool {
        let Some(identity) = self.file_identity else { return false };
        let Some(code) = self.code.first() else { return false };
        let maps = maps.get_or_insert_with(MemoryMaps::read);
        let mapped = maps.file_at(self.load_bias().to_runtime(code.vaddrs.start));
        mapped.is_none_or(|mapped| !identity.is_file(mapped))
    }
}

/// The dynamic linker's name of the object if that is absolute, otherwise the kernel's.
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

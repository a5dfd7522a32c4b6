//! The loaded objects: publishes them to the handlers, compiles their unwind tables in the background, and
//! names frames in them, for which it also reads debug files in the background.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

use otlpprof_core::address::{ElfVaddr, RuntimeAddr};
use otlpprof_core::object::{ObjectIndex, ObjectMap};
use otlpprof_core::unwind_rule::CfaRule;
use otlpprof_elf::loader_list::{LoadCounts, dl_find_object, load_counts};
use otlpprof_elf::objects::{ObjectDetails, ObjectRegistry};
use otlpprof_elf::symbols::{Preparation, Symbolizer};
use otlpprof_model::{Mapping, MappingId, Tables};
use otlpprof_sampling::{native_memory, own_threads};
use otlpprof_signal::buffer::SampleBuffer;
use otlpprof_signal::loader;
use otlpprof_signal::sample::SETUP;

/// The longest time for which a new object may go unnoticed. A check costs a microsecond when nothing has
/// changed.
const SCAN_PERIOD: Duration = Duration::from_millis(100);

/// The shortest time between two checks, since code that is in no object, such as another agent's, may be
/// executed all the time.
const LEAST_PAUSE: Duration = Duration::from_millis(2);

/// If a library has less code than this, its unwind table is compiled while the thread that has loaded it
/// waits.
const SMALL_CODE_BYTES: u64 = 256 * 1024;

/// The objects. They outlive sessions: their indices belong to the process, and compiled tables are worth
/// keeping.
static REGISTRY: LazyLock<ObjectRegistry> = LazyLock::new(ObjectRegistry::new);

/// The loaded objects, for one session.
pub(super) struct Objects {
    symbolizer: Symbolizer,
    buffer: &'static SampleBuffer,
    /// The map that handlers use now, and the counts of loads and unloads from before it was published.
    published: Mutex<(Arc<ObjectMap>, LoadCounts)>,
    /// Handlers use a map of this number or a later one.
    published_number: AtomicU64,
    stopping: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Objects {
    /// Publishes the objects that are loaded now. If samples are taken, a thread of its own keeps the map up
    /// to date.
    /// `debug_files` is the folder in which debug files are installed, if these are used.
    pub(super) fn start(
        buffer: &'static SampleBuffer,
        is_sampling: bool,
        debug_files: Option<PathBuf>,
    ) -> std::io::Result<Arc<Self>> {
        let first = REGISTRY.refresh();
        let objects = Arc::new(Self {
            symbolizer: Symbolizer::new(debug_files),
            buffer,
            published: Mutex::new((first.map.clone(), first.counts)),
            published_number: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            thread: Mutex::new(None),
        });
        // SAFETY: the function returns null or glibc's `_dl_find_object`.
        unsafe { loader::ask(dl_find_object()) };
        SETUP.objects.store(Arc::as_ptr(&first.map).cast_mut(), Ordering::Release);
        if is_sampling {
            let running = objects.clone();
            let thread = own_threads::spawn("otlpprof-objects", move || running.run())?;
            *objects.thread.lock() = Some(thread);
        }
        Ok(objects)
    }

    fn run(&self) {
        while !self.stopping.load(Ordering::Acquire) {
            self.publish();
            let mut is_left = true;
            while is_left && !self.stopping.load(Ordering::Acquire) {
                is_left = REGISTRY.compile_next(u64::MAX);
            }
            // The hash is computed once for an object, and here, so that no other thread waits for the file
            // later.
            let mut loaded = REGISTRY.loaded().into_iter();
            while let Some(details) = loaded.next().filter(|_| !self.stopping.load(Ordering::Acquire)) {
                details.htlhash();
            }
            is_left = true;
            while is_left && !self.stopping.load(Ordering::Acquire) {
                is_left = self.symbolizer.prepare_next();
            }
            // New code is soon executed, and a handler that meets it rings `unknown_code`.
            std::thread::sleep(LEAST_PAUSE);
            SETUP.unknown_code.wait(SCAN_PERIOD);
        }
    }

    /// Publishes a new map to the handlers, if there is one. The old map is freed when no handler can be
    /// using it.
    fn publish(&self) {
        let mut published = self.published.lock();
        if self.stopping.load(Ordering::Acquire) {
            return;
        }
        let refreshed = REGISTRY.refresh();
        if !refreshed.changed && Arc::ptr_eq(&published.0, &refreshed.map) {
            published.1 = refreshed.counts;
            native_memory::follow(refreshed.counts);
            return;
        }
        SETUP.objects.store(Arc::as_ptr(&refreshed.map).cast_mut(), Ordering::Release);
        self.buffer.wait_for_handlers();
        self.published_number.store(refreshed.map.generation, Ordering::Release);
        *published = (refreshed.map, refreshed.counts);
        // Imports of an object are redirected only once the object is in the map: otherwise its first samples
        // would be taken in an unknown object.
        native_memory::follow(refreshed.counts);
    }

    /// Handles the binding of a native method, on the thread that will call it. If the method's library is
    /// new, it is published to handlers now, before the method runs; its unwind table is compiled, too,
    /// unless the library is large.
    pub(super) fn native_method_is_bound(&self) {
        if self.published.lock().1 != load_counts() {
            self.publish();
            while REGISTRY.compile_next(SMALL_CODE_BYTES) {}
        }
    }

    /// Returns the number of a map such that no sample taken from now on uses an older one. Called before a
    /// drain.
    pub(super) fn published_number(&self) -> u64 {
        self.published_number.load(Ordering::Acquire)
    }

    /// Ends an interval. All samples with maps older than `number` have been drained and resolved.
    pub(super) fn interval_ends(&self, number: u64) {
        REGISTRY.retire(number);
        self.symbolizer.drop_unused();
    }

    /// Withdraws the map. No handler runs any more, nor will one. The thread ends by itself, once it has
    /// compiled the current table; see [`Objects::join`].
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        SETUP.unknown_code.ring();
        let _published = self.published.lock();
        SETUP.objects.store(std::ptr::null_mut(), Ordering::Release);
        self.buffer.wait_for_handlers();
    }

    /// Waits for the thread's end.
    pub(super) fn join(&self) {
        if let Some(thread) = self.thread.lock().take() {
            // The thread catches no panics: a panic in it has already been reported.
            let _ = thread.join();
        }
    }

    /// Returns the object that is at `pc` now, if the same object must have been there when the sample was
    /// taken. `since` are the counts from before that time.
    pub(super) fn find_late(&self, pc: RuntimeAddr, since: LoadCounts) -> Option<Arc<ObjectDetails>> {
        REGISTRY.find_late(pc, since)
    }

    /// Returns the details of an object.
    pub(super) fn details(&self, object: ObjectIndex) -> Option<Arc<ObjectDetails>> {
        REGISTRY.details(object)
    }

    /// Whether the name of the function at `address` is found quickly. If not, requests that the object's
    /// symbols be read in the background.
    pub(super) fn is_quickly_named(&self, details: &Arc<ObjectDetails>, address: ElfVaddr) -> bool {
        let preparation = self.symbolizer.prepare(details, address);
        if preparation == Preparation::Requested {
            // The thread of the objects waits for this bell.
            SETUP.unknown_code.ring();
        }
        preparation == Preparation::Done
    }

    /// Returns the name of the function at `address`; `None` if there is no symbol.
    pub(super) fn function(&self, details: &ObjectDetails, address: ElfVaddr) -> Option<NativeName> {
        let symbol = self.symbolizer.symbol(details, address)?;
        Some(NativeName { name: symbol.name.clone(), linkage_name: symbol.linkage_name.clone() })
    }

    /// Whether the object's call frame information says that the code at `address` has no caller. `false`
    /// until that information has been compiled.
    pub(super) fn is_outermost(&self, object: ObjectIndex, address: ElfVaddr) -> bool {
        REGISTRY.rule_at(object, address).is_some_and(|rule| rule.cfa == CfaRule::EndOfStack)
    }
}

/// A native function's two names.
#[derive(Clone, Default)]
pub(super) struct NativeName {
    pub(super) name: String,
    /// The linker's name; empty for a function without a symbol.
    pub(super) linkage_name: String,
}

/// Returns the mapping of the segment that contains `address`.
pub(super) fn mapping(tables: &mut Tables, details: &ObjectDetails, address: ElfVaddr) -> Option<MappingId> {
    let segment = details.code_segment_at(address)?;
    let filename = tables.strings.intern(&details.path.to_string_lossy());
    let htlhash = details.htlhash().map(|hash| tables.strings.intern(&hash.to_string()));
    Some(tables.mappings.intern(Mapping {
        memory_start: segment.vaddrs.start,
        memory_limit: segment.vaddrs.end,
        file_offset: segment.file_offset,
        filename,
        build_id: details.build_id.copied(),
        htlhash,
    }))
}

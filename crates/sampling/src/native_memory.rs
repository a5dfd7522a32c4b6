//! Native memory: redirects the objects' imports of `malloc` and similar functions to the sampler, and starts
//! and stops the sampling.
//!
//! Some objects are left alone: objects that define those functions, so that an allocator's own calls are not
//! counted besides the memory that it returns; the dynamic linker; our own library; and objects whose imports
//! lead elsewhere (to another tool's functions, or into the object itself). Memory that the C library
//! allocates for its callers, as `strdup` does, is not sampled.

use std::thread;
use std::time::{Duration, Instant};

use otlpprof_core::address::RuntimeAddr;
use otlpprof_elf::loader_list::{LoadCounts, load_counts};
use otlpprof_signal::native_memory::{AllocationFunction, SAMPLER};
use parking_lot::Mutex;

use super::imports::{Import, Redirection};
use super::random::random;
use super::threads;

/// The longest time that a stop waits for a thread that is taking a sample, which itself waits for no other
/// thread.
const PATIENCE: Duration = Duration::from_secs(1);

/// The sampling of native memory, as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeMemoryConfig {
    /// The mean distance of two samples in the stream of allocated bytes, in bytes.
    pub interval_bytes: u64,
    /// Whether memory that has not been freed is remembered.
    pub remembers: bool,
}

struct NativeMemorySampling {
    imports: Redirection,
    functions: Vec<(AllocationFunction, u64)>,
}

static SESSION: Mutex<Option<NativeMemorySampling>> = Mutex::new(None);

/// Starts sampling. Returns `false` if the C library's functions cannot be found, or if sampling has been
/// started before.
pub fn start(config: NativeMemoryConfig) -> bool {
    let mut session = SESSION.lock();
    if session.is_some() {
        return false;
    }
    let mut functions: Vec<_> = AllocationFunction::ALL
        .into_iter()
        .filter(|function| config.remembers || !function.only_frees())
        .filter_map(|function| Some((function, address_of(function)?)))
        .collect();
    if functions.is_empty() {
        return false;
    }
    for (function, address) in &functions {
        function.set_address(*address as usize);
    }
    // Functions that free memory are redirected first, in all objects, so that no remembered block is freed
    // unnoticed.
    functions.sort_by_key(|(function, _)| rank(*function));
    let group = |group: &[(AllocationFunction, u64)]| {
        group.iter().map(|(function, _)| (name_of(*function), function.stand_in())).collect()
    };
    let groups = functions.chunk_by(|(a, _), (b, _)| rank(*a) == rank(*b)).map(group).collect();
    SAMPLER.start(config.interval_bytes, config.remembers, threads::is_own_or_forked, random());
    let mut started = NativeMemorySampling { imports: Redirection::new(groups), functions };
    started.install(load_counts());
    *session = Some(started);
    true
}

/// Redirects the imports of objects that have been loaded since the last call. `known` are the counts of the
/// caller's last look at the objects: walks know these objects. Objects that have been loaded since then are
/// left for the next call. Cheap if there are none.
pub fn follow(known: LoadCounts) {
    if let Some(session) = &mut *SESSION.lock()
        && known == load_counts()
    {
        session.install(known);
    }
}

/// Restores the imports, and waits for samples that are under way.
pub fn stop() {
    let Some(session) = SESSION.lock().take() else { return };
    SAMPLER.stop();
    session.imports.remove();
    let since = Instant::now();
    while !SAMPLER.is_idle() && since.elapsed() < PATIENCE {
        thread::yield_now();
    }
}

impl NativeMemorySampling {
    fn install(&mut self, counts: LoadCounts) {
        let Self { imports, functions } = self;
        let own = start as *const () as u64;
        // SAFETY: getauxval has no preconditions, and reads the auxiliary vector of the process.
        let linker = unsafe { libc::getauxval(libc::AT_BASE) };
        imports.install(counts, |image, imports, import| {
            let is_in = |address: u64| address != 0 && image.contains(RuntimeAddr(address));
            let has_functions = functions.iter().any(|(_, address)| is_in(*address));
            if is_in(own) || is_in(linker) || has_functions {
                return false;
            }
            let is_default = |import: &Import| import.value == functions[import.name].1;
            // An import that is not bound yet leads back into its object, and will be bound in the same way
            // as the others.
            let is_unbound = |import: &Import| is_in(import.value);
            is_default(&import)
                || is_unbound(&import)
                    && imports.iter().all(|import| is_default(import) || is_unbound(import))
        });
    }
}

/// The order of redirection: functions that only free first, then functions that do both, then functions that
/// only allocate.
fn rank(function: AllocationFunction) -> (bool, bool) {
    (!function.only_frees(), function.only_allocates())
}

fn name_of(function: AllocationFunction) -> &'static str {
    // SANITY: the names are ASCII.
    function.name().to_str().expect("ASCII")
}

/// Returns the address that the dynamic linker finds for every object: the C library's function, or the
/// function of a preloaded allocator.
fn address_of(function: AllocationFunction) -> Option<u64> {
    // SAFETY: the name is a C string.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, function.name().as_ptr()) };
    (!address.is_null()).then_some(address as u64)
}

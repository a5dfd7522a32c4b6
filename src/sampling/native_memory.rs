//! Native memory: leads what objects import of `malloc` and its like to what samples it, and starts and stops that.
//!
//! Left alone are the objects that have those functions themselves, so that an allocator's own calls are not counted beside
//! what it gives out, the dynamic linker, whatever else leads elsewhere (another tool's functions, an object's own), and our
//! own library. What the C library allocates for its callers, as `strdup` does, is not seen.

use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::imports::{Import, Redirection};
use super::random::random;
use super::threads;
use crate::core::address::RuntimeAddr;
use crate::elf::loader_list::{LoadCounts, load_counts};
use crate::signal::native_memory::{Function, SAMPLER};

/// How long a stop waits for a thread that is taking a sample: it waits for nobody itself.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is sampled, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeMemoryConfig {
    /// The mean distance of two samples in the stream of allocated bytes.
    pub interval_bytes: u64,
    /// Whether it is remembered what has not been freed.
    pub remembers: bool,
}

struct Session {
    imports: Redirection,
    functions: Vec<(Function, u64)>,
}

static SESSION: Mutex<Option<Session>> = Mutex::new(None);

/// Begins to sample. `false` if the C library's functions are not to be found, or it has begun before.
pub fn start(config: NativeMemoryConfig) -> bool {
    let mut session = SESSION.lock();
    if session.is_some() {
        return false;
    }
    let mut functions: Vec<_> = Function::ALL
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
    // What takes memory back is led first, in all objects: a block that is remembered is not freed behind our back then.
    functions.sort_by_key(|(function, _)| rank(*function));
    let group = |group: &[(Function, u64)]| {
        group.iter().map(|(function, _)| (name_of(*function), function.stand_in())).collect()
    };
    let groups = functions.chunk_by(|(a, _), (b, _)| rank(*a) == rank(*b)).map(group).collect();
    SAMPLER.start(config.interval_bytes, config.remembers, threads::is_own_or_forked, random());
    let mut started = Session { imports: Redirection::new(groups), functions };
    started.install(load_counts());
    *session = Some(started);
    true
}

/// Leads the imports of objects that have been loaded since to what samples them. `known` are the counts of the last look at
/// the objects: walks know those, and what has come since is left for the next time. Cheap if there are none.
pub fn follow(known: LoadCounts) {
    if let Some(session) = &mut *SESSION.lock()
        && known == load_counts()
    {
        session.install(known);
    }
}

/// Gives the imports back what they held, and waits for samples that are under way.
pub fn stop() {
    let Some(session) = SESSION.lock().take() else { return };
    SAMPLER.stop();
    session.imports.remove();
    let since = Instant::now();
    while !SAMPLER.is_idle() && since.elapsed() < PATIENCE {
        thread::yield_now();
    }
}

impl Session {
    fn install(&mut self, counts: LoadCounts) {
        let Self { imports, functions } = self;
        let own = start as *const () as u64;
        // SAFETY: getauxval reads what the kernel has told.
        let linker = unsafe { libc::getauxval(libc::AT_BASE) };
        imports.install(counts, |image, imports, import| {
            let is_in = |address: u64| address != 0 && image.contains(RuntimeAddr(address));
            let has_functions = functions.iter().any(|(_, address)| is_in(*address));
            if is_in(own) || is_in(linker) || has_functions {
                return false;
            }
            let is_default = |import: &Import| import.value == functions[import.name].1;
            // One that is not bound yet leads back into its object, and will be bound as those that are.
            let is_unbound = |import: &Import| is_in(import.value);
            is_default(&import)
                || is_unbound(&import)
                    && imports.iter().all(|import| is_default(import) || is_unbound(import))
        });
    }
}

/// Those that free come first, then those that do both, then those that allocate.
fn rank(function: Function) -> (bool, bool) {
    (!function.only_frees(), function.only_allocates())
}

fn name_of(function: Function) -> &'static str {
    // SANITY: the names are ASCII.
    function.name().to_str().expect("ASCII")
}

/// Where the dynamic linker finds the function for everybody: the C library's, or that of an allocator in its place.
fn address_of(function: Function) -> Option<u64> {
    // SAFETY: the name is a C string.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, function.name().as_ptr()) };
    (!address.is_null()).then_some(address as u64)
}

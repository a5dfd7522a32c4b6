//! The dynamic linker's list of loaded objects.
//!
//! `dl_iterate_phdr` holds the dynamic linker's lock during its callbacks. Another thread may be unwinding
//! inside an allocator (a heap profiler's), where it holds the allocator's locks and waits for the linker's
//! lock. Callbacks therefore allocate nothing and take no locks. They count, copy into existing memory,
//! compare, and write single words. Everything else happens afterwards, and is valid only if no object was
//! unloaded meanwhile. No other module calls `dl_iterate_phdr`.

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;

use goblin::elf::program_header::program_header64;
use otlpprof_core::address::LoadBias;

use super::image::LoadedImage;
use super::program_header::ProgramHeader;

/// The most repetitions of an operation during which an object was unloaded.
pub const TRIES: usize = 50;

/// The numbers of objects that the dynamic linker has loaded and unloaded in this process's life, in all
/// namespaces. musl counts only loads, because it never unloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadCounts {
    /// Objects loaded.
    pub loaded: u64,
    /// Objects unloaded.
    pub unloaded: u64,
}

/// The objects of this namespace at one moment.
#[derive(Debug, Default)]
pub struct LoadedObjects {
    /// The objects' images, the main program's first.
    pub images: Vec<LoadedImage>,
    /// The load counts at that moment.
    pub counts: LoadCounts,
}

/// The address of glibc's `_dl_find_object` (glibc 2.35 on). Null if the C library has no such function.
pub fn dl_find_object() -> *mut c_void {
    // SAFETY: the name is a C string; nothing is loaded.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) }
}

/// Lists all objects that are currently loaded.
pub fn loaded_objects() -> LoadedObjects {
    let mut copies = Copies::default();
    loop {
        copies.clear();
        iterate(|entry| {
            copies.take(entry);
            ControlFlow::<()>::Continue(())
        });
        if copies.are_complete() {
            return copies.into_objects();
        }
        copies.reserve();
    }
}

/// The current load counts. Much cheaper than listing the objects.
pub fn load_counts() -> LoadCounts {
    iterate(|entry| ControlFlow::Break(entry.counts)).unwrap_or_default()
}

/// The current load counts, if the list contains an image like this one.
pub(super) fn counts_if_listed(image: &LoadedImage) -> Option<LoadCounts> {
    iterate(
        |entry| {
            if entry.is(image) { ControlFlow::Break(entry.counts) } else { ControlFlow::Continue(()) }
        },
    )
}

/// Calls `work` while the dynamic linker can neither load nor unload objects. Returns `None`, without calling
/// `work`, if an object has been unloaded since the counts were `since`.
///
/// The linker's lock is held, so `work` must not allocate, take a lock, load or unload objects, or panic, and
/// should be brief. Meanwhile glibc may be relocating an object, or making its pages read-only.
pub fn while_none_is_unloaded<T>(since: LoadCounts, work: impl FnOnce() -> T) -> Option<T> {
    let mut work = Some(work);
    iterate(|entry| {
        let work = work.take().filter(|_| entry.counts.unloaded == since.unloaded);
        ControlFlow::Break(work.map(|work| work()))
    })?
}

/// One entry of the list, in the linker's memory.
struct Entry<'a> {
    name: &'a [u8],
    load_bias: LoadBias,
    headers: &'a [program_header64::ProgramHeader],
    counts: LoadCounts,
}

impl Entry<'_> {
    fn program_headers(&self) -> impl Iterator<Item = ProgramHeader> {
        self.headers.iter().map(|&header| ProgramHeader::from(&header.into()))
    }

    /// Whether the image belongs to this entry, as far as the list can tell.
    fn is(&self, image: &LoadedImage) -> bool {
        self.load_bias == image.load_bias()
            && self.name == image.name().as_os_str().as_bytes()
            && self.program_headers().eq(image.program_headers().iter().copied())
    }
}

/// Copies of entries, in memory that was reserved before the list is visited.
#[derive(Default)]
struct Copies {
    names: Vec<u8>,
    headers: Vec<ProgramHeader>,
    entries: Vec<CopiedEntry>,
    /// The sizes of the three vectors that the whole list needs.
    needed: [usize; 3],
    counts: LoadCounts,
}

struct CopiedEntry {
    name_len: usize,
    header_count: usize,
    load_bias: LoadBias,
}

impl Copies {
    fn clear(&mut self) {
        self.names.clear();
        self.headers.clear();
        self.entries.clear();
        self.needed = [0; 3];
    }

    /// Copies an entry if there is room for it. Allocates nothing.
    fn take(&mut self, entry: &Entry<'_>) {
        let sizes = [entry.name.len(), entry.headers.len(), 1];
        self.needed = std::array::from_fn(|at| self.needed[at] + sizes[at]);
        self.counts = entry.counts;
        let room = [self.names.capacity(), self.headers.capacity(), self.entries.capacity()];
        if self.needed.iter().zip(room).any(|(needed, room)| *needed > room) {
            return;
        }
        self.names.extend_from_slice(entry.name);
        for header in entry.program_headers() {
            self.headers.push(header);
        }
        let [name_len, header_count, _] = sizes;
        self.entries.push(CopiedEntry { name_len, header_count, load_bias: entry.load_bias });
    }

    fn are_complete(&self) -> bool {
        self.entries.len() == self.needed[2]
    }

    /// Reserves the needed room. Clears the vectors.
    fn reserve(&mut self) {
        self.clear_keeping_needs();
        self.names.reserve(self.needed[0]);
        self.headers.reserve(self.needed[1]);
        self.entries.reserve(self.needed[2]);
    }

    fn clear_keeping_needs(&mut self) {
        let needed = self.needed;
        self.clear();
        self.needed = needed;
    }

    fn into_objects(self) -> LoadedObjects {
        let (mut names, mut headers) = (&self.names[..], &self.headers[..]);
        let image = |copied: &CopiedEntry| {
            let (name, other_names) = names.split_at(copied.name_len);
            let (own_headers, other_headers) = headers.split_at(copied.header_count);
            (names, headers) = (other_names, other_headers);
            LoadedImage::new(OsStr::from_bytes(name).into(), copied.load_bias, own_headers.to_vec())
        };
        LoadedObjects { images: self.entries.iter().map(image).collect(), counts: self.counts }
    }
}

/// Calls `dl_iterate_phdr` with a closure, which must obey the rules for code under the linker's lock. A
/// panic is caught and resumed outside of the C frames.
fn iterate<B>(mut visit: impl FnMut(&Entry<'_>) -> ControlFlow<B>) -> Option<B> {
    struct State<'a, B> {
        visit: &'a mut dyn FnMut(&Entry<'_>) -> ControlFlow<B>,
        outcome: Option<std::thread::Result<B>>,
    }

    unsafe extern "C" fn call_back<B>(
        info: *mut libc::dl_phdr_info,
        size: libc::size_t,
        state: *mut c_void,
    ) -> c_int {
        // SAFETY: `state` is the `State` below, which nothing else uses during the iteration. `info` is valid
        // for `size` bytes, and glibc since 2.4 and musl since 1.1 pass the whole structure.
        let (info, state) = unsafe { (&*info, &mut *state.cast::<State<'_, B>>()) };
        // SAFETY: the dynamic linker passes a valid name (or null) and `dlpi_phnum` valid program headers,
        // which live during the callback. Both types are the gABI's Elf64_Phdr.
        let (name, headers) = unsafe {
            let name = if info.dlpi_name.is_null() { c"" } else { CStr::from_ptr(info.dlpi_name) };
            let headers = if info.dlpi_phdr.is_null() {
                &[]
            } else {
                let headers = info.dlpi_phdr.cast::<program_header64::ProgramHeader>();
                std::slice::from_raw_parts(headers, usize::from(info.dlpi_phnum))
            };
            (name.to_bytes(), headers)
        };
        let counts = if size >= size_of::<libc::dl_phdr_info>() {
            LoadCounts { loaded: info.dlpi_adds, unloaded: info.dlpi_subs }
        } else {
            LoadCounts::default()
        };
        let entry = Entry { name, load_bias: LoadBias(info.dlpi_addr), headers, counts };
        let visited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (state.visit)(&entry)));
        state.outcome = match visited {
            Ok(ControlFlow::Continue(())) => None,
            Ok(ControlFlow::Break(value)) => Some(Ok(value)),
            Err(panic) => Some(Err(panic)),
        };
        c_int::from(state.outcome.is_some())
    }

    let mut state = State { visit: &mut visit, outcome: None };
    // SAFETY: `call_back` gets the pointer to `state`, which outlives the call, and does not unwind.
    unsafe { libc::dl_iterate_phdr(Some(call_back::<B>), (&raw mut state).cast()) };
    state.outcome.map(|outcome| outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

#[cfg(test)]
mod tests {
    use otlpprof_core::address::RuntimeAddr;

    use super::*;

    #[test]
    fn a_panic_passes_through_the_iteration_and_releases_its_lock() {
        let caught = std::panic::catch_unwind(|| iterate::<()>(|_| panic!("in the visit")));
        assert!(caught.is_err());
        // Another thread could not visit the list if the lock were still held.
        std::thread::spawn(load_counts).join().unwrap();
    }

    #[test]
    fn a_list_that_grows_between_two_visits_is_copied_whole() {
        let here = RuntimeAddr(load_counts as *const () as u64);
        let entry =
            |name| Entry { name, load_bias: LoadBias(1), headers: &[], counts: LoadCounts::default() };
        let mut copies = Copies::default();
        copies.take(&entry(b"a"));
        assert!(!copies.are_complete());
        copies.reserve();
        copies.clear();
        copies.take(&entry(b"a"));
        assert!(copies.are_complete());
        copies.take(&entry(b"another one"));
        assert!(!copies.are_complete());
        assert!(loaded_objects().images.iter().any(|image| image.contains(here)));
    }

    /// On glibc, which unloads libraries.
    #[cfg(target_env = "gnu")]
    #[test]
    fn loading_is_counted() {
        let before = load_counts();
        assert!(before.loaded > 1);
        // SAFETY: the library has no constructor with effects; the handle is closed at once.
        unsafe {
            let handle = libc::dlopen(c"libBrokenLocale.so.1".as_ptr(), libc::RTLD_NOW);
            assert!(!handle.is_null(), "libBrokenLocale.so.1 belongs to glibc");
            let during = load_counts();
            assert!(during.loaded > before.loaded);
            libc::dlclose(handle);
            assert!(load_counts().unloaded > during.unloaded);
            assert_eq!(while_none_is_unloaded(during, || ()), None);
        }
    }
}

//! Loaded objects as the dynamic linker lists them, and reading one's image.

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::ops::{ControlFlow, Range};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use goblin::elf::program_header::program_header64;

use super::process_memory::ProcessMemory;
use super::program_header::ProgramHeader;
use crate::core::address::{ElfVaddr, LoadBias, RuntimeAddr};
use crate::core::memory::Memory;

/// How many objects the dynamic linker has loaded and unloaded in this process's life, in all namespaces.
/// musl counts loads only: it never unloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadCounts {
    /// Objects loaded.
    pub loaded: u64,
    /// Objects unloaded.
    pub unloaded: u64,
}

/// An object's image: its name, where it lies and its program headers, copied. Reading it is safe at any
/// time; what is read belongs to this object only as long as the object stays loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedImage {
    name: PathBuf,
    load_bias: LoadBias,
    program_headers: Vec<ProgramHeader>,
}

impl LoadedImage {
    /// An image that was mapped by whatever means.
    pub fn new(name: PathBuf, load_bias: LoadBias, program_headers: Vec<ProgramHeader>) -> Self {
        Self { name, load_bias, program_headers }
    }

    /// What the dynamic linker calls it: a path, absolute or not; empty for the main program;
    /// `linux-vdso.so.1` for the vDSO.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Run-time minus ELF virtual address.
    pub fn load_bias(&self) -> LoadBias {
        self.load_bias
    }

    /// All program headers, in the file's order.
    pub fn program_headers(&self) -> &[ProgramHeader] {
        &self.program_headers
    }

    /// The first program header of a kind.
    pub fn program_header(&self, kind: u32) -> Option<&ProgramHeader> {
        self.program_headers.iter().find(|header| header.kind == kind)
    }

    /// The readable `PT_LOAD` segment that `vaddr` is in.
    pub fn segment_at(&self, vaddr: ElfVaddr) -> Option<&ProgramHeader> {
        self.program_headers.iter().find(|header| header.is_readable() && header.vaddrs().contains(&vaddr))
    }

    /// How many bytes can be read from `vaddr` to the end of its segment; 0 if it is in none.
    pub fn readable_from(&self, vaddr: ElfVaddr) -> u64 {
        self.segment_at(vaddr).and_then(|segment| segment.bytes_from(vaddr)).unwrap_or(0)
    }

    /// Fills `bytes` from `vaddr` on; false if they are not all in one readable segment, or are not mapped.
    pub fn read_into(&self, vaddr: ElfVaddr, bytes: &mut [u8]) -> bool {
        bytes.len() as u64 <= self.readable_from(vaddr)
            && ProcessMemory.read_bytes(self.load_bias.to_runtime(vaddr).0, bytes)
    }

    /// Copies `len` bytes from `vaddr` on. `len` is checked against the segment before anything is allocated.
    pub fn read(&self, vaddr: ElfVaddr, len: u64) -> Option<Vec<u8>> {
        if len > self.readable_from(vaddr) {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(len).ok()?];
        self.read_into(vaddr, &mut bytes).then_some(bytes)
    }

    /// Reads eight bytes at `vaddr`.
    pub fn read_u64(&self, vaddr: ElfVaddr) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read_into(vaddr, &mut bytes).then(|| u64::from_ne_bytes(bytes))
    }

    /// The run-time addresses of a program header's memory.
    pub fn runtime_range(&self, header: &ProgramHeader) -> Range<RuntimeAddr> {
        let vaddrs = header.vaddrs();
        self.load_bias.to_runtime(vaddrs.start)..self.load_bias.to_runtime(vaddrs.end)
    }

    /// Whether one of its segments holds `address`.
    pub fn contains(&self, address: RuntimeAddr) -> bool {
        let vaddr = self.load_bias.to_elf(address);
        self.program_headers.iter().any(|header| header.is_load() && header.vaddrs().contains(&vaddr))
    }

    /// Calls `work` while the dynamic linker's lock keeps an image like this one loaded; `None` if there is
    /// none (any longer). What holds for [`for_each_loaded_object`]'s `visit` holds for `work`.
    pub fn while_loaded<T>(&self, work: impl FnOnce(&Self) -> T) -> Option<T> {
        let mut work = Some(work);
        for_each_loaded_object(|image| match work.take_if(|_| image == self) {
            Some(work) => ControlFlow::Break(work(image)),
            None => ControlFlow::Continue(()),
        })
    }

    /// The pages that the dynamic linker made read-only after relocation (`PT_GNU_RELRO`), as glibc and musl
    /// round them: a page that is only partly inside stays writable.
    pub fn relro(&self) -> Option<Range<RuntimeAddr>> {
        let range = self.runtime_range(self.program_header(libc::PT_GNU_RELRO)?);
        let page_mask = !(page_size() - 1);
        let pages = RuntimeAddr(range.start.0 & page_mask)..RuntimeAddr(range.end.0 & page_mask);
        (pages.start < pages.end).then_some(pages)
    }
}

/// The size of a page of memory, in bytes.
pub fn page_size() -> u64 {
    // SAFETY: sysconf has no preconditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// Calls `visit` with every loaded object of this namespace until it breaks, and returns what it broke with.
///
/// The lock of the dynamic linker's list is held meanwhile: no object comes or goes, so `visit` may also write to the
/// images, but glibc may be relocating one, or making its pages read-only, at the same time; and it must not load or unload objects, nor wait for a thread that might, and should be brief.
///
/// # Panics
/// If `visit` does; the lock is released first.
pub fn for_each_loaded_object<B>(mut visit: impl FnMut(&LoadedImage) -> ControlFlow<B>) -> Option<B> {
    for_each_counted(|image, _| visit(image))
}

/// The same, with the counts as they are during this iteration.
pub(super) fn for_each_counted<B>(
    mut visit: impl FnMut(&LoadedImage, LoadCounts) -> ControlFlow<B>,
) -> Option<B> {
    iterate(|info, counts| {
        // SAFETY: the dynamic linker passes a valid name (or none) and `dlpi_phnum` valid program headers,
        // which live while the call-back runs. Both types are the gABI's Elf64_Phdr.
        let (name, headers) = unsafe {
            let name = if info.dlpi_name.is_null() { c"" } else { CStr::from_ptr(info.dlpi_name) };
            let headers = if info.dlpi_phdr.is_null() {
                &[]
            } else {
                let headers = info.dlpi_phdr.cast::<program_header64::ProgramHeader>();
                std::slice::from_raw_parts(headers, usize::from(info.dlpi_phnum))
            };
            (name, headers)
        };
        let image = LoadedImage {
            name: OsStr::from_bytes(name.to_bytes()).into(),
            load_bias: LoadBias(info.dlpi_addr),
            program_headers: headers.iter().map(|&header| ProgramHeader::from(&header.into())).collect(),
        };
        visit(&image, counts)
    })
}

/// How often objects came and went until now. Much cheaper than looking at them.
pub fn load_counts() -> LoadCounts {
    iterate(|_, counts| ControlFlow::Break(counts)).unwrap_or_default()
}

/// `dl_iterate_phdr` with a closure; a panic is carried across the C frames.
fn iterate<B>(mut visit: impl FnMut(&libc::dl_phdr_info, LoadCounts) -> ControlFlow<B>) -> Option<B> {
    struct State<'a, B> {
        visit: &'a mut dyn FnMut(&libc::dl_phdr_info, LoadCounts) -> ControlFlow<B>,
        outcome: Option<std::thread::Result<B>>,
    }

    unsafe extern "C" fn call_back<B>(
        info: *mut libc::dl_phdr_info,
        size: libc::size_t,
        state: *mut c_void,
    ) -> c_int {
        // SAFETY: `state` is the `State` below, which nothing else uses during the iteration; `info` is valid
        // for `size` bytes, and glibc and musl have given the whole structure since 2.4 and 1.1.
        let (info, state) = unsafe { (&*info, &mut *state.cast::<State<'_, B>>()) };
        let counts = if size >= size_of::<libc::dl_phdr_info>() {
            LoadCounts { loaded: info.dlpi_adds, unloaded: info.dlpi_subs }
        } else {
            LoadCounts::default()
        };
        let visited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (state.visit)(info, counts)));
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
    use super::*;

    fn image_with_this_function() -> LoadedImage {
        let here = RuntimeAddr(image_with_this_function as *const () as u64);
        for_each_loaded_object(|image| {
            if image.contains(here) { ControlFlow::Break(image.clone()) } else { ControlFlow::Continue(()) }
        })
        .unwrap()
    }

    #[test]
    fn lists_the_object_that_this_code_is_in() {
        let image = image_with_this_function();
        let header = image.program_header(libc::PT_LOAD).unwrap();
        assert_eq!(image.read(header.vaddr, 4).unwrap(), b"\x7fELF");
    }

    #[test]
    fn a_read_stays_in_one_segment() {
        let image = image_with_this_function();
        let first = image.program_header(libc::PT_LOAD).unwrap();
        let last_byte = ElfVaddr(first.vaddr.0 + first.memory_size - 1);
        assert_eq!(image.read(last_byte, 1).map(|bytes| bytes.len()), Some(1));
        assert_eq!(image.read(last_byte, 2), None);
        assert_eq!(image.read(last_byte, u64::MAX), None);
        assert_eq!(image.read_u64(ElfVaddr(u64::MAX - 3)), None);
    }

    #[test]
    fn a_panic_passes_through_the_iteration_and_releases_its_lock() {
        let caught = std::panic::catch_unwind(|| for_each_loaded_object::<()>(|_| panic!("in the visit")));
        assert!(caught.is_err());
        // Another thread could not iterate if the lock were still held.
        std::thread::spawn(load_counts).join().unwrap();
    }

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
        }
    }
}

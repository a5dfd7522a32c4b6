//! This machine's vDSO as a file. The kernel maps this library into each process; it need not be in any file.
//!
//! In: the folder of what is kept to be faster the next time. Out: the path of a copy in that folder.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use otlpprof_elf::objects::memory_maps::MemoryMaps;
use otlpprof_incomplete_file::IncompleteFile;

use super::examined::build_id_of;

/// The vDSO's path in profiles.
pub(super) const NAME: &str = "[vdso]";

/// The most bytes of a vDSO, far above the usual two pages.
const MOST_BYTES: u64 = 1 << 20;

/// The path of a copy of this process's vDSO. `None` if there is no vDSO with a build-id, or the folder
/// cannot be written.
pub(super) fn copy_in(cache: &Path) -> Option<PathBuf> {
    let image = image().ok()?;
    let path = cache.join("vdso").join(format!("{}.so", build_id_of(&&image[..])?));
    if fs::read(&path).is_ok_and(|there| there == image) {
        return Some(path);
    }
    match keep(&image, &path) {
        Ok(()) => Some(path),
        Err(error) => {
            log::debug!("{}: {error}", path.display());
            None
        }
    }
}

fn image() -> io::Result<Vec<u8>> {
    let memory =
        MemoryMaps::read().memory_called(NAME).filter(|memory| memory.end - memory.start <= MOST_BYTES);
    let memory = memory.ok_or(io::ErrorKind::NotFound)?;
    let mut image = vec![0; (memory.end - memory.start) as usize];
    File::open("/proc/self/mem")?.read_exact_at(&mut image, memory.start)?;
    Ok(image)
}

fn keep(image: &[u8], path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)?;
    let mut incomplete = IncompleteFile::inside(folder)?;
    incomplete.file.write_all(image)?;
    incomplete.persist(path)
}

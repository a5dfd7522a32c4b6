//! Lists and reads all loaded objects once.

use otlpprof_core::address::{ElfVaddr, LoadBias, RuntimeAddr};
use otlpprof_core::build_id::BuildId;
use otlpprof_core::memory::Memory;
use otlpprof_core::object::IdentityWord;

use crate::build_id;
use crate::file::ElfFile;
use crate::image::{LoadedImage, page_size};
use crate::loader_list::{LoadCounts, LoadedObjects, TRIES, load_counts, loaded_objects};
use crate::process_memory::ProcessMemory;

/// The properties of one object at one scan. Two equal sightings count as the same loading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The object's image.
    pub image: LoadedImage,
    /// The build-id in the image's memory.
    pub build_id: Option<BuildId>,
    /// The word that a handler compares to detect another object in this one's place.
    pub identity: IdentityWord,
    /// Whether the object is the vDSO.
    pub is_vdso: bool,
}

/// All objects with code, and the load counts.
#[derive(Debug, Default)]
pub struct Scan {
    /// The objects, the main program first.
    pub objects: Vec<Sighting>,
    /// The load counts at the moment of this list.
    pub counts: LoadCounts,
}

/// Scans all loaded objects. Repeats the scan if an object was unloaded while the images were read.
pub fn scan() -> Scan {
    // SAFETY: getauxval has no preconditions.
    let vdso = RuntimeAddr(unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) });
    let mut found = Scan::default();
    for _ in 0..TRIES {
        let LoadedObjects { images, counts } = loaded_objects();
        let objects = images.iter().filter_map(|image| sight(image, vdso)).collect();
        found = Scan { objects, counts };
        if load_counts().unloaded == counts.unloaded {
            break;
        }
    }
    if vdso.0 != 0 && !found.objects.iter().any(|object| object.is_vdso) {
        found.objects.extend(vdso_image(vdso).and_then(|image| sight(&image, vdso)));
    }
    found
}

/// The sighting of an object; `None` if the object has no code or cannot be read.
fn sight(image: &LoadedImage, vdso: RuntimeAddr) -> Option<Sighting> {
    image.program_headers().iter().find(|header| header.is_executable())?;
    let build_id = build_id::of_image(image).ok();
    let in_note = build_id.filter(|found| found.id.as_bytes().len() >= 8).map(|found| found.vaddr);
    let at = in_note.or_else(|| section_table_offset_field(image)).or_else(|| first_code(image))?;
    Some(Sighting {
        image: image.clone(),
        build_id: build_id.map(|found| found.id),
        identity: IdentityWord { address: image.load_bias().to_runtime(at), value: image.read_u64(at)? },
        is_vdso: vdso.0 != 0 && image.contains(vdso),
    })
}

/// The address of `e_shoff` in memory, if the ELF header is loaded.
fn section_table_offset_field(image: &LoadedImage) -> Option<ElfVaddr> {
    const E_SHOFF: u64 = 40;
    let first = image.program_headers().iter().find(|header| header.is_readable() && header.offset.0 == 0)?;
    Some(ElfVaddr(first.vaddr.0.checked_add(E_SHOFF)?))
}

fn first_code(image: &LoadedImage) -> Option<ElfVaddr> {
    Some(image.program_headers().iter().find(|header| header.is_executable())?.vaddr)
}

/// The vDSO's image, read from its ELF header, for dynamic linkers that do not list the vDSO.
fn vdso_image(start: RuntimeAddr) -> Option<LoadedImage> {
    let mut page = vec![0; page_size() as usize];
    if !ProcessMemory.read_bytes(start.0, &mut page) {
        return None;
    }
    let headers = ElfFile::parse(&page[..]).ok()?.program_headers().ok()?;
    let first = headers.iter().find(|header| header.is_load())?.vaddr;
    Some(LoadedImage::new("linux-vdso.so.1".into(), LoadBias(start.0.wrapping_sub(first.0)), headers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vdso_is_the_same_by_list_and_by_header() {
        let listed = scan().objects.into_iter().find(|object| object.is_vdso).unwrap();
        // SAFETY: getauxval has no preconditions.
        let start = RuntimeAddr(unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) });
        let by_header = vdso_image(start).unwrap();
        assert_eq!(by_header, listed.image);
        assert_eq!(sight(&by_header, start).unwrap(), listed);
    }

    #[test]
    fn identity_words_are_still_in_memory() {
        for object in scan().objects {
            assert_eq!(ProcessMemory.load_u64(object.identity.address.0), Some(object.identity.value));
        }
    }
}

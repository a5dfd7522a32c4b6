//! GOT slots of imported functions: compared with readelf and with the slots' contents, and tested by writing
//! one.

use std::collections::BTreeSet;
use std::path::Path;

use otlpprof_core::address::{ElfVaddr, FileOffset, LoadBias, RuntimeAddr};
use otlpprof_elf::arch::native;
use otlpprof_elf::dynamic::{DynamicError, tag};
use otlpprof_elf::image::LoadedImage;
use otlpprof_elf::program_header::ProgramHeader;
use otlpprof_elf::relocations::{ImportSlots, SlotKind, import_slots};
use otlpprof_testkit::commands::output_of;
use otlpprof_testkit::elf_objects::{Library, compile_library, image_of, libjvms};

const NAMES: &[&str] = &["pthread_create", "malloc", "no_such_function", "dlopen"];

/// The ELF virtual addresses and names of the slots in the output of `readelf -r`.
fn slots_of_readelf(path: &Path) -> BTreeSet<(u64, String)> {
    let kinds = ["_JUMP_SLO", "_GLOB_DAT", "_X86_64_64", "_AARCH64_ABS64"];
    output_of("readelf", &["-rW", path.to_str().unwrap()])
        .lines()
        .filter_map(|line| {
            // Offset, info, type, symbol's value, symbol's name[@version], "+", addend
            let [offset, _, kind, _, name, _, addend] = line.split_whitespace().collect::<Vec<_>>()[..]
            else {
                return None;
            };
            let name = name.split('@').next().unwrap();
            let plain = kinds.iter().any(|part| kind.contains(part)) && addend == "0";
            (plain && NAMES.contains(&name))
                .then(|| (u64::from_str_radix(offset, 16).unwrap(), name.to_owned()))
        })
        .collect()
}

#[test]
fn finds_the_import_slots_of_libjvm_that_readelf_finds() {
    for path in libjvms() {
        let _library = Library::open(&path);
        let image = image_of(&path).unwrap();
        let found = import_slots(&image, NAMES).unwrap();
        let ours: BTreeSet<_> = found
            .slots
            .iter()
            .map(|slot| (image.load_bias().to_elf(slot.address).0, NAMES[slot.symbol].to_owned()))
            .collect();
        assert_eq!(ours, slots_of_readelf(&path), "{}", path.display());
        assert_eq!(ours.len(), found.slots.len());
        assert!(ours.iter().any(|(_, name)| name == "pthread_create"), "libjvm creates threads");
    }
}

/// A function that is both called and stored gets one GOT entry for both uses, so two functions are used
/// here.
const CALLER: &str = "
    #include <stdlib.h>
    #include <strings.h>
    int call_abs(int value) { return abs(value); }
    int (*taken)(int) = ffs;
    int (*take(void))(int) { return ffs; }
    int call_taken(int value) { return taken(value); }
";

extern "C" fn replacement(value: i32) -> i32 {
    value + 1000
}

#[test]
fn writing_the_slots_redirects_every_way_of_calling() {
    let directory = tempfile::tempdir().unwrap();
    // With immediate binding the whole GOT is read-only after relocation. With lazy binding the PLT's part
    // stays writable.
    for (name, binding) in [("libnow.so", "-Wl,-z,now"), ("liblazy.so", "-Wl,-z,lazy")] {
        let path = compile_library(directory.path(), name, CALLER, &["-fno-builtin", binding]);
        let library = Library::open(&path);
        let image = image_of(&path).unwrap();
        let found = import_slots(&image, &["abs", "ffs"]).unwrap();

        let kinds: BTreeSet<_> = found.slots.iter().map(|slot| format!("{:?}", slot.kind)).collect();
        assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["Data", "GlobDat", "JumpSlot"], "{name}");
        let relro = found.relro.clone().expect("linkers make a RELRO segment by default");
        let in_relro =
            |kind| relro.contains(&found.slots.iter().find(|slot| slot.kind == kind).unwrap().address);
        assert!(in_relro(SlotKind::GlobDat));
        assert_eq!(in_relro(SlotKind::JumpSlot), binding == "-Wl,-z,now");

        // SAFETY: the symbols are functions of CALLER with these signatures. The slots belong to its library,
        // which stays loaded.
        unsafe {
            let function = |name| {
                std::mem::transmute::<*const (), extern "C" fn(i32) -> i32>(library.symbol(name) as *const ())
            };
            assert_eq!((function("call_abs")(-5), function("call_taken")(8)), (5, 4));
            write_slots(&found, replacement as *const () as u64);
            assert_eq!(function("call_abs")(-5), 995);
            assert_eq!(function("call_taken")(8), 1008);
            let take = std::mem::transmute::<*const (), extern "C" fn() -> *const ()>(
                library.symbol("take") as *const ()
            );
            assert_eq!(take(), replacement as *const ());
        }
    }
}

/// # Safety
/// The slots' object must stay loaded, and no other thread may write to its RELRO pages.
unsafe fn write_slots(found: &ImportSlots, value: u64) {
    let protect = |protection| {
        if let Some(relro) = &found.relro {
            let len = (relro.end.0 - relro.start.0) as usize;
            // SAFETY: the RELRO range is whole pages of the object, which stays loaded by this function's
            // contract.
            assert_eq!(unsafe { libc::mprotect(relro.start.0 as *mut _, len, protection) }, 0);
        }
    };
    protect(libc::PROT_READ | libc::PROT_WRITE);
    for slot in &found.slots {
        // SAFETY: the slot is a word of the object's GOT or data, which stays loaded by this function's
        // contract and has just been made writable.
        unsafe { (slot.address.0 as *mut u64).write_volatile(value) };
    }
    protect(libc::PROT_READ);
}

/// An image in memory: strings, symbols, relocations, slots and the dynamic section in one segment.
struct Generated {
    bytes: Vec<u64>,
    tags: Vec<(u64, u64)>,
}

/// The ELF virtual addresses of the image's parts.
const STRINGS: u64 = 0x0;
const SYMBOLS: u64 = 0x20;
const RELA: u64 = 0x80;
const SLOTS: u64 = 0x100;
const DYNAMIC: u64 = 0x200;
const END: u64 = 0x400;

impl Generated {
    /// An image with the symbols `wanted` and `other` and these relocations: slot, symbol, type, addend.
    fn new(relocations: &[(u64, u64, u32, u64)]) -> Self {
        let mut image = Self { bytes: vec![0; (END / 8) as usize], tags: Vec::new() };
        let strings = b"\0wanted\0other\0\0\0";
        for (word, chunk) in strings.chunks_exact(8).enumerate() {
            image.put(STRINGS + 8 * word as u64, u64::from_ne_bytes(chunk.try_into().unwrap()));
        }
        image.put(SYMBOLS + 24, 1); // st_name of symbol 1
        image.put(SYMBOLS + 48, 8); // st_name of symbol 2
        for (index, &(slot, symbol, kind, addend)) in relocations.iter().enumerate() {
            let at = RELA + 24 * index as u64;
            image.put(at, slot);
            image.put(at + 8, symbol << 32 | u64::from(kind));
            image.put(at + 16, addend);
        }
        image.tags = vec![
            (tag::STRTAB, STRINGS),
            (tag::STRSZ, strings.len() as u64),
            (tag::SYMTAB, SYMBOLS),
            (tag::RELA, RELA),
            (tag::RELASZ, 24 * relocations.len() as u64),
        ];
        image
    }

    fn put(&mut self, at: u64, value: u64) {
        self.bytes[(at / 8) as usize] = value;
    }

    fn set(mut self, tag: u64, value: u64) -> Self {
        self.tags.retain(|entry| entry.0 != tag);
        self.tags.push((tag, value));
        self
    }

    /// Searches for `wanted`. Returns its slots as ELF virtual addresses.
    fn slots_of_wanted(mut self) -> Result<Vec<(u64, SlotKind)>, DynamicError> {
        for (index, (tag, value)) in self.tags.clone().into_iter().enumerate() {
            self.put(DYNAMIC + 16 * index as u64, tag);
            self.put(DYNAMIC + 16 * index as u64 + 8, value);
        }
        let header = |kind, vaddr, size| ProgramHeader {
            kind,
            flags: libc::PF_R | libc::PF_W,
            offset: FileOffset(vaddr),
            vaddr: ElfVaddr(vaddr),
            file_size: size,
            memory_size: size,
            align: 8,
        };
        let headers = vec![header(libc::PT_LOAD, 0, END), header(libc::PT_DYNAMIC, DYNAMIC, END - DYNAMIC)];
        let bias = LoadBias(self.bytes.as_ptr() as u64);
        let found = import_slots(&LoadedImage::new("generated".into(), bias, headers), &["wanted"])?;
        let slots = found.slots.iter();
        Ok(slots.map(|slot| (bias.to_elf(RuntimeAddr(slot.address.0)).0, slot.kind)).collect())
    }
}

#[test]
fn takes_the_symbols_and_relocation_types_that_hold_its_address() {
    let found = Generated::new(&[
        (SLOTS, 1, native::R_GLOB_DAT, 0),
        (SLOTS + 8, 2, native::R_GLOB_DAT, 0),
        (SLOTS + 16, 1, native::R_ABSOLUTE, 0),
        (SLOTS + 24, 1, native::R_ABSOLUTE, 8), // an address 8 bytes after the function
        (SLOTS + 32, 1, 0xdead, 0),
    ]);
    let slots = found.slots_of_wanted().unwrap();
    assert_eq!(slots, [(SLOTS, SlotKind::GlobDat), (SLOTS + 16, SlotKind::Data)]);
}

#[test]
fn a_slot_that_two_relocations_fill_counts_once_and_by_the_later_one() {
    let slots = |first, second| {
        let relocations = [(SLOTS, first, native::R_GLOB_DAT, 0), (SLOTS, second, native::R_GLOB_DAT, 0)];
        Generated::new(&relocations).slots_of_wanted().unwrap()
    };
    assert_eq!(slots(1, 1), [(SLOTS, SlotKind::GlobDat)]);
    assert_eq!(slots(2, 1), [(SLOTS, SlotKind::GlobDat)]);
    assert_eq!(slots(1, 2), []);
}

#[test]
fn slots_outside_the_image_or_misaligned_are_not_given_out() {
    let found = Generated::new(&[
        (END, 1, native::R_GLOB_DAT, 0),
        (END - 4, 1, native::R_GLOB_DAT, 0),
        (u64::MAX - 3, 1, native::R_GLOB_DAT, 0),
        (SLOTS + 4, 1, native::R_GLOB_DAT, 0),
    ]);
    assert_eq!(found.slots_of_wanted().unwrap(), []);
}

#[test]
fn tables_that_leave_the_image_are_errors() {
    let one = [(SLOTS, 1, native::R_GLOB_DAT, 0)];
    let outside = |tag, at, size| Err(DynamicError::TableOutside { tag, at: ElfVaddr(at), size });
    let huge = u64::MAX - 7;
    assert_eq!(Generated::new(&one).set(tag::RELASZ, huge).slots_of_wanted(), outside(tag::RELA, RELA, huge));
    assert_eq!(Generated::new(&one).set(tag::STRTAB, END).slots_of_wanted(), outside(tag::STRTAB, END, 16));
    assert_eq!(Generated::new(&one).set(tag::STRSZ, 0).slots_of_wanted(), Ok(vec![]));
    let far_symbol = Generated::new(&[(SLOTS, 0xffff_ffff, native::R_GLOB_DAT, 0)]);
    assert_eq!(far_symbol.slots_of_wanted(), outside(tag::SYMTAB, SYMBOLS, 24 << 32));
    let mut without_strings = Generated::new(&one);
    without_strings.tags.retain(|entry| entry.0 != tag::STRSZ);
    assert_eq!(without_strings.slots_of_wanted(), Err(DynamicError::MissingTag { tag: tag::STRSZ }));
}

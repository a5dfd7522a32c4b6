//! Build-ids and htlhashes: of real objects, compared with readelf and sha256sum, and of generated files.

use std::path::Path;

use crate::generated_elf::{GeneratedElf, Part};
use otlpprof_core::address::{ElfVaddr, FileOffset, LoadBias};
use otlpprof_core::build_id::BuildId;
use otlpprof_elf::build_id::{self, BuildIdError};
use otlpprof_elf::file::{FileError, HeaderTable};
use otlpprof_elf::htlhash::HtlHash;
use otlpprof_elf::image::LoadedImage;
use otlpprof_elf::notes::NoteError;
use otlpprof_elf::program_header::ProgramHeader;
use otlpprof_elf::source::FileSource;
use otlpprof_testkit::commands::output_of;
use otlpprof_testkit::elf_objects::{Library, image_at, image_of, libc_path, libjvms};

const ID: [u8; 20] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 255];

fn id() -> BuildId {
    BuildId::new(&ID).unwrap()
}

/// Files of 64 and 32 bits, little and big endian.
fn all_forms() -> impl Iterator<Item = GeneratedElf> {
    [(true, false), (true, true), (false, false), (false, true)]
        .into_iter()
        .map(|(is_64, big_endian)| GeneratedElf::new(is_64, big_endian))
}

fn build_id(elf: &GeneratedElf) -> Result<BuildId, BuildIdError> {
    build_id::of_source(&elf.build()[..])
}

/// The build-id of the same bytes as a loaded image, at an unaligned address.
fn build_id_in_memory(elf: &GeneratedElf) -> Result<BuildId, BuildIdError> {
    let file = elf.build();
    let headers = otlpprof_elf::file::ElfFile::parse(&file[..]).unwrap().program_headers().unwrap();
    let whole_file = ProgramHeader {
        kind: libc::PT_LOAD,
        flags: libc::PF_R,
        offset: FileOffset(0),
        vaddr: ElfVaddr(0),
        file_size: file.len() as u64,
        memory_size: file.len() as u64,
        align: 1,
    };
    let memory = [&[0; 3], &file[..]].concat();
    let bias = LoadBias(memory[3..].as_ptr() as u64);
    let headers = [headers, vec![whole_file]].concat();
    let found = build_id::of_image(&LoadedImage::new("generated".into(), bias, headers))?;
    let at = found.vaddr.0 as usize;
    assert_eq!(&file[at..at + found.id.as_bytes().len()], found.id.as_bytes());
    Ok(found.id)
}

#[test]
fn found_in_every_class_and_byte_order() {
    for elf in all_forms() {
        let note = elf.build_id_note(&ID);
        assert_eq!(build_id(&elf.notes(note)).unwrap(), id());
    }
}

#[test]
fn found_in_memory_too() {
    let elf = GeneratedElf::new(true, cfg!(target_endian = "big"));
    let note = elf.build_id_note(&ID);
    assert_eq!(build_id_in_memory(&elf.notes(note)).unwrap(), id());
}

#[test]
fn found_among_several_notes_and_segments() {
    for elf in all_forms() {
        let property = elf.note(b"GNU\0", 5, &[7; 16], 8);
        let notes = [
            elf.note(b"stapsdt\0", 3, &[1; 5], 4), // an odd length, another owner of the same type
            elf.note(b"GNU\0", 1, &[0; 16], 4),    // the same owner, the ABI tag
            elf.build_id_note(&ID),
            elf.build_id_note(&[0xee; 20]), // the first one counts
        ];
        let elf = elf
            .segment(libc::PT_NOTE, 8, property)
            .segment(libc::PT_LOAD, 4096, vec![1; 8])
            .notes(notes.concat());
        assert_eq!(build_id(&elf).unwrap(), id());
    }
}

#[test]
fn found_after_an_8_aligned_property_note_in_the_same_segment() {
    // ld.bfd puts .note.gnu.property and .note.gnu.build-id into one PT_NOTE segment if both are aligned to
    // 8.
    for elf in all_forms() {
        let notes = [elf.note(b"GNU\0", 5, &[7; 12], 8), elf.note(b"GNU\0", 3, &ID, 8)].concat();
        assert_eq!(build_id(&elf.segment(libc::PT_NOTE, 8, notes)).unwrap(), id());
    }
}

#[test]
fn found_in_a_note_section_where_no_segment_has_notes() {
    const SHT_NOTE: u32 = 7;
    for mut elf in all_forms() {
        let bytes = elf.build_id_note(&ID);
        elf.sections = vec![Part { kind: SHT_NOTE, align: 4, bytes, declared: None }];
        assert_eq!(build_id(&elf).unwrap(), id());
    }
}

#[test]
fn program_headers_may_lie_at_any_offset() {
    for mut elf in all_forms() {
        let note = elf.build_id_note(&ID);
        elf = elf.notes(note);
        for phoff in [65, 67, 127, 1001] {
            elf.phoff = Some(phoff);
            assert_eq!(build_id(&elf).unwrap(), id(), "e_phoff {phoff}");
        }
    }
}

#[test]
fn an_object_without_notes_is_reported() {
    for elf in all_forms() {
        assert!(matches!(build_id(&elf), Err(BuildIdError::NoNotes)));
        let loads_only = elf.clone().segment(libc::PT_LOAD, 8, vec![0; 32]);
        assert!(matches!(build_id(&loads_only), Err(BuildIdError::NoNotes)));
        let others = elf.note(b"GNU\0", 1, &[0; 16], 4);
        assert!(matches!(build_id(&elf.clone().notes(others)), Err(BuildIdError::NoBuildId)));
        let empty = elf.clone().notes(vec![]);
        assert!(matches!(build_id(&empty), Err(BuildIdError::NoBuildId)));
    }
}

#[test]
fn a_build_id_must_have_a_plausible_length() {
    for elf in all_forms() {
        for len in [0, 65, 300] {
            let note = elf.build_id_note(&vec![1; len]);
            let found = build_id(&elf.clone().notes(note));
            assert!(matches!(found, Err(BuildIdError::Length { len: given }) if given == len), "{found:?}");
        }
        for len in [1, 8, 16, 20, 64] {
            let note = elf.build_id_note(&vec![1; len]);
            assert_eq!(build_id(&elf.clone().notes(note)).unwrap().as_bytes(), vec![1; len]);
        }
    }
}

/// A note header with these sizes, followed by 8 bytes.
fn note_that_lies(elf: &GeneratedElf, name_size: u32, description_size: u32) -> Vec<u8> {
    let word = |value: u32| if elf.big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    [word(name_size), word(description_size), word(3), *b"GNU\0", [0; 4]].concat()
}

#[test]
fn note_sizes_that_leave_the_segment_are_errors() {
    for elf in all_forms() {
        for size in [9, 0x1000, 0x7fff_ffff, 0xffff_fff4, u32::MAX] {
            let long_name = elf.clone().notes(note_that_lies(&elf, size, 4));
            assert!(matches!(
                build_id(&long_name),
                Err(BuildIdError::Note(NoteError::NameOutside { size: given, left: 8, .. }))
                    if given == size
            ));
            let long_description = elf.clone().notes(note_that_lies(&elf, 4, size));
            assert!(matches!(
                build_id(&long_description),
                Err(BuildIdError::Note(NoteError::DescriptionOutside { size: given, left: 4, .. }))
                    if given == size
            ));
        }
        let cut = elf.clone().notes(elf.build_id_note(&ID)[..11].to_vec());
        assert!(matches!(
            build_id(&cut),
            Err(BuildIdError::Note(NoteError::TruncatedHeader { at: 0, left: 11 }))
        ));
    }
}

#[test]
fn a_malformed_segment_does_not_hide_the_next_one() {
    for elf in all_forms() {
        let lies = note_that_lies(&elf, u32::MAX, u32::MAX);
        let note = elf.build_id_note(&ID);
        assert_eq!(build_id(&elf.notes(lies).notes(note)).unwrap(), id());
    }
}

#[test]
fn note_segments_outside_the_file_or_the_image_are_errors() {
    for elf in all_forms() {
        let note = elf.build_id_note(&ID);
        let len = elf.clone().notes(note.clone()).build().len() as u64;
        let all_ones = if elf.is_64 { u64::MAX } else { u64::from(u32::MAX) };
        for declared in [(len, 1), (len - 1, 2), (0, all_ones), (all_ones, 36), (all_ones, all_ones)] {
            let mut lying = elf.clone().notes(note.clone());
            lying.segments[0].declared = Some(declared);
            let found = build_id(&lying);
            assert!(
                matches!(found, Err(BuildIdError::NotesOutside { at, size }) if (at, size) == declared),
                "{declared:?}: {found:?}"
            );
            if elf.is_64 && elf.big_endian == cfg!(target_endian = "big") {
                assert!(matches!(build_id_in_memory(&lying), Err(BuildIdError::NotesOutside { .. })));
            }
        }
    }
}

#[test]
fn a_file_cut_anywhere_never_gives_a_wrong_build_id() {
    for elf in all_forms() {
        let note = elf.build_id_note(&ID);
        let whole = elf.notes(note).build();
        for len in 0..whole.len() {
            match build_id::of_source(&whole[..len]) {
                // The padding after the note, up to a multiple of 8, may be missing.
                Ok(found) => assert!(found == id() && len + 8 > whole.len()),
                Err(BuildIdError::File(FileError::NotElf)) => assert!(len < 4),
                Err(BuildIdError::File(FileError::TruncatedHeader { len: given })) => {
                    assert_eq!(given, len as u64);
                    assert!(len < if elf_is_64(&whole) { 64 } else { 52 });
                }
                Err(BuildIdError::File(FileError::TableOutside {
                    table: HeaderTable::ProgramHeader,
                    ..
                })) => {}
                Err(BuildIdError::NotesOutside { .. }) => {}
                Err(other) => panic!("{len} bytes: {other}"),
            }
        }
    }
}

fn elf_is_64(file: &[u8]) -> bool {
    file[4] == 2
}

#[test]
fn program_header_tables_that_lie_are_errors() {
    for elf in all_forms() {
        let note = elf.build_id_note(&ID);
        let elf = elf.notes(note);
        let many = GeneratedElf { phnum: Some(u16::MAX), ..elf.clone() };
        assert!(matches!(
            build_id(&many),
            Err(BuildIdError::File(FileError::TableOutside { count: u16::MAX, .. }))
        ));
        for size in [0, 1, 31, 57, u16::MAX] {
            let odd = GeneratedElf { phentsize: Some(size), ..elf.clone() };
            assert!(matches!(
                build_id(&odd),
                Err(BuildIdError::File(FileError::EntrySize { size: given, .. })) if given == size
            ));
        }
        let mut far = elf.build();
        let phoff = if elf.is_64 { 32..40 } else { 28..32 };
        far[phoff].fill(0xff);
        assert!(matches!(
            build_id::of_source(&far[..]),
            Err(BuildIdError::File(FileError::TableOutside { .. }))
        ));
        for ident_byte in [4, 5] {
            let mut unknown = elf.build();
            unknown[ident_byte] = 9;
            assert!(matches!(
                build_id::of_source(&unknown[..]),
                Err(BuildIdError::File(FileError::UnknownIdent { .. }))
            ));
        }
    }
}

#[test]
fn missing_files_other_files_and_pipes_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let missing = build_id::of_file(&directory.path().join("missing.so"));
    assert!(matches!(
        missing,
        Err(BuildIdError::File(FileError::Io(error))) if error.kind() == std::io::ErrorKind::NotFound
    ));
    for content in [&b""[..], b"\x7fEL", b"#!/bin/sh\n", &[0; 4096]] {
        let path = directory.path().join("file");
        std::fs::write(&path, content).unwrap();
        assert!(matches!(build_id::of_file(&path), Err(BuildIdError::File(FileError::NotElf))));
    }
    let pipe = directory.path().join("pipe");
    output_of("mkfifo", &[pipe.to_str().unwrap()]);
    assert!(matches!(build_id::of_file(&pipe), Err(BuildIdError::File(FileError::Io(_)))));
    assert!(matches!(build_id::of_file(directory.path()), Err(BuildIdError::File(FileError::Io(_)))));
}

fn build_id_of_readelf(path: &Path) -> Option<String> {
    let notes = output_of("readelf", &["-nW", path.to_str().unwrap()]);
    notes.lines().find_map(|line| Some(line.split_once("Build ID: ")?.1.trim().to_owned()))
}

/// Checks that the file and, if it is loaded, its image have the build-id that readelf prints, or none.
fn assert_agrees_with_readelf(path: &Path, image: &LoadedImage) {
    let expected = build_id_of_readelf(path);
    let in_file = build_id::of_file(path).ok().map(|id| id.to_string());
    let in_memory = build_id::of_image(image).ok().map(|found| found.id.to_string());
    assert_eq!(in_file, expected, "{}", path.display());
    assert_eq!(in_memory, expected, "{}", path.display());
}

#[test]
fn real_objects_agree_with_readelf() {
    for path in libjvms() {
        let _library = Library::open(&path);
        assert_agrees_with_readelf(&path, &image_of(&path).unwrap());
    }
    for library in
        [otlpprof_testkit::products::DDPROFTEST, otlpprof_testkit::products::DDPROFTEST_FP].map(Path::new)
    {
        let _library = Library::open(library);
        assert_agrees_with_readelf(library, &image_of(library).unwrap());
        assert!(build_id_of_readelf(library).is_some(), "libddproftest has a build-id by construction");
    }
    assert_agrees_with_readelf(&libc_path(), &image_at(libc::getpid as *const () as u64));
    let this = std::env::current_exe().unwrap();
    assert_agrees_with_readelf(&this, &image_at(build_id_of_readelf as *const () as u64));
    assert!(build_id_of_readelf(&libc_path()).is_some(), "what readelf prints is understood");
}

#[test]
fn the_vdso_has_a_build_id() {
    // SAFETY: getauxval has no preconditions.
    let vdso = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    assert_ne!(vdso, 0, "this kernel maps no vDSO");
    let image = image_at(vdso);
    let found = build_id::of_image(&image).unwrap();
    // The vDSO has no file, but its image is a complete ELF file.
    let len = image.readable_from(image.load_bias().to_elf(otlpprof_core::address::RuntimeAddr(vdso)));
    let bytes = image.read(ElfVaddr(0), len).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("vdso.so");
    std::fs::write(&copy, bytes).unwrap();
    assert_eq!(Some(found.id.to_string()), build_id_of_readelf(&copy));
}

#[test]
fn htlhash_is_the_sha256_of_head_tail_and_length() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("object");
    for len in [0u64, 1, 4095, 4096, 4097, 8191, 8192, 100_000] {
        let content: Vec<u8> = (0..len).map(|index| (index % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let script = format!(
            "import hashlib; c=open({path:?},'rb').read(); \
             print(hashlib.sha256(c[:4096]+c[-4096:]+len(c).to_bytes(8,'big')).hexdigest()[:32])"
        );
        let expected = output_of("python3", &["-c", &script]);
        let found = HtlHash::of(&FileSource::open(&path).unwrap()).unwrap();
        assert_eq!(found.to_string(), expected.trim(), "{len} bytes");
        assert_eq!(HtlHash::of(&content[..]).unwrap(), found);
    }
}

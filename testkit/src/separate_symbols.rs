//! Takes symbols out of libraries, as distributions do: into debug files, and into MiniDebugInfo.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs a program, which must succeed, and returns its output.
fn run(program: &str, arguments: &[&dyn AsRef<std::ffi::OsStr>]) -> Vec<u8> {
    let mut command = Command::new(program);
    for argument in arguments {
        command.arg(argument);
    }
    let output = command.env("LC_ALL", "C").output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Writes a copy of the library without symbols, except those that it exports.
pub(crate) fn strip(library: &Path, stripped: &Path) {
    run("strip", &[&"--strip-all", &"-o", &stripped, &library]);
}

/// Writes the library's debug file.
pub(crate) fn write_debug_file(library: &Path, debug_file: &Path) {
    run("objcopy", &[&"--only-keep-debug", &library, &debug_file]);
}

/// Writes a stripped copy of the library with a link to its debug file, and with more options of objcopy.
pub(crate) fn strip_with_link(library: &Path, debug_file: &Path, stripped: &Path, options: &[&str]) {
    let link = format!("--add-gnu-debuglink={}", debug_file.display());
    let mut arguments: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"--strip-all", &link];
    arguments.extend(options.iter().map(|option| option as &dyn AsRef<std::ffi::OsStr>));
    arguments.extend([&library as &dyn AsRef<std::ffi::OsStr>, &stripped]);
    run("objcopy", &arguments);
}

/// Appends a hole of a tebibyte to a file, which takes no room on the disk and minutes to read.
pub(crate) fn append_hole(file: &Path) {
    fs::File::options().write(true).open(file).unwrap().set_len(1 << 40).unwrap();
}

/// Makes the section header of a file's symbol table declare 512 gibibytes of symbols.
pub(crate) fn declare_endless_symbols(file: &Path) {
    // A section header has 64 bytes, with `sh_size` at 32 (gABI, "Section Header").
    const HEADER_LEN: usize = 64;
    const SIZE_AT: usize = 32;
    let mut bytes = fs::read(file).unwrap();
    let elf = goblin::elf::Elf::parse(&bytes).unwrap();
    let symtab = goblin::elf::section_header::SHT_SYMTAB;
    let number = elf.section_headers.iter().position(|section| section.sh_type == symtab).unwrap();
    let at = elf.header.e_shoff as usize + number * HEADER_LEN + SIZE_AT;
    bytes[at..at + 8].copy_from_slice(&(512_u64 << 30).to_le_bytes());
    fs::write(file, bytes).unwrap();
}

/// Compresses a file with xz and these options.
pub(crate) fn xz(file: &Path, options: &[&str]) -> Vec<u8> {
    let mut arguments: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"--stdout", &"--format=xz"];
    arguments.extend(options.iter().map(|option| option as &dyn AsRef<std::ffi::OsStr>));
    arguments.push(&file);
    run("xz", &arguments)
}

/// Writes a stripped copy of the library with MiniDebugInfo, by the steps of Fedora's find-debuginfo
/// (debugedit, `add_minidebug`).
pub(crate) fn strip_with_mini_debug_info(library: &Path, stripped: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let [keep, debug, mini] = ["keep", "debug", "mini"].map(|name| folder.path().join(name));
    let names = |options: &[&'static str], kinds: &str| -> BTreeSet<String> {
        let mut arguments: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"--format=posix", &"--defined-only"];
        arguments.extend(options.iter().map(|option| option as &dyn AsRef<std::ffi::OsStr>));
        arguments.push(&library);
        let listing = String::from_utf8(run("nm", &arguments)).unwrap();
        let lines = listing.lines().filter_map(|line| {
            let mut fields = line.split(' ');
            let (name, kind) = (fields.next()?, fields.next()?);
            kinds.contains(kind).then(|| name.to_owned())
        });
        lines.collect()
    };
    let exported = names(&["-D"], "ABCDGIRSTUVWabcdgirstuvw");
    let functions = names(&[], "TtD");
    let kept: Vec<&str> = functions.difference(&exported).map(String::as_str).collect();
    assert!(!kept.is_empty(), "{}: all functions are exported", library.display());
    fs::write(&keep, kept.join("\n")).unwrap();
    run("objcopy", &[&"--only-keep-debug", &library, &debug]);
    let keep = format!("--keep-symbols={}", keep.display());
    run(
        "objcopy",
        &[&"-S", &"--remove-section=.gdb_index", &"--remove-section=.comment", &keep, &debug, &mini],
    );
    add_mini_debug_info(library, &xz(&mini, &[]), stripped);
}

/// Writes a stripped copy of the library with these bytes as MiniDebugInfo.
pub(crate) fn add_mini_debug_info(library: &Path, bytes: &[u8], stripped: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let compressed = folder.path().join("mini.xz");
    fs::write(&compressed, bytes).unwrap();
    let add = format!("--add-section=.gnu_debugdata={}", compressed.display());
    run("objcopy", &[&"--strip-all", &add, &library, &stripped]);
}

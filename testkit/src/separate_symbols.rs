//! Takes symbols out of libraries, as distributions do: into debug files, and into MiniDebugInfo.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::commands::succeed;

/// Writes a copy of the library without symbols, except those that it exports.
pub fn strip(library: &Path, stripped: &Path) {
    succeed(Command::new("strip").args(["--strip-all", "-o"]).args([stripped, library]));
}

/// Writes the library's debug file.
pub fn write_debug_file(library: &Path, debug_file: &Path) {
    succeed(Command::new("objcopy").arg("--only-keep-debug").args([library, debug_file]));
}

/// Writes a stripped copy of the library with a link to its debug file, and with more options of objcopy.
pub fn strip_with_link(library: &Path, debug_file: &Path, stripped: &Path, options: &[&str]) {
    let link = format!("--add-gnu-debuglink={}", debug_file.display());
    let mut command = Command::new("objcopy");
    succeed(command.args(["--strip-all", &link]).args(options).args([library, stripped]));
}

/// Appends a hole of a tebibyte to a file, which takes no room on the disk and minutes to read.
pub fn append_hole(file: &Path) {
    fs::File::options().write(true).open(file).unwrap().set_len(1 << 40).unwrap();
}

/// Makes the section header of a file's symbol table declare 512 gibibytes of symbols.
pub fn declare_endless_symbols(file: &Path) {
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
pub fn xz(file: &Path, options: &[&str]) -> Vec<u8> {
    succeed(Command::new("xz").args(["--stdout", "--format=xz"]).args(options).arg(file)).stdout
}

/// Writes a stripped copy of the library with MiniDebugInfo, by the steps of Fedora's find-debuginfo
/// (debugedit, `add_minidebug`).
pub fn strip_with_mini_debug_info(library: &Path, stripped: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let [keep, debug, mini] = ["keep", "debug", "mini"].map(|name| folder.path().join(name));
    let names = |options: &[&'static str], kinds: &str| -> BTreeSet<String> {
        let mut nm = Command::new("nm");
        nm.args(["--format=posix", "--defined-only"]).args(options).arg(library);
        let listing = String::from_utf8(succeed(&mut nm).stdout).unwrap();
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
    write_debug_file(library, &debug);
    let keep = format!("--keep-symbols={}", keep.display());
    let removed = ["--remove-section=.gdb_index", "--remove-section=.comment"];
    succeed(Command::new("objcopy").arg("-S").args(removed).arg(&keep).args([&debug, &mini]));
    add_mini_debug_info(library, &xz(&mini, &[]), stripped);
}

/// Writes a stripped copy of the library with these bytes as MiniDebugInfo.
pub fn add_mini_debug_info(library: &Path, bytes: &[u8], stripped: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let compressed = folder.path().join("mini.xz");
    fs::write(&compressed, bytes).unwrap();
    let add = format!("--add-section=.gnu_debugdata={}", compressed.display());
    succeed(Command::new("objcopy").args(["--strip-all", &add]).args([library, stripped]));
}

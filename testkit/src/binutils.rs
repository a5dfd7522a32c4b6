//! Names and build-ids of libraries according to binutils.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use otlpprof_core::address::ElfVaddr;

/// The functions that binutils' addr2line names at these addresses of a library. Leaves out inlined
/// functions.
#[track_caller]
pub fn addr2line(library: impl AsRef<Path>, addresses: &BTreeSet<ElfVaddr>) -> BTreeMap<ElfVaddr, String> {
    let mut child = Command::new("addr2line")
        .args(["-a", "-f", "-i", "-e"])
        .arg(library.as_ref())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("addr2line (binutils)");
    let mut input = child.stdin.take().unwrap();
    for address in addresses {
        writeln!(input, "{address:#x}").unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    // The output is the address, then two lines for each function: its name and its place. Inlined functions
    // come before the function that contains them.
    let mut functions = Vec::new();
    let mut lines = output.lines().peekable();
    while let Some(line) = lines.next() {
        assert!(line.starts_with("0x"), "{line}");
        let mut function = None;
        while let Some(name) = lines.next_if(|line| !line.starts_with("0x")) {
            function = Some(name.to_owned());
            lines.next();
        }
        functions.push(function.expect("a function"));
    }
    assert_eq!(functions.len(), addresses.len());
    addresses.iter().copied().zip(functions).collect()
}

/// The library's build-id, as readelf prints it.
#[track_caller]
pub fn readelf_build_id(library: impl AsRef<Path>) -> String {
    let output =
        Command::new("readelf").arg("-n").arg(library.as_ref()).output().expect("readelf (binutils)");
    let text = String::from_utf8(output.stdout).unwrap();
    let id = text.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
    id.expect("the library has a build-id").to_owned()
}

/// The addresses of a library's procedure linkage tables. No symbol covers them.
pub fn linkage_tables(library: impl AsRef<Path>) -> Vec<Range<ElfVaddr>> {
    let output =
        Command::new("readelf").arg("-SW").arg(library.as_ref()).output().expect("readelf (binutils)");
    let sections = String::from_utf8_lossy(&output.stdout).into_owned();
    let table = |line: &str| {
        let (_, section) = line.split_once("] .plt")?;
        let number = |at| u64::from_str_radix(section.split_whitespace().nth(at)?, 16).ok();
        // Words: the rest of the name, or the type, comes first.
        let words = if section.starts_with(' ') { 0 } else { 1 };
        let (address, size) = (number(words + 1)?, number(words + 3)?);
        Some(ElfVaddr(address)..ElfVaddr(address + size))
    };
    sections.lines().filter_map(table).collect()
}

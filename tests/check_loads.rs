//! `scripts/check-loads.sh`: files that load on another C library pass, and each kind of file that does not
//! is refused.

use std::path::{Path, PathBuf};
use std::process::Command;

/// More than 20 functions of glibc 2.2.5 (on aarch64 2.17), so that the script takes the file for read.
const OLD: &str = "
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
const void *old[] = {strlen, strcpy, strcat, strcmp, strncmp, strchr, strrchr, strstr, strtok,
    memset, memmove, memcmp, malloc, free, calloc, realloc, qsort, atoi, getenv, puts, fputs,
    fclose, rewind, getpid, getuid};
";
/// `getrandom` came with glibc 2.25.
const LATER: &str = "
#include <sys/random.h>
const void *later[] = {getrandom};
";
/// Nothing defines this function.
const UNDEFINED: &str = "
void otlpprof_defined_nowhere(void);
const void *undefined[] = {otlpprof_defined_nowhere};
";

/// Libraries that a C compiler makes.
struct Libraries(tempfile::TempDir);

impl Libraries {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn make(&self, name: &str, source: &str, options: &[&str]) -> PathBuf {
        let (file, library) = (self.0.path().join("source.c"), self.0.path().join(name));
        std::fs::write(&file, source).unwrap();
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-fno-builtin", "-L"]).arg(self.0.path());
        let output = command.arg(&file).arg("-o").arg(&library).args(options).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        library
    }
}

/// Runs the script. Returns what it prints, and whether it accepts the file.
fn check(c_library: &str, file: &Path) -> (bool, String) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/check-loads.sh");
    let output = Command::new(script).arg(c_library).arg(file).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(printed).unwrap())
}

#[track_caller]
fn assert_refused(c_library: &str, file: &Path, reason: &str) {
    let (is_accepted, printed) = check(c_library, file);
    assert!(!is_accepted && printed.contains(reason), "{}: {printed}", file.display());
}

#[test]
fn a_file_that_needs_a_later_glibc_is_refused() {
    let libraries = Libraries::new();
    let old = libraries.make("libold.so", OLD, &[]);
    let (is_accepted, printed) = check("2.17", &old);
    assert!(is_accepted && printed.contains("loads on glibc 2.17"), "{printed}");
    let later = libraries.make("liblater.so", &[OLD, LATER].concat(), &[]);
    assert_refused("2.17", &later, "getrandom@GLIBC_2.25");
    assert_refused("2.24.9", &later, "getrandom@GLIBC_2.25");
    assert!(check("2.25", &later).0);
}

#[test]
fn a_symbol_without_a_version_is_refused() {
    let libraries = Libraries::new();
    let undefined = libraries.make("libundefined.so", &[OLD, UNDEFINED].concat(), &[]);
    assert_refused("9.9", &undefined, "otlpprof_defined_nowhere, without a version");
}

#[test]
fn another_library_is_refused() {
    let libraries = Libraries::new();
    libraries.make("libother.so", "int other;", &[]);
    let needs = libraries.make("libneeds.so", OLD, &["-Wl,--no-as-needed", "-lother"]);
    assert_refused("2.17", &needs, "needs more than the C library: libother.so");
}

#[test]
fn a_file_that_was_not_read_is_refused() {
    let libraries = Libraries::new();
    let few = libraries.make("libfew.so", "#include <stdio.h>\nconst void *few[] = {puts};", &[]);
    assert_refused("2.17", &few, "so not all have been read");
    let text = libraries.0.path().join("source.c");
    assert_refused("2.17", &text, "readelf: ");
    assert_refused("2.17", Path::new("/no/such/file"), "no file: /no/such/file");
}

/// With a file in place of a version, as for musl, whose library is called `libc.so`.
#[test]
fn a_file_that_needs_what_a_c_library_lacks_is_refused() {
    let libraries = Libraries::new();
    let define: String = (0..1_200).map(|number| format!("int c_{number};")).collect();
    let c_library = libraries.make("libc.so", &define, &["-nostdlib", "-Wl,-soname,libc.so"]);
    let c_library = c_library.to_str().unwrap();
    let declare: String = (0..30).map(|number| format!("extern int c_{number};")).collect();
    let list: Vec<_> = (0..30).map(|number| format!("&c_{number}")).collect();
    let uses = format!("{declare} int *used[] = {{{}}};", list.join(","));
    let link = ["-nostdlib", "-lc"];
    let needs = libraries.make("libneeds.so", &uses, &link);
    let (is_accepted, printed) = check(c_library, &needs);
    assert!(is_accepted && printed.contains("loads on musl"), "{printed}");
    let lacks = libraries.make("liblacks.so", &[&*uses, UNDEFINED].concat(), &link);
    assert_refused(c_library, &lacks, "does not load on musl: otlpprof_defined_nowhere\n");
    assert_refused(needs.to_str().unwrap(), &needs, "is no C library");
}

//! Libraries with debug files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use otlpprof_debug_files::examined::Examined;
use otlpprof_debug_files::{FileId, ObjectIdentity};

use otlpprof_testkit::commands::{output_of, text};
use otlpprof_testkit::skipped::not_tested;

/// Whether programs are there that scripts/install-toolchain.sh installs. Reports what is not tested
/// otherwise.
pub(crate) fn has(programs: &[&str]) -> bool {
    let is_missing = |program: &&&str| {
        let found = Command::new("sh").args(["-c", "command -v \"$0\"", program]).output();
        !found.is_ok_and(|output| output.status.success())
    };
    let missing = programs.iter().find(is_missing);
    if let Some(missing) = missing {
        not_tested(&format!(
            "files of objects, without {missing} (scripts/install-toolchain.sh elfutils llvm)"
        ));
    }
    missing.is_none()
}

/// Creates a folder and returns its path.
pub(crate) fn folder(path: PathBuf) -> PathBuf {
    fs::create_dir_all(&path).unwrap();
    path
}

/// A library in several forms, in a folder of its own.
pub(crate) struct Library {
    /// With code, symbols and debug information.
    pub(crate) full: PathBuf,
    /// With code and exported symbols.
    pub(crate) stripped: PathBuf,
    /// With debug information, without code.
    pub(crate) debug: PathBuf,
}

impl Library {
    /// Compiles a library whose only function has this name. Libraries of different functions have different
    /// build-ids.
    pub(crate) fn compile(folder: &Path, function: &str, flags: &[&str]) -> Self {
        let source = folder.join(format!("{function}.c"));
        let hidden =
            format!("__attribute__((noinline)) static int inner_{function}(int x) {{ return x * 3; }}");
        let seen = format!("int {function}(int x) {{ return inner_{function}(x) + 1; }}");
        fs::write(&source, format!("{hidden}\n{seen}\n")).unwrap();
        let [full, stripped, debug] =
            ["full.so", "stripped.so", "so.debug"].map(|ending| folder.join(format!("{function}.{ending}")));
        let mut arguments = vec!["-shared", "-fPIC", "-O1", "-g", text(&source), "-o", text(&full)];
        arguments.extend(flags);
        if !flags.iter().any(|flag| flag.contains("--build-id")) {
            arguments.push("-Wl,--build-id=sha1");
        }
        output_of("gcc", &arguments);
        output_of("objcopy", &["--only-keep-debug", text(&full), text(&debug)]);
        output_of("objcopy", &["--strip-all", text(&full), text(&stripped)]);
        Self { full, stripped, debug }
    }

    /// Writes a stripped library that names its debug file in `.gnu_debuglink`.
    pub(crate) fn link(&self, to: &Path, debug: &Path) {
        let link = format!("--add-gnu-debuglink={}", text(debug));
        output_of("objcopy", &[&link, text(&self.stripped), text(to)]);
    }

    /// Writes a file of the library as a file of 32 bits, with its build-id.
    pub(crate) fn convert_to_32_bits(from: &Path, to: &Path) {
        output_of("objcopy", &["-I", "elf64-x86-64", "-O", "elf32-x86-64", text(from), text(to)]);
        let header = output_of("readelf", &["-h", text(to)]);
        assert!(header.contains("ELF32"), "{header}");
    }

    /// The identity in a profile.
    pub(crate) fn identity(&self) -> ObjectIdentity {
        let build_id = examine(&self.full).build_id;
        assert!(build_id.is_some(), "{} has no build-id", self.full.display());
        ObjectIdentity { build_id, ..ObjectIdentity::default() }
    }

    pub(crate) fn id(&self) -> FileId {
        self.identity().file_id().unwrap()
    }
}

/// Two libraries whose debug files share a supplementary file that dwz makes with these options, and that
/// file. Their links name `../.dwz/common.debug`.
pub(crate) fn sharing_by_dwz(folder: &Path, options: &[&str]) -> ([Library; 2], PathBuf) {
    // Two files that are alike enough to share something.
    let header = folder.join("long.h");
    let types =
        (0..400).map(|n| format!("struct some_long_name_{n} {{ int a_field_of_{n}; }} variable_{n};\n"));
    fs::write(&header, types.collect::<String>()).unwrap();
    let flags = ["-include", text(&header)];
    let libraries = ["dwz_a", "dwz_b"].map(|name| Library::compile(folder, name, &flags));
    let common = folder.join("common.debug");
    let arguments = ["-m", text(&common), "-M", "../.dwz/common.debug", "-h"];
    let files = libraries.each_ref().map(|library| text(&library.debug));
    output_of("dwz", &[options, &arguments, &files].concat());
    let link = examine(&libraries[0].debug).supplementary.expect("dwz has shared something");
    assert_eq!(Some(link.build_id), examine(&common).build_id);
    (libraries, common)
}

pub(crate) fn examine(path: &Path) -> Examined {
    Examined::of_path(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Copies a file to a path, with the folders above it.
pub(crate) fn copy(from: &Path, to: PathBuf) -> PathBuf {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(from, &to).unwrap();
    to
}

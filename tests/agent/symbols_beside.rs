//! Native frames of stripped libraries in the profiles of a real JVM: names by debug files, by MiniDebugInfo,
//! and of the functions in which threads begin.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use otlpprof_elf::build_id;
use otlpprof_testkit::binutils::{addr2line, readelf_build_id};
use otlpprof_testkit::fault_server::FaultServer;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::{java_homes, newest_or_all};
use otlpprof_testkit::separate_symbols::{
    append_hole, declare_endless_symbols, strip, strip_with_link, strip_with_mini_debug_info,
    write_debug_file,
};
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::stacks::{Frame, Stack, cpu_stacks};
use otlpprof_testkit::this_build::libraries;

/// The functions of the library that burn and are not exported.
const HIDDEN: [&str; 2] = ["hash_block", "compare_keys"];

fn run_demo(home: &Path, library: &Path, debug_files: &Path) -> Vec<Stack> {
    let options = format!("cpu=200us,debug_files={},file=FILE", debug_files.display());
    let run = JavaRun::new(home, "Demo").argument(1).library(library).agent(&options).run().expect_success();
    cpu_stacks(&run.messages())
}

/// Compares the names of the library's functions with those of the library before it was stripped.
fn check_names(label: &str, stacks: &[Stack], library: &Path, has_hidden: bool) {
    let object = library.to_str().unwrap();
    let frames =
        || stacks.iter().flat_map(|stack| stack.frames.iter()).filter(|frame| frame.object == object);
    let functions = addr2line(libraries()[0], &frames().map(|frame| frame.address).collect());
    let mut seen = BTreeSet::new();
    for frame in frames() {
        let function = functions[&frame.address].as_str();
        let is_bare = frame.name.starts_with('[');
        if HIDDEN.contains(&function) {
            let expected = if has_hidden {
                function.to_owned()
            } else {
                format!("[{}+{:#x}]", library.file_name().unwrap().to_str().unwrap(), frame.address)
            };
            assert_eq!(frame.name, expected, "{label}: {frame:?}");
            seen.insert(function);
        } else if !is_bare {
            assert_eq!(frame.name, function, "{label}: {frame:?}");
        }
    }
    assert_eq!(seen, HIDDEN.into(), "{label}: a function was not sampled");
}

#[test]
fn functions_that_a_stripped_library_lacks_are_named_by_what_is_beside_it() {
    let [library, other] = libraries();
    let whole = Path::new(library);
    let id = readelf_build_id(whole);
    for home in newest_or_all() {
        let folder = tempfile::tempdir().unwrap();
        let (library, debug_files) = (folder.path().join("libstripped.so"), folder.path().join("debug"));
        let by_id = debug_files.join(".build-id").join(&id[..2]);
        fs::create_dir_all(&by_id).unwrap();
        let check = |case: &str, has_hidden| {
            let stacks = run_demo(&home, &library, &debug_files);
            check_names(&format!("{} {case}", home.display()), &stacks, &library, has_hidden);
        };
        strip(whole, &library);
        check("nothing beside it", false);
        let installed = by_id.join(format!("{}.debug", &id[2..]));
        write_debug_file(whole, &installed);
        check("a debug file by its build-id", true);
        // Another library's debug file, whose functions have the same names.
        fs::remove_file(&installed).unwrap();
        write_debug_file(Path::new(other), &installed);
        check("the debug file of another library", false);
        let beside = folder.path().join("libstripped.debug");
        write_debug_file(whole, &beside);
        strip_with_link(whole, &beside, &library, &["--remove-section=.note.gnu.build-id"]);
        check("a debug file by its name and checksum", true);
        strip_with_mini_debug_info(whole, &library);
        check("MiniDebugInfo", true);
    }
}

/// A pipe that nobody writes to, a file whose checksum takes minutes, and one whose symbols take as long: the
/// names are missing, and the program and its profiles do not wait for them.
#[test]
fn debug_files_without_an_end_delay_neither_the_program_nor_its_profiles() {
    let whole = Path::new(libraries()[0]);
    let id = readelf_build_id(whole);
    for home in newest_or_all() {
        let folder = tempfile::tempdir().unwrap();
        let (library, debug_files) = (folder.path().join("libstripped.so"), folder.path().join("debug"));
        let by_id = debug_files.join(".build-id").join(&id[..2]);
        let [beside, below] =
            ["libstripped.debug", ".debug/libstripped.debug"].map(|name| folder.path().join(name));
        for created in [&by_id, below.parent().unwrap()] {
            fs::create_dir_all(created).unwrap();
        }
        write_debug_file(whole, &below);
        let mut without_id = Command::new("objcopy");
        without_id.arg("--remove-section=.note.gnu.build-id").args([&below, &beside]);
        assert!(without_id.status().unwrap().success());
        assert!(build_id::of_file(&beside).is_err(), "its checksum decides");
        strip_with_link(whole, &beside, &library, &[]);
        append_hole(&beside);
        declare_endless_symbols(&below);
        append_hole(&below);
        let pipe = by_id.join(format!("{}.debug", &id[2..]));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let server = FaultServer::start([]);
        let options = format!(
            "cpu=200us,interval=300ms,debug_files={},file=FILE,endpoint=http://{}",
            debug_files.display(),
            server.address
        );
        let run = JavaRun::new(&home, "Demo").argument(1.2).library(&library).agent(&options);
        let run = run.run().expect_success();
        check_names(&run.label, &cpu_stacks(&run.messages()), &library, false);
        assert!(server.request().line.starts_with("POST "), "{}", run.label);
        let messages = run.messages().len() as u64;
        assert_eq!(run.counter("upload.submitted.messages"), messages, "{}: {}", run.label, run.stderr);
    }
}

/// The frames of a stack's root, outermost last, if the root is in the C library.
fn roots_in_libc(stack: &Stack) -> Option<&[Frame; 2]> {
    let roots = stack.frames.last_chunk()?;
    roots[1].object.ends_with("/libc.so.6").then_some(roots)
}

/// No symbol of a stripped C library covers these functions.
#[test]
fn native_threads_begin_in_functions_with_names() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "NativePthreads").argument(1.5);
        let run = run.agent("cpu=200us,cstack=vmx,debug_files=no,file=FILE").run().expect_success();
        let stacks = cpu_stacks(&run.messages());
        let (mut of_library, mut of_vm) = (0, 0);
        for stack in &stacks {
            let Some([start, root]) = roots_in_libc(stack) else { continue };
            // A thread that was sampled only in the C library is at its very beginning or end.
            if start.object != root.object {
                panic!("{}: {:#?}", run.label, stack.frames);
            }
            assert_eq!((&*root.name, &*start.name), ("clone3", "start_thread"), "{}: {stack:#?}", run.label);
            let is_of_vm = stack.frames.iter().any(|frame| frame.object.ends_with("/libjvm.so"));
            *if is_of_vm { &mut of_vm } else { &mut of_library } += stack.value;
        }
        for (function, name) in [("clone3", 1), ("start_thread", 2)] {
            let is_elsewhere = |stack: &&Stack| {
                let below = stack.frames.len().saturating_sub(name);
                stack.frames.iter().take(below).any(|frame| frame.name == function)
            };
            let caller = stacks.iter().find(is_elsewhere);
            assert!(caller.is_none(), "{}: {function} is called: {caller:#?}", run.label);
        }
        assert!(of_library > 50 && of_vm > 10, "{}: {of_library}, {of_vm}", run.label);
    }
}

/// The entry of a context that `makecontext` has made has no caller either.
#[test]
fn a_stack_that_belongs_to_no_thread_does_not_begin_as_a_thread() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "SmallStacks").argument(0.6).argument("fiber").argument(65_536);
        let run = run.agent("cpu=200us,cstack=vmx,debug_files=no,file=FILE").run().expect_success();
        let stacks = cpu_stacks(&run.messages());
        let mut of_fiber = 0;
        for stack in &stacks {
            let mut frames = stack.frames.iter().skip_while(|frame| frame.name != "spin_in_fiber");
            if frames.next().is_some() {
                of_fiber += stack.value;
                let is_start = |frame: &Frame| ["clone3", "start_thread"].contains(&&*frame.name);
                assert!(!frames.next().is_some_and(is_start), "{}: {stack:#?}", run.label);
            }
        }
        assert!(of_fiber > 0, "{}", run.label);
    }
}

/// The functions that a library exports, by readelf: each function's first address and the address after it,
/// and its name.
fn exported(library: &Path) -> Vec<(u64, u64, String)> {
    let output = Command::new("readelf").args(["-W", "--dyn-syms"]).arg(library).output().unwrap();
    let function = |line: &str| {
        let [_, value, size, "FUNC" | "IFUNC", _, _, section, name] =
            line.split_whitespace().collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let start = u64::from_str_radix(value, 16).ok().filter(|_| section != "UND")?;
        Some((start, start + size.parse::<u64>().ok()?, name.split('@').next()?.to_owned()))
    };
    String::from_utf8(output.stdout).unwrap().lines().filter_map(function).collect()
}

/// Whether a JDK has no zlib of its own in libzip.so, by readelf.
fn uses_the_systems_zlib(home: &Path) -> bool {
    let output = Command::new("readelf").arg("-d").arg(home.join("lib/libzip.so")).output().unwrap();
    String::from_utf8(output.stdout).unwrap().contains("[libz.so.1]")
}

/// Debian's zlib has symbols of exported functions only, and spends most of its time in others.
#[test]
fn functions_that_the_systems_zlib_does_not_export_have_the_librarys_name() {
    let (mut tested, mut bare) = (0, 0);
    for home in java_homes().iter().filter(|home| uses_the_systems_zlib(home)) {
        let run = JavaRun::new(home, "RareSituations").argument("critical").argument(1);
        let run = run.agent("cpu=200us,debug_files=no,file=FILE").run().expect_success();
        let stacks = cpu_stacks(&run.messages());
        let frames = stacks.iter().flat_map(|stack| stack.frames.iter());
        let of_zlib: Vec<&Frame> = frames.filter(|frame| frame.object.contains("/libz.so.1")).collect();
        let first = of_zlib.first().unwrap_or_else(|| panic!("{}: no frame of zlib", run.label));
        let (object, functions) = (Path::new(&first.object), exported(Path::new(&first.object)));
        for frame in of_zlib {
            let bare_name =
                format!("[{}+{:#x}]", object.file_name().unwrap().to_str().unwrap(), frame.address);
            let covering = functions.iter().find(|(start, end, _)| (*start..*end).contains(&frame.address.0));
            let expected = covering.map_or(&bare_name, |(_, _, name)| name);
            assert_eq!(frame.name, *expected, "{}: {frame:?}", run.label);
            bare += usize::from(covering.is_none());
        }
        tested += 1;
    }
    match tested {
        0 => not_tested("frames of the system's zlib, which no JDK uses"),
        _ => assert!(bare > 0, "{tested} JDKs use the system's zlib, and no frame is bare"),
    }
}

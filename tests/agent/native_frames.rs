//! Frames of a native library in the profiles of a real JVM: remote and local.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use otlpprof_elf::build_id;
use otlpprof_elf::htlhash::HtlHash;
use otlpprof_elf::source::FileSource;
use otlpprof_testkit::binutils::{addr2line, readelf_build_id};
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::{java_builds, java_version, newest_or_all};
use otlpprof_testkit::stacks::{Frame, Stack, cpu_stacks};
use otlpprof_testkit::this_build::libraries;

const RECURSION: usize = 6;

/// The functions in which `programs.Demo` burns, keyed by the native method that it calls: libddproftest's
/// functions, leaf first. A sample may be taken in any of them, so a stack holds an end of the list.
fn expected_chains() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut recursion = vec!["ddprof_recurse"; RECURSION];
    recursion.push("Java_programs_Native_recurse");
    vec![
        ("programs.Native.spin", vec!["ddprof_spin", "Java_programs_Native_spin"]),
        ("programs.Native.hash", vec!["hash_block", "ddprof_hash", "Java_programs_Native_hash"]),
        ("programs.Native.recurse", recursion),
        ("programs.Native.sort", vec!["compare_keys", "ddprof_sort", "Java_programs_Native_sort"]),
        ("programs.Native.copy", vec!["ddprof_copy", "Java_programs_Native_copy"]),
    ]
}

/// The library's functions that do the work. Each must have been met as a leaf.
const BURNERS: [&str; 4] = ["ddprof_spin", "hash_block", "ddprof_recurse", "compare_keys"];

fn run_demo(home: &Path, library: &str, options: &str) -> Vec<Stack> {
    let run = JavaRun::new(home, "Demo").argument(1.5).library(library).agent(options).run().expect_success();
    assert!(run.stdout.contains("Demo done"), "{}", run.stdout);
    cpu_stacks(&run.messages())
}

/// Compares the library's frames with the calls that the program makes. `function` names a frame.
fn check_calls(label: &str, stacks: &[Stack], library: &str, function: impl Fn(&Frame) -> String) {
    let (mut right, mut all) = (0, 0);
    let mut wrong = BTreeMap::<String, i64>::new();
    let mut leaves = BTreeMap::<String, i64>::new();
    for stack in stacks {
        let native: Vec<_> =
            stack.frames.iter().filter(|frame| frame.object == library).map(&function).collect();
        if let Some(leaf) = stack.frames.first().filter(|frame| frame.object == library) {
            *leaves.entry(function(leaf)).or_default() += stack.value;
        }
        for (method, chain) in expected_chains() {
            if stack.frames.iter().any(|frame| frame.name == method) {
                all += stack.value;
                // Before the native method's own code is entered, and after it, only the VM's frames can be
                // there.
                let is_vms = |frame: &&Frame| frame.object.is_empty() || frame.object.ends_with("/libjvm.so");
                let is_entered = stack.frames.first().is_some_and(|leaf| !is_vms(&leaf))
                    && !stack.frames.iter().any(|frame| frame.object.ends_with("/libjvm.so"));
                if !(is_entered && native.is_empty())
                    && chain
                        .iter()
                        .rev()
                        .map(|name| (*name).to_owned())
                        .take(native.len())
                        .eq(native.iter().rev().cloned())
                {
                    right += stack.value;
                } else {
                    *wrong.entry(format!("{method} <- {native:?}")).or_default() += stack.value;
                }
            }
        }
    }
    assert!(all > 50, "{label}: only {all} samples in native methods");
    assert!(right * 1000 >= all * 995, "{label}: {right} of {all} right; wrong: {wrong:#?}");
    for burner in BURNERS {
        assert!(
            leaves.get(burner).copied().unwrap_or(0) > 2,
            "{label}: too few samples in {burner}: {leaves:?}"
        );
    }
}

/// Checks the frames of the VM's library, which has a build-id or not. Without a build-id its frames have
/// names.
fn check_vm_frames(label: &str, stacks: &[Stack]) {
    let mut frames = 0;
    for frame in
        stacks.iter().flat_map(|stack| stack.frames.iter()).filter(|f| f.object.ends_with("/libjvm.so"))
    {
        match build_id::of_file(Path::new(&frame.object)) {
            Ok(id) => assert_eq!(frame.remote.map(|remote| remote.build_id), Some(id), "{label}: {frame:?}"),
            Err(_) => assert!(frame.remote.is_none() && !frame.name.is_empty(), "{label}: {frame:?}"),
        }
        frames += 1;
    }
    assert!(frames > 0, "{label}: no frame of libjvm");
}

#[test]
fn remote_frames_name_the_function_that_burned() {
    // Of one version one build's libjvm has a build-id, and another build's has none.
    let newest = newest_or_all();
    let is_of_these = |home: &PathBuf| newest.iter().any(|one| java_version(one) == java_version(home));
    for home in java_builds().into_iter().filter(is_of_these) {
        for library in libraries() {
            let label = format!("{} {library}", home.display());
            let stacks = run_demo(&home, library, "remotesym=true,cpu=100us,file=FILE");
            let id = readelf_build_id(library);
            let htlhash = HtlHash::of(&FileSource::open(Path::new(library)).unwrap()).unwrap().to_string();
            check_vm_frames(&label, &stacks);
            let mut addresses = BTreeSet::new();
            for frame in stacks.iter().flat_map(|stack| stack.frames.iter()) {
                for symbol in ["ddprof_", "hash_block", "compare_keys", "Java_programs_"] {
                    assert!(!frame.name.contains(symbol), "{label}: symbolized locally: {frame:?}");
                }
                if frame.object != library {
                    continue;
                }
                let remote = frame.remote.unwrap_or_else(|| panic!("{label}: not remote: {frame:?}"));
                assert_eq!(frame.name, "", "{label}: remote, and has a line: {frame:?}");
                assert_eq!((remote.build_id.to_string(), &frame.build_id), (id.clone(), &id), "{label}");
                assert_eq!(frame.htlhash, htlhash, "{label}");
                assert_eq!(remote.address, frame.address, "{label}");
                assert_eq!(frame.frame_type, "native", "{label}");
                addresses.insert(frame.address);
            }
            let names = addr2line(library, &addresses);
            check_calls(&label, &stacks, library, |frame| names[&frame.address].clone());
        }
    }
}

#[test]
fn local_frames_have_the_symbols_name() {
    for home in newest_or_all() {
        for library in libraries() {
            let label = format!("{} {library}", home.display());
            let stacks = run_demo(&home, library, "cpu=100us,file=FILE");
            assert!(
                stacks.iter().flat_map(|stack| stack.frames.iter()).all(|frame| frame.remote.is_none()),
                "{label}"
            );
            check_calls(&label, &stacks, library, |frame| frame.name.clone());
        }
    }
}

/// A copy of the library without build-id, made by binutils.
fn without_build_id(folder: &Path, name: &str, strip: &[&str]) -> String {
    let copy = folder.join(name);
    let mut objcopy = Command::new("objcopy");
    objcopy.args(["--remove-section", ".note.gnu.build-id"]).args(strip).arg(libraries()[0]).arg(&copy);
    assert!(objcopy.status().expect("objcopy (binutils)").success());
    copy.into_os_string().into_string().unwrap()
}

#[test]
fn an_object_without_build_id_has_its_symbols_or_its_name_and_the_address() {
    let folder = tempfile::tempdir().unwrap();
    // Exported functions have symbols in the stripped copy too. A sample may also be taken while the library
    // is loaded.
    let copies = [
        ("whole.so", &[][..], &[][..]),
        ("stripped.so", &["--strip-all"], &["hash_block", "compare_keys", "_init", "_fini"]),
    ]
    .map(|(name, strip, nameless)| (without_build_id(folder.path(), name, strip), name, nameless));
    for home in newest_or_all() {
        for (library, name, nameless) in &copies {
            let label = format!("{} {name}", home.display());
            let stacks = run_demo(&home, library, "remotesym=true,cpu=100us,file=FILE");
            let frames = || {
                stacks.iter().flat_map(|stack| stack.frames.iter()).filter(|frame| frame.object == *library)
            };
            assert!(frames().all(|frame| frame.remote.is_none()), "{label}");
            let bare = |frame: &Frame| frame.name == format!("[{name}+{:#x}]", frame.address);
            let functions = addr2line(libraries()[0], &frames().map(|frame| frame.address).collect());
            for frame in frames() {
                let function = functions[&frame.address].as_str();
                // Entries of the procedure linkage table have no symbol in either copy.
                let has_no_name = nameless.contains(&function) || function == "??";
                assert_eq!(bare(frame), has_no_name, "{label}: {frame:?} is {function}");
            }
            check_calls(&label, &stacks, library, |frame| {
                if bare(frame) { functions[&frame.address].clone() } else { frame.name.clone() }
            });
        }
    }
}

#[test]
fn names_as_text_for_backends_that_do_not_symbolize() {
    for home in newest_or_all().into_iter().take(1) {
        let library = libraries()[0];
        let stacks = run_demo(&home, library, "remotesym,native_frames=name,cpu=100us,file=FILE");
        let id = readelf_build_id(library);
        let mut seen = 0;
        for frame in
            stacks.iter().flat_map(|stack| stack.frames.iter()).filter(|frame| frame.object == library)
        {
            assert_eq!(frame.name, format!("{id}.<remote>({:#x})", frame.address));
            seen += 1;
        }
        assert!(seen > 0);
    }
}

#[test]
fn java_called_from_native_code_is_one_stack() {
    for home in newest_or_all() {
        let stacks = run_demo(&home, libraries()[0], "cpu=100us,file=FILE");
        // This walker leaves out the native frames between two Java frames.
        let calls = ["programs.Demo.calledFromNative", "programs.Native.upcall"];
        let whole = |stack: &&Stack| {
            let mut frames = stack.frames.iter();
            calls.iter().all(|call| frames.any(|frame| frame.name == *call))
        };
        let below: Vec<_> =
            stacks.iter().filter(|stack| stack.frames.iter().any(|frame| frame.name == calls[0])).collect();
        let all: i64 = below.iter().map(|stack| stack.value).sum();
        let right: i64 = below.iter().copied().filter(whole).map(|stack| stack.value).sum();
        let mut threads = BTreeMap::<_, i64>::new();
        for stack in &stacks {
            *threads.entry(&stack.thread).or_default() += stack.value;
        }
        assert!(all > 20, "{}: only {all} samples below an upcall: {threads:?}", home.display());
        assert!(right * 1000 >= all * 995, "{}: {right} of {all}", home.display());
        assert!(below.iter().all(|stack| stack.thread == "demo-upcall"), "{}", home.display());
    }
}

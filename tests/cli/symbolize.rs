//! `otlpprof symbolize`: every native frame without a name gets what llvm-symbolizer says of its address, in
//! every form of frames and files, and a frame that cannot be resolved stays as it was.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use otlpprof_otlp::to_json;
use otlpprof_otlp::wire::ProfilesData;

use flate2::Compression;
use flate2::write::GzEncoder;
use otlpprof_testkit::commands::otlpprof;
use otlpprof_testkit::debug_information::{
    addresses, compile_cpp, compile_rust, expected, has_judges, judged, run,
};
use otlpprof_testkit::otlp_fixture::framed;
use otlpprof_testkit::unnamed_frames::{
    Command, FRAME_FORMS, FrameForm, LIBRARY, Named, ProfiledObject, assert_only_lines_differ, lines_of,
    message, messages_of,
};
use prost::Message as _;

/// The number of addresses of each object.
const ADDRESSES: usize = 400;

#[test]
fn every_form_of_a_frame_is_resolved_as_llvm_symbolizer_does() {
    if !has_judges() {
        return;
    }
    let command = Command::new();
    let folder = command.folder.path();
    fs::create_dir(folder.join("objects")).unwrap();
    let library = folder.join("objects/libddproftest.so");
    fs::copy(LIBRARY, &library).unwrap();
    let program = compile_cpp(&folder.join("objects"), "program", &["-g", "-pie", "-fPIE", "-Wl,--build-id"]);
    let at_a_fixed_place =
        compile_cpp(&folder.join("objects"), "fixed", &["-g", "-no-pie", "-Wl,--build-id"]);
    for file in [&library, &program, &at_a_fixed_place] {
        let vaddrs = addresses(file, ADDRESSES);
        let expected = expected(file, &vaddrs);
        let object = ProfiledObject::of(file, "/opt/app/some file.so");
        for form in FRAME_FORMS {
            let label = format!("{} {form:?}", file.display());
            let (before, locations) = message(&object, form, &vaddrs);
            let input = command.path("in.otlp");
            fs::write(&input, before.encode_to_vec()).unwrap();
            let objects = folder.join("objects");
            let (out, stderr) = command.symbolize(&input, "out.otlp", &["--path", objects.to_str().unwrap()]);
            // The result has the input's form: one message without a length.
            let after = ProfilesData::decode(&*fs::read(&out).unwrap()).unwrap();
            for ((&location, &vaddr), expected) in locations.iter().zip(&vaddrs).zip(&expected) {
                assert_eq!(lines_of(&after, location), *expected, "{label} {vaddr:#x}");
            }
            assert_only_lines_differ(&before, &after, &locations);
            let count = vaddrs.len();
            let line = format!("{count} of {count} native frames resolved, of 1 objects\n");
            assert!(stderr.ends_with(&line), "{label}: {stderr}");
            let mut validate = command.prepared();
            validate.arg("validate").arg(&out).assert().success();
        }
    }
}

/// Asserts that addresses of an object, whose files are found by `options`, are resolved as llvm-symbolizer
/// has resolved them.
fn assert_resolved((vaddrs, judged): &(Vec<u64>, Vec<Vec<Named>>), object: &Path, options: &[&str]) {
    let command = Command::new();
    let label = object.display();
    let profiled = ProfiledObject::of(object, "/opt/app/object");
    let (before, locations) = message(&profiled, FrameForm::Agent, vaddrs);
    let input = command.path("in.otlp");
    fs::write(&input, before.encode_to_vec()).unwrap();
    let (out, stderr) = command.symbolize(&input, "out.otlp", options);
    let count = vaddrs.len();
    let line = format!("{count} of {count} native frames resolved, of 1 objects\n");
    assert!(stderr.ends_with(&line), "{label}: {stderr}");
    let after = messages_of(&out).remove(0);
    for ((&location, &vaddr), expected) in locations.iter().zip(vaddrs).zip(judged) {
        assert_eq!(lines_of(&after, location), *expected, "{label} {vaddr:#x}");
    }
}

/// Addresses of an object, and llvm-symbolizer's answers.
fn asked_and_judged(judge: &Path) -> (Vec<u64>, Vec<Vec<Named>>) {
    let vaddrs = addresses(judge, ADDRESSES);
    let judged = expected(judge, &vaddrs);
    (vaddrs, judged)
}

/// The option for files below a folder.
fn below(folder: &Path) -> [&str; 2] {
    ["--path", folder.to_str().unwrap()]
}

/// Compiles `program.cpp` to a program with split units, and makes a package of them.
fn compile_split(folder: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let program = compile_cpp(folder, name, &[&["-gsplit-dwarf", "-Wl,--build-id"][..], flags].concat());
    run(folder, "llvm-dwp-19", &["-e", name, "-o", &format!("{name}.dwp")]);
    program
}

/// The `.dwo` files of a folder.
fn split_files(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|file| file.extension().is_some_and(|end| end == "dwo")).collect();
    assert!(!files.is_empty());
    files
}

#[test]
fn a_package_of_split_units_is_found_in_the_store() {
    if !has_judges() {
        return;
    }
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let folder = tempfile::tempdir().unwrap();
        let program = compile_split(folder.path(), "program", &[version]);
        compile_split(folder.path(), "another", &[version, "-shared", "-fPIC", "-DLIBRARY"]);
        let judged = asked_and_judged(&program);
        split_files(folder.path()).iter().for_each(|file| fs::remove_file(file).unwrap());
        let store = folder.path().join("store");
        let store = store.to_str().unwrap();
        let symbols = |arguments: &[&str]| {
            let mut command = Command::new().prepared();
            command.current_dir(folder.path()).arg("symbols").args(arguments).args(["--store", store]);
            String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
        };
        // The package comes before its object, and one package belongs to no object.
        let others = folder.path().join("others");
        fs::create_dir(&others).unwrap();
        fs::rename(folder.path().join("another.dwp"), others.join("another.dwp")).unwrap();
        let added = symbols(&["add", "program.dwp", "others", "program"]);
        assert!(added.contains("2 files added") && added.contains("1 ELF files are not stored"), "{added}");
        let listed = symbols(&["list"]);
        assert_eq!(listed.lines().filter(|line| line.contains(" dwp ")).count(), 1, "{listed}");
        assert!(symbols(&["add", "program.dwp"]).contains("1 there already"));
        let options = ["--store", store, "--not-this-machine", "--no-debuginfod"];
        assert_resolved(&judged, &program, &options);
    }
}

#[test]
fn split_debug_information_is_resolved_as_llvm_symbolizer_does() {
    if !has_judges() {
        return;
    }
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let folder = tempfile::tempdir().unwrap();
        let program = compile_split(folder.path(), "program", &[version]);
        let package = folder.path().join("program.dwp");
        let elsewhere = tempfile::tempdir().unwrap();
        let moved_package = elsewhere.path().join("package");
        fs::rename(&package, &moved_package).unwrap();
        let judged = asked_and_judged(&program);
        assert_resolved(&judged, &program, &below(folder.path()));
        // The `.dwo` files are found by their name.
        let moved = elsewhere.path().join("program");
        fs::create_dir(elsewhere.path().join("units")).unwrap();
        fs::rename(&program, &moved).unwrap();
        for unit in split_files(folder.path()) {
            fs::rename(&unit, elsewhere.path().join("units").join(unit.file_name().unwrap())).unwrap();
        }
        assert_resolved(&judged, &moved, &below(elsewhere.path()));
        // And so is the package.
        fs::remove_dir_all(elsewhere.path().join("units")).unwrap();
        fs::create_dir(elsewhere.path().join("packages")).unwrap();
        fs::rename(&moved_package, elsewhere.path().join("packages/program.dwp")).unwrap();
        assert_resolved(&judged, &moved, &below(elsewhere.path()));
    }
}

#[test]
fn debug_information_that_dwz_has_shared_is_resolved_as_llvm_symbolizer_does() {
    if !has_judges() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-g", "-Wl,--build-id"];
    let program = compile_cpp(folder.path(), "program", &flags);
    let library = [&flags[..], &["-shared", "-fPIC", "-DLIBRARY"]].concat();
    let library = compile_cpp(folder.path(), "library", &library);
    let shared = folder.path().join("shared");
    fs::create_dir(&shared).unwrap();
    // With `.gnu_debugaltlink`, and with `.debug_sup` of DWARF 5.
    for form in [&[][..], &["-5"]] {
        for judge in [&program, &library] {
            fs::copy(judge, shared.join(judge.file_name().unwrap())).unwrap();
        }
        // LLVM does not read supplementary files, so that the judges are the files before.
        run(&shared, "dwz", &[form, &["-m", "common", "program", "library"]].concat());
        for judge in [&program, &library] {
            let object = shared.join(judge.file_name().unwrap());
            assert_resolved(&asked_and_judged(judge), &object, &below(&shared));
        }
    }
}

#[test]
fn rust_functions_have_their_source_names() {
    if !has_judges() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compile_rust(folder.path(), "program", &["-C", "link-arg=-Wl,--build-id"]);
    let judged = asked_and_judged(&program);
    let is_mangled = |named: &&Named| named.1.starts_with("_ZN") || named.1.starts_with("_R");
    assert!(judged.1.iter().flatten().filter(is_mangled).count() > ADDRESSES / 2);
    assert_resolved(&judged, &program, &below(folder.path()));
}

/// Writes this process's vDSO to a file. Returns addresses in its functions.
fn copy_vdso(to: &Path) -> Vec<u64> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).expect("a vDSO");
    let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
    let [start, end] = [start, end].map(|digits| u64::from_str_radix(digits, 16).unwrap());
    let mut image = vec![0; (end - start) as usize];
    fs::File::open("/proc/self/mem").unwrap().read_exact_at(&mut image, start).unwrap();
    fs::write(to, &image).unwrap();
    let elf = goblin::elf::Elf::parse(&image).unwrap();
    let functions = elf.dynsyms.iter().filter(|symbol| symbol.is_function() && symbol.st_size > 0);
    let mut vaddrs: Vec<u64> = functions.map(|function| function.st_value + 1).collect();
    vaddrs.sort_unstable();
    vaddrs.dedup();
    assert!(vaddrs.len() > 2, "{vaddrs:x?}");
    vaddrs
}

/// Regression: frames of the vDSO of this machine's kernel were not resolved without such a copy.
#[test]
fn this_machines_vdso_needs_no_file() {
    let command = Command::new();
    let copy = command.path("copy");
    let vaddrs = copy_vdso(&copy);
    let object = ProfiledObject::of(&copy, "[vdso]");
    let (_, stderr) = resolved(&command, &object, &vaddrs, &["--not-this-machine"]);
    assert!(stderr.contains(&format!("0 of {} native frames", vaddrs.len())), "{stderr}");
    let (count, stderr) = resolved(&command, &object, &vaddrs, &[]);
    assert_eq!(count, vaddrs.len(), "{stderr}");
    // Another kernel's is not this machine's.
    let other = object.with_build_id(&"ab".repeat(20));
    let (count, stderr) = resolved(&command, &other, &vaddrs, &[]);
    assert!(count == 0 && stderr.contains("this machine's vDSO"), "{stderr}");
}

/// The kernel's packages of debug files have copies of the vDSO, which is in no file of its own.
#[test]
fn addresses_in_the_vdso_are_resolved_by_a_copy_of_it() {
    if !has_judges() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("vdso64.so");
    let vaddrs = copy_vdso(&copy);
    let judged = expected(&copy, &vaddrs);
    let command = Command::new();
    let (before, locations) = message(&ProfiledObject::of(&copy, "[vdso]"), FrameForm::Agent, &vaddrs);
    let input = command.path("in.otlp");
    fs::write(&input, before.encode_to_vec()).unwrap();
    let (out, stderr) = command.symbolize(&input, "out.otlp", &below(folder.path()));
    assert!(stderr.contains(&format!("{0} of {0} native frames resolved", vaddrs.len())), "{stderr}");
    let after = messages_of(&out).remove(0);
    for (&location, expected) in locations.iter().zip(&judged) {
        assert_eq!(lines_of(&after, location), *expected);
    }
}

#[test]
fn the_result_has_the_form_of_the_files() {
    let command = Command::new();
    let object = ProfiledObject::of(Path::new(LIBRARY), "/opt/libddproftest.so");
    let vaddrs = addresses(Path::new(LIBRARY), 20);
    let objects = Path::new(LIBRARY).parent().unwrap().to_str().unwrap();
    let (one, locations) = message(&object, FrameForm::Agent, &vaddrs);
    let (other, _) = message(&object, FrameForm::Htlhash, &vaddrs[5..]);
    let framed_messages = [framed(&one), framed(&other)].concat();
    let json = |message: &ProfilesData| [to_json(&message.encode_to_vec()).unwrap(), b"\n".to_vec()].concat();
    let lines_of_json = [json(&one), json(&other)].concat();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&framed_messages).unwrap();
    let compressed = gzip.finish().unwrap();
    for (name, bytes, messages) in [
        ("plain", one.encode_to_vec(), 1),
        ("framed", framed_messages.clone(), 2),
        ("compressed", compressed, 2),
        ("one.json", json(&one), 1),
        ("lines.json", lines_of_json, 2),
    ] {
        let input = command.path(name);
        fs::write(&input, &bytes).unwrap();
        let (out, _) = command.symbolize(&input, &format!("{name}.out"), &["--path", objects]);
        let written = fs::read(&out).unwrap();
        let is_json = name.ends_with(".json");
        assert_eq!(written.first() == Some(&b'{'), is_json, "{name}");
        assert_eq!(written.starts_with(&[0, 0]), !is_json && name != "plain", "{name}");
        let read = messages_of(&out);
        assert_eq!(read.len(), messages, "{name}");
        assert_eq!(read[0].resource_profiles, one.resource_profiles, "{name}: with the original payload");
        assert!(locations.iter().all(|&location| !lines_of(&read[0], location).is_empty()), "{name}");
        // A name that ends in .gz has the result compressed.
        let (out, _) = command.symbolize(&input, &format!("{name}.gz"), &["--path", objects]);
        assert!(fs::read(&out).unwrap().starts_with(&[0x1f, 0x8b]), "{name}");
        assert_eq!(messages_of(&out), read, "{name}");
    }
    // Several files of different forms.
    let out = command.path("all.otlp");
    let mut all = command.prepared();
    all.arg("symbolize").args([command.path("plain"), command.path("lines.json")]).arg("-o").arg(&out);
    all.args(["--path", objects]).assert().success();
    assert!(fs::read(&out).unwrap().starts_with(&[0]), "length-prefixed");
    assert_eq!(messages_of(&out).len(), 3);
}

/// Regression: a sample without values resembles one of OTLP 1.9 in protobuf, so that the result could not be
/// read.
#[test]
fn a_json_message_that_protobuf_cannot_carry_is_written_as_json_alone() {
    let command = Command::new();
    let object = ProfiledObject::of(Path::new(LIBRARY), "/opt/libddproftest.so");
    let (mut one, _) = message(&object, FrameForm::Agent, &[1]);
    let (plain, json) = (command.path("plain.otlp"), command.path("one.json"));
    fs::write(&plain, one.encode_to_vec()).unwrap();
    let sample = &mut one.resource_profiles[0].scope_profiles[0].profiles[0].samples[0];
    (sample.values, sample.attribute_indices) = (Vec::new(), vec![1]);
    fs::write(&json, to_json(&one.encode_to_vec()).unwrap()).unwrap();
    let (out, _) = command.symbolize(&json, "alone.json", &[]);
    assert_eq!(messages_of(&out), [one]);
    let out = command.path("both.otlp");
    let mut both = command.prepared();
    both.arg("symbolize").args([&plain, &json]).arg("-o").arg(&out);
    let stderr = both.assert().code(2).get_output().stderr.clone();
    let stderr = String::from_utf8(stderr).unwrap();
    assert!(stderr.contains("neither values nor times") && stderr.lines().count() == 1, "{stderr}");
    assert!(!out.exists());
}

#[test]
fn a_file_that_cannot_be_read_leaves_no_result() {
    let command = Command::new();
    let input = command.path("in.otlp");
    let object = ProfiledObject::of(Path::new(LIBRARY), "/opt/libddproftest.so");
    let (one, _) = message(&object, FrameForm::Agent, &[1, 2]);
    let whole = [framed(&one), framed(&one)].concat();
    fs::write(&input, &whole[..whole.len() - 1]).unwrap();
    let out = command.path("out.otlp");
    fs::write(&out, "before").unwrap();
    let mut run = command.prepared();
    run.arg("symbolize").arg(&input).arg("-o").arg(&out);
    let failed = run.assert().code(2).get_output().clone();
    let stderr = String::from_utf8(failed.stderr).unwrap();
    assert!(stderr.contains("in.otlp") && stderr.lines().count() == 1, "{stderr}");
    assert_eq!(fs::read(&out).unwrap(), b"before");
    assert_eq!(fs::read_dir(command.folder.path()).unwrap().count(), 2, "nothing half-written");
}

/// Runs the command on one message with agent's frames. Returns how many locations have lines, and standard
/// error.
fn resolved(command: &Command, object: &ProfiledObject, vaddrs: &[u64], options: &[&str]) -> (usize, String) {
    let (before, locations) = message(object, FrameForm::Agent, vaddrs);
    let input = command.path("in.otlp");
    fs::write(&input, before.encode_to_vec()).unwrap();
    let (out, stderr) = command.symbolize(&input, "out.otlp", options);
    let after = messages_of(&out).remove(0);
    let named: Vec<_> =
        locations.iter().copied().filter(|&location| !lines_of(&after, location).is_empty()).collect();
    assert_only_lines_differ(&before, &after, &named);
    (named.len(), stderr)
}

#[test]
fn frames_that_cannot_be_resolved_stay_as_they_were() {
    if !has_judges() {
        return;
    }
    let command = Command::new();
    let folder = command.path("objects");
    fs::create_dir(&folder).unwrap();
    let objects = folder.to_str().unwrap();
    let object = ProfiledObject::of(Path::new(LIBRARY), "/opt/app/libddproftest.so");
    let vaddrs = addresses(Path::new(LIBRARY), 30);

    let (count, stderr) = resolved(&command, &object, &vaddrs, &["--path", objects]);
    assert_eq!(count, 0);
    assert!(stderr.contains("0 of 30 native frames resolved"), "{stderr}");
    assert!(stderr.contains("/opt/app/libddproftest.so: 30 frames: no file with build-id"), "{stderr}");

    // A file of the same name that belongs to another library.
    let other = otlpprof_testkit::products::DDPROFTEST_FP;
    for name in ["libddproftest.so", "libddproftest.so.debug", "libddproftest.debug"] {
        fs::copy(other, folder.join(name)).unwrap();
    }
    let (count, stderr) = resolved(&command, &object, &vaddrs, &["--path", objects]);
    assert_eq!(count, 0, "{stderr}");

    // Addresses outside the code, and in the code outside every function.
    fs::copy(LIBRARY, folder.join("right.so")).unwrap();
    let functions = otlpprof_testkit::debug_information::functions(Path::new(LIBRARY));
    let is_free = |vaddr: &u64| !functions.iter().any(|&(start, size)| (start..start + size).contains(vaddr));
    let first = functions.iter().map(|&(start, _)| start).min().unwrap();
    let last = functions.iter().map(|&(start, size)| start + size).max().unwrap();
    let gaps: Vec<u64> = (first..last).filter(is_free).collect();
    // The padding behind a function may have the function's line, but has no function.
    let answers = judged(Path::new(LIBRARY), &gaps).into_iter();
    let has_no_name = answers.map(|answer| answer.iter().all(|(function, ..)| function.is_empty()));
    let gaps = gaps.into_iter().zip(has_no_name).filter(|(_, has_no_name)| *has_no_name);
    let gaps: Vec<u64> = gaps.map(|(gap, _)| gap).take(20).collect();
    assert_eq!(gaps.len(), 20, "{LIBRARY} has no gaps between its functions");
    let outside = [8, 0x10_0000_0000, u64::MAX];
    let all = [&vaddrs[..], &gaps, &outside].concat();
    let (count, stderr) = resolved(&command, &object, &all, &["--path", objects]);
    assert_eq!(count, vaddrs.len(), "{stderr}");
    assert!(stderr.contains("30 of 53 native frames resolved"), "{stderr}");
    for line in ["3 frames: addresses outside its code", "20 frames: addresses outside every function"] {
        assert!(stderr.contains(line), "{stderr}");
    }
}

/// Objects without an identity that can be looked up: their files are there, and prove nothing.
#[test]
fn objects_without_an_identity_are_named_with_the_reason() {
    let command = Command::new();
    let folder = Path::new(LIBRARY).parent().unwrap().to_str().unwrap();
    let vaddrs = addresses(Path::new(LIBRARY), 3);
    let long = "ab".repeat(33);
    let none = "the profile has neither a build-id nor an htlhash of it";
    for (build_id, why) in [
        ("", none),
        ("abc", none),
        ("../../../../../../etc/passwd", none),
        ("0123456789abcdef/../../../../etc/passwd", none),
        (&long, "a build-id of 33 bytes, more than 32"),
    ] {
        let object = ProfiledObject::of(Path::new(LIBRARY), LIBRARY).with_build_id(build_id);
        for form in [FrameForm::RunTime, FrameForm::Offset] {
            let (before, _) = message(&object, form, &vaddrs);
            let input = command.path("in.otlp");
            fs::write(&input, before.encode_to_vec()).unwrap();
            let (out, stderr) = command.symbolize(&input, "out.otlp", &["--path", folder]);
            let after = messages_of(&out).remove(0);
            assert!(stderr.contains(&format!("unresolved: {LIBRARY}: 3 frames: {why}")), "{stderr}");
            assert_only_lines_differ(&before, &after, &[]);
        }
    }
}

#[test]
fn a_stripped_file_does_not_hide_a_fuller_one() {
    let command = Command::new();
    let folder = command.path("objects");
    fs::create_dir(&folder).unwrap();
    let objects = folder.to_str().unwrap();
    let object = ProfiledObject::of(Path::new(LIBRARY), "/opt/libddproftest.so");
    let vaddrs = addresses(Path::new(LIBRARY), 50);
    // Names of files that come before and after the fuller one's.
    for name in ["a.so", "z.so"] {
        run(&folder, "objcopy", &["--strip-all", LIBRARY, name]);
    }
    let (exported, _) = resolved(&command, &object, &vaddrs, &["--path", objects]);
    assert!(exported > 0 && exported < vaddrs.len(), "{exported}: functions that are exported");
    run(&folder, "objcopy", &["--strip-debug", LIBRARY, "m.so"]);
    let (count, _) = resolved(&command, &object, &vaddrs, &["--path", objects]);
    assert_eq!(count, vaddrs.len());
    let out = messages_of(&command.path("out.otlp")).remove(0);
    let has_line = |message: &ProfilesData| {
        let all = message.dictionary.as_ref().unwrap().location_table.clone();
        all.iter().any(|location| location.lines.iter().any(|line| line.line > 0 && location.address > 0))
    };
    assert!(!has_line(&out), "symbol tables have no lines");
    run(&folder, "objcopy", &["--only-keep-debug", LIBRARY, "n.debug"]);
    let (count, _) = resolved(&command, &object, &vaddrs, &["--path", objects]);
    assert_eq!(count, vaddrs.len());
    assert!(has_line(&messages_of(&command.path("out.otlp"))[0]), "debug information has lines");
}

#[test]
fn indexes_are_kept_and_made_again_when_they_are_torn() {
    let command = Command::new();
    let objects = Path::new(LIBRARY).parent().unwrap().to_str().unwrap();
    let object = ProfiledObject::of(Path::new(LIBRARY), "/opt/libddproftest.so");
    let vaddrs = addresses(Path::new(LIBRARY), 200);
    let options = ["--path", objects];
    let index_files = || {
        let entries = fs::read_dir(command.indexes()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    // The first use leaves a note, the second an index in its place.
    assert_eq!(resolved(&command, &object, &vaddrs, &options).0, vaddrs.len());
    let result = messages_of(&command.path("out.otlp"));
    let [note] = &index_files()[..] else { panic!("{:?}", index_files()) };
    assert_eq!(note.extension().unwrap(), "used");
    assert_eq!(fs::metadata(note).unwrap().len(), 0);
    assert_eq!(resolved(&command, &object, &vaddrs, &options).0, vaddrs.len());
    assert_eq!(messages_of(&command.path("out.otlp")), result);
    let [index] = &index_files()[..] else { panic!("{:?}", index_files()) };
    assert_eq!(index, &note.with_extension("symbols"));
    let whole = fs::read(index).unwrap();
    let written = fs::metadata(index).unwrap().modified().unwrap();
    assert_eq!(resolved(&command, &object, &vaddrs, &options).0, vaddrs.len());
    assert_eq!(messages_of(&command.path("out.otlp")), result);
    assert_eq!(fs::metadata(index).unwrap().modified().unwrap(), written, "not made again");
    let mut torn: Vec<Vec<u8>> = [0, 1, 63, 64, whole.len() / 2, whole.len() - 1]
        .into_iter()
        .map(|length| whole[..length].to_vec())
        .collect();
    // Damage in a block, in the header, in the directory; another version.
    for at in [70, 80, 9, 8, 30, whole.len() - 2] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        torn.push(damaged);
    }
    torn.push(b"not an index".repeat(100));
    for bytes in torn {
        fs::write(index, &bytes).unwrap();
        assert_eq!(resolved(&command, &object, &vaddrs, &options).0, vaddrs.len());
        assert_eq!(messages_of(&command.path("out.otlp")), result);
        assert_eq!(fs::read(index).unwrap().len(), whole.len(), "made again");
        assert_eq!(index_files().len(), 1, "nothing left beside it");
    }
}

/// Regression: an object got a second index, of the same contents, once its executable was found beside its
/// debug file.
#[test]
fn an_executable_that_adds_nothing_makes_no_index_of_its_own() {
    let command = Command::new();
    let [debug, code] = ["debug", "code"].map(|name| command.path(name));
    [&debug, &code].into_iter().for_each(|folder| fs::create_dir(folder).unwrap());
    run(&debug, "objcopy", &["--only-keep-debug", LIBRARY, "library.debug"]);
    run(&code, "objcopy", &["--strip-all", LIBRARY, "library.so"]);
    let object = ProfiledObject::of(Path::new(LIBRARY), "/opt/libddproftest.so");
    let vaddrs = addresses(Path::new(LIBRARY), 50);
    let both = [below(&debug), below(&code)].concat();
    for (options, extension) in [(&both[..2], "used"), (&both, "symbols"), (&both[..2], "symbols")] {
        assert_eq!(resolved(&command, &object, &vaddrs, options).0, vaddrs.len());
        let files: Vec<_> =
            fs::read_dir(command.indexes()).unwrap().map(|entry| entry.unwrap().path()).collect();
        let [file] = &files[..] else { panic!("{files:?}") };
        assert_eq!(file.extension().unwrap(), extension);
    }
}

#[test]
fn several_messages_are_worth_an_index_at_the_first_use() {
    let command = Command::new();
    let objects = Path::new(LIBRARY).parent().unwrap().to_str().unwrap();
    let object = ProfiledObject::of(Path::new(LIBRARY), "/opt/libddproftest.so");
    let vaddrs = addresses(Path::new(LIBRARY), 20);
    let message = message(&object, FrameForm::Agent, &vaddrs).0.encode_to_vec();
    let with_length = [&(message.len() as u32).to_be_bytes()[..], &message].concat();
    let input = command.path("in.otlp");
    let mut extensions = Vec::new();
    for (count, folder) in [(1, "one"), (2, "two")] {
        fs::write(&input, with_length.repeat(count)).unwrap();
        let mut symbolize = command.prepared();
        symbolize.env("OTLPPROF_CACHE", command.path(folder)).args(["symbolize", "--path", objects, "-o"]);
        symbolize.arg(command.path("out.otlp")).arg(&input).assert().success();
        let entries = fs::read_dir(command.path(folder).join("indexes")).unwrap();
        let of = |path: std::path::PathBuf| path.extension().unwrap().to_str().unwrap().to_owned();
        extensions.extend(entries.map(|entry| of(entry.unwrap().path())));
    }
    assert_eq!(extensions, ["used", "symbols"]);
}

#[test]
fn several_processes_make_the_same_index_at_once() {
    let command = Command::new();
    let objects = Path::new(LIBRARY).parent().unwrap();
    let object = ProfiledObject::of(Path::new(LIBRARY), "/opt/libddproftest.so");
    let vaddrs = addresses(Path::new(LIBRARY), 200);
    // The second use makes the index.
    resolved(&command, &object, &vaddrs, &["--path", objects.to_str().unwrap()]);
    let (before, _) = message(&object, FrameForm::Agent, &vaddrs);
    let input = command.path("in.otlp");
    fs::write(&input, before.encode_to_vec()).unwrap();
    let started: Vec<_> = (0..4)
        .map(|number| {
            let mut command_line = otlpprof();
            command_line.env("OTLPPROF_CACHE", command.path("cache")).env_remove("DEBUGINFOD_URLS");
            command_line.arg("symbolize").arg(&input).arg("-o").arg(command.path(&format!("out{number}")));
            command_line.arg("--path").arg(objects).spawn().unwrap()
        })
        .collect();
    for mut process in started {
        assert!(process.wait().unwrap().success());
    }
    let results: Vec<_> = (0..4).map(|number| messages_of(&command.path(&format!("out{number}")))).collect();
    assert!(results.iter().all(|result| *result == results[0]));
    let left: Vec<_> =
        fs::read_dir(command.indexes()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn without_a_folder_for_indexes_frames_are_resolved_all_the_same() {
    let command = Command::new();
    fs::write(command.path("cache"), "a file, where the folder would be").unwrap();
    let objects = Path::new(LIBRARY).parent().unwrap().to_str().unwrap();
    let object = ProfiledObject::of(Path::new(LIBRARY), "/opt/libddproftest.so");
    let vaddrs = addresses(Path::new(LIBRARY), 20);
    assert_eq!(resolved(&command, &object, &vaddrs, &["--path", objects]).0, vaddrs.len());
}

#[test]
fn imported_profiles_are_resolved_by_the_text_of_their_frames() {
    if !has_judges() {
        return;
    }
    let command = Command::new();
    let objects = Path::new(LIBRARY).parent().unwrap().to_str().unwrap();
    let id = otlpprof_elf::build_id::of_file(Path::new(LIBRARY)).unwrap();
    let (start, _) = *otlpprof_testkit::debug_information::functions(Path::new(LIBRARY)).first().unwrap();
    let text = format!("{id}.<remote>({start:#x})");
    let collapsed = command.path("in.collapsed");
    fs::write(&collapsed, format!("main;{text} 5\nmain;other 7\n")).unwrap();
    let expected = judged(Path::new(LIBRARY), &[start]).remove(0);
    let (function, file, line, _) = expected.first().unwrap();
    // In a file of its own, and in a report.
    let (out, stderr) = command.symbolize(&collapsed, "out.otlp", &["--path", objects]);
    assert!(stderr.contains("1 of 1 native frames resolved"), "{stderr}");
    let messages = messages_of(&out);
    let all = messages[0].dictionary.as_ref().unwrap().location_table.len() as i32;
    let named: Vec<_> = (1..all).flat_map(|location| lines_of(&messages[0], location)).collect();
    let found = named.iter().find(|named| named.1 == *function).unwrap_or_else(|| panic!("{named:?}"));
    assert_eq!((&found.2, found.3), (file, i64::from(*line)));
    let of = |arguments: &[&str]| {
        let mut report = command.prepared();
        report.arg(arguments[0]).arg(&collapsed).args(&arguments[1..]);
        String::from_utf8(report.assert().success().get_output().stdout.clone()).unwrap()
    };
    for arguments in
        [&["report"][..], &["export", "--to", "collapsed", "-o", "-"], &["flamegraph", "-o", "-"]]
    {
        // A page's data are compressed.
        let readable = |output: String| match arguments[0] {
            "flamegraph" => String::from_utf8_lossy(&otlpprof_testkit::pages::data(&output)).into_owned(),
            _ => output,
        };
        assert!(!readable(of(arguments)).contains(function.as_str()));
        let with_symbols = readable(of(&[arguments, &["--symbols", "--path", objects]].concat()));
        assert!(with_symbols.contains(function.as_str()), "{with_symbols}");
        assert!(!with_symbols.contains("<remote>"), "{with_symbols}");
    }
    let mut report = command.prepared();
    report.arg("report").arg(&collapsed).args(["--path", objects]);
    let output = report.assert().code(2).get_output().clone();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "otlpprof: --path: needs --symbols\n");
}

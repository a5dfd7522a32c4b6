//! Native frames of a real JVM's profiles, resolved by `otlpprof symbolize`: every frame of the sample
//! library is at the line of the source that calls the frame's callee, and the VM's frames have the names
//! that the agent itself gives.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use otlpprof_core::address::ElfVaddr;
use otlpprof_elf::symbols::demangle::demangle;
use otlpprof_otlp::read::{self, Message};
use otlpprof_testkit::binutils::linkage_tables;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::{java_homes, newest_or_all};
use otlpprof_testkit::otlp_fixture::Dictionary;
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::stacks::{Frame, Stack, cpu_stacks};
use otlpprof_testkit::this_build::libraries;
use otlpprof_testkit::unnamed_frames::{
    Command, FrameForm, ProfiledObject, lines_of, message_of, messages_of,
};
use prost::Message as _;

/// The source files of the sample library, by name.
fn sources() -> BTreeMap<String, Vec<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("native/ddproftest");
    let files =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let lines = |path: &Path| fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect();
    files.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), lines(&path))).collect()
}

/// The function in whose definition a line of a C source file is. Definitions begin and end in the first
/// column.
fn function_at(lines: &[String], line: i64) -> Option<String> {
    let before = lines.get(..usize::try_from(line).ok()?)?;
    let begins = |text: &str| !text.starts_with([' ', '\t', '{', '}', '#', '/', '*']) && text.contains('(');
    let begin = before.iter().rposition(|text| begins(text))?;
    if before[begin..before.len() - 1].iter().any(|text| text.starts_with('}')) {
        return None;
    }
    let name = before[begin].split('(').next()?;
    name.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().map(str::to_owned)
}

fn read_messages(file: &Path) -> Vec<Message> {
    read::read(&fs::read(file).unwrap()).map(|message| message.unwrap()).collect()
}

/// The frames of a library.
fn frames_of<'s>(stacks: &'s [Stack], library: &'s str) -> impl Iterator<Item = &'s Frame> {
    stacks.iter().flat_map(|stack| stack.frames.iter()).filter(move |frame| frame.object == library)
}

#[test]
fn frames_are_at_the_lines_of_the_source_that_call_their_callees() {
    let sources = sources();
    for home in newest_or_all() {
        for library in libraries() {
            let label = format!("{} {library}", home.display());
            let linkage_tables = linkage_tables(library);
            assert!(!linkage_tables.is_empty(), "{label}");
            let command = Command::new();
            let run = JavaRun::new(&home, "Demo").argument(1.5).library(library);
            let run = run.agent("remotesym=true,cpu=100us,file=FILE").run().expect_success();
            let before = cpu_stacks(&run.messages());
            let objects = Path::new(library).parent().unwrap().to_str().unwrap();
            let mut after = Vec::new();
            for file in run.files() {
                let (out, _) = command.symbolize(&file, "out.otlp", &["--path", objects]);
                after.extend(cpu_stacks(&read_messages(&out)));
            }
            let remote = |stacks| frames_of(stacks, library).filter(|frame| frame.name.is_empty());
            assert!(remote(&before).count() > 50, "{label}: {} remote frames", remote(&before).count());
            let unresolved: Vec<ElfVaddr> = remote(&after).map(|frame| frame.address).collect();
            assert!(
                unresolved.iter().all(|address| linkage_tables.iter().any(|table| table.contains(address))),
                "{label}: unresolved frames at {unresolved:x?}"
            );
            assert_eq!(before.len(), after.len(), "{label}");
            let (mut calls, mut functions) = (0, BTreeSet::new());
            for stack in &after {
                for (at, frame) in
                    stack.frames.iter().enumerate().filter(|(_, frame)| frame.object == library)
                {
                    let file = frame.file.rsplit('/').next().unwrap();
                    // Hand-written code has only a symbol.
                    let Some(lines) = sources.get(file).filter(|_| frame.line > 0) else { continue };
                    let text = &lines[frame.line as usize - 1];
                    assert_eq!(
                        function_at(lines, frame.line).as_deref(),
                        Some(&*frame.name),
                        "{label}: {file}:{}: {text}",
                        frame.line
                    );
                    functions.insert(frame.name.clone());
                    let callee = at.checked_sub(1).map(|at| &stack.frames[at]);
                    if let Some(callee) = callee.filter(|callee| callee.object == library) {
                        assert!(
                            text.contains(&format!("{}(", callee.name)),
                            "{label}: {file}:{}: {text}: does not call {}",
                            frame.line,
                            callee.name
                        );
                        calls += 1;
                    }
                }
            }
            assert!(calls > 50, "{label}: {calls} calls");
            for burner in
                ["ddprof_spin", "ddprof_hash", "hash_block", "ddprof_recurse", "compare_keys", "mix"]
            {
                assert!(functions.contains(burner), "{label}: {functions:?}");
            }
        }
    }
}

/// The addresses of the functions of each name, by binutils' nm.
fn symbols(library: &Path) -> BTreeMap<String, BTreeSet<u64>> {
    let mut symbols = BTreeMap::<String, BTreeSet<u64>>::new();
    for table in [&[][..], &["-D"]] {
        let output =
            std::process::Command::new("nm").args(table).arg(library).output().expect("nm (binutils)");
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let mut words = line.split(' ');
            let (Some(address), Some(_), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            symbols.entry(demangle(name)).or_default().insert(address);
        }
    }
    symbols
}

/// Whether a library has all of these sections, by readelf.
fn has_sections(library: &Path, names: &[&str]) -> bool {
    let output = std::process::Command::new("readelf").arg("-SW").arg(library).output();
    let listing = String::from_utf8(output.expect("readelf (binutils)").stdout).unwrap();
    let words: BTreeSet<&str> = listing.split_whitespace().collect();
    names.iter().all(|name| words.contains(name))
}

#[test]
fn frames_of_the_vm_have_the_names_that_the_agent_gives() {
    let mut tested = 0;
    for home in java_homes() {
        let libjvm = home.join("lib/server/libjvm.so").canonicalize().unwrap();
        if !has_sections(&libjvm, &[".symtab", ".note.gnu.build-id"]) {
            continue;
        }
        let run =
            JavaRun::new(&home, "Demo").argument(1.5).agent("cpu=100us,file=FILE").run().expect_success();
        let stacks = cpu_stacks(&run.messages());
        let path = libjvm.to_str().unwrap();
        let named: BTreeMap<ElfVaddr, String> = frames_of(&stacks, path)
            .filter(|frame| !frame.name.starts_with('['))
            .map(|frame| (frame.address, frame.name.clone()))
            .collect();
        assert!(named.len() >= 20, "{}: {named:?}", run.label);
        let symbols = symbols(&libjvm);
        let command = Command::new();
        let object = ProfiledObject::of(&libjvm, path);
        let mut tables = Dictionary::new();
        let locations: Vec<i32> =
            named.keys().map(|address| object.location(&mut tables, FrameForm::Agent, address.0)).collect();
        let input = command.path("in.otlp");
        fs::write(&input, message_of(tables, &locations).encode_to_vec()).unwrap();
        let folder = libjvm.parent().unwrap().to_str().unwrap();
        let (out, stderr) = command.symbolize(&input, "out.otlp", &["--path", folder]);
        let message = messages_of(&out).remove(0);
        for (&location, (address, name)) in locations.iter().zip(&named) {
            let chain = lines_of(&message, location);
            let outermost = chain.last().map(|function| &*function.0).unwrap_or_default();
            let addresses = |name: &str| symbols.get(name).cloned().unwrap_or_default();
            // Where equal code is kept once, several functions have the address.
            let is_alias = !addresses(outermost).is_disjoint(&addresses(name));
            assert!(
                outermost == name || is_alias,
                "{}: {address:#x}: {outermost:?}, not {name:?}\n{stderr}",
                home.display()
            );
        }
        tested += 1;
    }
    // Of the JDKs that the tests install, Temurin's 25 has both.
    if tested == 0 {
        not_tested("names of the VM's frames, as no JDK has a libjvm with a symbol table and a build-id");
    }
}

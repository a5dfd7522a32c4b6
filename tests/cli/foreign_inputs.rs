//! Files of other tools, in the forms in which people have them: comments, encodings and fractions in
//! collapsed stacks; labels with several values, wishes and emptiness in pprof; programs in other languages.

use std::path::PathBuf;

use otlpprof_testkit::commands::{error_of, quiet_output, run_otlpprof, text};
use otlpprof_testkit::pprof_fixture::{Label, Profile, valid};
use prost::Message as _;
use tempfile::TempDir;

/// The standard output and error of a command that succeeds.
fn both(arguments: &[&str]) -> (String, String) {
    let output = run_otlpprof(arguments).success().get_output().clone();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn write(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn write_pprof(folder: &TempDir, name: &str, profile: &Profile) -> PathBuf {
    write(folder, name, &profile.encode_to_vec())
}

/// The rows of a report's table: code, function and self value, without spaces at their ends.
fn rows(report: &str) -> Vec<String> {
    let table = report.lines().skip_while(|line| !line.ends_with("FUNCTION")).skip(1);
    table.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Regression: a comment that ends in a number was a stack, a byte order mark and leading spaces made a
/// second root, and UTF-16 or a comment in the first line was "no OTLP profile".
#[test]
fn comments_and_encodings_of_collapsed_stacks_change_no_sum() {
    let folder = TempDir::new().unwrap();
    let lines = ["main;load;parse 30", "  main;load;read  10", "main;draw\t2"];
    let plain = write(&folder, "plain", lines.join("\n").as_bytes());
    let expected = quiet_output(&["report", text(&plain)]);
    assert!(expected.starts_with("samples of unknown_service: 42\n"), "{expected}");
    let windows = lines.join("\r\n") + "\r\n";
    let utf16 = |unit: fn(u16) -> [u8; 2]| {
        format!("\u{feff}{windows}").encode_utf16().flat_map(unit).collect::<Vec<_>>()
    };
    for (name, bytes) in [
        ("crlf", windows.clone().into_bytes()),
        ("bom", format!("\u{feff}{windows}").into_bytes()),
        ("utf16le", utf16(u16::to_le_bytes)),
        ("utf16be", utf16(u16::to_be_bytes)),
    ] {
        let file = write(&folder, name, &bytes);
        assert_eq!(quiet_output(&["report", text(&file)]), expected, "{name}");
    }
    let commented = format!("# sampler: 4.1.0\n# interval: 100\n\n{windows}\n# duration: 4200\n");
    let file = write(&folder, "commented", commented.as_bytes());
    for command in ["report", "print"] {
        let (_, error) = both(&[command, text(&file)]);
        let line = format!("{}: collapsed stacks, without 3 lines of comments\n", text(&file));
        assert_eq!(error, line, "{command}");
    }
    assert_eq!(both(&["report", text(&file)]).0, expected);
}

/// Regression: a file of fractions was in no known format.
#[test]
fn fractions_of_collapsed_stacks_are_read_or_refused_by_line() {
    let folder = TempDir::new().unwrap();
    let file =
        write(&folder, "fractions", b"main;load;parse 0.75\nmain;load;read .25\nmain;draw 1e-1\nmain 2\n");
    let report = quiet_output(&["report", text(&file)]);
    assert!(report.starts_with("samples of unknown_service: 3.1\n"), "{report}");
    assert!(rows(&report).contains(&"0.75 24.2 % 0.75 24.2 % native parse".to_owned()), "{report}");
    let late = write(&folder, "late", [&b"main 1\n".repeat(1 << 14)[..], b"main 0.5\n"].concat().as_slice());
    let error = error_of(&["report", text(&late)]);
    assert!(error.contains("line 16385: the value \"0.5\" is a fraction"), "{error}");
}

/// Regression: the first of two counts was a part of the function's name.
#[test]
fn the_output_of_difffolded_is_refused_with_the_way_to_compare() {
    let folder = TempDir::new().unwrap();
    let two = write(&folder, "two", b"main;parse 10 25\nmain;print 40 40\nmain;gone 5 0\n");
    let expected = format!(
        "otlpprof: {}: line 1: two values, 10 and 25, as in all lines; to compare two profiles, pass both \
         files: otlpprof diff BASE NEW\n",
        text(&two)
    );
    assert_eq!(error_of(&["report", text(&two)]), expected);
    let named = write(&folder, "named", b"main;operator new[] 64 5\nmain;worker 3 17\nmain;parse 20\n");
    let report = quiet_output(&["report", text(&named)]);
    for row in ["operator new[] 64", "worker 3", "parse"] {
        assert!(report.lines().any(|line| line.ends_with(row)), "{row}: {report}");
    }
}

/// Regression: functions in Go were Java methods with other names, so that one program's files differed.
#[test]
fn functions_in_go_keep_their_names() {
    let folder = TempDir::new().unwrap();
    let names = ["net/http.(*conn).serve", "encoding/json.Marshal", "sync/atomic.LoadInt64"];
    let collapsed =
        write(&folder, "go.folded", format!("runtime.goexit;{} 40\n", names.join(";")).as_bytes());
    let mut profile = valid();
    let functions = names.map(|name| profile.function(name, ""));
    let locations = functions.map(|function| profile.location(0, 0, &[(function, 1)]));
    profile.sample.truncate(1);
    profile.sample[0].location_id = locations.into_iter().rev().collect();
    let pprof = write_pprof(&folder, "go.pb", &profile);
    for file in [collapsed, pprof] {
        let report = quiet_output(&["report", text(&file), "--type", "samples"]);
        for name in names {
            let row = rows(&report).into_iter().find(|row| row.ends_with(name));
            assert!(row.as_ref().is_some_and(|row| row.contains(" native ")), "{name}: {report}");
        }
        assert!(!report.contains("Java"), "{report}");
    }
}

/// Classes of obfuscated and generated code have names that Java's conventions do not allow.
#[test]
fn every_class_of_a_jvm_is_java() {
    let folder = TempDir::new().unwrap();
    let names = ["java/lang/Thread.run", "a/b.c"];
    let collapsed = write(&folder, "java.folded", format!("{} 40\n", names.join(";")).as_bytes());
    let mut profile = valid();
    let functions = names.map(|name| profile.function(name, ""));
    let locations = functions.map(|function| profile.location(0, 0, &[(function, 1)]));
    profile.sample.truncate(1);
    profile.sample[0].location_id = locations.into_iter().rev().collect();
    for file in [collapsed, write_pprof(&folder, "java.pb", &profile)] {
        let rows = rows(&quiet_output(&["report", text(&file), "--type", "samples"]));
        for name in ["java.lang.Thread.run", "a.b.c"] {
            let expected = format!("Java {name}");
            assert!(rows.iter().any(|row| row.ends_with(&expected)), "{name}: {rows:?}");
        }
    }
}

/// Regression: of several values of a label the last one was kept without a word, and a thread that is a
/// number gave a message that is not valid.
#[test]
fn of_several_values_of_a_label_the_first_is_kept_and_a_line_says_so() {
    let folder = TempDir::new().unwrap();
    let mut profile = valid();
    let [a, b] = ["a", "b"].map(|value| profile.text_label("tag", value));
    let thread = Label { key: profile.string("thread"), num: 17, ..Label::default() };
    let nameless = profile.text_label("", "x");
    profile.sample[0].label = vec![a, b, nameless];
    profile.sample[1].label = vec![a, a];
    profile.sample[2].label = vec![thread];
    let file = write_pprof(&folder, "labels.pb", &profile);
    let line = format!(
        "{}: pprof: 1 samples have several values of a label (tag): the first is kept\n",
        text(&file)
    );
    let sum = |option: &[&str]| {
        let (report, error) = both(&[&["report", text(&file), "--type", "samples"], option].concat());
        assert_eq!(error, line);
        report.lines().next().unwrap().split(" in ").next().unwrap().to_owned()
    };
    assert_eq!(sum(&[]), "samples of shop: 42");
    assert_eq!(sum(&["--where", "tag=a"]), "samples of shop: 30");
    assert_eq!(sum(&["--thread", "17"]), "samples of shop: 12");
    let merged = folder.path().join("merged.otlp");
    let merge = run_otlpprof(&["merge", text(&file), "-o", text(&merged)]).success();
    assert!(String::from_utf8_lossy(&merge.get_output().stderr).contains(&line));
    run_otlpprof(&["validate", text(&merged)]).success();
}

/// Regression: the type that a pprof file asks for was not the one that is shown.
#[test]
fn the_type_that_a_file_asks_for_is_shown_first() {
    let folder = TempDir::new().unwrap();
    let shown = |default: &str| {
        let mut profile = valid();
        profile.default_sample_type = profile.string(default);
        let file = write_pprof(&folder, "wish.pb", &profile);
        quiet_output(&["report", text(&file)]).split(' ').next().unwrap().to_owned()
    };
    assert_eq!(shown("samples"), "samples");
    assert_eq!(shown("cpu"), "cpu");
    assert_eq!(shown("no such type"), "cpu");
    assert_eq!(shown(""), "cpu");
}

/// Regression: a profile without samples was no profile, and its length was lost.
#[test]
fn a_side_without_samples_is_compared_as_such() {
    let folder = TempDir::new().unwrap();
    let full = write_pprof(&folder, "full.pb", &valid());
    let empty = write_pprof(&folder, "empty.pb", &Profile { sample: Vec::new(), ..valid() });
    let report = quiet_output(&["report", text(&empty)]);
    assert!(report.starts_with("cpu of shop: 0 ns in 10.0 s, from 2023-11-14T22:13:20Z\n"), "{report}");
    let page = folder.path().join("page.html");
    for (base, new, line) in [
        (&empty, &full, "the base side has no value: everything is new"),
        (&full, &empty, "the new side has no value: everything is gone"),
    ] {
        for option in ["--raw", "--per-second"] {
            let change = quiet_output(&["report", text(new), "--diff", text(base), option]);
            assert!(change.lines().any(|found| found == line), "{change}");
        }
        let written = run_otlpprof(&["diff", text(base), text(new), "-o", text(&page)]).success();
        assert!(String::from_utf8_lossy(&written.get_output().stderr).contains(line));
    }
    let expected = "otlpprof: neither side has a value to compare, or none that the options select\n";
    assert_eq!(error_of(&["report", text(&empty), "--diff", text(&empty)]), expected);
    assert_eq!(error_of(&["report", text(&full), "--diff", text(&full), "--frame", "NoSuch"]), expected);
    std::fs::remove_file(&page).unwrap();
    assert_eq!(error_of(&["diff", text(&empty), text(&empty), "-o", text(&page)]), expected);
    assert!(!page.exists());
}

/// Regression: pprof took the first library, such as libjvm.so, for the program.
#[test]
fn the_first_mapping_of_an_exported_profile_is_the_program() {
    let folder = TempDir::new().unwrap();
    let mut profile = valid();
    let (library, mapping) = (profile.string("/usr/lib/libz.so.1"), profile.mapping[0]);
    profile.mapping.push(otlpprof_testkit::pprof_fixture::Mapping { id: 2, filename: library, ..mapping });
    // The library's location is met first.
    profile.location[1].mapping_id = 2;
    let file = write_pprof(&folder, "shop.pb", &profile);
    let out = folder.path().join("out.pb.gz");
    run_otlpprof(&["export", text(&file), "--to", "pprof", "-o", text(&out)]).success();
    let mut bytes = Vec::new();
    let packed = std::fs::File::open(&out).unwrap();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed), &mut bytes).unwrap();
    let exported = Profile::decode(&bytes[..]).unwrap();
    let name = |at: usize| &*exported.string_table[usize::try_from(exported.mapping[at].filename).unwrap()];
    assert_eq!([name(0), name(1)], ["/usr/bin/shop", "/usr/lib/libz.so.1"]);
    assert!(quiet_output(&["report", text(&out)]).starts_with("cpu of shop: "));
}

/// Regression: sums were cut to the largest number, so that two functions had 97.6 % each.
#[test]
fn values_that_cannot_be_added_are_refused() {
    let folder = TempDir::new().unwrap();
    let half = "4611686018427387904";
    let file = write(&folder, "half", format!("a;left {half}\n").as_bytes());
    assert!(
        quiet_output(&["report", text(&file)])
            .starts_with("samples of unknown_service: 4,611,686,018,427,387,904\n")
    );
    let expected = "otlpprof: the values add up to 2^63 - 1 or more: select a part of the samples\n";
    assert_eq!(error_of(&["report", text(&file), text(&file)]), expected);
    let both = write(&folder, "both", format!("a;left {half}\na;right {half}\n").as_bytes());
    let out = folder.path().join("out");
    for arguments in [&["report", text(&both)][..], &["flamegraph", text(&both), "-o", text(&out)]] {
        let error = error_of(arguments);
        assert!(error.ends_with(": line 2: the sum of the values up to here is not below 2^63\n"), "{error}");
    }
    let mut profile = valid();
    profile.sample[0].value[1] = i64::MAX;
    let file = write_pprof(&folder, "sum.pb", &profile);
    let error = error_of(&["report", text(&file)]);
    assert!(
        error.ends_with(": pprof: sample 1: the sum of the values up to here is not below 2^63\n"),
        "{error}"
    );
}

//! `otlpprof validate`, as a user runs it. The rules themselves are in `otlp_validate.rs`.

use std::path::Path;

use otlpprof_otlp::validate::rules::RULES;
use otlpprof_otlp::wire::ProfilesData;
use otlpprof_testkit::commands::otlpprof;
use otlpprof_testkit::otlp_fixture::{framed, valid};
use prost::Message as _;
use tempfile::NamedTempFile;

fn file(bytes: &[u8]) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    file
}

fn broken(mutate: impl FnOnce(&mut ProfilesData)) -> NamedTempFile {
    let mut data = valid();
    mutate(&mut data);
    file(&data.encode_to_vec())
}

/// The exit code and standard output. Standard error must be empty.
fn validate(arguments: &[&str], files: &[&NamedTempFile]) -> (i32, String) {
    let paths: Vec<_> = files.iter().map(|file| file.path()).collect();
    let (code, out, err) = run(arguments, &paths);
    assert_eq!(err, "");
    (code, out)
}

/// The exit code, standard output and standard error.
fn run(arguments: &[&str], files: &[&Path]) -> (i32, String, String) {
    let mut command = otlpprof();
    let output = command.arg("validate").args(arguments).args(files).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.code().unwrap(), out, err)
}

#[test]
fn the_exit_code_is_that_of_the_worst_file() {
    let clean = file(&valid().encode_to_vec());
    let warned = broken(|data| data.dictionary.as_mut().unwrap().string_table.push("nobody's".into()));
    let wrong = broken(|data| data.resource_profiles[0].scope_profiles[0].profiles[0].sample_type = None);
    let unreadable = file(&framed(&valid())[..100]);
    assert_eq!(validate(&[], &[&clean]).0, 0);
    assert_eq!(validate(&[], &[&clean, &warned]).0, 0);
    assert_eq!(validate(&["--strict"], &[&clean]).0, 0);
    assert_eq!(validate(&["--strict"], &[&warned, &clean]).0, 1);
    assert_eq!(validate(&[], &[&wrong, &warned]).0, 1);
    let empty = file(b"");
    assert_eq!(run(&[], &[empty.path(), clean.path()]).0, 2);
    assert_eq!(run(&[], &[wrong.path(), unreadable.path(), clean.path()]).0, 2);
}

#[test]
fn breaches_are_printed_with_rule_and_place() {
    let wrong = broken(|data| {
        for profile in &mut data.resource_profiles[0].scope_profiles[0].profiles {
            profile.period = 0;
        }
        data.resource_profiles[0].scope_profiles[0].profiles[0].samples[1].attribute_indices.push(999);
    });
    let name = wrong.path().display();
    let (_, text) = validate(&["--show", "1"], &[&wrong]);
    let attributes = valid().dictionary.unwrap().attribute_table.len();
    assert_eq!(
        text,
        format!(
            "{name}: error: index-out-of-range: message 0, profile 0, sample 1: attribute_indices is 999, \
             attribute_table has {attributes}\n\
             {name}: warning: period-missing: message 0, profile 0: 0\n\
             {name}: warning: period-missing: and 1 more\n\
             {name}: 1 message, 2 profiles, 4 samples; 1 error, 2 warnings\n"
        )
    );
}

#[test]
fn a_read_error_is_one_line() {
    let garbage = file(b"not a profile at all");
    let no_length = file(b"\0\0\0");
    let cut = file(&[framed(&valid()), vec![0, 0, 1, 0, 0x0a]].concat());
    let byte = framed(&valid()).len();
    for (file, line) in [
        (&garbage, "unknown-format: byte 0: not an OTLP profile: the file is in no known format".to_owned()),
        (&no_length, "frame-truncated: byte 0: truncated: 3 of the 4 bytes of a length prefix".to_owned()),
        (
            &cut,
            format!(
                "frame-truncated: byte {byte}: truncated: a message of 256 bytes is announced and 1 follow \
                 (before it: 1 message, 2 profiles, 4 samples; 0 errors, 0 warnings)"
            ),
        ),
    ] {
        let name = file.path().display();
        let line = format!("otlpprof: {name}: unreadable: {line}\n");
        assert_eq!(run(&[], &[file.path()]), (2, String::new(), line.clone()));
        let (code, out, err) = run(&["--show", "0"], &[file.path()]);
        assert_eq!((code, &*out, err.lines().count()), (2, "", 1), "{err}");
        let (code, out, err) = run(&["--format", "json"], &[file.path()]);
        let report: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, err, &report[0]["breaches"][0]["severity"]), (2, line, &"unreadable".into()));
    }
}

#[test]
fn a_missing_file_is_one_line_and_nothing_is_reported_of_the_others() {
    let clean = file(&valid().encode_to_vec());
    let missing = Path::new("/nonexistent/missing.otlp");
    for arguments in [&[][..], &["--format", "json"]] {
        for files in [[clean.path(), missing], [missing, clean.path()]] {
            let (code, out, err) = run(arguments, &files);
            assert_eq!((code, &*out, err.lines().count()), (2, "", 1), "{err}");
            assert!(err.contains("/nonexistent/missing.otlp"), "{err}");
        }
    }
}

#[test]
fn json_has_the_same_content() {
    let wrong = broken(|data| data.resource_profiles[0].scope_profiles[0].profiles[0].period = 0);
    let (code, text) = validate(&["--format", "json", "--strict"], &[&wrong]);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 1);
    assert_eq!(report[0]["samples"], 4);
    let breach = &report[0]["breaches"][0];
    assert_eq!(breach["rule"], "period-missing");
    assert_eq!(breach["severity"], "error");
    assert_eq!(breach["count"], 1);
    assert_eq!(breach["first"][0]["place"], "message 0, profile 0");
}

#[test]
fn the_rules_are_listed() {
    let (code, text) = validate(&["--rules"], &[]);
    assert_eq!((code, text.lines().count()), (0, RULES.len()));
    for (rule, line) in RULES.iter().zip(text.lines()) {
        assert!(line.contains(rule.name) && line.contains(rule.reason), "{line}");
    }
    let (_, text) = validate(&["--rules", "--format", "json"], &[]);
    let rules: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(rules.as_array().unwrap().len(), RULES.len());
}

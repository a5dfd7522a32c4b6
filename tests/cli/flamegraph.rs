//! `otlpprof flamegraph` and `otlpprof diff`: each page is compared with the files that it was made of by a
//! reader in Python, independent of otlpprof (`scripts/page_truth.py`).

use std::path::Path;

use crate::generated_profiles::generated;
use otlpprof_otlp::wire::{self, ProfilesData};
use otlpprof_testkit::commands::{run_otlpprof, text};
use otlpprof_testkit::java_run::under_all_engines;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::otlp_fixture::valid;
use otlpprof_testkit::pages::{used, write};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Compares the rows of a page with its files.
fn compare(page: &Path, arguments: &[&str]) -> Option<Result<Value, String>> {
    otlpprof_testkit::pages::compare("page", page, arguments)
}

/// Writes a page of all samples in the file, and compares it.
fn check(folder: &TempDir, file: &Path, options: &[&str]) -> Option<Value> {
    let page = folder.path().join("page.html");
    let command = ["flamegraph", text(file), "-o", text(&page), "--idle"];
    run_otlpprof(&[&command, options].concat()).success();
    let of_lines = options.iter().filter(|&&option| option == "--lines").copied();
    let arguments: Vec<_> = std::iter::once(text(file)).chain(of_lines).collect();
    compare(&page, &arguments).map(|answer| answer.unwrap_or_else(|difference| panic!("{difference}")))
}

/// The fixture ten seconds later, with twice the period and other values.
fn later() -> ProfilesData {
    let mut data = valid();
    for profile in &mut data.resource_profiles[0].scope_profiles[0].profiles {
        profile.time_unix_nano += profile.duration_nano;
        profile.period *= 2;
        for sample in &mut profile.samples {
            sample.values.iter_mut().for_each(|value| *value += 1);
            let later = |time: &mut u64| *time += profile.duration_nano;
            sample.timestamps_unix_nano.iter_mut().for_each(later);
        }
    }
    data
}

#[test]
fn a_page_has_every_sample_with_its_stack_labels_and_time() {
    let folder = TempDir::new().unwrap();
    let file = write(&folder, "app.otlp", &[valid(), later()]);
    for options in [&[][..], &["--lines"], &["--steps", "7"], &["--steps", "0"]] {
        let Some(counts) = check(&folder, &file, options) else { return };
        // CPU time: 42 periods of 10 ms and 44 of 20 ms. Wall-clock time: 3 of 50 ms and 3 of 100 ms.
        assert_eq!(counts["total"], 1_300_000_000_i64 + 450_000_000, "{options:?}");
    }
    let page = folder.path().join("cpu.html");
    run_otlpprof(&["flamegraph", text(&file), "-o", text(&page), "--type", "cpu"]).success();
    let Some(answer) = compare(&page, &[text(&file)]) else { return };
    assert!(answer.unwrap_err().contains("'wall'"), "the page has no wall-clock time");
}

/// The generated profiles begin at 2023-11-14T22:13:20Z, and last 80 seconds.
#[test]
fn a_page_has_the_samples_that_its_command_selects() {
    let folder = TempDir::new().unwrap();
    let file = write(&folder, "generated.otlp", &generated(3));
    let page = folder.path().join("page.html");
    let all = check(&folder, &file, &[]);
    for filters in [
        &["--type", "wall"][..],
        &["--where", "rest_endpoint=/<b>2&amp;"],
        &["--where", "process.pid=2", "--thread", "worker-1"],
        &["--frame", "Class4|native_1"],
        &["--without", "do_sys", "--frame", "alert"],
        &["--type", "wall", "--from", "2023-11-14T22:13:41Z", "--to", "2023-11-14T22:14:07Z"],
        &["--type", "cpu", "--from", "2023-11-14T22:13:40Z", "--thread", "worker-0", "--frame", "Class1"],
    ] {
        let command = ["flamegraph", text(&file), "-o", text(&page)];
        run_otlpprof(&[&command[..], filters].concat()).success();
        let Some(selected) = compare(&page, &[&[text(&file)][..], filters].concat()) else { return };
        let selected = selected.unwrap_or_else(|difference| panic!("{filters:?}: {difference}"));
        let count = |answer: &Value| answer["rows"].as_u64().unwrap();
        assert!(count(&selected) > 10, "{filters:?}: {selected}");
        assert!(count(&selected) < count(all.as_ref().unwrap()), "{filters:?}: {selected}");
    }
}

/// A comparison that could not fail would prove nothing.
#[test]
fn a_value_that_differs_and_exchanged_sides_are_found() {
    let folder = TempDir::new().unwrap();
    let (base, new) = (write(&folder, "base.otlp", &[valid()]), write(&folder, "new.otlp", &[later()]));
    let page = folder.path().join("diff.html");
    run_otlpprof(&["diff", text(&base), text(&new), "-o", text(&page)]).success();
    let answer = |new: &Path, base: &Path| compare(&page, &[text(new), "--base", text(base)]);
    let Some(right) = answer(&new, &base) else { return };
    assert_eq!(right.unwrap()["total"], 570_000_000 + 1_180_000_000_i64);
    assert!(answer(&base, &new).unwrap().is_err());
    let mut other = later();
    other.resource_profiles[0].scope_profiles[0].profiles[0].samples[0].values[0] += 1;
    let other = write(&folder, "other.otlp", &[other]);
    assert!(answer(&other, &base).unwrap().is_err());
}

#[test]
fn pages_of_real_jvms_have_the_samples_of_all_engines() {
    for home in newest_or_all() {
        let run = under_all_engines(&home, 2);
        let folder = TempDir::new().unwrap();
        for file in run.files() {
            let Some(counts) = check(&folder, &file, &[]) else { return };
            assert!(counts["rows"].as_u64().unwrap() > 0, "{}: {counts}", run.label);
        }
    }
}

#[test]
fn a_page_has_the_title_that_was_asked_for_and_names_labels_that_were_merged() {
    let folder = TempDir::new().unwrap();
    let mut data = valid();
    let orders = 2_001;
    let dictionary = data.dictionary.as_mut().unwrap();
    let first = dictionary.attribute_table.len() as i32;
    let key_strindex = dictionary.string_table.len() as i32;
    dictionary.string_table.push("order".to_owned());
    dictionary.attribute_table.extend((0..orders).map(|order| {
        let value = Some(wire::AnyValue { value: Some(wire::Value::StringValue(format!("order {order}"))) });
        wire::KeyValueAndUnit { key_strindex, value, unit_strindex: 0 }
    }));
    let samples = &mut data.resource_profiles[0].scope_profiles[0].profiles[0].samples;
    let sample = samples[0].clone();
    samples.extend((0..orders).map(|order| {
        let mut sample = sample.clone();
        sample.attribute_indices.push(first + order);
        sample
    }));
    let file = write(&folder, "orders.otlp", &[data]);
    let page = folder.path().join("page.html");
    let title = "Orders & <b>returns</b>";
    run_otlpprof(&["flamegraph", text(&file), "-o", text(&page), "--title", title]).success();
    let header = otlpprof_testkit::pages::header(&page);
    assert_eq!(header["title"], title);
    assert_eq!(header["notes"], json!(["samples are merged over order: more than 2000 values"]));
}

/// The switch makes of each page what the option makes of it at first.
#[test]
fn by_thread_is_a_switch_that_threads_turns_on_at_first() {
    let folder = TempDir::new().unwrap();
    let file = write(&folder, "generated.otlp", &generated(3));
    let views = ["plain.html", "threads.html"].map(|name| {
        let page = folder.path().join(name);
        let options: &[&str] = if name == "plain.html" { &[] } else { &["--threads"] };
        run_otlpprof(&[&["flamegraph", text(&file), "-o", text(&page)], options].concat()).success();
        let answers = used(&page, &json!([["view"], ["press", "g"]]))?;
        Some(answers.into_iter().map(|answer| answer["graphs"][0].clone()).collect::<Vec<_>>())
    });
    let [Some(plain), Some(threads)] = views else { return };
    assert_ne!(plain[0], plain[1]);
    assert_eq!([&plain[0], &plain[1]], [&threads[1], &threads[0]]);
    let names: Vec<_> = plain[1].as_array().unwrap().iter().map(|node| node[0].as_str().unwrap()).collect();
    assert!(names.contains(&"worker-0") && names.contains(&"worker-1"), "{names:?}");
}

/// Without the option a label of so many values is merged, with it each thread is a root.
#[test]
fn with_threads_as_roots_a_page_keeps_however_many_threads() {
    let folder = TempDir::new().unwrap();
    let stacks: String =
        (0..2_001).map(|thread| format!("[worker-{thread} tid={thread}];main;run 1\n")).collect();
    let file = folder.path().join("many.collapsed");
    std::fs::write(&file, stacks).unwrap();
    let page = folder.path().join("page.html");
    for (options, label) in [(&[][..], None), (&["--threads"], Some("thread.name"))] {
        run_otlpprof(&[&["flamegraph", text(&file), "-o", text(&page)], options].concat()).success();
        let header = otlpprof_testkit::pages::header(&page);
        let keys: Vec<_> = header["labels"].as_array().unwrap().iter().map(|label| &label["key"]).collect();
        assert_eq!(keys.contains(&&json!("thread.name")), label.is_some(), "{keys:?}");
        assert_eq!(header["byThread"], json!(label.map(|_| true)));
    }
}

#[test]
fn a_page_without_a_service_is_called_after_its_files() {
    let folder = TempDir::new().unwrap();
    let page = folder.path().join("page.html");
    let files: Vec<_> =
        ["a", "b", "c", "d"].map(|name| folder.path().join(format!("{name}.collapsed"))).into();
    files.iter().for_each(|file| std::fs::write(file, b"main;run 3\n").unwrap());
    for (count, title) in
        [(2, "a.collapsed, b.collapsed"), (4, "a.collapsed, b.collapsed, c.collapsed and 1 more")]
    {
        let files: Vec<_> = files[..count].iter().map(|file| text(file)).collect();
        run_otlpprof(&[&["flamegraph", "-o", text(&page)], &files[..]].concat()).success();
        assert_eq!(otlpprof_testkit::pages::header(&page)["title"], title);
    }
}

#[test]
fn a_page_that_cannot_be_made_leaves_the_old_one() {
    let folder = TempDir::new().unwrap();
    let (file, page) = (folder.path().join("app.otlp"), folder.path().join("page.html"));
    std::fs::write(&file, b"no profile").unwrap();
    std::fs::write(&page, b"old").unwrap();
    run_otlpprof(&["flamegraph", text(&file), "-o", text(&page)]).code(2);
    assert_eq!(std::fs::read(&page).unwrap(), b"old");
}

//! The command line as people type it: forms of other profilers, the help, and completions.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use otlpprof_testkit::attach::{refusal, starting_program};
use otlpprof_testkit::commands::{exit_code, otlpprof, parts, text_of};
use otlpprof_testkit::otlp_fixture::{framed, valid};
use otlpprof_testkit::pages::data_text;
use otlpprof_testkit::run_folder::{CLASSES, RunFolder, install};
use otlpprof_testkit::waiting::wait_for;

fn output(arguments: &[&str]) -> Output {
    otlpprof().args(arguments).output().unwrap()
}

/// PATH with a folder before all others.
fn path_with(folder: &Path) -> std::ffi::OsString {
    let others = std::env::var_os("PATH").unwrap();
    std::env::join_paths(std::iter::once(folder.to_owned()).chain(std::env::split_paths(&others))).unwrap()
}

/// Regression: without `--` the program was taken for the agent's options, and its first option was refused.
#[test]
fn a_run_needs_no_mark_before_its_program() {
    let place = RunFolder::new();
    let java = otlpprof_testkit::jdk::newest_or_all().pop().unwrap().join("bin/java");
    let mut command = place.run();
    command.env("PATH", path_with(java.parent().unwrap())).args([
        "-e",
        "cpu",
        "-i",
        "1ms",
        "-o",
        "page.html",
    ]);
    let started = command.args(["java", "-cp", CLASSES, "programs.RunAndExit", "3"]).output().unwrap();
    let (code, _, stderr) = parts(&started);
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("programs.RunAndExit.burn"), "{stderr}");
    assert!(data_text(&place.path("page.html")).contains("programs.RunAndExit.burn"));
    place.assert_clean();
    // The program's own words are left alone, also those that look like the command's.
    let script = place.script("words.sh", "#!/bin/sh\nprintf '%s|' \"$@\"\n");
    let words = ["--", "-o", "help", "cpu=1ms"];
    let started = place.run().args(["cpu=1ms", "--no-page"]).arg(script).args(words).output().unwrap();
    assert_eq!(parts(&started).1, "--|-o|help|cpu=1ms|");
}

#[test]
fn a_program_in_place_of_a_jvm_is_answered_by_one_line() {
    let place = RunFolder::new();
    place.script("bin/java", "#!/bin/sh\n");
    for (arguments, run) in [
        (&["record", "-d", "30", "--", "java", "-jar", "my app.jar"][..], "-d 30 -- java -jar 'my app.jar'"),
        (&["attach", "java", "-jar", "app.jar"], "-- java -jar app.jar"),
    ] {
        let answered =
            otlpprof().env("PATH", path_with(&place.path("bin"))).args(arguments).output().unwrap();
        let line = refusal(&answered);
        let expected = format!("takes a running JVM; to start a program: otlpprof run {run}\n");
        assert!(line.starts_with("otlpprof: ") && line.ends_with(&expected), "{line}");
    }
}

/// Regression: the line was printed with an escaped line feed before it.
#[test]
fn advice_on_the_agents_options_is_a_line_of_its_own() {
    for command in ["attach", "record", "top"] {
        let refused = output(&[command, "1", "cpu=5ms", "alloc"]);
        let text = text_of(&refused.stderr);
        assert_eq!(exit_code(&refused), 2, "{text}");
        assert!(!text.contains("\\u{"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("The agent's options are one word, ")), "{text}");
    }
}

#[test]
fn help_may_be_asked_for_by_a_word() {
    for command in ["run", "record", "attach", "top", "stop"] {
        let help = output(&[command, "help"]);
        assert!(help.status.success(), "{help:?}");
        assert!(text_of(&help.stdout).contains(&format!("Usage: otlpprof {command}")), "{help:?}");
        assert_eq!(help.stdout, output(&[command, "--help"]).stdout);
    }
}

#[test]
fn the_help_lists_the_commands_by_what_they_are_for() {
    let help = output(&["--help"]);
    let text = text_of(&help.stdout);
    let first = ["run", "record", "top"].map(|name| text.find(&format!("\n  {name} ")));
    assert!(first.is_sorted() && first[0].is_some(), "{text}");
    for title in ["Profile Java programs:", "Control the agent in a JVM:", "Show profiles:"] {
        assert_eq!(text.matches(title).count(), 1, "{text}");
    }
    assert_eq!(output(&["-h"]).stdout, help.stdout);
    let bare = output(&[]);
    assert_eq!((exit_code(&bare), text_of(&bare.stderr)), (2, text));
}

#[test]
fn the_agents_options_are_listed_without_a_jvm() {
    let listed = output(&["options"]);
    assert!(listed.status.success());
    assert_eq!(text_of(&listed.stdout), otlpprof_options::help());
}

#[test]
fn a_jvm_is_named_by_a_part_of_its_main_class() {
    let place = RunFolder::new();
    let name = format!("shop{}", std::process::id());
    let jvm = |suffix: &str| {
        let program = place.path(&format!("{name}{suffix}"));
        install(Path::new("/bin/sleep"), &program);
        starting_program(&program, &[])
    };
    let [one, other] = ["One", "Other"].map(jvm);
    let library = otlpprof_testkit::this_build::agent();
    let output = |arguments: &[&str]| {
        let mut command = otlpprof();
        command.args(arguments);
        if ["attach", "record"].contains(&arguments[0]) {
            command.arg("--library").arg(&library);
        }
        command.output().unwrap()
    };
    for command in ["status", "stop", "flush", "attach", "record"] {
        let several = output(&[command, &name]);
        let line = refusal(&several);
        let expected = [&one, &other].map(|jvm| jvm.pid());
        for (pid, suffix) in expected.iter().zip(["One", "Other"]) {
            assert!(line.contains(&format!("{pid} ({name}{suffix})")), "{line}");
        }
        assert!(line.ends_with("; name one by its process id\n"), "{line}");
        // The process catches no SIGQUIT, so that nothing is sent to it.
        let found = output(&[command, &format!("{name}On")]);
        let line = refusal(&found);
        assert!(line.contains(&one.pid().to_string()) && !line.contains("several"), "{line}");
        let none = output(&[command, &format!("{name}None")]);
        assert!(refusal(&none).contains("otlpprof list"), "{none:?}");
    }
}

#[test]
fn pages_have_a_name_and_are_opened_on_request() {
    let place = RunFolder::new();
    for name in ["a.otlp", "b.otlp"] {
        std::fs::write(place.path(name), framed(&valid())).unwrap();
    }
    place.script("bin/xdg-open", "#!/bin/sh\necho \"$1\" > opened.new\nmv opened.new opened\n");
    for arguments in [&["flamegraph", "a.otlp", "--open"][..], &["diff", "a.otlp", "b.otlp", "--open"]] {
        let mut command = otlpprof();
        command.current_dir(place.path("")).env("PATH", path_with(&place.path("bin")));
        let written = command.args(arguments).output().unwrap();
        assert!(written.status.success(), "{written:?}");
        let page = place.path("otlpprof.html");
        wait_for("opened page", || place.path("opened").exists());
        let opened = std::fs::read_to_string(place.path("opened")).unwrap();
        assert_eq!(Path::new(opened.trim_end()), page.canonicalize().unwrap());
        std::fs::remove_file(place.path("opened")).unwrap();
        std::fs::remove_file(page).unwrap();
    }
    let refused = output(&["flamegraph", "a.otlp", "-o", "-", "--open"]);
    assert!(refusal(&refused).contains("--open: the page goes to standard output"), "{refused:?}");
}

/// Files of commands are for those that the umask admits; a file that is replaced keeps its permissions.
#[test]
fn files_of_all_commands_have_one_mode() {
    let place = RunFolder::new();
    std::fs::write(place.path("a.otlp"), framed(&valid())).unwrap();
    let commands: [&[&str]; 7] = [
        &["flamegraph", "a.otlp"],
        &["diff", "a.otlp", "a.otlp"],
        &["merge", "a.otlp"],
        &["symbolize", "a.otlp"],
        &["export", "a.otlp", "--to", "pprof"],
        &["export", "a.otlp", "--to", "collapsed"],
        &["export", "a.otlp", "--to", "speedscope"],
    ];
    for arguments in commands {
        let out = place.path("out");
        let write = || {
            let mut shell = Command::new("sh");
            shell.args(["-c", "umask 027 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_otlpprof")]);
            let written = shell.args(arguments).args(["-o", "out"]).current_dir(place.path("")).output();
            let written = written.unwrap();
            assert!(written.status.success(), "{arguments:?}: {written:?}");
            std::fs::metadata(&out).unwrap().permissions().mode() & 0o777
        };
        assert_eq!(write(), 0o640, "{arguments:?}");
        std::fs::set_permissions(&out, std::fs::Permissions::from_mode(0o604)).unwrap();
        assert_eq!(write(), 0o604, "{arguments:?}");
        std::fs::remove_file(out).unwrap();
    }
}

#[test]
fn shells_and_manuals_know_each_command() {
    let script = output(&["completions", "bash"]);
    assert!(script.status.success());
    for name in ["run", "record", "flamegraph", "completions"] {
        assert!(text_of(&script.stdout).contains(name), "{name}");
    }
    let place = RunFolder::new();
    let file = place.path("otlpprof.bash");
    std::fs::write(&file, &script.stdout).unwrap();
    assert!(Command::new("bash").arg("-n").arg(&file).status().unwrap().success());
    let folder = place.path("man");
    std::fs::create_dir(&folder).unwrap();
    assert!(output(&["man", folder.to_str().unwrap()]).status.success());
    let page = std::fs::read_to_string(folder.join("otlpprof-run.1")).unwrap();
    assert!(page.contains(".TH otlpprof-run 1") && page.contains("otlpprof run"), "{page}");
    assert!(folder.join("otlpprof.1").exists() && folder.join("otlpprof-symbols-add.1").exists());
    let missing = output(&["man", place.path("none").to_str().unwrap()]);
    assert_eq!(exit_code(&missing), 2);
    assert!(text_of(&missing.stderr).contains("No such file"), "{missing:?}");
}

//! `otlpprof record` on running JVMs.

use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use otlpprof_testkit::attach::{attach, command, jvm, ready, refusal, request_of, starting_jvm, state};
use otlpprof_testkit::commands::{exit_code, otlpprof, text_of};
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::processes::kill;
use otlpprof_testkit::profiles;
use otlpprof_testkit::run_folder::RunFolder;
use otlpprof_testkit::this_build::agent;
use otlpprof_testkit::waiting::{PATIENCE, wait_for};
use tempfile::TempDir;

fn record_command(pid: u32, arguments: &[&str]) -> std::process::Command {
    let mut command = otlpprof();
    command.args(["record", &pid.to_string(), "--no-page", "--library"]).arg(agent()).args(arguments);
    command
}

fn record(pid: u32, arguments: &[&str]) -> Output {
    record_command(pid, arguments).output().unwrap()
}

/// Starts a recording, and waits until it has samples. Returns the folder of its temporary file, too.
fn begin(pid: u32, arguments: &[&str]) -> (Child, PathBuf) {
    begin_with(&mut record_command(pid, &[&["cpu=1ms", "-d", "24h"], arguments].concat()), pid)
}

/// As [`begin`], by this command.
fn begin_with(command: &mut std::process::Command, pid: u32) -> (Child, PathBuf) {
    let mut recording = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while samples(pid) == 0 {
        let has_ended = recording.try_wait().unwrap().is_some();
        if has_ended || start.elapsed() > PATIENCE {
            let _ = recording.kill();
            panic!("no samples: {:?}", recording.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let state = state(pid);
    let file = Path::new(state["session"]["destinations"][0].as_str().unwrap());
    let folder = file.parent().unwrap().to_owned();
    assert!(folder.is_dir(), "{state}");
    (recording, folder)
}

fn samples(pid: u32) -> u64 {
    // The agent may not be loaded yet.
    let status = otlpprof().args(["status", "--json", &pid.to_string()]).output().unwrap();
    let state: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
    state["session"]["counters"]["otlpprof.handler.samples_recorded"].as_u64().unwrap_or(0)
}

fn is_idle(pid: u32) -> bool {
    state(pid)["message"] == "not profiling"
}

fn path_text(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

/// Regression: a JVM whose environment asks for files by the time could not be recorded. Variables of the JVM
/// change neither where a recording goes nor how long it lasts.
#[test]
fn a_recording_ends_with_its_time_and_is_printed() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "UserLoop").argument(600).variable("OTLPPROF_LOOP", "1h");
        let jvm = ready(run.variable("OTLPPROF_FILE", "/no/such/%t.html").variable("OTLPPROF_DELAY", "1h"));
        let pid = jvm.pid();
        let table = std::cell::RefCell::new(String::new());
        wait_for("a recording with samples", || {
            let recorded = record(pid, &["cpu=1ms,loglevel=info", "-d", "300ms"]);
            let error = text_of(&recorded.stderr);
            assert!(recorded.status.success() || error.contains("no sample was taken"), "{error}");
            assert!(error.contains("recording JVM") && is_idle(pid), "{error}");
            text_of(&recorded.stdout).clone_into(&mut table.borrow_mut());
            recorded.status.success()
        });
        let table = table.into_inner();
        assert!(table.starts_with("cpu of ") && table.contains("FUNCTION"), "{table}");
        assert!(!jvm.stderr().contains("[otlpprof]"), "{}", jvm.stderr());
        jvm.terminate();
        jvm.finish();
    }
}

/// Regression: a command that was killed left its folder for ever.
#[test]
fn folders_of_commands_that_were_killed_go_with_the_next_recording() {
    let home = newest_or_all().pop().unwrap();
    let jvm = jvm(&home);
    let folder = |kind: &str, seconds: &str| {
        let name = format!(".otlpprof-{kind}{:08x}", std::process::id());
        let folder = tempfile::Builder::new().prefix(&name).rand_bytes(0).tempdir_in("/tmp").unwrap();
        std::fs::write(folder.path().join("recording.otlp"), "").unwrap();
        let touch = std::process::Command::new("touch").args(["-d", seconds]).arg(folder.path()).status();
        assert!(touch.unwrap().success());
        folder
    };
    let old = "10 minutes ago";
    let (abandoned, locked, young) =
        (folder("0000000a", old), folder("0000000b", old), folder("0000000c", "tomorrow"));
    let other = folder("no-digit", old);
    let lock = std::fs::File::open(locked.path()).unwrap();
    lock.lock().unwrap();
    let recorded = record(jvm.pid(), &["-d", "100ms"]);
    assert!(text_of(&recorded.stderr).contains("recording JVM"), "{recorded:?}");
    assert!(!abandoned.path().exists());
    for kept in [&locked, &young, &other] {
        assert!(kept.path().join("recording.otlp").is_file(), "{}", kept.path().display());
    }
    jvm.terminate();
    jvm.finish();
}

/// The VM's own threads have samples of wall-clock time, whatever they do.
#[test]
fn functions_of_the_vms_threads_are_reported_on_request() {
    let home = newest_or_all().pop().unwrap();
    let jvm = jvm(&home);
    let report = |options: &[&str]| {
        let table = std::cell::RefCell::new(String::new());
        let arguments = [&["cpu=off,wall=10ms", "--idle", "-d", "300ms", "--top", "1000"], options].concat();
        wait_for("a recording with samples of the VM's threads", || {
            let recorded = record(jvm.pid(), &arguments);
            text_of(&recorded.stdout).clone_into(&mut table.borrow_mut());
            recorded.status.success() && table.borrow().contains(" other VM ")
        });
        table.into_inner()
    };
    let folded = report(&[]);
    let kinds = folded.lines().find(|line| line.contains("other VM ")).unwrap();
    assert!(kinds.starts_with("your code ") && kinds.ends_with(" %"), "{folded}");
    assert!(folded.contains("  (other threads of the VM)\n"), "{folded}");
    assert!(folded.contains("\n--vm shows the functions of the VM's threads\n"), "{folded}");
    let whole = report(&["--vm"]);
    assert!(!whole.contains("(other threads of the VM)") && !whole.contains("--vm"), "{whole}");
    jvm.terminate();
    jvm.finish();
}

#[test]
fn an_interrupt_ends_a_recording_early_and_shows_it() {
    for home in newest_or_all() {
        let (jvm, out) = (jvm(&home), TempDir::new().unwrap());
        let pid = jvm.pid();
        let (messages, page) = (path_text(&out, "x.otlp"), path_text(&out, "x.html"));
        for (signal, file) in [(libc::SIGINT, &messages), (libc::SIGTERM, &page)] {
            let (recording, folder) = begin(pid, &["-o", file]);
            kill(recording.id(), signal);
            let output = recording.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
            assert!(text_of(&output.stderr).contains(&format!("{file} written")), "{output:?}");
            assert!(text_of(&output.stdout).starts_with("cpu of "), "{output:?}");
            assert!(!folder.exists() && is_idle(pid), "{}", folder.display());
        }
        profiles::assert_valid("a recording", Path::new(&messages));
        assert!(!profiles::messages(Path::new(&messages)).is_empty());
        let html = std::fs::read_to_string(&page).unwrap();
        assert!(html.starts_with("<!DOCTYPE html>") && html.trim_end().ends_with("</html>"));
        jvm.terminate();
        jvm.finish();
    }
}

/// As a run does, a recording leaves a page, and as many files as are named.
#[test]
fn a_recording_leaves_a_page_and_all_named_files() {
    let home = newest_or_all().pop().unwrap();
    let (jvm, out) = (jvm(&home), RunFolder::new());
    let pid = jvm.pid();
    let opener = out.script("bin/xdg-open", "#!/bin/sh\necho \"$1\" > opened.new\nmv opened.new opened\n");
    let opened = out.path("opened");
    let finished = |arguments: &[&str], signal: i32| {
        let mut command = otlpprof();
        command.current_dir(out.path("")).env("TMPDIR", out.path("tmp"));
        let path = std::env::join_paths([opener.parent().unwrap(), Path::new("/bin"), Path::new("/usr/bin")]);
        command.env("PATH", path.unwrap());
        command.args(["record", &pid.to_string(), "cpu=1ms", "-d", "24h", "--library"]).arg(agent());
        let (recording, folder) = begin_with(command.args(arguments), pid);
        kill(recording.id(), signal);
        let output = recording.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(!folder.exists() && is_idle(pid), "{}", folder.display());
        output
    };
    let output = finished(&["--open", "--top", "1"], libc::SIGHUP);
    assert!(text_of(&output.stderr).contains("otlpprof.html written"), "{output:?}");
    assert!(text_of(&output.stdout).starts_with("cpu of "), "{output:?}");
    wait_for("the opened page", || opened.exists());
    let page = out.path("otlpprof.html").canonicalize().unwrap();
    assert_eq!(Path::new(std::fs::read_to_string(&opened).unwrap().trim_end()), page);
    std::fs::remove_file(&page).unwrap();
    finished(&["-o", "a.htm", "-o", "b.html", "-o", "c.otlp", "--keep", "kept"], libc::SIGQUIT);
    assert!(!page.exists(), "other files were named");
    for page in ["a.htm", "b.html"] {
        let html = std::fs::read_to_string(out.path(page)).unwrap();
        assert!(html.starts_with("<!DOCTYPE html>"), "{page}");
    }
    for kept in ["c.otlp", "kept"] {
        assert!(!profiles::messages(&out.path(kept)).is_empty(), "{kept}");
    }
    jvm.terminate();
    jvm.finish();
}

/// Regression: a recording whose standard error was closed ended at its first line, and left the agent
/// running.
#[test]
fn a_closed_standard_error_ends_no_recording() {
    let home = newest_or_all().pop().unwrap();
    let jvm = jvm(&home);
    let pid = jvm.pid();
    let mut command = record_command(pid, &["cpu=1ms", "-d", "24h"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let recording = command.stdout(Stdio::piped()).stderr(writer).spawn().unwrap();
    wait_for("samples", || samples(pid) > 0);
    kill(recording.id(), libc::SIGINT);
    let output = recording.wait_with_output().unwrap();
    assert!(output.status.success() && is_idle(pid), "{output:?}");
    assert!(text_of(&output.stdout).starts_with("cpu of "), "{output:?}");
    jvm.terminate();
    jvm.finish();
}

#[test]
fn a_recording_outlives_its_jvm() {
    for home in newest_or_all() {
        let jvm = jvm(&home);
        let (recording, folder) = begin(jvm.pid(), &[]);
        jvm.terminate();
        jvm.finish();
        let output = recording.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(text_of(&output.stderr).contains("has ended"), "{output:?}");
        assert!(text_of(&output.stdout).starts_with("cpu of "), "{output:?}");
        assert!(!folder.exists(), "{}", folder.display());
    }
}

#[test]
fn an_agent_that_profiles_already_is_not_disturbed() {
    let home = newest_or_all().pop().unwrap();
    let jvm = jvm(&home);
    let (pid, folder) = (jvm.pid(), jvm.profiles());
    assert_eq!(exit_code(&attach(pid, "interval=1h,file=a.otlp", &folder)), 0);
    let before = state(pid);
    let refused = record(pid, &["-d", "1s"]);
    assert_eq!((exit_code(&refused), text_of(&refused.stdout)), (1, ""), "{refused:?}");
    let line = text_of(&refused.stderr);
    assert!(line.contains("is profiling already, to ") && line.contains("a.otlp"), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    let after = state(pid);
    assert_eq!(after["session"]["startedUnixMs"], before["session"]["startedUnixMs"]);
    assert_eq!(after["lastError"], before["lastError"]);
    command("stop", pid);

    // Somebody stops the recording, and starts another session: the recording's end does not stop that one.
    let (recording, _) = begin(pid, &[]);
    command("stop", pid);
    assert_eq!(exit_code(&attach(pid, "interval=1h,file=b.otlp", &folder)), 0);
    kill(recording.id(), libc::SIGINT);
    let output = recording.wait_with_output().unwrap();
    assert!(output.status.success() && text_of(&output.stdout).starts_with("cpu of "), "{output:?}");
    assert!(state(pid)["session"]["destinations"][0].as_str().unwrap().ends_with("b.otlp"));
    command("stop", pid);
    jvm.terminate();
    jvm.finish();
}

#[test]
fn an_agent_that_does_not_start_leaves_nothing() {
    let home = newest_or_all().pop().unwrap();
    let run = JavaRun::new(&home, "UserLoop").argument(600).variable("OTEL_SDK_DISABLED", "true");
    let jvm = ready(run);
    let disabled = record(jvm.pid(), &[]);
    assert_eq!(exit_code(&disabled), 1);
    assert!(text_of(&disabled.stderr).contains("nothing is profiled"), "{disabled:?}");
    jvm.terminate();
    jvm.finish();
    let jvm = otlpprof_testkit::attach::jvm(&home);
    let mistake = record(jvm.pid(), &["remotsym"]);
    assert_eq!(exit_code(&mistake), 1);
    assert!(text_of(&mistake.stderr).contains("did you mean 'remotesym'?"), "{mistake:?}");
    jvm.terminate();
    jvm.finish();
}

/// The mistakes are found before the command looks for the JVM, or before anything is sent to it.
#[test]
fn mistakes_are_one_line_and_reach_no_jvm() {
    let mut target = starting_jvm(&[]);
    let refused = |arguments: &[&str]| {
        let output = record(target.pid(), arguments);
        refusal(&output).to_owned()
    };
    for ending in ["x.pprof", "x", "-", "x.otlp.gz"] {
        let line = refused(&["-o", ending]);
        assert!(
            line.contains("write NAME.html for a page, NAME.otlp for profiles; `otlpprof export`"),
            "{line}"
        );
    }
    let folder = TempDir::new().unwrap();
    let line = refused(&["-o", &path_text(&folder, "missing/x.otlp")]);
    assert!(line.contains("/missing does not exist; create it"), "{line}");
    std::fs::create_dir(folder.path().join("x.html")).unwrap();
    assert!(refused(&["-o", &path_text(&folder, "x.html")]).contains("x.html: a folder; name a file"));
    let output = record(target.pid(), &["-d", "10ms"]);
    assert_eq!(exit_code(&output), 2);
    assert!(text_of(&output.stderr).contains("must be 100ms to 24h"), "{output:?}");
    assert!(refused(&["file=x.otlp"]).contains("record sets this option itself"));
    assert!(refused(&["stop"]).contains("is a command of the agent"));
    assert_eq!(target.terminate(), libc::SIGTERM);
}

/// The test is the JVM, which does not answer.
#[test]
fn files_are_gone_after_an_interrupt_while_the_agent_is_loaded() {
    let (target, jvm) = otlpprof_testkit::attach::fake_jvm();
    let recording = record_command(target.pid(), &[]).stderr(Stdio::piped()).spawn().unwrap();
    let (_connection, socket, options) = request_of(&jvm);
    let file = options.split(',').find_map(|option| option.strip_prefix("file=")).unwrap();
    assert!(Path::new(file).is_file(), "{options}");
    assert_eq!(otlpprof_testkit::attach::mode(Path::new(file)), 0o600);
    kill(recording.id(), libc::SIGINT);
    let output = recording.wait_with_output().unwrap();
    assert_eq!(exit_code(&output), 128 + libc::SIGINT, "{output:?}");
    assert_eq!(text_of(&output.stderr), "");
    assert!(!Path::new(file).parent().unwrap().exists() && !Path::new(&socket).exists());
    drop(target);
}

//! `otlpprof run` on real JVMs: how programs are started, and what is left of their profiles. The signals are
//! in `cli_run_signals.rs`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use otlpprof_testkit::commands::{otlpprof, parts};
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::otlp_fixture::{TIME, framed, valid};
use otlpprof_testkit::pages::data_text;
use otlpprof_testkit::processes::kill;
use otlpprof_testkit::profile_files::{CPU, Spec, message};
use otlpprof_testkit::profiles;
use otlpprof_testkit::run_folder::{CLASSES, RunFolder, install, java};
use otlpprof_testkit::this_build::{self, agent};
use otlpprof_testkit::waiting::wait_for;

/// The launcher of the newest JDK.
fn newest_java() -> PathBuf {
    newest_or_all().pop().unwrap().join("bin/java")
}

/// A script that runs a test program twice at the same time, by the launcher in PATH.
fn two_programs(place: &RunFolder) -> PathBuf {
    let java = format!("java -cp '{CLASSES}' programs.RunAndExit");
    place.script("two.sh", &format!("#!/bin/sh\n{java} &\n{java}\nwait\n"))
}

/// PATH with the folder of a launcher before all others.
fn path_with(java: &Path) -> std::ffi::OsString {
    let others = std::env::var_os("PATH").unwrap();
    let folders = std::iter::once(java.parent().unwrap().to_owned()).chain(std::env::split_paths(&others));
    std::env::join_paths(folders).unwrap()
}

/// A program that leaves the file of process 77 in the folder that the agent would write to: a message of the
/// fixture, then `more`.
fn writer(place: &RunFolder, more: &[u8]) -> PathBuf {
    writer_of(place, &[&framed(&valid()), more].concat())
}

/// As [`writer`], of these bytes.
fn writer_of(place: &RunFolder, bytes: &[u8]) -> PathBuf {
    fs::write(place.path("message"), bytes).unwrap();
    let script = "#!/bin/sh\nfile=${JAVA_TOOL_OPTIONS##*file=}\n/bin/cat message > \"${file%/*}/77.otlp\"\n";
    place.script("writer.sh", script)
}

#[test]
fn a_launcher_is_profiled_without_a_word_of_the_agent() {
    for home in newest_or_all() {
        let place = RunFolder::new();
        let mut command = place.run();
        command.args(["cpu=1ms", "-o", "page.html", "-o", "kept.otlp"]);
        java(&mut command, &home.join("bin/java"), &["RunAndExit"]);
        let (code, stdout, stderr) = parts(&command.output().unwrap());
        assert_eq!(code, 0, "{}: {stderr}", home.display());
        // Only the program writes to standard output.
        assert_eq!(stdout.lines().count(), 2, "{stdout}");
        assert!(stdout.ends_with("\nkept null\n"), "{stdout}");
        assert!(!stderr.contains("Picked up") && !stderr.contains("[otlpprof]"), "{stderr}");
        let mut report = stderr.lines().skip_while(|line| !line.starts_with("cpu of java: "));
        let kinds = report.nth(1).unwrap_or_default();
        assert!(kinds.starts_with("your code ") && kinds.ends_with(" %"), "{stderr}");
        let processes = report.next().unwrap_or_default();
        let version = "(programs.RunAndExit), OpenJDK ";
        assert!(processes.starts_with("process ") && processes.contains(version), "{stderr}");
        assert!(processes.ends_with(" cores on average"), "{stderr}");
        assert!(stderr.contains("programs.RunAndExit.burn (RunAndExit.java)"), "{stderr}");
        assert!(!stderr.contains("process.pid"), "one process is no group: {stderr}");
        assert!(data_text(&place.path("page.html")).contains("programs.RunAndExit.burn"));
        profiles::assert_valid(&home.display().to_string(), &place.path("kept.otlp"));
        assert!(!place.path("otlpprof.html").exists(), "another page was named");
        place.assert_clean();
    }
}

#[test]
fn a_launcher_in_the_path_is_profiled_and_the_page_has_a_name() {
    let (place, launcher) = (RunFolder::new(), newest_java());
    let mut command = place.run();
    command.env("PATH", path_with(&launcher)).args(["--top", "1", "--type", "wall", "wall=1ms,cpu=off"]);
    java(&mut command, Path::new("java"), &["RunAndExit", "3"]);
    let (code, _, stderr) = parts(&command.output().unwrap());
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("otlpprof: java has ended: exit status: 3\n"), "{stderr}");
    assert!(stderr.contains("wall of java: ") && !stderr.contains("Picked up"), "{stderr}");
    // Collectors and compilers wait most of the time.
    assert!(stderr.contains("\nidle VM and native threads left out (--idle shows them): "), "{stderr}");
    assert!(stderr.contains(" more; --top "), "{stderr}");
    assert!(data_text(&place.path("otlpprof.html")).contains("programs.RunAndExit.burn"));
    // A run without a page, whose profiles other commands can read.
    let mut command = place.run();
    command.args(["--no-page", "--keep", "kept"]);
    fs::remove_file(place.path("otlpprof.html")).unwrap();
    java(&mut command, &launcher, &["RunAndExit"]);
    assert_eq!(parts(&command.output().unwrap()).0, 0);
    assert!(!place.path("otlpprof.html").exists());
    let mut report = otlpprof();
    let (code, stdout, _) = parts(&report.arg("report").arg(place.path("kept")).output().unwrap());
    assert!(code == 0 && stdout.contains("programs.RunAndExit.burn"), "{stdout}");
}

/// The variable keeps the options that it has. The library's path may have blanks and quotes.
#[test]
fn a_script_that_starts_a_jvm_is_profiled_by_the_variable() {
    for home in newest_or_all() {
        let (place, launcher) = (RunFolder::new(), home.join("bin/java"));
        let library = place.path("it's a \"library\"/libotlpprof.so");
        fs::create_dir(library.parent().unwrap()).unwrap();
        fs::copy(agent(), &library).unwrap();
        // A script may be called java. It may do anything with its arguments.
        for name in ["start.sh", "shims/java"] {
            let text = format!("#!/bin/sh\nexec '{}' -cp '{CLASSES}' programs.RunAndExit 3\n", {
                launcher.display()
            });
            let script = place.script(name, &text);
            let mut command = place.command(this_build::command());
            command.env("JAVA_TOOL_OPTIONS", "-Dkept='a \"b\"'  -Xmx64m");
            // A run has a file of its own, whatever files the environment asks for.
            command.env("OTLPPROF_LOOP", "1h").env("OTLPPROF_FILE", "/no/such/%t.otlp");
            command.arg("--agent").arg(&library).arg("cpu=1ms").arg("--").arg(script);
            let (code, stdout, stderr) = parts(&command.output().unwrap());
            assert_eq!(code, 3, "{}: {stderr}", home.display());
            assert!(stdout.ends_with("\nkept a \"b\"\n"), "{stdout}");
            assert!(stderr.contains("programs.RunAndExit.burn (RunAndExit.java)"), "{stderr}");
            place.assert_clean();
        }
    }
}

#[test]
fn each_jvm_of_a_program_is_a_group_of_the_report() {
    let place = RunFolder::new();
    let mut command = place.run();
    command.env("PATH", path_with(&newest_java())).args(["cpu=1ms", "-o", "both.otlp", "--"]);
    let (code, stdout, stderr) = parts(&command.arg(two_programs(&place)).output().unwrap());
    assert_eq!(code, 0, "{stderr}");
    let pids: Vec<_> = stdout.lines().filter_map(|line| line.strip_prefix("pid ")).collect();
    assert_eq!(pids.len(), 2, "{stdout}");
    let groups: Vec<_> = stderr.split("process.pid = ").skip(1).collect();
    assert_eq!(groups.len(), 2, "{stderr}");
    for pid in pids {
        let heading = format!("{pid} (programs.RunAndExit): ");
        let group = groups.iter().find(|group| group.starts_with(&heading)).unwrap();
        assert!(group.contains("programs.RunAndExit.burn"), "{stderr}");
    }
    let messages = profiles::messages(&place.path("both.otlp"));
    assert!(messages.len() >= 2, "{} messages", messages.len());
    place.assert_clean();
}

/// A JVM that goes on, such as a build tool's daemon, is named.
#[test]
fn a_jvm_that_outlives_the_program_is_named() {
    let place = RunFolder::new();
    let text = format!(
        "#!/bin/sh\nfile=${{JAVA_TOOL_OPTIONS##*file=}}\n'{}' -cp '{CLASSES}' programs.RunAndExit 0 600 \
         </dev/null >/dev/null 2>&1 &\nuntil [ -s \"${{file%/*}}/$!.otlp\" ]; do sleep 0.1; done\n\
         echo pid $!\n",
        newest_java().display()
    );
    let script = place.script("daemon.sh", &text);
    let (code, stdout, stderr) =
        parts(&place.run().args(["cpu=1ms,interval=100ms", "--"]).arg(script).output().unwrap());
    let pid = stdout.strip_prefix("pid ").unwrap().trim();
    kill(pid.parse().unwrap(), libc::SIGKILL);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains(&format!("otlpprof: process {pid} has not ended: ")), "{stderr}");
    assert!(stderr.contains("cpu of java: "), "{stderr}");
}

/// A process that is killed while it writes leaves a part of a message.
#[test]
fn an_unfinished_message_is_left_out() {
    let place = RunFolder::new();
    let script = writer(&place, &[0, 0, 0, 9, 0x12, 1]);
    let (code, stdout, stderr) =
        parts(&place.run().args(["-o", "kept.otlp", "--"]).arg(script).output().unwrap());
    assert_eq!((code, &*stdout), (0, ""), "{stderr}");
    assert!(stderr.contains("process 77: 6 bytes of an unfinished message are left out\n"), "{stderr}");
    assert!(stderr.contains("cpu of fixture: 420 ms"), "{stderr}");
    assert!(stderr.contains("com.example.Burn.spin (Burn.java)"), "{stderr}");
    assert_eq!(fs::read(place.path("kept.otlp")).unwrap(), framed(&valid()));
}

#[test]
fn functions_of_the_vms_threads_are_reported_on_request() {
    let place = RunFolder::new();
    let samples: [(&[&str], &str, i64); 2] =
        [(&["Shop.cart", "Shop.main"], "main", 5), (&["Compile::Optimize", "start"], "C2 CompilerThre", 3)];
    let spec = Spec { types: CPU, period: 10_000_000, start: TIME, samples: &samples };
    let script = writer_of(&place, &framed(&message("77", &[spec])));
    let report = |options: &[&str]| {
        let command = place.run().args(options).args(["--no-page", "--"]).arg(&script).output().unwrap();
        let (code, _, stderr) = parts(&command);
        assert_eq!(code, 0, "{stderr}");
        stderr
    };
    let folded = report(&[]);
    assert!(folded.contains("  (threads of the JIT compilers)\n"), "{folded}");
    assert!(folded.contains("\n--vm shows the functions of the VM's threads\n"), "{folded}");
    let whole = report(&["--vm"]);
    assert!(whole.contains("  Compile::Optimize (") && !whole.contains("--vm"), "{whole}");
    assert!(!whole.contains("(threads of"), "{whole}");
}

#[test]
fn the_page_is_opened_on_request() {
    let place = RunFolder::new();
    let script = writer(&place, &[]);
    let opener = place.script("bin/xdg-open", "#!/bin/sh\necho \"$1\" > opened.new\nmv opened.new opened\n");
    let path = std::env::join_paths([opener.parent().unwrap(), Path::new("/bin")]).unwrap();
    let mut command = place.run();
    let output = command.env("PATH", path).args(["-o", "my page.html", "--open", "--"]).arg(&script).output();
    let (code, _, stderr) = parts(&output.unwrap());
    assert_eq!(code, 0, "{stderr}");
    wait_for("opened page", || place.path("opened").exists());
    let opened = fs::read_to_string(place.path("opened")).unwrap();
    assert_eq!(Path::new(opened.trim_end()), place.path("my page.html").canonicalize().unwrap());

    fs::remove_file(opener).unwrap();
    let mut command = place.run();
    let output = command.env("PATH", place.path("bin")).args(["--open", "--"]).arg(&script).output();
    let (code, _, stderr) = parts(&output.unwrap());
    assert_eq!(code, 0, "{stderr}");
    let line = "otlpprof: --open: there is no xdg-open; open otlpprof.html in a browser\n";
    assert!(stderr.ends_with(line), "{stderr}");
}

#[test]
fn mistakes_are_one_line_before_the_program_starts() {
    let place = RunFolder::new();
    let script = place.script("started.sh", "#!/bin/sh\necho started\n");
    for (arguments, reason) in [
        (
            &["-o", "page.svg"][..],
            "-o page.svg: write NAME.html for a page, NAME.otlp for profiles; \
             `otlpprof export` writes other formats from NAME.otlp",
        ),
        (&["-o", "no/such/page.html"], "no/such/page.html: the folder no/such does not exist; create it"),
        (&["--no-page", "--open"], "--open: no page is written; name one by -o NAME.html"),
        (&["--library", "none.so"], "--library none.so: No such file or directory (os error 2)"),
        (&["cpu=5ms,file=/x"], "file: a run has files of its own; keep the profiles with --keep FILE"),
        (&["loop=1h"], "loop: a run has files of its own; keep the profiles with --keep FILE"),
        (&["stop"], "stop: a run starts the agent; write options such as cpu=5ms"),
    ] {
        let mut command = place.command(this_build::command());
        if arguments[0] != "--library" {
            command.arg("--library").arg(agent());
        }
        let (code, stdout, stderr) = parts(&command.args(arguments).arg("--").arg(&script).output().unwrap());
        assert_eq!((code, &*stdout), (2, ""), "{arguments:?}");
        assert_eq!(stderr, format!("otlpprof: {reason}\n"));
        place.assert_clean();
    }
    let library = place.path("a=b.so");
    fs::copy(agent(), &library).unwrap();
    let mut command = place.command(this_build::command());
    let output = command.arg("--library").arg(&library).arg("--").arg(&script).output().unwrap();
    assert!(parts(&output).2.contains("path has an equals sign"), "{output:?}");
    let odd = place.path("tmp/a,b");
    fs::create_dir(&odd).unwrap();
    let output = place.run().env("TMPDIR", &odd).arg("--").arg(&script).output().unwrap();
    let (code, stdout, stderr) = parts(&output);
    assert!(code == 2 && stdout.is_empty() && stderr.contains("options cannot name a folder"), "{stderr}");
    assert_eq!(fs::read_dir(odd).unwrap().count(), 0);
}

/// Regression: relative paths began at the folder in which the script starts the JVM.
#[test]
fn relative_paths_in_options_begin_at_the_callers_folder() {
    let place = RunFolder::new();
    fs::write(place.path("ca.pem"), "no certificate").unwrap();
    let text = format!("#!/bin/sh\ncd /\nexec '{}' -version\n", newest_java().display());
    let script = place.script("elsewhere.sh", &text);
    let options = "certificate=ca.pem,endpoint=https://127.0.0.1:1";
    let (code, _, stderr) = parts(&place.run().args([options, "--"]).arg(script).output().unwrap());
    assert_eq!(code, 0, "{stderr}");
    let file = place.path("ca.pem").canonicalize().unwrap();
    assert!(stderr.contains(&format!(": certificate {}: ", file.display())), "{stderr}");
}

/// The agent's line is the only one about the mistake, apart from the JVM's own lines.
#[test]
fn a_mistake_in_the_agents_options_is_shown() {
    for home in newest_or_all() {
        let place = RunFolder::new();
        let mut command = place.run();
        command.arg("cpuu=5ms");
        java(&mut command, &home.join("bin/java"), &["RunAndExit"]);
        let (code, stdout, stderr) = parts(&command.output().unwrap());
        assert_eq!(code, 1, "{stderr}");
        assert!(!stdout.contains("pid "), "{stdout}");
        let line = "[otlpprof] error: unknown option 'cpuu'; did you mean 'cpu'?; the agent does not start\n";
        assert_eq!(stderr.matches(line).count(), 1, "{stderr}");
        assert!(stderr.contains("otlpprof: no profile was written: "), "{stderr}");
        place.assert_clean();
        // A JVM that a script starts goes on.
        let launcher = home.join("bin/java");
        let text = format!("#!/bin/sh\n'{}' -cp '{CLASSES}' programs.RunAndExit 3\n", launcher.display());
        let script = place.script("start.sh", &text);
        let (code, stdout, stderr) =
            parts(&place.run().args(["cpuu=5ms", "--"]).arg(script).output().unwrap());
        assert_eq!(code, 3, "{stderr}");
        assert!(stdout.contains("pid "), "{stdout}");
        assert_eq!(stderr.matches(line).count(), 1, "{stderr}");
        assert!(stderr.contains("otlpprof: no profile was written: "), "{stderr}");
    }
}

/// The seconds for which a program runs until it is seen. The longer run is for the case that other programs
/// have used the CPU.
const SECONDS: [u32; 2] = [2, 30];

/// Runs a script with this text and the seconds as its argument until the line is there. Returns the last
/// standard error.
fn assert_said(options: &str, text: &str, code: i32, line: &str) -> String {
    let place = RunFolder::new();
    let script = place.script("start.sh", &format!("#!/bin/sh\n{text}\n"));
    let mut last = String::new();
    for seconds in SECONDS {
        let mut command = place.run();
        command.args([options, "--no-page", "--"]).arg(&script).arg(seconds.to_string());
        let (found, _, stderr) = parts(&command.output().unwrap());
        assert_eq!(found, code, "{stderr}");
        last = stderr;
        if last.contains(line) {
            return last;
        }
    }
    panic!("no '{line}' in {last}");
}

/// Regression: a JVM without the agent, a program without a JVM and a JVM without a sample had one line, and
/// a second JVM without the agent had none.
#[test]
fn each_reason_why_there_is_no_profile_has_its_line() {
    let java = newest_java();
    let java = format!("'{}' -cp '{CLASSES}' programs.UserLoop $1", java.display());
    let escaped = "(programs.UserLoop) ran without the agent: sudo, env -i, unset and the like drop ";
    let unset = format!("unset JAVA_TOOL_OPTIONS\nexec {java}");
    let stderr = assert_said("cpu=1ms", &unset, 0, escaped);
    assert!(stderr.starts_with("otlpprof: no profile was written: process "), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");

    let both = format!("{java}\nenv -u JAVA_TOOL_OPTIONS {java}\nexit 7");
    let stderr = assert_said("cpu=1ms", &both, 7, escaped);
    assert!(stderr.contains("\ncpu of java: ") && !stderr.contains("no profile"), "{stderr}");

    let stderr = assert_said("cpu=off,exceptions", &java, 0, "ran with the agent and had no sample");
    assert!(stderr.contains("otlpprof: no profile was written: process "), "{stderr}");
    let line = "otlpprof: no profile was written: no JVM was seen among the program's processes\n";
    assert_said("cpu=1ms", "exit 0", 0, line);
}

#[test]
fn a_program_that_cannot_be_started_has_the_exit_code_of_a_shell() {
    let place = RunFolder::new();
    let plain = place.script("plain", "#!/bin/sh\n");
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).unwrap();
    for (program, code, reason) in
        [("no-such-program", 127, "No such file or directory"), ("./plain", 126, "Permission denied")]
    {
        let (found, stdout, stderr) = parts(&place.run().args(["--", program]).output().unwrap());
        assert_eq!((found, &*stdout), (code, ""), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        let line = format!("otlpprof: {program} cannot be started: {reason}");
        assert!(stderr.starts_with(&line), "{stderr}");
        place.assert_clean();
    }
}

#[test]
fn the_library_is_beside_the_command_or_in_lib() {
    let place = RunFolder::new();
    let command = place.path("bin/otlpprof");
    fs::create_dir(place.path("bin")).unwrap();
    fs::create_dir(place.path("lib")).unwrap();
    install(this_build::command(), &command);
    let run = || {
        let mut run = place.command(&command);
        run.arg("cpu=1ms");
        java(&mut run, &newest_java(), &["RunAndExit"]);
        parts(&run.output().unwrap())
    };
    let (code, stdout, stderr) = run();
    assert_eq!((code, &*stdout), (2, ""));
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    let name = |folder: &str| fs::canonicalize(place.path(folder)).unwrap().display().to_string();
    assert!(stderr.contains(&name("bin")) && stderr.contains(&name("lib")), "{stderr}");
    for folder in ["lib", "bin"] {
        let library = place.path(folder).join("libotlpprof.so");
        fs::copy(agent(), &library).unwrap();
        let (code, _, stderr) = run();
        assert!(code == 0 && stderr.contains("programs.RunAndExit.burn"), "{stderr}");
        fs::remove_file(library).unwrap();
    }
}

/// The program has the command's standard input, and no signal is blocked in it.
#[test]
fn a_program_runs_as_without_the_command() {
    let place = RunFolder::new();
    fs::write(place.path("input"), "from the input\n").unwrap();
    let script =
        place.script("sh", "#!/bin/sh\ncat\ngrep SigBlk /proc/self/status\necho error >&2\nexit 5\n");
    let mut command = place.run();
    command.stdin(fs::File::open(place.path("input")).unwrap()).stderr(Stdio::piped()).arg("--").arg(script);
    let (code, stdout, stderr) = parts(&command.output().unwrap());
    assert_eq!((code, &*stdout), (5, "from the input\nSigBlk:\t0000000000000000\n"));
    assert!(stderr.starts_with("error\n"), "{stderr}");
}

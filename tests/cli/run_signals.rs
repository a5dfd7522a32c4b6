//! `otlpprof run` and signals: a program gets each of them once, and its profile is shown however it ends.

use std::fs;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::ptr::null_mut;

use otlpprof_testkit::commands::parts;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::otlp_fixture::{framed, valid};
use otlpprof_testkit::pages::data_text;
use otlpprof_testkit::processes::kill;
use otlpprof_testkit::profiles;
use otlpprof_testkit::run_folder::{RunFolder, Started, java};
use otlpprof_testkit::waiting::wait_for;

/// The end of a script that waits for a signal, for four minutes or longer.
const WAIT: &str = "i=0\nwhile [ $i -lt 2400 ]; do sleep 0.1; i=$((i + 1)); done\n";

fn newest_java() -> PathBuf {
    newest_or_all().pop().unwrap().join("bin/java")
}

/// Makes a new terminal the controlling terminal of a command that leads a session of its own, and its
/// standard input. Returns the other side of the terminal.
fn on_a_terminal(command: &mut Command) -> OwnedFd {
    let (mut ours, mut its) = (0, 0);
    // SAFETY: the pointers to `ours` and `its` are valid. Null is allowed for the name, the settings and the
    // size.
    let opened = unsafe { libc::openpty(&mut ours, &mut its, null_mut(), null_mut(), null_mut()) };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: openpty has just opened both descriptors, and nothing else owns them.
    let [ours, its] = [ours, its].map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor) });
    // Only the test holds this side, so that its end is the end of the terminal.
    // SAFETY: the call accesses no memory.
    unsafe { libc::fcntl(ours.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
    command.stdin(its);
    let lead = || {
        // SAFETY: both calls are async-signal-safe system calls, and access no memory. Standard input is the
        // terminal by now.
        let failed = unsafe { libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 };
        if failed { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: the closure makes only system calls, and allocates nothing.
    unsafe { command.pre_exec(lead) };
    ours
}

/// A program that counts SIGINT until SIGTERM arrives.
fn counting(place: &RunFolder, java_home_bin: PathBuf) -> Command {
    let mut command = place.run();
    command.args(["cpu=1ms", "-o", "page.html"]);
    java(&mut command, &java_home_bin, &["CountedSignals"]);
    command
}

/// Asserts that a [`counting`] program has had this number of interrupts and has been profiled.
fn assert_counted(place: &RunFolder, started: Started, interrupts: usize) {
    let (code, stdout, stderr) = started.finish();
    assert_eq!(code, 3, "{stderr}");
    assert!(stdout.ends_with(&format!("interrupts {interrupts}\n")), "{stdout}\n{stderr}");
    assert!(stderr.contains("programs.CountedSignals.burn"), "{stderr}");
    assert!(data_text(&place.path("page.html")).contains("programs.CountedSignals.burn"));
    place.assert_clean();
}

#[test]
fn an_interrupt_by_the_terminal_arrives_once() {
    let place = RunFolder::new();
    let mut command = counting(&place, newest_java());
    let terminal = on_a_terminal(&mut command);
    let mut started = Started::new(&mut command, &place);
    drop(command);
    started.line("ready");
    // The command stands still until the program has handled its signal. Otherwise a second one might arrive
    // while the first is pending, and the kernel would merge them.
    started.signal(libc::SIGSTOP);
    // The character that Ctrl-C writes.
    fs::File::from(terminal.try_clone().unwrap()).write_all(b"\x03").unwrap();
    started.line("interrupted");
    started.signal(libc::SIGCONT);
    // The command takes the signals with lower numbers first: a SIGINT that it passes on would be there by
    // the time of SIGTERM.
    started.signal(libc::SIGTERM);
    assert_counted(&place, started, 1);
}

#[test]
fn an_interrupt_of_the_command_alone_arrives() {
    for home in newest_or_all() {
        let place = RunFolder::new();
        let mut started = Started::new(&mut counting(&place, home.join("bin/java")), &place);
        started.line("ready");
        started.signal(libc::SIGINT);
        started.line("interrupted");
        started.signal(libc::SIGTERM);
        assert_counted(&place, started, 1);
    }
}

/// The kernel sends SIGHUP only to the leader of the terminal's session.
#[test]
fn a_hangup_of_the_terminal_reaches_the_program() {
    let place = RunFolder::new();
    let script = place.script("hup.sh", &format!("#!/bin/sh\ntrap 'exit 9' HUP\necho ready\n{WAIT}"));
    let mut command = place.run();
    command.arg("--").arg(script);
    let terminal = on_a_terminal(&mut command);
    let mut started = Started::new(&mut command, &place);
    drop(command);
    started.line("ready");
    drop(terminal);
    assert_eq!(started.finish().0, 9);
}

#[test]
fn each_signal_to_the_command_is_passed_on() {
    for (name, signal) in [
        ("HUP", libc::SIGHUP),
        ("INT", libc::SIGINT),
        ("QUIT", libc::SIGQUIT),
        ("USR1", libc::SIGUSR1),
        ("USR2", libc::SIGUSR2),
        ("ALRM", libc::SIGALRM),
        ("TERM", libc::SIGTERM),
        ("WINCH", libc::SIGWINCH),
    ] {
        let place = RunFolder::new();
        let text = format!("#!/bin/sh\ntrap 'echo got {name}; exit 9' {name}\necho ready\n");
        let script = place.script("trap.sh", &format!("{text}{WAIT}"));
        let mut started = Started::new(place.run().arg("--").arg(script), &place);
        started.line("ready");
        started.signal(signal);
        let (code, stdout, stderr) = started.finish();
        assert_eq!((code, &*stdout), (9, &*format!("got {name}\n")), "{stderr}");
        assert!(stderr.contains("otlpprof: no profile was written: "), "{stderr}");
        place.assert_clean();
    }
}

/// Lets a command and its programs leave no core file.
fn without_cores(command: &mut Command) {
    let limit = || {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the pointer is to a variable of this frame. The call is async-signal-safe.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
        Ok(())
    };
    // SAFETY: the closure makes one system call, and allocates nothing.
    unsafe { command.pre_exec(limit) };
}

/// By default a JVM ends with exit code 143 on SIGTERM, and by the signal itself on SIGKILL. On SIGSEGV it
/// writes its own report, and aborts.
#[test]
fn a_program_that_is_ended_by_a_signal_has_a_report_of_its_time_before() {
    for home in newest_or_all() {
        for (signal, expected, line) in [
            (libc::SIGTERM, 143, "has ended: exit status: 143\n"),
            (libc::SIGKILL, 137, "has ended: signal: 9 (SIGKILL)\n"),
            (libc::SIGSEGV, 134, "has ended: signal: 6 (SIGABRT)"),
        ] {
            let place = RunFolder::new();
            let mut command = place.run();
            command.args([
                "cpu=1ms,interval=100ms",
                "--top",
                "1000",
                "-o",
                "page.html",
                "-o",
                "kept.otlp",
                "--",
            ]);
            without_cores(&mut command);
            command.arg(home.join("bin/java")).arg("-XX:ErrorFile=error");
            command.args(["-cp", otlpprof_testkit::run_folder::CLASSES, "programs.RunAndExit", "0", "600"]);
            let mut started = Started::new(&mut command, &place);
            let pid: u32 = started.line("pid ").parse().unwrap();
            wait_for("profile", || {
                place.written().iter().any(|file| {
                    let text = String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned();
                    text.contains("programs.RunAndExit.burn")
                })
            });
            match signal {
                libc::SIGTERM => started.signal(signal),
                _ => kill(pid, signal),
            }
            let (code, _, stderr) = started.finish();
            let label = format!("{} signal {signal}", home.display());
            assert_eq!(code, expected, "{label}: {stderr}");
            assert!(stderr.contains(line), "{label}: {stderr}");
            assert!(stderr.contains("programs.RunAndExit.burn (RunAndExit.java)"), "{label}: {stderr}");
            assert!(data_text(&place.path("page.html")).contains("programs.RunAndExit.burn"), "{label}");
            profiles::assert_valid(&label, &place.path("kept.otlp"));
            place.assert_clean();
        }
    }
}

/// The page is a pipe that nobody reads, so that the command waits.
#[test]
fn a_signal_while_results_are_written_removes_the_temporary_folder() {
    let place = RunFolder::new();
    fs::write(place.path("message"), framed(&valid())).unwrap();
    let script = "#!/bin/sh\nfile=${JAVA_TOOL_OPTIONS##*file=}\ncat message > \"${file%/*}/77.otlp\"\n";
    let script = place.script("writer.sh", script);
    let made = Command::new("mkfifo").arg(place.path("page.html")).status().unwrap();
    assert!(made.success());
    let started = Started::new(place.run().args(["-o", "page.html", "--"]).arg(script), &place);
    wait_for("report", || started.stderr().contains("com.example.Burn.spin"));
    assert!(!place.written().is_empty());
    started.signal(libc::SIGTERM);
    assert_eq!(started.finish().0, 143);
    place.assert_clean();
}

/// The kernel discards the status of children whose parent ignores SIGCHLD. The command's own parent may have
/// made the command ignore it.
#[test]
fn the_exit_code_is_known_where_sigchld_was_ignored() {
    let place = RunFolder::new();
    let mut command = place.run();
    command.args(["--", "/bin/sh", "-c", "exit 3"]);
    let ignore = || {
        // SAFETY: the call is async-signal-safe.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: the closure makes one system call, and allocates nothing.
    unsafe { command.pre_exec(ignore) };
    assert_eq!(parts(&command.output().unwrap()).0, 3);
}

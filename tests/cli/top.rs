//! `otlpprof top` on running JVMs and on files that grow, in a pseudo-terminal.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};
use nix::sys::termios::{Termios, tcgetattr};
use otlpprof_testkit::attach::{attach, command, jvm, refusal, state};
use otlpprof_testkit::commands::{exit_code, otlpprof, text_of};
use otlpprof_testkit::heeded_signals::heed_signals;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Running;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::processes::kill;
use otlpprof_testkit::profile_files::{Files, json, shop, stdout};
use otlpprof_testkit::profiles;
use otlpprof_testkit::this_build::agent;
use otlpprof_testkit::waiting::{PATIENCE, wait_for};

const ROWS: u16 = 40;
const COLUMNS: u16 = 120;

/// A command in a terminal of its own.
struct InTerminal {
    child: Child,
    keyboard: File,
    /// The command's side of the terminal. The other side is read to its end once this one is closed.
    terminal: Option<OwnedFd>,
    before: Termios,
    screen: Arc<Mutex<vt100::Parser>>,
    reader: Option<JoinHandle<()>>,
    /// Whether the reader ends once nothing is left to read for now, as the terminal is to be closed.
    is_closed: Arc<AtomicBool>,
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

impl InTerminal {
    fn start(mut command: Command) -> Self {
        let pair = openpty(&size(ROWS, COLUMNS), None).unwrap();
        // Programs that the test starts must not have the terminal, which then would not close.
        for side in [&pair.master, &pair.slave] {
            // SAFETY: the call accesses no memory.
            assert_eq!(unsafe { libc::fcntl(side.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) }, 0);
        }
        let before = tcgetattr(&pair.slave).unwrap();
        let side = || Stdio::from(pair.slave.try_clone().unwrap());
        command
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .env("TERM", "xterm-256color")
            .env("NO_COLOR", "1");
        // SAFETY: the calls access no memory, and may be made in the child between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let child = command.spawn().unwrap();
        drop(command);
        let keyboard = File::from(pair.master);
        let [rows, columns] = [ROWS, COLUMNS].map(|count| NonZero::new(count).unwrap());
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let (mut output, to) = (keyboard.try_clone().unwrap(), screen.clone());
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = is_closed.clone();
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                let mut ready = libc::pollfd { fd: output.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                // SAFETY: `ready` is one entry, and outlives the call.
                if unsafe { libc::poll(&mut ready, 1, 20) } == 0 {
                    if closed.load(Ordering::Relaxed) {
                        break;
                    }
                    continue;
                }
                let Ok(count @ 1..) = output.read(&mut bytes) else { break };
                to.lock().unwrap().process(&bytes[..count]);
            }
        });
        let (terminal, reader) = (Some(pair.slave), Some(reader));
        Self { child, keyboard, terminal, before, screen, reader, is_closed }
    }

    /// Changes the terminal's size. The kernel sends SIGWINCH to the command.
    fn resize(&mut self, rows: u16, columns: u16) {
        self.screen
            .lock()
            .unwrap()
            .screen_mut()
            .set_size(NonZero::new(rows).unwrap(), NonZero::new(columns).unwrap());
        // SAFETY: the size outlives the call.
        let changed =
            unsafe { libc::ioctl(self.keyboard.as_raw_fd(), libc::TIOCSWINSZ, &size(rows, columns)) };
        assert_eq!(changed, 0);
    }

    /// Closes the terminal, as a window that is closed does, and waits for the command's end.
    fn close(mut self) -> ExitStatus {
        self.is_closed.store(true, Ordering::Relaxed);
        self.reader.take().unwrap().join().unwrap();
        self.keyboard = File::open("/dev/null").unwrap();
        self.child.wait().unwrap()
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Waits until the screen's text satisfies a condition.
    fn wait_for(&mut self, what: &str, shows: impl Fn(&str) -> bool) {
        let start = Instant::now();
        while !shows(&self.text()) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() && start.elapsed() < PATIENCE, "no {what} ({ended:?})\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the command's end. The terminal is as it was. Returns the text of all that the command has
    /// written.
    fn finish(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        self.assert_restored();
        self.terminal = None;
        self.reader.take().unwrap().join().unwrap();
        assert!(!self.is_full_screen(), "the screen is not left");
        (status, self.text())
    }

    fn is_full_screen(&self) -> bool {
        self.screen.lock().unwrap().screen().alternate_screen()
    }

    fn assert_restored(&self) {
        let after = tcgetattr(self.terminal.as_ref().unwrap().as_fd()).unwrap();
        assert_eq!(after, self.before);
    }
}

impl Drop for InTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn top(pid: u32, arguments: &[&str]) -> Command {
    let mut command = otlpprof();
    command.args(["top", &pid.to_string(), "--library"]).arg(agent()).args(arguments);
    heed_signals(&mut command);
    command
}

fn is_idle(pid: u32) -> bool {
    state(pid)["message"] == "not profiling"
}

/// Ends the view by its key, and the JVM once the session has ended.
fn quit(mut top: InTerminal, jvm: Running) {
    top.press("q");
    assert_eq!(top.finish().0.code(), Some(0));
    wait_for("the session's end", || is_idle(jvm.pid()));
    jvm.terminate();
    jvm.finish();
}

#[test]
fn a_jvm_is_shown_and_left_as_it_was() {
    for home in newest_or_all() {
        let jvm = jvm(&home);
        let pid = jvm.pid();
        let mut top =
            InTerminal::start(top(pid, &["cpu=1ms,wall=5ms,loglevel=info", "-i", "100ms", "--idle"]));
        let hot = "programs.UserLoop.burn";
        top.wait_for("hot method and its thread", |text| {
            text.contains(&format!("JVM {pid}")) && text.contains(hot) && text.contains("main")
        });
        assert!(top.text().contains("Java"), "{}", top.text());
        top.wait_for("types", |text| text.contains("types: cpu wall"));
        assert!(!is_idle(pid));
        // Another type. Its values have another measure, and come from more threads.
        top.press("t");
        top.wait_for("wall-clock time of a waiting thread", |text| text.contains("Reference Handl"));
        top.press("T");
        top.wait_for("CPU time", |text| !text.contains("Reference Handl") && text.contains(hot));
        top.press("s");
        top.wait_for("sums with callees", |text| text.contains("by total"));
        top.press("/no such method\r");
        top.wait_for("an empty table", |text| text.contains("filter no such method") && !text.contains(hot));
        top.press("/\u{15}b[u\r");
        top.wait_for("the mistake in the filter", |text| text.contains("unclosed character class"));
        top.press("\u{15}b[u]rn$\r");
        top.wait_for("what matches", |text| text.contains("filter b[u]rn$") && text.contains(hot));
        top.press("p");
        top.wait_for("the pause", |text| text.contains("PAUSED"));
        top.press("\u{1b}");
        top.wait_for("the end of the filter", |text| !text.contains("filter b[u]rn$"));
        top.press("p\t\t");
        top.wait_for("threads alone", |text| {
            !text.contains("PAUSED") && !text.contains(hot) && text.contains("main")
        });
        top.press("q");
        let (status, _) = top.finish();
        assert_eq!(status.code(), Some(0));
        assert!(is_idle(pid));
        assert!(!jvm.stderr().contains("[otlpprof]"), "{}", jvm.stderr());
        jvm.terminate();
        jvm.finish();
    }
}

#[test]
fn a_session_that_it_started_ends_with_it() {
    let home = newest_or_all().pop().unwrap();
    let jvm = jvm(&home);
    let pid = jvm.pid();
    for end in ["Ctrl-C", "SIGTERM", "SIGTSTP", "Ctrl-Z", "SIGHUP", "SIGKILL"] {
        let mut top = InTerminal::start(top(pid, &["cpu=1ms", "-i", "100ms"]));
        top.wait_for("the view", |text| text.contains("UserLoop.burn"));
        match end {
            "Ctrl-C" => {
                top.press("\u{3}");
                assert_eq!(top.finish().0.code(), Some(0));
            }
            "SIGTERM" => {
                kill(top.child.id(), libc::SIGTERM);
                assert_eq!(top.finish().0.code(), Some(128 + libc::SIGTERM));
            }
            "SIGTSTP" | "Ctrl-Z" => {
                match end {
                    "SIGTSTP" => kill(top.child.id(), libc::SIGTSTP),
                    _ => top.press("\u{1a}"),
                }
                wait_for("the stop", || {
                    otlpprof_testkit::processes::status(top.child.id(), "State").starts_with('T')
                });
                top.assert_restored();
                wait_for("the screen before", || !top.is_full_screen());
                kill(top.child.id(), libc::SIGCONT);
                wait_for("the screen", || top.is_full_screen());
                top.wait_for("the view", |text| text.contains("UserLoop.burn"));
                top.press("q");
                assert_eq!(top.finish().0.code(), Some(0));
            }
            "SIGHUP" => {
                kill(top.child.id(), libc::SIGHUP);
                assert_eq!(top.finish().0.code(), Some(128 + libc::SIGHUP));
            }
            _ => drop(top),
        }
        wait_for("the session's end", || is_idle(pid));
    }
    // The end of the JVM ends the view.
    let mut top = InTerminal::start(top(pid, &["cpu=1ms", "-i", "100ms"]));
    top.wait_for("the view", |text| text.contains("UserLoop.burn"));
    jvm.terminate();
    let (status, text) = top.finish();
    assert_eq!(status.code(), Some(0));
    assert!(text.contains("has ended") || text.contains("has been stopped"), "{text}");
    jvm.finish();
}

#[test]
fn a_running_session_goes_on_as_before() {
    for home in newest_or_all() {
        let jvm = jvm(&home);
        let pid = jvm.pid();
        let started = attach(pid, "cpu=1ms,interval=1s,file=x.otlp", &jvm.profiles());
        assert_eq!(exit_code(&started), 0, "{}", text_of(&started.stderr));
        let began = state(pid)["session"]["startedUnixMs"].clone();
        let refused = top(pid, &["wall", "--count", "1"]).output().unwrap();
        assert_eq!(exit_code(&refused), 1, "{refused:?}");
        assert!(text_of(&refused.stderr).contains("is profiling already"), "{refused:?}");
        // Plain tables. On a busy machine the first may come before a sample.
        let tables = top(pid, &["--count", "3", "-i", "100ms"]).output().unwrap();
        assert_eq!(exit_code(&tables), 0, "{tables:?}");
        assert_eq!(text_of(&tables.stdout).matches(&format!("JVM {pid}")).count(), 3, "{tables:?}");
        let mut top = InTerminal::start(top(pid, &["-i", "100ms"]));
        top.wait_for("the view", |text| text.contains("UserLoop.burn"));
        // The agent notices that a reader has gone with its next message.
        wait_for("one reader", || text_of(&command("status", pid).stdout).contains("readers      1 now"));
        top.press("q");
        assert_eq!(top.finish().0.code(), Some(0));
        wait_for("its reader's end", || {
            state(pid)["session"]["counters"].get("otlpprof.stream.readers").is_none()
        });
        assert_eq!(state(pid)["session"]["startedUnixMs"], began);
        assert_eq!(exit_code(&command("stop", pid)), 0);
        let written = profiles::messages(&jvm.profiles().join("x.otlp"));
        assert_eq!(profiles::profile_types(&written), ["cpu".to_owned()].into());
        assert!(profiles::counted_in_profiles(&written, "stream.sent.messages") > 0);
        jvm.terminate();
        jvm.finish();
    }
}

/// The time of a line or head that begins with it, such as `1.25 s`, in seconds.
fn seconds(text: &str) -> f64 {
    let mut words = text.split_whitespace();
    let value: f64 = words.next().unwrap().parse().unwrap();
    match words.next().unwrap() {
        "s" => value,
        "ms" => value / 1e3,
        "us" => value / 1e6,
        unit => panic!("{unit}: {text}"),
    }
}

/// Asserts that no table of `top` has more time of the main thread than has passed. Returns whether the
/// thread is in a table.
fn assert_no_more_than_has_passed(tables: &str) -> bool {
    // The time between the agent's drain of the samples and its look at the clock. A message that is added
    // to the one before, in place of replacing it, gives ten times as much within the window.
    const DRAIN_S: f64 = 1.0;
    let mut is_there = false;
    for table in tables.split("\n\n") {
        let Some(main) = table.lines().find(|line| line.ends_with(" main")) else { continue };
        let (_, covered) = table.lines().next().unwrap().split_once(" in ").unwrap();
        assert!(seconds(main) <= seconds(covered) + DRAIN_S, "{table}");
        is_there = true;
    }
    is_there
}

#[test]
fn a_thread_has_no_more_time_than_has_passed() {
    let home = newest_or_all().pop().unwrap();
    let jvm = jvm(&home);
    let start = |options: &[&str]| {
        let arguments = [options, &["-i", "100ms", "-w", "1s", "--count", "12"]].concat();
        top(jvm.pid(), &arguments).stdout(Stdio::piped()).spawn().unwrap()
    };
    let tables = |top: Child| text_of(&top.wait_with_output().unwrap().stdout).to_owned();
    // A session of its own, and two that join another. On a busy machine there may be no sample for a while.
    wait_for("samples of a session of its own", || {
        assert_no_more_than_has_passed(&tables(start(&["cpu=1ms,interval=500ms"])))
    });
    wait_for("the session's end", || is_idle(jvm.pid()));
    attach(jvm.pid(), "cpu=1ms,interval=500ms,file=x.otlp", &jvm.profiles());
    wait_for("samples of a joined session", || {
        [start(&[]), start(&[])].map(|top| assert_no_more_than_has_passed(&tables(top))) == [true; 2]
    });
    assert_eq!(exit_code(&command("stop", jvm.pid())), 0);
    jvm.terminate();
    jvm.finish();
}

#[test]
fn a_resized_terminal_is_drawn_in_its_new_size() {
    let home = newest_or_all().pop().unwrap();
    let jvm = jvm(&home);
    let mut top = InTerminal::start(top(jvm.pid(), &["cpu=1ms", "-i", "100ms"]));
    let is_shown = |text: &str| text.contains("UserLoop.burn") && text.contains("q ");
    top.wait_for("the view", is_shown);
    for (rows, columns) in [(12, 60), (60, 200), (1, 1), (ROWS, COLUMNS)] {
        top.resize(rows, columns);
        // The keys' line is the last one. In one column there is room for a letter.
        let is_last = |text: &str| match text.lines().collect::<Vec<_>>()[..] {
            [.., last] if rows > 1 => last.contains('q') && text.lines().count() == usize::from(rows),
            _ => rows == 1,
        };
        // A function of a busy JVM's own may be above the program's in the few rows of a small terminal.
        top.wait_for(&format!("view of {rows} rows"), |text| {
            is_last(text) && (rows == 1 || text.starts_with("JVM"))
        });
    }
    top.wait_for("the view in its first size", is_shown);
    quit(top, jvm);
}

/// Regression: a key that arrived with the signal of a new size was read at the next key, if ever. A terminal
/// that had its former size again before the next drawing kept what it had scrolled or cut meanwhile.
#[test]
fn keys_are_heeded_while_the_terminal_is_resized() {
    let home = newest_or_all().pop().unwrap();
    let jvm = jvm(&home);
    let mut top = InTerminal::start(top(jvm.pid(), &["cpu=1ms", "-i", "100ms"]));
    let is_paused = |text: &str| text.lines().next().is_some_and(|head| head.contains("PAUSED"));
    top.wait_for("the view", |text| text.contains("UserLoop.burn"));
    for count in 0..150 {
        top.resize(ROWS - count % 2, COLUMNS);
        top.press("p");
        top.wait_for("change by p", |text| is_paused(text) == (count % 2 == 0));
    }
    quit(top, jvm);
}

/// Regression: the command panicked when it showed the cursor of a terminal that was gone.
#[test]
fn a_closed_terminal_ends_the_view_and_its_session() {
    let home = newest_or_all().pop().unwrap();
    let jvm = jvm(&home);
    let pid = jvm.pid();
    for ignores_the_hangup in [false, true] {
        let mut command = top(pid, &["cpu=1ms", "-i", "100ms"]);
        if ignores_the_hangup {
            // As nohup does.
            // SAFETY: the call accesses no memory, and may be made between fork and exec.
            unsafe {
                command.pre_exec(|| {
                    libc::signal(libc::SIGHUP, libc::SIG_IGN);
                    Ok(())
                });
            }
        }
        let mut top = InTerminal::start(command);
        top.wait_for("the view", |text| text.contains("UserLoop.burn"));
        let status = top.close();
        let code = status.code().unwrap_or_else(|| panic!("{status}"));
        // The command may find the terminal gone before the signal arrives.
        assert!(code <= 2 || code == 128 + libc::SIGHUP && !ignores_the_hangup, "{status}");
        wait_for("the session's end", || is_idle(pid));
    }
    jvm.terminate();
    jvm.finish();
}

#[test]
fn a_file_is_shown_as_it_grows() {
    let home = newest_or_all().pop().unwrap();
    let run = JavaRun::new(&home, "UserLoop").argument(2);
    let finished = run.agent("cpu=1ms,interval=500ms,file=FILE").run().expect_success();
    let bytes = fs::read(&finished.files()[0]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.otlp");
    File::create(&path).unwrap();
    let mut command = otlpprof();
    command.arg("top").arg(&path);
    let mut top = InTerminal::start(command);
    top.wait_for("the empty view", |text| text.contains("no samples yet"));
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    // A part of a message tells nothing.
    file.write_all(&bytes[..100]).unwrap();
    file.write_all(&bytes[100..]).unwrap();
    top.wait_for("the samples", |text| text.contains("UserLoop.burn"));
    top.press("q");
    assert_eq!(top.finish().0.code(), Some(0));
    // The same sums as in the report, since the window has all messages.
    let mut command = otlpprof();
    command.arg("top").arg(&path).args(["--count", "1", "-i", "300ms", "-w", "1h"]);
    let table = command.output().unwrap();
    let report = otlpprof().arg("report").arg(&path).output().unwrap();
    let total = |text: &str| text.split(": ").nth(1).unwrap().split(" in ").next().unwrap().to_owned();
    let (table, report) = (text_of(&table.stdout), text_of(&report.stdout));
    assert_eq!(total(table.split_once("x.otlp").unwrap().1), total(report), "{table}\n{report}");
    let kinds = |text: &str| text.lines().nth(1).unwrap().to_owned();
    assert!(kinds(table).starts_with("your code "), "{table}");
    assert_eq!(kinds(table), kinds(report));
}

/// Regression: such files were refused.
#[test]
fn a_file_of_any_format_is_shown_whole() {
    let files = Files::new();
    let otlp = files.add("app.otlp", &shop());
    for format in ["pprof", "collapsed"] {
        let exported = files.path(format);
        otlpprof_testkit::commands::run_otlpprof(&["export", &otlp, "--to", format, "-o", &exported])
            .success();
        let top = stdout(&["top", &exported, "--count", "1", "-i", "100ms"]);
        let report = json(&["report", &exported]);
        let row = &report["rows"][0];
        let function = row["function"].as_str().unwrap();
        let share = row["self"].as_f64().unwrap() / report["total"].as_f64().unwrap() * 100.0;
        let first = top.lines().find(|line| line.ends_with(function)).unwrap_or_else(|| panic!("{top}"));
        assert!(first.contains(&format!(" {share:.1} %")), "{function} {share}: {top}");
    }
}

#[test]
fn mistakes_are_one_line_each() {
    let run = |arguments: &[&str]| otlpprof().arg("top").args(arguments).output().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("x.jfr").to_str().unwrap().to_owned();
    fs::write(&recording, b"FLR\0\0\x02").unwrap();
    for (arguments, message) in [
        (&["1"][..], "top needs a terminal for its view; --count N prints N tables instead"),
        (&["/no/such/file", "--count", "1"], "/no/such/file"),
        (&["/etc/passwd", "cpu=1ms", "--count", "1"], "a file takes neither options"),
        (&["/etc/passwd", "--count", "1", "-i", "100ms"], "no known format"),
        (&["/tmp", "--count", "1"], "is no file that grows"),
        (&[&recording, "--count", "1"], "too few for a chunk header"),
        (&["4294967294", "--count", "1"], "there is no process 4294967294"),
    ] {
        let refused = run(arguments);
        assert!(refusal(&refused).contains(message), "{refused:?}");
    }
    assert!(text_of(&run(&["1", "-i", "99ms"]).stderr).contains("must be 100ms to 1h"));
}

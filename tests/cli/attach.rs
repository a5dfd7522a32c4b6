//! `otlpprof attach`, `status`, `flush`, `stop` and `list` on running JVMs.

use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

use otlpprof_testkit::attach::{
    NOBODY, Target, attach, attach_command, command, has_request, json, ready, refusal, request_of,
    starting_jvm, state,
};
use otlpprof_testkit::commands::{exit_code, otlpprof, text_of};
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Running;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::processes::{caught, kill, maps};
use otlpprof_testkit::profiles;
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::this_build::agent;
use otlpprof_testkit::waiting::wait_for;
use serde_json::Value;

fn jvm(home: &Path, options: &[&str]) -> Running {
    let run = JavaRun::new(home, "UserLoop").argument(600);
    ready(options.iter().fold(run, |run, option| run.jvm_option(option)))
}

#[test]
fn a_jvm_is_profiled_by_commands_alone() {
    for home in newest_or_all() {
        let mut jvm = jvm(&home, &[]);
        let (pid, folder) = (jvm.pid(), jvm.profiles());
        let listed = |agent: bool| {
            let listed = json(&otlpprof().args(["list", "--json"]).output().unwrap());
            let entry = listed.as_array().unwrap().iter().find(|jvm| jvm["pid"] == pid).unwrap().clone();
            assert_eq!(entry["agent"].is_string(), agent, "{entry}");
            entry
        };
        let entry = listed(false);
        assert_eq!(entry["main"], "programs.UserLoop");
        assert!(entry["javaVersion"].is_string() && entry["user"].is_string(), "{entry}");
        let without = command("status", pid);
        assert_eq!(exit_code(&without), 2);
        assert!(text_of(&without.stderr).contains("has no agent"), "{}", text_of(&without.stderr));

        let mistake = attach(pid, "remotsym", &folder);
        assert_eq!(exit_code(&mistake), 1);
        assert!(text_of(&mistake.stderr).contains("did you mean 'remotesym'?"));
        // A relative path begins in the caller's folder, not in the JVM's. Answers name the file as it is
        // called.
        let file = folder.join(format!("relative-{pid}.otlp"));
        let names_file =
            |output: &Output| text_of(&output.stdout).contains(&format!("destination  {}\n", file.display()));
        let started = attach(pid, "cpu=2ms,loglevel=info,interval=1h,file=relative-%p.otlp", &folder);
        assert_eq!(exit_code(&started), 0, "{}", text_of(&started.stderr));
        assert!(names_file(&started), "{started:?}");
        assert_eq!(exit_code(&attach(pid, "", &folder)), 1, "profiling already");
        listed(true);
        jvm.wait_until("sampled", |_| {
            state(pid)["session"]["counters"]["otlpprof.handler.samples_recorded"].as_u64() > Some(0)
        });
        let status = command("status", pid);
        assert!(text_of(&status.stdout).contains("cpu every 2ms") && names_file(&status), "{status:?}");
        jvm.wait_until("flushed", |_| exit_code(&command("flush", pid)) == 0 && file.is_file());
        let stopped = command("stop", pid);
        assert_eq!(text_of(&stopped.stdout).lines().next(), Some("stopped"), "{}", text_of(&stopped.stderr));
        assert!(
            names_file(&stopped) && text_of(&stopped.stdout).contains(" written, 0 failed"),
            "{stopped:?}"
        );
        assert!(!profiles::messages(&file).is_empty());
        let idle = command("status", pid);
        assert_eq!(text_of(&idle.stdout).lines().next(), Some("not profiling"));
        // The very file was loaded again each time.
        let copies: std::collections::BTreeSet<_> =
            maps(pid).into_iter().filter(|path| path.contains("libotlpprof")).collect();
        assert_eq!(copies.len(), 1, "{copies:?}");
        assert!(!has_request(pid));
        // Regression: every command left lines on the program's standard error.
        assert!(!jvm.stderr().contains("[otlpprof]"), "{}", jvm.stderr());
        jvm.terminate();
        jvm.finish();
    }
}

/// A command that does not get the answer leaves its contents in the log.
/// Regression: the recording was among the engines of a JVM that has no recorder.
#[test]
fn a_recording_that_cannot_begin_is_not_among_the_engines() {
    let jvm = jvm(&newest_or_all().pop().unwrap(), &["--limit-modules=java.base"]);
    let folder = tempfile::tempdir().unwrap();
    let attached = attach(jvm.pid(), "cpu=5ms,jfr,file=x.otlp", folder.path());
    assert_eq!(exit_code(&attached), 0, "{attached:?}");
    let engines = serde_json::json!(["cpu every 5ms"]);
    wait_for("a status without jfr", || state(jvm.pid())["session"]["engines"] == engines);
    jvm.terminate();
    jvm.finish();
}

#[test]
fn the_log_has_what_an_answer_could_not_say() {
    let jvm = jvm(&newest_or_all().pop().unwrap(), &[]);
    jvm.load_agent_by_jcmd("answer=/no/such/socket,interval=1h,file=FILE");
    let log = jvm.stderr();
    assert!(log.contains("[otlpprof] error: answer=/no/such/socket: "), "{log}");
    assert!(log.contains("[otlpprof] started\n"), "{log}");
    jvm.terminate();
    jvm.finish();
}

/// The answer has the warnings of a start.
#[test]
fn warnings_of_a_start_are_in_the_answer_alone() {
    let jvm = jvm(&newest_or_all().pop().unwrap(), &[]);
    let started = attach(jvm.pid(), "nativemem.leaks,interval=1h,file=a.otlp", &jvm.profiles());
    assert_eq!(exit_code(&started), 0, "{started:?}");
    let warning = "log          warning: nativemem.leaks is ignored: nativemem is off\n";
    assert!(text_of(&started.stdout).contains(warning), "{started:?}");
    assert!(!jvm.stderr().contains("nativemem.leaks"), "{}", jvm.stderr());
    jvm.terminate();
    jvm.finish();
}

#[test]
fn a_mistake_is_a_result_that_jcmd_shows() {
    for home in newest_or_all() {
        let jvm = jvm(&home, &[]);
        assert!(jvm.load_agent_by_jcmd("remotsym").contains("return code: -1"));
        assert!(jvm.load_agent_by_jcmd("status").contains("return code: -1"), "not running");
        assert!(jvm.load_agent_by_jcmd("file=FILE").contains("return code: 0"));
        assert!(jvm.load_agent_by_jcmd("status").contains("return code: 0"));
        let html = jvm.load_agent_by_jcmd("file=DIR/x.html");
        assert!(html.contains("return code: -1"), "{html}");
        assert!(jvm.stderr().contains("the agent writes OTLP, not .html"), "{}", jvm.stderr());
        jvm.terminate();
        jvm.finish();
    }
}

/// SIGQUIT would end each of these processes.
#[test]
fn no_signal_goes_to_a_process_that_would_die_of_it() {
    let other = Target::start(Command::new("sleep").arg("600"));
    let starting = starting_jvm(&[]);
    for (mut target, message) in [(other, "is no JVM"), (starting, "does not catch SIGQUIT")] {
        let pid = target.pid();
        let refused = attach(pid, "", Path::new("/"));
        assert!(refusal(&refused).contains(message), "{refused:?}");
        assert!(!has_request(pid));
        // Of two pending signals the lower number comes first: SIGQUIT before SIGTERM.
        assert_eq!(target.terminate(), libc::SIGTERM);
    }
}

/// Regression: OpenJ9 has a libjvm.so, too. Each command made it write a javacore, and waited for its socket.
#[test]
fn no_signal_goes_to_a_jvm_of_openj9() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libj9vm29.so");
    std::fs::copy(otlpprof_testkit::this_build::libraries()[0], &library).unwrap();
    let target = starting_jvm(&[library]);
    for name in ["attach", "record", "status"] {
        let refused = command(name, target.pid());
        assert!(refusal(&refused).contains("Eclipse OpenJ9"), "{refused:?}");
    }
    let listed = otlpprof().arg("list").output().unwrap();
    let row = format!("{:>8}  ", target.pid());
    let row = text_of(&listed.stdout).lines().find(|line| line.starts_with(&row)).unwrap();
    assert!(row.contains("  ?      sleep"), "{row}");
    assert!(target.is_alive() && !has_request(target.pid()));
}

/// With -Xrs a JVM does not catch SIGQUIT. It opens its attach socket when it starts.
#[test]
fn a_jvm_with_reduced_signals_is_attached_to_without_one() {
    for home in newest_or_all() {
        let mut without_signals = Command::new(home.join("bin/java"));
        without_signals.args([
            "-Xrs",
            "-cp",
            otlpprof_testkit::products::TEST_CLASSES,
            "programs.UserLoop",
            "600",
        ]);
        let mut target = Target::start(&mut without_signals);
        let pid = target.pid();
        let attached = || exit_code(&attach(pid, "interval=1h,file=/tmp/%p.otlp", Path::new("/"))) == 0;
        // Until the socket is there, the command is refused, and the JVM lives.
        wait_for("attaching", || target.is_alive() && attached());
        assert!(!caught(pid, libc::SIGQUIT));
        assert_eq!(text_of(&command("stop", pid).stdout).lines().next(), Some("stopped"));
        assert!(!has_request(pid));
        let _ = std::fs::remove_file(format!("/tmp/{pid}.otlp"));
        assert_eq!(target.terminate(), libc::SIGTERM);
    }
}

#[test]
fn jvms_that_refuse_are_named_with_a_remedy() {
    for home in newest_or_all() {
        for (option, message) in [
            ("-XX:+DisableAttachMechanism", "was started with -XX:+DisableAttachMechanism"),
            ("-XX:-EnableDynamicAgentLoading", "start it with -XX:+EnableDynamicAgentLoading"),
        ] {
            let jvm = jvm(&home, &[option]);
            let refused = attach(jvm.pid(), "", Path::new("/"));
            assert!(refusal(&refused).contains(message), "{refused:?}");
            jvm.terminate();
            let finished = jvm.finish();
            assert!(!finished.stdout.contains("Full thread dump"), "{}", finished.stdout);
        }
    }
    let ended = attach(i32::MAX.cast_unsigned(), "", Path::new("/"));
    assert!(refusal(&ended).contains("there is no process"), "{ended:?}");
}

#[test]
fn the_id_of_a_thread_is_refused() {
    let jvm = jvm(&newest_or_all().pop().unwrap(), &[]);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", jvm.pid())).unwrap();
    let mut ids = tasks.map(|task| task.unwrap().file_name().to_str().unwrap().parse::<u32>().unwrap());
    let thread = ids.find(|id| *id != jvm.pid()).unwrap();
    let refused = attach(thread, "", Path::new("/"));
    assert!(refusal(&refused).contains(&format!("is a thread of process {}", jvm.pid())), "{refused:?}");
    jvm.terminate();
    jvm.finish();
}

#[test]
fn another_copy_of_the_library_is_refused() {
    let home = newest_or_all().pop().unwrap();
    let jvm = jvm(&home, &[]);
    assert_eq!(exit_code(&attach(jvm.pid(), "file=/dev/null/x", Path::new("/"))), 1);
    let other = jvm.profiles().join("libotlpprof.so");
    std::fs::copy(agent(), &other).unwrap();
    let mut command = otlpprof();
    command.args(["attach", &jvm.pid().to_string(), "--library"]).arg(&other);
    let refused = command.output().unwrap();
    assert!(text_of(&refused.stderr).contains("has the agent already, from"), "{refused:?}");
    std::fs::remove_file(other).unwrap();
    jvm.terminate();
    jvm.finish();
}

#[test]
fn a_stopped_process_is_named() {
    let home = newest_or_all().pop().unwrap();
    let jvm = jvm(&home, &[]);
    kill(jvm.pid(), libc::SIGSTOP);
    wait_for("the stop", || otlpprof_testkit::processes::status(jvm.pid(), "State").starts_with('T'));
    let refused = attach(jvm.pid(), "", Path::new("/"));
    kill(jvm.pid(), libc::SIGCONT);
    assert!(refusal(&refused).contains("is stopped and cannot answer"), "{refused:?}");
    jvm.terminate();
    jvm.finish();
}

/// The command as it waits for an answer; the test is the JVM.
#[test]
fn files_are_gone_after_an_interrupt() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let (target, jvm) = otlpprof_testkit::attach::fake_jvm();
        let mut command = attach_command(target.pid(), "");
        // The program that runs this test may ignore the signal.
        // SAFETY: the function makes one system call, which is safe after a fork.
        unsafe {
            command.pre_exec(move || {
                libc::signal(signal, libc::SIG_DFL);
                Ok(())
            });
        }
        let mut waiting = command.spawn().unwrap();
        let (_connection, socket, _) = request_of(&jvm);
        assert_eq!(otlpprof_testkit::attach::mode(Path::new(&socket)), 0o600);
        kill(waiting.id(), signal);
        assert_eq!(waiting.wait().unwrap().code(), Some(128 + signal));
        assert!(!Path::new(&socket).exists());
    }
}

#[test]
fn a_jvm_that_does_not_answer_is_named() {
    let (target, jvm) = otlpprof_testkit::attach::fake_jvm();
    let mut command = attach_command(target.pid(), "");
    let waiting = command.args(["--timeout", "300ms"]).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let (_connection, socket, _) = request_of(&jvm);
    let output = waiting.wait_with_output().unwrap();
    assert!(refusal(&output).contains("did not answer within 300ms"), "{output:?}");
    assert!(!Path::new(&socket).exists());
}

/// Regression: the command waited in connect(2), without an end, and no signal but SIGKILL ended it.
#[test]
fn a_jvm_that_accepts_no_connection_is_named() {
    let (target, jvm) = otlpprof_testkit::attach::fake_jvm();
    // A queue of one connection, which is taken.
    // SAFETY: the call accesses no memory.
    assert_eq!(unsafe { libc::listen(jvm.as_raw_fd(), 0) }, 0);
    let path = format!("/tmp/.java_pid{}", target.pid());
    let _first = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let output = attach_command(target.pid(), "").args(["--timeout", "300ms"]).output().unwrap();
    assert!(refusal(&output).contains("did not answer within 300ms"), "{output:?}");
    let mut waiting = attach_command(target.pid(), "").spawn().unwrap();
    wait_for("the command", || blocks(waiting.id(), libc::SIGTERM));
    kill(waiting.id(), libc::SIGTERM);
    assert_eq!(waiting.wait().unwrap().code(), Some(128 + libc::SIGTERM));
    std::fs::remove_file(path).unwrap();
}

/// Whether a process blocks a signal.
fn blocks(pid: u32, signal: i32) -> bool {
    let blocked = u64::from_str_radix(&otlpprof_testkit::processes::status(pid, "SigBlk"), 16);
    blocked.is_ok_and(|blocked| blocked >> (signal - 1) & 1 == 1)
}

#[test]
fn a_jvm_that_ends_before_it_answers_is_named() {
    let (mut target, jvm) = otlpprof_testkit::attach::fake_jvm();
    let mut command = attach_command(target.pid(), "");
    let waiting = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let (connection, socket, _) = request_of(&jvm);
    target.terminate();
    drop(connection);
    let output = waiting.wait_with_output().unwrap();
    assert!(refusal(&output).contains("has ended"), "{output:?}");
    assert!(!Path::new(&socket).exists());
}

#[test]
fn a_jvm_that_replies_without_an_answer_of_the_agent_is_named() {
    for (reply, message) in [
        ("0\n/a.so was not loaded.\n/a.so: no such file\n", "did not load the agent: /a.so was not loaded."),
        ("0\nreturn code: 0\n", "gave no answer"),
    ] {
        let (target, jvm) = otlpprof_testkit::attach::fake_jvm();
        let waiting = attach_command(target.pid(), "").stderr(std::process::Stdio::piped()).spawn().unwrap();
        let (connection, _, _) = request_of(&jvm);
        otlpprof_testkit::attach::reply(connection, reply);
        let output = waiting.wait_with_output().unwrap();
        assert!(refusal(&output).contains(message), "{output:?}");
    }
}

/// Regression: a JVM whose attach socket is there, but which does not load agents yet, was reported as an
/// error.
#[test]
fn a_jvm_that_is_still_starting_is_asked_again() {
    let (target, jvm) = otlpprof_testkit::attach::fake_jvm();
    let mut command = attach_command(target.pid(), "");
    let waiting = command.arg("--json").stdout(std::process::Stdio::piped()).spawn().unwrap();
    let (first, _, _) = otlpprof_testkit::attach::next_request(&jvm);
    otlpprof_testkit::attach::reply(first, "-1\nDynamic agent loading is only permitted in the live phase\n");
    let (second, socket, _) = request_of(&jvm);
    // SAFETY: the call accesses no memory.
    otlpprof_testkit::attach::answer_as(unsafe { libc::geteuid() }, &socket, "started");
    otlpprof_testkit::attach::reply(second, "0\nreturn code: 0\n");
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(json(&output)["message"], "started");
}

/// Regression: an agent that was attached before the JVM's live phase found no JVMTI environment and gave up.
#[test]
fn an_agent_that_is_attached_before_the_live_phase_waits_for_it() {
    for home in newest_or_all() {
        let loader = "-Djava.system.class.loader=programs.SlowLoader";
        let jvm = jvm(&home, &["-XX:+StartAttachListener", loader]);
        // A signal in this moment would start a second listener beside the one of the flag, and the two would
        // leave a socket on which neither listens (HotSpot 25: os/posix/attachListener_posix.cpp, init).
        let socket = format!("/tmp/.java_pid{}", jvm.pid());
        wait_for("the socket", || Path::new(&socket).exists());
        let attached = attach(jvm.pid(), "file=a.otlp", &jvm.profiles());
        assert_eq!(exit_code(&attached), 0, "{attached:?}");
        jvm.terminate();
        jvm.finish();
    }
}

#[test]
fn options_that_are_too_long_for_the_jvm_are_refused() {
    let (target, _jvm) = otlpprof_testkit::attach::fake_jvm();
    let refused = attach(target.pid(), &"x".repeat(1100), Path::new("/"));
    assert!(refusal(&refused).contains("but the JVM takes at most 1024"), "{refused:?}");
    let _ = std::fs::remove_file(format!("/tmp/.java_pid{}", target.pid()));
}

#[test]
fn an_attach_socket_of_another_user_is_refused() {
    let Some(()) = otlpprof_testkit::attach::root() else {
        return not_tested("attach sockets of other users: the tests do not run as root");
    };
    let mut target = starting_jvm(&[]);
    let path = format!("/tmp/.java_pid{}", target.pid());
    let _ = std::fs::remove_file(&path);
    let _listener = otlpprof_testkit::attach::listen_as(NOBODY, Path::new(&path));
    let refused = attach(target.pid(), "", Path::new("/"));
    std::fs::remove_file(path).unwrap();
    assert!(refusal(&refused).contains("listens on the JVM's attach socket"), "{refused:?}");
    assert_eq!(target.terminate(), libc::SIGTERM);
}

#[test]
fn an_agent_whose_file_is_gone_is_commanded_and_one_whose_file_is_replaced_is_not() {
    let home = newest_or_all().pop().unwrap();
    let (jvm, folder) = (jvm(&home, &[]), tempfile::tempdir().unwrap());
    let library = folder.path().join("libotlpprof.so");
    std::fs::copy(agent(), &library).unwrap();
    let mut command_with_copy = otlpprof();
    let pid = jvm.pid().to_string();
    command_with_copy.args(["attach", &pid, "interval=1h,file=/dev/null", "--library"]).arg(&library);
    let started = command_with_copy.output().unwrap();
    assert!(started.status.success(), "{started:?}");
    // A second copy would say that it is not profiling.
    std::fs::remove_file(&library).unwrap();
    assert!(state(jvm.pid())["session"].is_object());
    std::fs::copy(agent(), &library).unwrap();
    let refused = command("stop", jvm.pid());
    assert!(refusal(&refused).contains("has been replaced"), "{refused:?}");
    std::fs::remove_file(&library).unwrap();
    assert_eq!(text_of(&command("stop", jvm.pid()).stdout).lines().next(), Some("stopped"));
    let loaded: std::collections::BTreeSet<_> =
        maps(jvm.pid()).into_iter().filter(|path| path.contains("libotlpprof")).collect();
    assert_eq!(loaded.len(), 1, "{loaded:?}");
    jvm.terminate();
    jvm.finish();
}

/// The reasons for which a dynamic linker would not load the library, found before the JVM tries.
#[test]
fn libraries_that_the_jvm_cannot_load_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let library = std::fs::read(agent()).unwrap();
    let refused = |target: &Target, name: &str| {
        let mut command = otlpprof();
        command.args(["attach", &target.pid().to_string(), "--library"]).arg(folder.path().join(name));
        let output = command.output().unwrap();
        refusal(&output).to_owned()
    };
    let mut jvm = starting_jvm(&[]);
    let missing = refused(&jvm, "missing.so");
    assert!(missing.contains("name the library by --library PATH"), "{missing}");
    std::fs::write(folder.path().join("text.so"), "text").unwrap();
    let text = refused(&jvm, "text.so");
    assert!(text.contains("name the library by --library PATH"), "{text}");

    // The machine's number is at byte 18 of an ELF file.
    const X86_64: u8 = 62;
    const AARCH64: u8 = 183;
    let mut foreign = library.clone();
    foreign[18] = if foreign[18] == X86_64 { AARCH64 } else { X86_64 };
    std::fs::write(folder.path().join("foreign.so"), &foreign).unwrap();
    let foreign = refused(&jvm, "foreign.so");
    assert!(
        foreign.contains("is built for ") && foreign.contains("use the library of its arch"),
        "{foreign}"
    );
    assert!(foreign.contains("x86-64") && foreign.contains("aarch64"), "{foreign}");

    // musl's name of the C library.
    let mut of_musl = library;
    let name = of_musl.windows(10).position(|bytes| bytes == b"libc.so.6\0").unwrap();
    of_musl[name..name + 10].copy_from_slice(b"libc.so\0\0\0");
    std::fs::write(folder.path().join("musl.so"), &of_musl).unwrap();
    let of_musl = refused(&jvm, "musl.so");
    assert!(of_musl.contains("is built for musl, but the JVM"), "{of_musl}");
    assert!(of_musl.contains("uses glibc"), "{of_musl}");
    assert_eq!(jvm.terminate(), libc::SIGTERM);

    let linker = folder.path().join("ld-musl-x86_64.so.1");
    std::fs::copy(otlpprof_testkit::this_build::libraries()[0], &linker).unwrap();
    std::fs::copy(agent(), folder.path().join("libotlpprof.so")).unwrap();
    let mut jvm = starting_jvm(&[linker]);
    let glibc = refused(&jvm, "libotlpprof.so");
    assert!(glibc.contains("is built for glibc, but the JVM") && glibc.contains("uses musl"), "{glibc}");
    assert_eq!(jvm.terminate(), libc::SIGTERM);
}

#[test]
fn an_answer_of_another_user_is_ignored() {
    let Some(_) = otlpprof_testkit::attach::root() else {
        return not_tested("answers of other users: the tests do not run as root");
    };
    let (target, jvm) = otlpprof_testkit::attach::fake_jvm();
    let mut command = attach_command(target.pid(), "");
    let waiting = command.arg("--json").stdout(std::process::Stdio::piped()).spawn().unwrap();
    let (connection, socket, _) = request_of(&jvm);
    otlpprof_testkit::attach::open_to_all(Path::new(&socket));
    otlpprof_testkit::attach::answer_as(NOBODY, &socket, "forged");
    otlpprof_testkit::attach::answer_as(0, &socket, "genuine");
    otlpprof_testkit::attach::reply(connection, "0\nreturn code: 0\n");
    let output = waiting.wait_with_output().unwrap();
    let answer: Value = json(&output);
    assert_eq!(answer["message"], "genuine");
}

#[test]
fn the_agent_answers_root_and_its_own_user_alone() {
    let Some(_) = otlpprof_testkit::attach::root() else {
        return not_tested("sockets of other users: the tests do not run as root");
    };
    let home = newest_or_all().pop().unwrap();
    let mut jvm = jvm(&home, &[]);
    let folder = tempfile::Builder::new().prefix("answer").tempdir_in("/tmp").unwrap();
    otlpprof_testkit::attach::open_to_all(folder.path());
    let path = folder.path().join("s");
    let _listener = otlpprof_testkit::attach::listen_as(NOBODY, &path);
    jvm.load_agent_by_jcmd(&format!("answer={},status", path.display()));
    jvm.wait_until("refused", |jvm| jvm.stderr().contains("neither root nor this process's user"));
    jvm.terminate();
    jvm.finish();
}

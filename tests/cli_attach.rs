//! `otlpprof attach`, `status`, `flush`, `stop` and `list` on running JVMs.

mod agent_support;
mod attach_support;
mod loud_support;

use std::path::Path;
use std::process::Command;

use agent_support::running::Running;
use agent_support::{JavaRun, agent, oldest_and_newest, profiles};
use attach_support::{
    NOBODY, Target, answer_files, caught, exit_code, json, maps, otlpprof, socket_of, text_of, wait_for,
};
use loud_support::not_tested;
use serde_json::Value;

/// Runs the command, which attaches the agent of this build.
fn attach(pid: u32, options: &str, folder: &Path) -> std::process::Output {
    let mut command = otlpprof();
    command.arg("attach").arg(pid.to_string()).arg("--library").arg(agent()).arg(options);
    command.current_dir(folder).output().unwrap()
}

fn command(name: &str, pid: u32) -> std::process::Output {
    otlpprof().args([name, &pid.to_string()]).output().unwrap()
}

fn jvm(home: &Path, options: &[&str]) -> Running {
    let run = JavaRun::new(home, "UserLoop").argument(600);
    let mut jvm = options.iter().fold(run, |run, option| run.jvm_option(option)).start();
    jvm.wait_until("ready", |jvm| caught(jvm.pid(), libc::SIGQUIT));
    jvm
}

#[test]
fn a_jvm_is_profiled_by_commands_alone() {
    for home in oldest_and_newest() {
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
        // A relative path is the caller's, not the JVM's.
        let started = attach(pid, "cpu=2ms,interval=1h,file=relative.otlp", &folder);
        assert_eq!(exit_code(&started), 0, "{}", text_of(&started.stderr));
        assert_eq!(exit_code(&attach(pid, "", &folder)), 1, "profiling already");
        listed(true);
        jvm.wait_until("sampled", |_| {
            let status = otlpprof().args(["status", "--json", &pid.to_string()]).output().unwrap();
            json(&status)["session"]["counters"]["otlpprof.handler.samples_recorded"].as_u64() > Some(0)
        });
        let status = command("status", pid);
        assert!(text_of(&status.stdout).contains("cpu every 2ms"), "{}", text_of(&status.stdout));
        jvm.wait_until("flushed", |jvm| {
            exit_code(&command("flush", pid)) == 0 && jvm.profiles().join("relative.otlp").is_file()
        });
        let stopped = command("stop", pid);
        assert_eq!(text_of(&stopped.stdout).lines().next(), Some("stopped"), "{}", text_of(&stopped.stderr));
        assert!(!profiles::messages(&folder.join("relative.otlp")).is_empty());
        let idle = command("status", pid);
        assert_eq!(text_of(&idle.stdout).lines().next(), Some("not profiling"));
        // The very file was loaded again each time.
        let copies: std::collections::BTreeSet<_> =
            maps(pid).into_iter().filter(|path| path.contains("libotlpprof")).collect();
        assert_eq!(copies.len(), 1, "{copies:?}");
        assert_eq!(answer_files(pid), [] as [String; 0]);
        jvm.terminate();
        jvm.finish();
    }
}

#[test]
fn a_mistake_is_a_result_that_jcmd_shows() {
    for home in oldest_and_newest() {
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
    let home = oldest_and_newest().pop().unwrap();
    let libjvm = home.join("lib/server/libjvm.so");
    let sleep = || {
        let mut command = Command::new("sleep");
        command.arg("600");
        command
    };
    // As a JVM that is still starting: its library is mapped, and it has no handlers yet.
    let mut starting = sleep();
    starting.env("LD_PRELOAD", &libjvm);
    for (mut process, has_jvm, message) in
        [(sleep(), false, "is no JVM"), (starting, true, "does not catch SIGQUIT")]
    {
        let mut target = Target::start(&mut process);
        let pid = target.pid();
        wait_for("libjvm.so", || !has_jvm || maps(pid).iter().any(|path| path.ends_with("libjvm.so")));
        let refused = attach(pid, "", Path::new("/"));
        assert_eq!(exit_code(&refused), 2);
        assert!(text_of(&refused.stderr).contains(message), "{}", text_of(&refused.stderr));
        assert_eq!(answer_files(pid), [] as [String; 0]);
        // Of two pending signals the lower number comes first: SIGQUIT before SIGTERM.
        assert_eq!(target.terminate(), libc::SIGTERM);
    }
}

/// With -Xrs a JVM does not catch SIGQUIT. It opens its attach socket when it starts.
#[test]
fn a_jvm_with_reduced_signals_is_attached_to_without_one() {
    for home in oldest_and_newest() {
        let mut without_signals = Command::new(home.join("bin/java"));
        without_signals.args(["-Xrs", "-cp", env!("OTLPPROF_TEST_CLASSES"), "programs.UserLoop", "600"]);
        let mut target = Target::start(&mut without_signals);
        let pid = target.pid();
        let attached = || exit_code(&attach(pid, "interval=1h,file=/tmp/%p.otlp", Path::new("/"))) == 0;
        // Until the socket is there, the command is refused, and the JVM lives.
        wait_for("attaching", || target.is_alive() && attached());
        assert!(!caught(pid, libc::SIGQUIT));
        assert_eq!(text_of(&command("stop", pid).stdout).lines().next(), Some("stopped"));
        assert_eq!(answer_files(pid), [] as [String; 0]);
        let _ = std::fs::remove_file(format!("/tmp/{pid}.otlp"));
        assert_eq!(target.terminate(), libc::SIGTERM);
    }
}

#[test]
fn jvms_that_refuse_are_named_with_a_remedy() {
    for home in oldest_and_newest() {
        for (option, message) in [
            ("-XX:+DisableAttachMechanism", "was started with -XX:+DisableAttachMechanism"),
            ("-XX:-EnableDynamicAgentLoading", "start it with -XX:+EnableDynamicAgentLoading"),
        ] {
            let jvm = jvm(&home, &[option]);
            let refused = attach(jvm.pid(), "", Path::new("/"));
            assert_eq!(exit_code(&refused), 2);
            assert!(text_of(&refused.stderr).contains(message), "{}", text_of(&refused.stderr));
            assert_eq!(text_of(&refused.stderr).lines().count(), 1);
            jvm.terminate();
            let finished = jvm.finish();
            assert!(!finished.stdout.contains("Full thread dump"), "{}", finished.stdout);
        }
    }
    let ended = attach(i32::MAX.cast_unsigned(), "", Path::new("/"));
    assert!(text_of(&ended.stderr).contains("there is no process"), "{}", text_of(&ended.stderr));
}

#[test]
fn another_copy_of_the_library_is_refused() {
    let home = oldest_and_newest().pop().unwrap();
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
    let home = oldest_and_newest().pop().unwrap();
    let jvm = jvm(&home, &[]);
    // SAFETY: kill accesses no memory, and the child has not been waited for.
    let send = |signal| unsafe { libc::kill(jvm.pid().cast_signed(), signal) };
    send(libc::SIGSTOP);
    wait_for("the stop", || attach_support::status(jvm.pid(), "State").starts_with('T'));
    let refused = attach(jvm.pid(), "", Path::new("/"));
    send(libc::SIGCONT);
    assert!(text_of(&refused.stderr).contains("is stopped and cannot answer"), "{refused:?}");
    jvm.terminate();
    jvm.finish();
}

#[test]
fn the_jvm_of_another_user_is_profiled_as_that_user() {
    let Some(_) = attach_support::root() else {
        return not_tested("attaching across users: the tests do not run as root");
    };
    for home in oldest_and_newest() {
        let folder = tempfile::tempdir().unwrap();
        attach_support::open_to_all(folder.path());
        let mut java = Command::new("setpriv");
        java.arg(format!("--reuid={NOBODY}")).arg(format!("--regid={NOBODY}")).arg("--clear-groups");
        java.arg(home.join("bin/java")).args([
            "-cp",
            env!("OTLPPROF_TEST_CLASSES"),
            "programs.UserLoop",
            "600",
        ]);
        let mut target = Target::start(&mut java);
        let pid = target.pid();
        wait_for("the JVM", || target.is_alive() && caught(pid, libc::SIGQUIT));
        let started = attach(pid, "interval=1h,file=other.otlp", folder.path());
        assert_eq!(exit_code(&started), 0, "{}", text_of(&started.stderr));
        assert_eq!(text_of(&command("stop", pid).stdout).lines().next(), Some("stopped"));
        assert_eq!(answer_files(pid), [] as [String; 0]);
        // A user who is neither root nor the JVM's is refused.
        let mut other = Command::new("setpriv");
        other.args(["--reuid=1", "--regid=1", "--clear-groups", env!("CARGO_BIN_EXE_otlpprof")]);
        let refused = other.args(["status", &pid.to_string()]).output().unwrap();
        if text_of(&refused.stderr).contains("Permission denied (os error 13): setpriv") {
            not_tested("the command by another user: it cannot run the build's file");
        } else {
            assert_ne!(exit_code(&refused), 0);
        }
        attach_support::remove_copies(pid);
        target.terminate();
    }
}

#[test]
fn a_jvm_in_other_namespaces_gets_a_copy_of_the_library() {
    for home in oldest_and_newest() {
        // The mounts' options, the error, and whether the agent is loaded.
        for (options, message) in
            [("rw", ""), ("rw,noexec", "is mounted noexec"), ("ro", "is mounted read-only")]
        {
            let Some(target) = attach_support::in_namespaces(&home, options) else {
                return not_tested("attaching across namespaces: unshare is not permitted");
            };
            let pid = target.jvm_in_namespaces();
            let hidden = tempfile::tempdir().unwrap();
            let library = hidden.path().join("libotlpprof.so");
            std::fs::copy(agent(), &library).unwrap();
            let mut attach = otlpprof();
            attach.args(["attach", &pid.to_string(), "interval=1h,file=/tmp/x.otlp", "--library"]);
            let attached = attach.arg(&library).output().unwrap();
            if message.is_empty() {
                assert_eq!(exit_code(&attached), 0, "{}", text_of(&attached.stderr));
                let copy = maps(pid).into_iter().find(|path| path.contains("libotlpprof-")).unwrap();
                assert!(copy.starts_with("/tmp/libotlpprof-"), "{copy}");
                assert_eq!(text_of(&command("flush", pid).stdout).lines().next(), Some("flushed"));
                assert_eq!(text_of(&command("stop", pid).stdout).lines().next(), Some("stopped"));
                assert_eq!(answer_files(pid), [] as [String; 0]);
            } else {
                assert_eq!(exit_code(&attached), 2);
                assert!(text_of(&attached.stderr).contains(message), "{}", text_of(&attached.stderr));
                assert_eq!(answer_files(pid), [] as [String; 0]);
            }
            // `unshare` ignores SIGTERM. Its end by SIGKILL ends the JVM.
            drop(target);
        }
    }
}

/// The command as it waits for an answer; the test is the JVM.
#[test]
fn files_are_gone_after_an_interrupt() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let (target, jvm) = attach_support::fake_jvm();
        let mut waiting =
            otlpprof().args(["attach", &target.pid().to_string(), "--library"]).arg(agent()).spawn().unwrap();
        let (_connection, socket) = socket_of(&jvm);
        assert_eq!(attach_support::mode(Path::new(&socket)), 0o600);
        // SAFETY: kill accesses no memory, and the child has not been waited for.
        unsafe { libc::kill(waiting.id().cast_signed(), signal) };
        assert_eq!(waiting.wait().unwrap().code(), Some(128 + signal));
        assert!(!Path::new(&socket).exists());
    }
}

#[test]
fn an_answer_of_another_user_is_ignored() {
    let Some(_) = attach_support::root() else {
        return not_tested("answers of other users: the tests do not run as root");
    };
    let (target, jvm) = attach_support::fake_jvm();
    let mut command = otlpprof();
    command.args(["attach", "--json", &target.pid().to_string(), "--library"]).arg(agent());
    let waiting = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let (connection, socket) = socket_of(&jvm);
    attach_support::open_to_all(Path::new(&socket));
    attach_support::answer_as(NOBODY, &socket, "forged");
    attach_support::answer_as(0, &socket, "genuine");
    attach_support::reply(connection, "0\nreturn code: 0\n");
    let output = waiting.wait_with_output().unwrap();
    let answer: Value = json(&output);
    assert_eq!(answer["message"], "genuine");
}

#[test]
fn the_agent_answers_root_and_its_own_user_alone() {
    let Some(_) = attach_support::root() else {
        return not_tested("sockets of other users: the tests do not run as root");
    };
    let home = oldest_and_newest().pop().unwrap();
    let mut jvm = jvm(&home, &[]);
    let folder = tempfile::Builder::new().prefix("answer").tempdir_in("/tmp").unwrap();
    attach_support::open_to_all(folder.path());
    let path = folder.path().join("s");
    let _listener = attach_support::listen_as(NOBODY, &path);
    jvm.load_agent_by_jcmd(&format!("answer={},status", path.display()));
    jvm.wait_until("refused", |jvm| jvm.stderr().contains("neither root nor this process's user"));
    jvm.terminate();
    jvm.finish();
}

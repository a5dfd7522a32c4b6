//! `otlpprof attach` and `record` on JVMs of other users, in other namespaces and roots, and with a /tmp that
//! cannot be used.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Output};

use otlpprof_testkit::attach::{
    NOBODY, Namespaces, Target, as_nobody, as_nobody_with, attach, attach_command_with, command, has_request,
    homes_for_nobody, in_chroot, in_namespaces, open_to_all, own_tmp, refusal, root, state,
};
use otlpprof_testkit::commands::{exit_code, otlpprof, text_of};
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::processes::{caught, maps};
use otlpprof_testkit::profiles;
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::this_build::agent;
use otlpprof_testkit::waiting::wait_for;

fn first_line(name: &str, pid: u32) -> String {
    let output = command(name, pid);
    text_of(&output.stdout).lines().next().unwrap_or_else(|| panic!("{output:?}")).to_owned()
}

/// Attaches with a copy of the library that a JVM with another /tmp does not see.
fn attach_hidden(pid: u32, options: &str) -> Output {
    attach_copy_in("/tmp", pid, options, Path::new("/"))
}

/// Attaches with a copy of the library that a JVM with another /tmp sees, wherever this build is.
fn attach_visible(pid: u32, options: &str, working_folder: &Path) -> Output {
    attach_copy_in("/var/tmp", pid, options, working_folder)
}

fn attach_copy_in(place: &str, pid: u32, options: &str, working_folder: &Path) -> Output {
    let folder = tempfile::tempdir_in(place).unwrap();
    open_to_all(folder.path());
    let library = folder.path().join("libotlpprof.so");
    std::fs::copy(agent(), &library).unwrap();
    attach_command_with(&library, pid, options).current_dir(working_folder).output().unwrap()
}

/// Records until there is a sample. Returns the file of the messages.
fn record(pid: u32, folder: &Path) -> std::path::PathBuf {
    let output = folder.join("out.otlp");
    let recorded = || {
        let mut command = otlpprof();
        command.args(["record", &pid.to_string(), "cpu=1ms", "-d", "300ms", "-o"]).arg(&output);
        let result = command.output().unwrap();
        let printed = text_of(&result.stderr);
        assert!(result.status.success() || printed.contains("no sample was taken"), "{printed}");
        result.status.success()
    };
    wait_for("a recording with samples", recorded);
    output
}

#[test]
fn the_jvm_of_another_user_is_profiled_as_that_user() {
    let Some(()) = root() else {
        return not_tested("attaching across users: the tests do not run as root");
    };
    let folder = tempfile::tempdir().unwrap();
    open_to_all(folder.path());
    // A copy, since another user may not reach the build's folder.
    let copy = folder.path().join("otlpprof");
    std::fs::copy(env!("CARGO_BIN_EXE_otlpprof"), &copy).unwrap();
    let homes = homes_for_nobody();
    if homes.is_empty() {
        return not_tested("attaching across users: no JDK that another user can reach");
    }
    for home in homes {
        let mut target = as_nobody(&home);
        let pid = target.pid();
        // A user who is neither root nor the JVM's is refused.
        let mut other = Command::new("setpriv");
        other.args(["--reuid=1", "--regid=1", "--clear-groups"]).arg(&copy);
        let refused = other.args(["status", &pid.to_string()]).output().unwrap();
        assert!(refusal(&refused).contains("belongs to user"), "{refused:?}");

        // Regression: root without the right to inspect processes was asked to be root.
        let mut weak = Command::new("setpriv");
        weak.args(["--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]).arg(&copy);
        let refused = weak.args(["status", &pid.to_string()]).output().unwrap();
        assert!(refusal(&refused).contains("CAP_SYS_PTRACE"), "{refused:?}");

        let started = attach(pid, &format!("interval=1h,file={pid}.otlp"), folder.path());
        assert_eq!(exit_code(&started), 0, "{}", text_of(&started.stderr));
        assert_eq!(first_line("flush", pid), "flushed");
        assert_eq!(first_line("stop", pid), "stopped");
        assert!(!has_request(pid));
        // The recording's file belongs to the caller, though the JVM's user has written the messages.
        let recorded = record(pid, folder.path());
        assert_eq!(std::fs::metadata(&recorded).unwrap().uid(), 0);
        profiles::assert_valid("another user's JVM", &recorded);
        otlpprof_testkit::attach::remove_copies(pid);
        target.terminate();
    }
}

/// Regression: the command lacked CAP_SYS_PTRACE by its account, and `list` had no word of these JVMs.
#[test]
fn the_cause_for_which_a_jvm_of_the_same_user_cannot_be_inspected_is_named() {
    let Some(()) = root() else {
        return not_tested("JVMs of another group or with capabilities: the tests do not run as root");
    };
    let folder = tempfile::tempdir().unwrap();
    open_to_all(folder.path());
    let copy = folder.path().join("otlpprof");
    std::fs::copy(env!("CARGO_BIN_EXE_otlpprof"), &copy).unwrap();
    let Some(home) = homes_for_nobody().pop() else {
        return not_tested("JVMs of another group or with capabilities: no JDK that another user can reach");
    };
    let own_group = format!("--regid={NOBODY}");
    let otlpprof = |arguments: &[&str]| {
        let mut setpriv = Command::new("setpriv");
        setpriv.arg(format!("--reuid={NOBODY}")).args(["--clear-groups", &own_group]).arg(&copy);
        setpriv.args(arguments).output().unwrap()
    };
    let capability = ["--inh-caps=+net_bind_service", "--ambient-caps=+net_bind_service", &own_group];
    for (options, cause) in
        [(&["--regid=12345"][..], "in the group 12345"), (&capability, "more privileges than this command")]
    {
        let target = as_nobody_with(options, &home.join("bin/java"));
        let pid = target.pid().to_string();
        for command in ["attach", "status", "record"] {
            let refused = otlpprof(&[command, &pid]);
            assert!(refusal(&refused).contains(cause), "{refused:?}");
        }
        let listed = otlpprof(&["list"]);
        let row = format!("{pid:>8}  nobody        ?           ?      programs.UserLoop");
        assert!(text_of(&listed.stdout).contains(&row), "{listed:?}");
        assert!(text_of(&listed.stderr).contains("otlpprof: process "), "{listed:?}");
        assert!(target.is_alive() && !has_request(target.pid()), "{cause}");
    }
}

/// Regression: such a process was said not to exist, since the kernel cuts its name to 15 bytes.
#[test]
fn a_jvm_whose_name_is_cut_inside_a_letter_is_commanded() {
    let Some(home) = homes_for_nobody().pop() else {
        return not_tested("a launcher of another name: no JDK that another user can reach");
    };
    let folder = tempfile::tempdir().unwrap();
    let launcher = folder.path().join("обработка");
    std::os::unix::fs::symlink(home.join("bin/java"), &launcher).unwrap();
    let mut java = Command::new(&launcher);
    java.args(["-cp", otlpprof_testkit::products::TEST_CLASSES, "programs.UserLoop", "600"]);
    let target = Target::start(&mut java);
    let pid = target.pid();
    wait_for("the JVM", || target.is_alive() && caught(pid, libc::SIGQUIT));
    let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap();
    assert!(std::str::from_utf8(&name).is_err(), "{name:?}");
    let attached = attach(pid, "interval=1h,file=app.otlp", folder.path());
    assert_eq!(exit_code(&attached), 0, "{}", text_of(&attached.stderr));
    assert_eq!(first_line("stop", pid), "stopped");
    let listed = otlpprof().arg("list").output().unwrap();
    assert!(text_of(&listed.stdout).contains("обработка"), "{listed:?}");
}

#[test]
fn a_jvm_in_other_namespaces_gets_a_copy_of_the_library() {
    let homes = homes_for_nobody();
    if homes.is_empty() {
        return not_tested("attaching across namespaces: no JDK that another user can reach");
    }
    for home in homes {
        for namespaces in [Namespaces::PidAndMount, Namespaces::OfNobody] {
            let Some(target) = in_namespaces(&home, namespaces, "rw,mode=1777") else {
                return not_tested("attaching across namespaces: unshare is not permitted");
            };
            let pid = target.jvm_in_namespaces();
            // The caller's folder is not the JVM's.
            let folder = tempfile::tempdir_in("/tmp").unwrap();
            let relative = attach_visible(pid, "file=relative.otlp", folder.path());
            assert!(refusal(&relative).contains("does not see the folder"), "{relative:?}");
            assert_eq!(own_tmp(pid), [] as [String; 0]);

            let attached = attach_hidden(pid, "interval=1h,file=/tmp/x.otlp");
            assert_eq!(exit_code(&attached), 0, "{}", text_of(&attached.stderr));
            let copy = maps(pid).into_iter().find(|path| path.contains("libotlpprof-")).unwrap();
            let name = copy.strip_prefix("/tmp/").unwrap_or_else(|| panic!("{copy}")).to_owned();
            assert!(state(pid)["session"]["destinations"][0] == "/tmp/x.otlp");
            assert_eq!(first_line("flush", pid), "flushed");
            assert_eq!(first_line("stop", pid), "stopped");
            let _ = std::fs::remove_file(format!("/proc/{pid}/root/tmp/x.otlp"));
            assert_eq!(own_tmp(pid), std::slice::from_ref(&name));
            let recorded = record(pid, folder.path());
            profiles::assert_valid("a JVM in namespaces", &recorded);
            assert_eq!(own_tmp(pid), [name]);
            // `unshare` ignores SIGTERM. Its end by SIGKILL ends the JVM.
            drop(target);
        }
    }
}

#[test]
fn a_tmp_that_cannot_be_used_is_named_and_left_as_it_was() {
    let home = newest_or_all().pop().unwrap();
    // The second message: that for a library that the JVM sees, which needs no copy. The answer still needs a
    // socket.
    for (options, of_hidden, of_visible) in [
        ("rw,noexec", "is mounted noexec", None),
        ("ro", "is mounted read-only", Some("is mounted read-only")),
        // Room for sockets, but not for the library.
        ("rw,size=64k", "has no room", None),
        // The folder itself is the only inode.
        ("rw,nr_inodes=1", "has no room", Some("has no room")),
    ] {
        let Some(target) = in_namespaces(&home, Namespaces::PidAndMount, options) else {
            return not_tested("a /tmp that cannot be used: unshare is not permitted");
        };
        let pid = target.jvm_in_namespaces();
        let refused = attach_hidden(pid, "interval=1h,file=/tmp/x.otlp");
        assert!(refusal(&refused).contains(of_hidden), "{options}: {refused:?}");
        assert_eq!(own_tmp(pid), [] as [String; 0], "{options}");
        let visible = attach_visible(pid, "interval=1h,file=/dev/null", Path::new("/"));
        match of_visible {
            Some(message) => assert!(refusal(&visible).contains(message), "{options}: {visible:?}"),
            None => assert!(visible.status.success(), "{options}: {visible:?}"),
        }
        assert_eq!(own_tmp(pid), [] as [String; 0], "{options}");
        drop(target);
    }
}

/// Regression: paths in /proc/PID/maps begin at the root of the mount namespace, not at the root of the
/// process.
#[test]
fn a_jvm_with_a_root_of_its_own_is_commanded_by_the_very_file() {
    for home in newest_or_all() {
        let folder = tempfile::tempdir().unwrap();
        let Some(mut target) = in_chroot(&home, folder.path()) else {
            return not_tested("attaching to a JVM after chroot: unshare is not permitted");
        };
        let pid = target.pid();
        wait_for("the JVM", || target.is_alive() && caught(pid, libc::SIGQUIT) && has_jvm(pid));
        let attached = attach(pid, "interval=1h,file=/tmp/%p.otlp", Path::new("/"));
        assert_eq!(exit_code(&attached), 0, "{}", text_of(&attached.stderr));
        assert!(state(pid)["session"].is_object());
        assert_eq!(first_line("stop", pid), "stopped");
        let copies: std::collections::BTreeSet<_> =
            maps(pid).into_iter().filter(|path| path.contains("libotlpprof")).collect();
        assert_eq!(copies.len(), 1, "{copies:?}");
        let _ = std::fs::remove_file(format!("/tmp/{pid}.otlp"));
        target.terminate();
    }
}

fn has_jvm(pid: u32) -> bool {
    maps(pid).iter().any(|path| path.ends_with("libjvm.so"))
}

/// Process ids of another namespace would denote other processes.
#[test]
fn a_proc_of_another_pid_namespace_is_refused() {
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork"]);
    if !unshare.arg("true").status().is_ok_and(|status| status.success()) {
        return not_tested("a foreign /proc: unshare is not permitted");
    }
    let mut target = Target::start(Command::new("sleep").arg("600"));
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork", env!("CARGO_BIN_EXE_otlpprof"), "status", &target.pid().to_string()]);
    let refused = unshare.output().unwrap();
    assert!(refusal(&refused).contains("/proc is not that of this PID namespace"), "{refused:?}");
    assert_eq!(target.terminate(), libc::SIGTERM);
}

//! No allocation and no lock in the agent's signal handler, in real JVMs: the demo's program runs with a library
//! preloaded that ends the process at either (`native/interposer`).

mod jdk_support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use jdk_support::java_homes;

const CLOCKS: [&str; 3] = ["perf", "timer", "itimer"];

/// The agent, which cargo builds beside the tests.
fn agent() -> PathBuf {
    let agent = std::env::current_exe().unwrap().with_file_name("libotlpprof.so");
    assert!(agent.is_file(), "{} was not built", agent.display());
    agent
}

/// Runs the demo's program under the agent and the guard; `environment` is for the guard.
fn demo(home: &Path, clock: &str, environment: &[(&str, &str)]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let options = format!("file=profiles.otlp,remotesym=true,cpu=1ms,cpu.clock={clock}");
    let mut command = Command::new(home.join("bin/java"));
    command
        .current_dir(&directory)
        // An abort that is expected shall leave nothing behind.
        .arg("-XX:-CreateCoredumpOnCrash")
        .arg(format!("-agentpath:{}={options}", agent().display()))
        .arg(format!("-Dddproftest={}", env!("OTLPPROF_DDPROFTEST")))
        .args(["-cp", env!("OTLPPROF_TEST_CLASSES"), "programs.Demo", "2"])
        .env("LD_PRELOAD", env!("OTLPPROF_HANDLER_GUARD"))
        .envs(environment.iter().copied());
    command.output().unwrap()
}

/// The number of handler calls that the guard reported.
fn guarded_calls(output: &Output) -> Option<u64> {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find_map(|line| line.strip_prefix("handler guard: "))?;
    line.strip_suffix(" calls guarded")?.parse().ok()
}

#[test]
fn the_handler_neither_allocates_nor_locks() {
    for home in java_homes() {
        for clock in CLOCKS {
            let output = demo(&home, clock, &[("HANDLER_GUARD_REPORT", "1")]);
            let what = format!("{} {clock}: {output:?}", home.display());
            assert!(output.status.success(), "{what}");
            let calls = guarded_calls(&output).unwrap_or_else(|| panic!("no report: {what}"));
            println!("{} {clock}: {calls} calls of the handler", home.display());
            assert!(calls >= 50, "{what}");
        }
    }
}

/// The guard ends the process at each kind of thing that must not be done.
#[test]
fn the_guard_ends_a_process_that_does_either() {
    use std::os::unix::process::ExitStatusExt;

    let Some(home) = java_homes().pop() else { return };
    for (check, function) in [
        ("malloc", "malloc"),
        ("free", "free"),
        ("mmap", "mmap"),
        ("mutex", "pthread_mutex_lock"),
        ("rwlock", "pthread_rwlock_rdlock"),
        ("cond", "pthread_cond_signal"),
        ("futex", "futex"),
    ] {
        let output = demo(&home, "timer", &[("HANDLER_GUARD_SELF_CHECK", check)]);
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{check}: {output:?}");
        let text = String::from_utf8_lossy(&output.stderr);
        // Not at the start of a line: the JVM may be in the middle of one of its own.
        let expected = format!("handler guard: {function}");
        assert!(text.contains(&expected), "{check}: {text}");
    }
}

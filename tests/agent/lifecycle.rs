//! The agent attached, stopped, started again and forked; and under the JVM's own checks.

use std::path::Path;

use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::{Running, Traces};
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::profiles;
use otlpprof_testkit::stacks::cpu_stacks;

/// A JVM that runs until it is terminated, and to which the agent has been attached.
fn start(home: &Path) -> Running {
    let jvm = JavaRun::new(home, "UserLoop").argument(600).start();
    jvm.load_agent_by_jcmd("status");
    assert!(jvm.stderr().contains("not running in this JVM"), "{}: {}", jvm.label, jvm.stderr());
    assert_eq!(jvm.traces(), Traces::default(), "{}", jvm.label);
    jvm
}

/// Loads the agent with these options and waits until it has printed `says`.
fn drive(jvm: &mut Running, options: &str, says: &str) {
    let before = jvm.stderr().matches(says).count();
    let answer = jvm.load_agent(options);
    jvm.wait_until(&format!("'{says}' after {options} ({answer})"), |jvm| {
        jvm.stderr().matches(says).count() > before
    });
}

#[test]
fn attach_status_flush_stop_and_start_again() {
    for home in newest_or_all() {
        let mut jvm = start(&home);
        for (file, clock) in [("first", "auto"), ("second", "timer")] {
            let options = format!("cpu=2ms,cpu.clock={clock},interval=1h,remotesym,file=DIR/{file}");
            drive(&mut jvm, &options, "CPU sampling every");
            drive(&mut jvm, &options, "profiling already");
            // A thread sets its name when it first runs.
            jvm.wait_until("sampling", |jvm| {
                let traces = jvm.traces();
                traces.timers + traces.perf_events > 5 && traces.threads.len() >= 2
            });
            jvm.wait_until("a sample", |jvm| {
                jvm.load_agent("flush");
                jvm.profiles().join(file).is_file()
            });
            drive(&mut jvm, "status", "profiling for");
            let flushed = profiles::messages(&jvm.profiles().join(file)).len();
            let used = jvm.cpu_ticks();
            jvm.wait_until("at work", |jvm| jvm.cpu_ticks() > used + 20);
            drive(&mut jvm, "stop", "stopped");
            assert_eq!(jvm.traces(), Traces::default(), "{}", jvm.label);
            let messages = profiles::messages(&jvm.profiles().join(file));
            assert!(messages.len() > flushed, "{}: nothing pending was written", jvm.label);
            let stacks = cpu_stacks(&messages);
            assert!(stacks.iter().any(|stack| stack.thread == "main"), "{}", jvm.label);
            drive(&mut jvm, "stop", "not profiling");
            drive(&mut jvm, "status", "not profiling");
        }
        jvm.terminate();
        let finished = jvm.finish();
        assert_eq!(libc::WEXITSTATUS(finished.status), 128 + libc::SIGTERM, "{}", finished.label);
        assert_eq!(finished.files().len(), 2, "{}", finished.label);
        // The line is printed once, though the profiler was started twice.
        let late = "methods that are already compiled have lines at safepoints only";
        assert_eq!(finished.stderr.matches(late).count(), 1, "{}: {}", finished.label, finished.stderr);
    }
}

#[test]
fn a_mistake_in_an_attach_leaves_the_jvm_running() {
    for home in newest_or_all() {
        let mut jvm = start(&home);
        drive(&mut jvm, "remotsym", "did you mean 'remotesym'?");
        drive(&mut jvm, "file=DIR/missing/folder/file", "the agent does not start");
        assert_eq!(jvm.traces(), Traces::default(), "{}", jvm.label);
        drive(&mut jvm, "file=FILE", "CPU sampling every");
        jvm.wait_for_profiles("profile.otlp", "a profile", |messages| !messages.is_empty());
        jvm.terminate();
        jvm.finish();
    }
}

#[test]
fn a_start_that_the_kernel_refuses_leaves_no_traces() {
    for home in newest_or_all() {
        let mut jvm = start(&home);
        jvm.limit_pending_signals(0);
        drive(&mut jvm, "cpu.clock=timer,file=FILE", "cpu.clock=timer is not available");
        assert_eq!(jvm.traces(), Traces::default(), "{}", jvm.label);
        jvm.terminate();
        jvm.finish();
    }
}

/// The commands by which a child reports its timers, descriptors, threads and signals.
const SELF: &str = "cat /proc/$$/timers; ls -l /proc/$$/fd; cat /proc/$$/task/*/comm; \
                    grep -E '^Sig(Cgt|Ign|Blk)' /proc/self/status; echo complete";

#[test]
fn child_processes_have_nothing_of_the_agent() {
    for home in newest_or_all() {
        for (mechanism, clock) in [("FORK", "auto"), ("VFORK", "timer"), ("POSIX_SPAWN", "itimer")] {
            let child = |options: &str| {
                let run = JavaRun::new(&home, "ChildProcess").argument(0.4).argument(SELF);
                let run = run.jvm_option(&format!("-Djdk.lang.Process.launchMechanism={mechanism}"));
                let run = if options.is_empty() { run } else { run.agent(options) };
                run.run().expect_success()
            };
            let run = child(&format!("cpu=1ms,cpu.clock={clock},file=FILE"));
            let label = format!("{} {mechanism} {clock}: {}", run.label, run.stdout);
            assert!(run.stdout.contains("complete"), "{label}");
            for word in ["ID: ", "perf_event", "otlpprof"] {
                assert!(!run.stdout.contains(word), "{word} in the child: {label}");
            }
            let signals = |text: &str| {
                text.lines().filter(|line| line.starts_with("Sig")).map(str::to_owned).collect::<Vec<_>>()
            };
            assert_eq!(signals(&run.stdout), signals(&child("").stdout), "{label}");
        }
    }
}

/// Everything that the agent does through JNI: every engine, the JVM's recorder, walkers that make the VM
/// create ids, and the Java API with its sessions and mistakes.
#[test]
fn the_jvms_own_checks_find_nothing() {
    const ENGINES: &str = "cpu=2ms,wall=5ms,alloc,live=64k,lock=1ns,wait=1ns,exceptions,nativemem,\
                           nativemem.leaks,jfr,trace=programs.MixedWork.*";
    let folder = std::env::current_exe().unwrap().parent().unwrap().display().to_string();
    for home in newest_or_all() {
        let run = |program, arguments: &[&str], options: &str| {
            let run = JavaRun::new(&home, program).jvm_option("-Xcheck:jni");
            let run = run.jvm_option(&format!("-Djava.library.path={folder}"));
            let run = run.variable("AGENT_OPTIONS", "cpu=1ms,lock,exceptions,file=FILE");
            let run = arguments.iter().fold(run, JavaRun::argument);
            match options {
                "" => run.run(),
                options => run.agent(&format!("{options},interval=400ms,file=FILE")).run(),
            }
        };
        let runs = [
            run("Demo", &["2"], "cpu=2ms"),
            run("MixedWork", &["2"], ENGINES),
            run("MixedWork", &["1"], "cpu=2ms,cstack=dwarf,exceptions,exceptions.thrown"),
            run("ContextStress", &["2", "1", "20"], "cpu=2ms,jfr,context.publish=attributes"),
            run("ContextCalls", &["true"], "cpu=2ms"),
            run("Events", &[], "cpu=2ms"),
            run("StopsAndFlushes", &["3"], ""),
        ];
        for run in runs {
            let printed = format!("{}\n{}", run.stdout, run.stderr);
            assert!(!run.stderr.contains("error: "), "{}: {printed}", run.label);
            for complaint in [
                "FATAL ERROR in native method",
                "WARNING in native method",
                "WARNING: JNI",
                "Re-registering of platform native method",
            ] {
                assert!(!printed.contains(complaint), "{}: {printed}", run.label);
            }
        }
    }
}

/// A flush that has waited for a session's end arrives while the next session fills the buffer.
#[test]
fn a_flush_of_a_session_that_is_over_takes_nothing_of_the_next() {
    let folder = std::env::current_exe().unwrap().parent().unwrap().display().to_string();
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "StopsAndFlushes")
            .argument(10)
            .jvm_option(&format!("-Djava.library.path={folder}"))
            .variable("AGENT_OPTIONS", "cpu=100us,interval=1s,file=FILE")
            .run()
            .expect_success();
        assert_eq!(run.stdout, "done\n", "{}", run.stderr);
        // Each session has its own samples.
        let ends: Vec<_> = run.stderr.lines().filter(|line| line.contains("samples_recorded=")).collect();
        assert_eq!(ends.len(), 10, "{}: {}", run.label, run.stderr);
        for line in &ends {
            let of_handler = |what: &str| value_in(line, &format!("handler.samples_{what}"));
            let [taken, recorded, dropped] = ["taken", "recorded", "dropped"].map(of_handler);
            assert_eq!(taken, recorded + dropped, "{}: {line}", run.label);
        }
        let recorded: i64 = ends.iter().map(|line| value_in(line, "handler.periods_recorded")).sum();
        let stacks = cpu_stacks(&run.messages());
        let written: i64 = stacks.iter().map(|stack| stack.value).sum();
        assert_eq!(written, recorded, "{}: {}", run.label, run.stderr);
        assert!(stacks.iter().any(|stack| stack.has("programs.StopsAndFlushes.burn")), "{}", run.label);
    }
}

/// The value of a counter in a line of counters. 0 if the line does not contain it.
fn value_in(line: &str, counter: &str) -> i64 {
    let value = line.split(' ').find_map(|word| word.strip_prefix(counter)?.strip_prefix('='));
    value.map_or(0, |value| value.parse().unwrap())
}

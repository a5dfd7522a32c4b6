//! Calls of traced methods, compared with their own measurements; and traced programs behave as without
//! tracing.

use std::path::Path;

use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::{java_version, newest_or_all};
use otlpprof_testkit::stacks::{Stack, stacks_of};

const METHODS: &str = "programs.Traced.fast:1h+programs.Traced.switched:1h+programs.Traced.*:3ms\
                       +programs.Traced.<init>:3ms+programs.Traced$Nested.instance:3ms\
                       +programs.Traced$Later.l*:3ms";

/// Makes the VM verify all classes, including the boot loader's.
const VERIFY: &str = "-Xverify:all";
/// Makes the VM log the classes that are changed.
const LOG_CHANGES: &str = "-Xlog:redefine+class+load=info";

fn run(home: &Path, jvm_options: &[&str], arguments: &[&str], options: &str) -> Finished {
    let mut run = JavaRun::new(home, "Traced").jvm_option("-Xcheck:jni");
    for option in jvm_options {
        run = run.jvm_option(option);
    }
    for argument in arguments {
        run = run.argument(argument);
    }
    let run = run.agent(&format!("cpu=off,file=FILE,{options}")).run().expect_success();
    let printed = format!("{}\n{}", run.stdout, run.stderr);
    for complaint in [
        "FATAL ERROR in native method",
        "WARNING in native method",
        "WARNING: JNI",
        "VerifyError",
        "[warning]",
    ] {
        assert!(!printed.contains(complaint), "{}: {printed}", run.label);
    }
    run
}

/// The calls that the program reports: method, number of calls, and the least and the most nanoseconds that
/// they take together. Lines of -Xcheck:jni are skipped.
fn truth(run: &Finished) -> Vec<(String, [i64; 3])> {
    let line = |line: &str| {
        let (name, numbers) = line.split_once(' ')?;
        let numbers: Vec<i64> = numbers.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        Some((name.to_owned(), numbers.try_into().ok()?))
    };
    run.stdout.lines().filter_map(line).collect()
}

/// The classes that the VM reports as changed, in that order.
fn changed(stdout: &str) -> Vec<&str> {
    let name = |line: &'_ str| line.find("redefined name=").map(|at| at + "redefined name=".len());
    let named = stdout.lines().filter_map(|line| name(line).map(|at| &line[at..]));
    named.map(|rest| rest.split(',').next().unwrap_or(rest)).collect()
}

/// The stacks whose leaf is this method. The VM starts all of them at their root.
fn of<'a>(run: &Finished, stacks: &'a [Stack], method: &str) -> Vec<&'a Stack> {
    let is_it = |stack: &&Stack| stack.frames[0].name.ends_with(&format!(".{method}"));
    let found: Vec<_> = stacks.iter().filter(is_it).collect();
    for stack in &found {
        let is_whole = stack.has("java.lang.Thread.run") || stack.has("java.lang.VirtualThread.run");
        // Not all calls are measured: a call that takes no time may have to wait for a processor.
        assert!(is_whole && stack.has("programs.Traced.all"), "{}: {stack:#?}", run.label);
    }
    found
}

fn sum(stacks: &[&Stack]) -> i64 {
    stacks.iter().map(|stack| stack.value).sum()
}

#[test]
fn call_durations_agree_with_the_programs_own() {
    for home in newest_or_all() {
        let kinds: &[&[&str]] = if java_version(&home) >= 21 { &[&[], &["virtual"]] } else { &[&[]] };
        for arguments in kinds {
            let has_few_others = (0..MOST_RUNS).any(|_| hold_durations(&home, arguments));
            assert!(has_few_others, "{} {arguments:?}: too many calls each time", home.display());
        }
    }
}

/// The most calls of a method that take no time and are measured all the same, because they had to wait for a
/// processor. On a busy machine there are more in some of the runs.
const MOST_WAITS: i64 = 2;
const MOST_RUNS: usize = 10;

/// Compares the calls with the program's own count. Returns whether there are at most [`MOST_WAITS`] others.
fn hold_durations(home: &Path, arguments: &[&str]) -> bool {
    let run = run(home, &[VERIFY], arguments, &format!("trace={METHODS}"));
    assert!(!run.stderr.contains("not traced"), "{}: {}", run.label, run.stderr);
    let counts = stacks_of(&run.messages(), "trace", ("calls", "count"));
    let times = stacks_of(&run.messages(), "trace", ("latency", "nanoseconds"));
    let mut has_few_others = true;
    for (name, [times_called, least, most]) in truth(&run) {
        let (method, calls_each) = match &*name {
            "Lambda" => ("later", 1),
            // For each pair: the outer constructor, and the constructor that it calls, which takes no time.
            "<init>" => ("<init>", 2),
            "overloaded" => ("overloaded", 2),
            "recursive" => ("recursive", 4),
            other => (other, 1),
        };
        let (count, time) = (sum(&of(&run, &counts, method)), sum(&of(&run, &times, method)));
        let label =
            format!("{} {arguments:?} {name}: {count} calls, {time} ns of {least} to {most}", run.label);
        println!("{label}");
        let more = count - times_called * calls_each;
        assert!(more >= 0, "{label}");
        has_few_others &= more <= MOST_WAITS;
        // The time of recursive calls is also a part of their callers' time.
        assert!(time >= least && (time <= most || more > 0 || method == "recursive"), "{label}");
    }
    for fast in ["fast", "switched"] {
        assert!(counts.iter().all(|stack| !stack.frames[0].name.ends_with(fast)), "{}", run.label);
    }
    // The class that traced methods call is in no stack.
    let all = counts.iter().flat_map(|stack| stack.frames.iter());
    let mut ours = all.filter(|frame| frame.name.contains("OtlpprofTrace"));
    assert!(ours.next().is_none(), "{}: {counts:#?}", run.label);
    has_few_others
}

#[test]
fn without_a_threshold_every_call_counts_and_lines_are_those_of_the_source() {
    for home in newest_or_all() {
        let run = run(&home, &[VERIFY], &[], "trace=programs.Traced.thrower+programs.Traced.plain");
        let counts = stacks_of(&run.messages(), "trace", ("calls", "count"));
        let calls = |method: &str| -> i64 {
            let is_it = |stack: &&Stack| stack.frames[0].name == format!("programs.Traced.{method}");
            counts.iter().filter(is_it).map(|stack| stack.value).sum()
        };
        assert_eq!((calls("thrower"), calls("plain")), (108, 8), "{}: {counts:#?}", run.label);
        let plain = counts.iter().find(|stack| stack.frames[0].name == "programs.Traced.plain").unwrap();
        let line = otlpprof_testkit::java_run::line_marked("Traced", "the return of plain");
        assert_eq!((plain.frames[0].line, &*plain.frames[0].file), (line, "Traced.java"), "{}", run.label);
    }
}

/// Traces all classes of some packages, many of which run already, and are used by the VM and the agent. The
/// VM starts as usual, without verification of these classes, and with verification.
#[test]
fn tracing_the_class_library_does_not_change_a_program() {
    for home in newest_or_all() {
        for jvm_options in [&[][..], &[VERIFY]] {
            let trace = "trace=java.util.*.*:1h+java.io.*.*:1h+java.lang.S*.*:1h+java.text.*.<init>:1h";
            let run = run(&home, jvm_options, &[], trace);
            let not_traced: Vec<_> = run.stderr.lines().filter(|line| line.contains("not traced")).collect();
            assert!(not_traced.is_empty(), "{}: {not_traced:#?}", run.label);
            assert_eq!(truth(&run).len(), 9, "{} {jvm_options:?}: {}", run.label, run.stdout);
        }
    }
}

/// Covers classes that are loaded when the agent starts, and classes that are loaded later.
#[test]
fn classes_without_a_method_that_is_traced_are_not_changed() {
    for home in newest_or_all() {
        let trace = "trace=programs.*.later+java.lang.*.parseUnsignedLong+java.util.*.buy";
        let run = run(&home, &[LOG_CHANGES], &[], trace);
        let changed = changed(&run.stdout);
        assert_eq!(changed, ["java.lang.Long", "programs.Traced$Later"], "{}: {}", run.label, run.stdout);
        assert!(!run.stderr.contains("not traced"), "{}: {}", run.label, run.stderr);
        assert!(run.stderr.contains("no class with a method java.util.*.buy"), "{}", run.stderr);
    }
}

#[test]
fn methods_without_code_and_unknown_methods_are_reported() {
    for home in newest_or_all() {
        let run = run(
            &home,
            &[],
            &[],
            "trace=java.lang.Object.hashCode+programs.Traced.plian+programs.Traced.plain",
        );
        let says = [
            "java.lang.Object.hashCode is not traced: it is native",
            "no class with a method programs.Traced.plian",
        ];
        for line in says {
            assert_eq!(run.stderr.matches(line).count(), 1, "{line}: {}: {}", run.label, run.stderr);
        }
        assert!(!run.stderr.contains("programs.Traced.plain was"), "{}", run.stderr);
    }
}

/// The log shows that classes are changed. One of the methods is called all the time, so that many samples
/// would be in the agent's code if its class stayed changed.
#[test]
fn classes_are_as_they_were_when_the_session_has_ended() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "UserLoop").argument(600);
        let mut jvm = run.jvm_option(VERIFY).jvm_option(LOG_CHANGES).start();
        jvm.load_agent_by_jcmd("status");
        for file in ["first", "second"] {
            let method = "programs.UserLoop.burn";
            jvm.load_agent(&format!(
                "cpu=5ms,trace={method}+programs.Work.mix:1h,interval=1h,file=DIR/{file}"
            ));
            jvm.wait_until("traced", |jvm| {
                jvm.load_agent("flush");
                let path = jvm.profiles().join(file);
                let messages = otlpprof_testkit::profiles::messages_if_any(&path);
                let counts = stacks_of(&messages, "trace", ("calls", "count"));
                counts.iter().any(|stack| stack.frames[0].name == method)
            });
            jvm.load_agent("stop");
        }
        // A session without tracing: no call is measured any more, and no code of the agent is on a stack.
        jvm.load_agent("cpu=1ms,interval=1h,file=DIR/third");
        let used = jvm.cpu_ticks();
        jvm.wait_until("at work", |jvm| jvm.cpu_ticks() > used + 50);
        jvm.load_agent("stop");
        // The classes change at the start and at the end of each session that traces.
        let stdout = jvm.stdout();
        for class in ["programs.UserLoop", "programs.Work"] {
            let changes = changed(&stdout).iter().filter(|changed| **changed == class).count();
            assert_eq!(changes, 4, "{} {class}: {stdout}", jvm.label);
        }
        let messages = otlpprof_testkit::profiles::messages(&jvm.profiles().join("third"));
        assert!(stacks_of(&messages, "trace", ("calls", "count")).is_empty(), "{}", jvm.label);
        let ours = |stacks: &[Stack]| {
            let is_ours =
                |stack: &&Stack| stack.frames.iter().any(|frame| frame.name.contains("OtlpprofTrace"));
            stacks.iter().filter(is_ours).count()
        };
        let stacks = otlpprof_testkit::stacks::cpu_stacks(&messages);
        assert_eq!(ours(&stacks), 0, "{}: {stacks:#?}", jvm.label);
        let burning = stacks.iter().filter(|stack| stack.has("programs.UserLoop.burn"));
        assert!(burning.count() > 0, "{}: {stacks:#?}", jvm.label);
        assert!(!jvm.stderr().contains("not traced"), "{}: {}", jvm.label, jvm.stderr());
        jvm.terminate();
        jvm.finish();
    }
}

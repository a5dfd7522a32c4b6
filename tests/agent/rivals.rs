//! Other agents in the same JVM: async-profiler, which uses the VM's allocation events and the signal, and
//! another copy of this agent.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::estimate::Estimate;
use otlpprof_core::byte_sampling::estimate;
use otlpprof_otlp::read::Message;
use otlpprof_testkit::commands::otlpprof;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::{Finished, Running};
use otlpprof_testkit::jdk::{java_version, newest_or_all};
use otlpprof_testkit::profiles;
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::stacks::stacks_of;
use otlpprof_testkit::this_build::agent;

/// async-profiler's library, if it is available.
static ASYNC_PROFILER: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/fetch-async-profiler.sh");
    let output = Command::new(script).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let library = printed.lines().last().map(|line| PathBuf::from(&line[line.find('/').unwrap_or(0)..]));
    let library = library.filter(|library| output.status.success() && library.is_file());
    if library.is_none() {
        not_tested("async-profiler beside the agent, since it cannot be had");
    }
    library
});

/// The number of events of a type in async-profiler's file, as printed by the command that converts the file.
fn events_of(recording: &Path, event: &str) -> u64 {
    let output = otlpprof()
        .arg("convert")
        .arg(recording)
        .arg("-o")
        .arg(recording.with_extension("otlp"))
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{printed}");
    let counts =
        printed.lines().filter_map(|line| line.strip_prefix(event)?.split_once(": ")?.1.split(' ').next());
    counts.map(|count| count.parse::<u64>().unwrap()).sum()
}

fn sum(run: &Finished, profile_type: &str, sample_type: (&str, &str)) -> i64 {
    let stacks = stacks_of(&run.messages(), profile_type, sample_type);
    let is_it = |stack: &&otlpprof_testkit::stacks::Stack| stack.has("programs.AllocationLoop.allocate");
    stacks.iter().filter(is_it).map(|stack| stack.value).sum()
}

/// The size of the program's objects: 1,024 bytes and their header.
const OBJECT_BYTES: u64 = 1_040;
/// The sampling interval of allocations.
const ALLOC: &str = "alloc=8k";
const ALLOC_BYTES: u64 = 8 << 10;

/// Compares the objects in the profile with the program's own count.
fn assert_allocations_are_right(home: &Path, run: &Finished) {
    let found = sum(run, "alloc-objects", ("alloc_objects", "count"));
    let [_, objects_each] = estimate(OBJECT_BYTES, ALLOC_BYTES);
    let samples = (found as f64 / objects_each).round() as i64;
    let count = run.stdout.lines().last().unwrap().parse::<f64>().unwrap();
    // JDK 11 samples objects of an eighth of the interval by about an eighth too often. The VM has chosen its
    // first point in the thread's bytes before it knows the interval.
    let most = if java_version(home) == 11 { 1.15 } else { 1.01 };
    let label = format!("{}: {found} of {count} objects\n{}", run.label, run.stderr);
    Estimate::of([(samples, objects_each)]).assert_near(0.98 * count..=most * count, &label);
}

/// Runs the program with async-profiler, which is loaded before the agent or after it. Returns
/// async-profiler's file too.
fn beside(
    home: &Path,
    library: &Path,
    event: &str,
    is_first: bool,
    options: &str,
) -> (Finished, PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("rival.jfr");
    let rival =
        format!("-agentpath:{}=start,event={event},jfr,file={}", library.display(), recording.display());
    let run = JavaRun::new(home, "AllocationLoop").argument(3).agent(&format!("file=FILE,{options}"));
    let run = match is_first {
        // Loaded before the agents of the command line.
        true => run.variable("JAVA_TOOL_OPTIONS", &rival),
        false => run.jvm_option(&rival),
    };
    (run.run().expect_success(), recording, folder)
}

/// The VM gives its allocation events to the first agent that asks for them. async-profiler asks when the VM
/// is live, our agent asks before. If async-profiler is refused, it puts breakpoints into the VM.
#[test]
fn allocations_are_sampled_beside_async_profiler_s_whichever_is_loaded_first() {
    let Some(library) = &*ASYNC_PROFILER else { return };
    for (home, is_first) in newest_or_all().iter().flat_map(|home| [(home, true), (home, false)]) {
        let (run, recording, _folder) =
            beside(home, library, "alloc", is_first, &format!("cpu=1ms,{ALLOC},lock,wait"));
        assert!(!run.stderr.contains("is off"), "{}: {}", run.label, run.stderr);
        assert_allocations_are_right(home, &run);
        assert!(sum(&run, "cpu", ("samples", "count")) > 0, "{}: {}", run.label, run.stderr);
        let events = events_of(&recording, "jdk.ObjectAllocation");
        assert!(events > 0, "{} first: {is_first}: {events}", run.label);
    }
}

/// An agent that is attached later finds the events taken.
#[test]
fn allocations_that_async_profiler_samples_already_are_one_line_and_the_other_engines_run() {
    let Some(library) = &*ASYNC_PROFILER else { return };
    for home in newest_or_all() {
        let folder = tempfile::tempdir().unwrap();
        let rival = format!(
            "-agentpath:{}=start,event=alloc,jfr,file={}/rival.jfr",
            library.display(),
            folder.path().display()
        );
        let mut jvm = JavaRun::new(&home, "UserLoop").argument(600).jvm_option(&rival).start();
        // The VM is live when it answers.
        jvm.load_agent_by_jcmd("status");
        jvm.load_agent("cpu=1ms,alloc,live,wall=10ms,lock,file=FILE");
        jvm.wait_for_profiles("profile.otlp", "samples of both", |messages| {
            let has = |kind| !stacks_of(messages, kind, ("samples", "count")).is_empty();
            has("cpu") && has("wall")
        });
        let printed = jvm.stderr();
        for option in ["alloc", "live"] {
            let line =
                format!("{option} is off: another agent of this process receives the VM's allocation events");
            assert_eq!(printed.matches(&line).count(), 1, "{}: {printed}", jvm.label);
        }
        assert_eq!(printed.matches("is off").count(), 2, "{}: {printed}", jvm.label);
        jvm.terminate();
        jvm.finish();
    }
}

/// If there is a handler, async-profiler chooses another signal, unless its timer supports no other. In that
/// case our handler is put before async-profiler's again, and the user is notified.
#[test]
fn cpu_time_is_sampled_beside_async_profiler_that_is_loaded_later() {
    let Some(library) = &*ASYNC_PROFILER else { return };
    let home = &newest_or_all()[0];
    for (event, clock) in
        ["itimer", "ctimer", "cpu"].into_iter().flat_map(|event| [(event, "timer"), (event, "auto")])
    {
        let options = format!("cpu=100us,cpu.clock={clock},wall=10ms,interval=500ms");
        let (run, recording, _folder) = beside(home, library, event, false, &options);
        let label = format!("{} {event}, {clock}: {}", run.label, run.stderr);
        assert!(!run.stderr.contains("is off"), "{label}");
        let line = "another handler was installed for signal 27: the agent's handler precedes it again";
        assert_eq!(run.stderr.matches(line).count(), usize::from(event == "itimer"), "{label}");
        // The samples go on: the program runs for three seconds.
        for profile_type in ["cpu", "wall"] {
            let sampled_ns = sampled_ns(&run, profile_type);
            assert!(sampled_ns > 2_000_000_000, "{label}: {profile_type} samples for {sampled_ns} ns");
        }
        let events = events_of(&recording, "jdk.ExecutionSample");
        assert!(events > 0, "{label}: {events}");
    }
}

/// The time from the session's start to the end of the last interval in which the program's method was
/// sampled.
fn sampled_ns(run: &Finished, profile_type: &str) -> u64 {
    let messages = run.messages();
    let (start_ns, _) = window_ns(&messages[0]);
    let is_sampled = |message: &&Message| {
        let stacks = stacks_of(std::slice::from_ref(*message), profile_type, ("samples", "count"));
        stacks.iter().any(|stack| stack.has("programs.AllocationLoop.allocate"))
    };
    messages.iter().rfind(is_sampled).map_or(0, |message| window_ns(message).1 - start_ns)
}

/// The start and the end of a message's interval.
fn window_ns(message: &Message) -> (u64, u64) {
    let profile = &message.data.resource_profiles[0].scope_profiles[0].profiles[0];
    (profile.time_unix_nano, profile.time_unix_nano + profile.duration_nano)
}

#[test]
fn a_signal_that_async_profiler_has_already_is_one_line_and_the_other_engines_run() {
    let Some(library) = &*ASYNC_PROFILER else { return };
    let home = &newest_or_all()[0];
    for event in ["itimer", "cpu"] {
        for (options, is_off) in [("cpu=1ms,wall=10ms", true), ("cpu=1ms,signal=SIGUSR1,wall=10ms", false)] {
            let (run, recording, _folder) = beside(home, library, event, true, options);
            let label = format!("{} {event}, {options}: {}", run.label, run.stderr);
            let line =
                "cpu is off: another agent of this process, or the program, has a handler for signal 27";
            assert_eq!(run.stderr.matches(line).count(), usize::from(is_off), "{label}");
            assert_eq!(run.stderr.matches("is off").count(), usize::from(is_off), "{label}");
            let cpu = sum(&run, "cpu", ("samples", "count"));
            let wall = sum(&run, "wall", ("samples", "count"));
            assert!((cpu == 0) == is_off && wall > 0, "{label}: {cpu} and {wall}");
            let events = events_of(&recording, "jdk.ExecutionSample");
            assert!(events > 0, "{label}: {events}");
        }
    }
}

/// Each engine has a signal of its own, and an option for choosing another.
#[test]
fn signals_that_the_program_has_already_are_a_line_for_each_engine_and_the_other_engines_run() {
    for home in newest_or_all() {
        let program = JavaRun::new(&home, "EarlyHandlers").argument(600);
        let mut jvm = program.argument("VTALRM").argument("STKFLT").start();
        jvm.wait_until("handlers", |jvm| jvm.stdout().contains("ready"));
        let options = "cpu=1ms,wall=10ms,event=context-switches,alloc=8k,interval=1h";
        jvm.load_agent(&format!("{options},file=DIR/first.otlp"));
        wait_for_samples(&mut jvm, "first.otlp", &["cpu", "alloc-objects"]);
        let printed = jvm.stderr();
        for (engine, signal, option) in
            [("wall", libc::SIGVTALRM, "wall.signal"), ("event", libc::SIGSTKFLT, "event.signal")]
        {
            let line = format!(
                "{engine} is off: another agent of this process, or the program, has a handler for signal \
                 {signal}; `{option}` chooses another signal"
            );
            assert_eq!(printed.matches(&line).count(), 1, "{}: {printed}", jvm.label);
        }
        assert_eq!(printed.matches("is off").count(), 2, "{}: {printed}", jvm.label);
        let types = profiles::profile_types(&profiles::messages(&jvm.profiles().join("first.otlp")));
        assert!(!types.contains("wall") && !types.contains("context-switches"), "{}: {types:?}", jvm.label);
        jvm.load_agent("stop");
        jvm.load_agent(&format!("{options},wall.signal=SIGUSR1,event.signal=34,file=DIR/second.otlp"));
        // Whether the perf event was granted.
        let has_event = !jvm.stderr().contains("event=context-switches is off: ");
        let events: &[&str] = if has_event { &["context-switches"] } else { &[] };
        if !has_event {
            not_tested("another signal for perf events, since they are not granted");
        }
        wait_for_samples(&mut jvm, "second.otlp", &[&["cpu", "wall", "alloc-objects"], events].concat());
        let off = 2 + usize::from(!has_event);
        assert_eq!(jvm.stderr().matches("is off").count(), off, "{}: {}", jvm.label, jvm.stderr());
        jvm.terminate();
        jvm.finish();
    }
}

/// Waits until the file has profiles of these types.
fn wait_for_samples(jvm: &mut Running, file: &str, types: &[&str]) {
    jvm.wait_for_profiles(file, &format!("samples of {types:?}"), |messages| {
        let found = profiles::profile_types(messages);
        types.iter().all(|wanted| found.contains(*wanted))
    });
}

/// Regression: only the CPU engine checked its handler again. If the other handler is installed once more it
/// stays, and the user reads which handler the samples depend on.
#[test]
fn handlers_that_are_installed_later_have_ours_put_before_them_once() {
    // The profiler checks the handlers every second, the program waits for a second and a half. On a busy
    // machine the profiler may be late, which its messages show.
    let is_in_time = (0..5).any(|_| has_handlers_put_before_once(&newest_or_all()[0]));
    assert!(is_in_time, "the profiler has put no handler before the other one in time");
}

/// Whether the profiler has noticed the program's handlers in time. If so, the handlers' effects are right.
fn has_handlers_put_before_once(home: &Path) -> bool {
    let run = JavaRun::new(home, "LateHandlers").argument("PROF").argument("VTALRM").argument("STKFLT");
    let options = "cpu=1ms,cpu.clock=timer,wall=10ms,event=context-switches:4,interval=200ms,file=FILE";
    let run = run.agent(options).run().expect_success();
    let messages = run.messages();
    // Checks the time between two moments that the program reports: its handlers are installed, and ours have
    // been put before them. Threads that wait at the same place need no signal, and so no handler: only the
    // running thread shows whether handlers are called.
    let is_sampled = |profile_type: &str, from: &str, to: &str| {
        let [from, to] = [from, to].map(|moment| moment_of(&run, moment));
        let between = messages.iter().filter(|message| {
            let (start, end) = window_ns(message);
            start >= from && end <= to
        });
        let between: Vec<_> = between.cloned().collect();
        let stacks = stacks_of(&between, profile_type, ("samples", "count"));
        stacks.iter().any(|stack| stack.thread == "main")
    };
    let has_event = !run.stderr.contains("event=context-switches is off");
    if !has_event {
        not_tested("a handler over that of a perf event's signal, since perf events are not granted");
    }
    let engines = [
        (
            libc::SIGPROF,
            "cpu",
            "CPU samples now depend on that handler (`signal` chooses another signal)",
            true,
        ),
        (
            libc::SIGVTALRM,
            "wall",
            "wall-clock samples now depend on that handler (`wall.signal` chooses another signal)",
            true,
        ),
        (
            libc::SIGSTKFLT,
            "context-switches",
            "samples by a perf event now depend on that handler (`event.signal` chooses another signal)",
            has_event,
        ),
    ];
    engines.into_iter().filter(|(.., is_on)| *is_on).all(|(signal, profile_type, depends, _)| {
        let line = format!("another handler was installed for signal {signal}: ");
        let printed: Vec<_> =
            run.stderr.lines().filter_map(|printed| Some(printed.split_once(&line)?.1.to_owned())).collect();
        let expected = ["the agent's handler precedes it again, and passes foreign signals on", depends];
        let label = format!("{}: {}", run.label, run.stderr);
        assert!(expected.starts_with(&printed.iter().map(String::as_str).collect::<Vec<_>>()), "{label}");
        let has_noticed_both = printed.len() == expected.len();
        assert!(!has_noticed_both || !is_sampled(profile_type, "left", "end"), "{label}: {profile_type}");
        has_noticed_both && is_sampled(profile_type, "put back", "again")
    })
}

/// The time at which the program was at a place, in nanoseconds since 1970.
fn moment_of(run: &Finished, moment: &str) -> u64 {
    let line = run.stdout.lines().find_map(|line| line.strip_prefix(moment)?.trim().parse::<u64>().ok());
    line.unwrap_or_else(|| panic!("{}: no {moment}: {}", run.label, run.stdout)) * 1_000_000
}

#[test]
fn a_second_copy_of_the_agent_says_one_line_and_does_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("libcopy.so");
    std::fs::copy(agent(), &copy).unwrap();
    for home in newest_or_all() {
        let second = folder.path().join("second.otlp");
        let run = JavaRun::new(&home, "AllocationLoop")
            .argument(1)
            .agent(&format!("file=FILE,cpu=1ms,{ALLOC},lock"))
            .jvm_option(&format!(
                "-agentpath:{}=file={},cpu=1ms,alloc,lock",
                copy.display(),
                second.display()
            ))
            .run()
            .expect_success();
        let printed: Vec<_> =
            run.stderr.lines().filter(|line| line.contains("another") || line.contains("warn")).collect();
        let [line] = printed[..] else { panic!("{}: {}", run.label, run.stderr) };
        let first = agent().display().to_string();
        assert!(line.contains("another copy of this agent") && line.contains(&first), "{line}");
        assert!(line.ends_with("the agent does not start"), "{line}");
        assert!(!second.exists());
        assert!(sum(&run, "cpu", ("samples", "count")) > 0, "{}", run.stderr);
        assert_allocations_are_right(&home, &run);
    }
}

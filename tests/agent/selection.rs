//! Selection of samples and of time: by thread, by frame, after a delay, for a duration, in rolling files.

use otlpprof_otlp::read::read;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::{Finished, Running, Traces};
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::profiles;
use otlpprof_testkit::stacks::{Stack, cpu_stacks};

/// Runs the sample program with these options.
fn demo(home: &std::path::Path, seconds: f64, options: &str) -> Finished {
    let options = format!("cpu=1ms,file=FILE,{options}");
    JavaRun::new(home, "Demo").argument(seconds).agent(&options).run().expect_success()
}

/// Asserts that the samples in the profiles are those that were recorded, less those that were left out.
fn assert_adds_up(run: &Finished, stacks: &[Stack]) {
    let (recorded, left_out) = (run.counter("handler.samples_recorded"), run.counter("samples_left_out"));
    // The program's threads use CPU time for many samples, however busy the machine is.
    assert!(left_out > 0 && left_out < recorded, "{}: {left_out} of {recorded}", run.label);
    let kept: i64 = stacks.iter().map(|stack| stack.value).sum();
    assert!(kept > 0, "{}: {kept}", run.label);
    let periods = run.counter("handler.periods_recorded") as i64;
    assert!(kept < periods, "{}: {kept} of {periods} periods", run.label);
}

#[test]
fn threads_are_selected_by_name() {
    for home in newest_or_all() {
        let run = demo(&home, 1.5, "threads=demo-*+!*recursion");
        let stacks = cpu_stacks(&run.messages());
        assert_adds_up(&run, &stacks);
        for stack in &stacks {
            let is_wanted = stack.thread.starts_with("demo-") && !stack.thread.ends_with("recursion");
            assert!(is_wanted, "{}: {}", run.label, stack.thread);
        }
    }
}

#[test]
fn stacks_are_selected_by_their_frames() {
    for home in newest_or_all() {
        let run = demo(&home, 1.5, "include=programs.Demo.*,exclude=programs.Demo.recurse+*.inLib*");
        let stacks = cpu_stacks(&run.messages());
        assert_adds_up(&run, &stacks);
        for stack in &stacks {
            let has = |part: &str| stack.frames.iter().any(|frame| frame.name.contains(part));
            assert!(
                has("programs.Demo.") && !has("Demo.recurse") && !has(".inLib"),
                "{}: {stack:#?}",
                run.label
            );
        }
    }
}

/// The samples of the duration are written, and the program runs on without any trace of the agent.
#[test]
fn profiling_stops_after_the_duration() {
    for home in newest_or_all() {
        // The longer durations are for the case that other programs have used the CPU.
        let mut jvms = ["500ms", "5s", "50s"].into_iter().map(|duration| {
            let options = format!("cpu=1ms,interval=1h,duration={duration},file=FILE");
            let mut jvm = JavaRun::new(&home, "UserLoop").argument(600).agent(&options).start();
            jvm.load_agent_by_jcmd("status");
            jvm.wait_until("its own stop", |jvm| jvm.stderr().contains("as `duration` requests"));
            jvm.wait_until("no trace of it", |jvm| jvm.traces() == Traces::default());
            jvm
        });
        let has_main = |jvm: &Running| {
            let messages = profiles::messages_if_any(&jvm.profiles().join("profile.otlp"));
            cpu_stacks(&messages).iter().any(|stack| stack.thread == "main")
        };
        let mut jvm = jvms.find(has_main).unwrap_or_else(|| panic!("{}: no sample of main", home.display()));
        // The agent can be started again, and runs until it is stopped.
        jvm.load_agent("cpu=1ms,interval=1h,file=DIR/second");
        jvm.wait_until("a sample", |jvm| {
            jvm.load_agent("flush");
            jvm.profiles().join("second").is_file()
        });
        jvm.load_agent("stop");
        jvm.terminate();
        jvm.finish();
    }
}

#[test]
fn profiling_begins_after_the_delay_unless_stopped_before() {
    for home in newest_or_all() {
        let jvm = JavaRun::new(&home, "UserLoop").argument(600);
        let mut jvm = jvm.agent("cpu=1ms,interval=1h,delay=1h,file=FILE").start();
        jvm.load_agent_by_jcmd("status");
        for (command, answer) in [
            ("status", "profiling begins when the delay is over"),
            ("cpu=1ms,file=FILE", "profiling already"),
            ("stop", "stopped"),
            ("status", "not profiling"),
        ] {
            jvm.wait_until(answer, |jvm| {
                jvm.load_agent(command);
                jvm.stderr().contains(answer)
            });
        }
        jvm.wait_until("no trace of it", |jvm| jvm.traces() == Traces::default());
        jvm.load_agent("cpu=1ms,interval=1h,delay=300ms,file=DIR/second");
        jvm.wait_until("a sample", |jvm| {
            jvm.load_agent("flush");
            jvm.profiles().join("second").is_file()
        });
        assert!(!jvm.profiles().join("profile.otlp").exists(), "{}", jvm.label);
        jvm.load_agent("stop");
        jvm.terminate();
        jvm.finish();
    }
}

#[test]
fn files_roll_after_a_period() {
    for home in newest_or_all() {
        let jvm = JavaRun::new(&home, "UserLoop").argument(600);
        let mut jvm = jvm.agent("cpu=1ms,interval=200ms,loop=1s,file=DIR/at-%t.otlp").start();
        // A file that the agent is still writing may end in the middle of a message.
        let counts = |jvm: &Running| -> Vec<usize> {
            let files = std::fs::read_dir(jvm.profiles()).unwrap().map(|file| file.unwrap().path());
            let messages = |file| {
                let bytes = std::fs::read(file).unwrap_or_default();
                read(&bytes).map_while(Result::ok).count()
            };
            files.map(messages).collect()
        };
        jvm.wait_until("two files, one of several messages", |jvm| {
            let counts = counts(jvm);
            counts.len() >= 2 && counts.iter().any(|&count| count >= 2)
        });
        jvm.terminate();
        let finished = jvm.finish();
        let files = finished.files();
        let messages: usize = files.iter().map(|file| profiles::messages(file).len()).sum();
        assert!(messages > files.len(), "{}: {messages} messages in {files:?}", finished.label);
    }
}

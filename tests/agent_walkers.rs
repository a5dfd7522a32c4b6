//! What each stack walker (`cstack`) makes of one program on real JVMs: Java, native code, and Java again that native
//! code calls.

mod agent_support;

use std::collections::BTreeMap;
use std::path::Path;

use agent_support::running::Finished;
use agent_support::stacks::{Stack, cpu_stacks};
use agent_support::{JavaRun, LIBRARIES, java_homes};
use otlpprof::core::stack_walker::StackWalker;
use otlpprof::otlp::frames::frames;
use otlpprof::otlp::lookup::Lookup;
use otlpprof::otlp::roots::{Ends, Root, Verdict, classify};

/// The native function between the Java method that calls it and the one that it calls.
const BETWEEN: &str = "Java_programs_Native_upcall";

/// One run of the sample program under a walker.
struct Walked {
    run: Finished,
    stacks: Vec<Stack>,
    /// Samples by the root that they reach, or the reason why they reach none.
    verdicts: BTreeMap<&'static str, i64>,
}

fn walk(home: &Path, walker: StackWalker, library: &'static str, more: &str) -> Walked {
    let options = format!("cpu=500us,file=FILE,cstack={}{more}", walker.name());
    let demo = JavaRun::new(home, "Demo").argument(2).library(library).agent(&options);
    let mut run = demo.run().expect_success();
    run.label = format!("{} {options}", run.label);
    let messages = run.messages();
    let mut verdicts = BTreeMap::<_, i64>::new();
    for message in &messages {
        let lookup = Lookup::new(&message.data);
        let scopes = message.data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
        for profile in scopes.flat_map(|scope| &scope.profiles) {
            let named = lookup.attribute_text(&profile.attribute_indices, StackWalker::KEY);
            assert_eq!(named, Some(walker.name()), "{}", run.label);
            for sample in &profile.samples {
                let frames = frames(lookup, sample.stack_index);
                let verdict = match classify(&frames, Ends::Marked, walker) {
                    Verdict::Reached(root, _) => root.name(),
                    Verdict::Broken(reason, _) => reason.name(),
                };
                *verdicts.entry(verdict).or_default() += sample.values.first().unwrap_or(&0);
            }
        }
    }
    let stacks = cpu_stacks(&messages);
    println!("{}: {verdicts:?}", run.label);
    Walked { run, stacks, verdicts }
}

impl Walked {
    fn samples(&self, wanted: impl Fn(&Stack) -> bool) -> i64 {
        self.stacks.iter().filter(|stack| wanted(stack)).map(|stack| stack.value).sum()
    }

    fn all(&self) -> i64 {
        self.samples(|_| true)
    }

    fn reached(&self) -> i64 {
        [Root::Java, Root::Virtual, Root::Native]
            .iter()
            .map(|root| self.verdicts.get(root.name()).copied().unwrap_or(0))
            .sum()
    }

    /// Whether at least this many of a thousand samples reach their root. Until the tables of native code are
    /// compiled, which takes longer where much else runs, some do not.
    #[track_caller]
    fn reaches_roots(&self, per_mille: i64) {
        let (reached, all) = (self.reached(), self.all());
        assert!(all > 500, "{}: only {all} samples", self.run.label);
        assert!(reached * 1000 >= all * per_mille, "{}: {:?}", self.run.label, self.verdicts);
    }

    /// Samples in the Java method that native code calls, and those of them with that native code below.
    fn called_from_native(&self) -> (i64, i64) {
        let place = |stack: &Stack, name: &str| stack.frames.iter().position(|frame| frame.name == name);
        let called = |stack: &Stack| place(stack, "programs.Demo.calledFromNative");
        let with_native = |stack: &Stack| {
            let (inner, between) = (called(stack), place(stack, BETWEEN));
            inner.is_some() && inner < between && between < place(stack, "programs.Native.upcall")
        };
        (self.samples(|stack| called(stack).is_some()), self.samples(with_native))
    }
}

#[test]
fn vm_has_native_frames_on_top_alone() {
    for home in java_homes() {
        let walked = walk(&home, StackWalker::Vm, LIBRARIES[0], "");
        walked.reaches_roots(950);
        let (called, with_native) = walked.called_from_native();
        assert!(called > 50 && with_native == 0, "{}: {with_native} of {called}", walked.run.label);
    }
}

#[test]
fn vmx_has_every_native_frame() {
    for home in java_homes() {
        let walked = walk(&home, StackWalker::Vmx, LIBRARIES[0], "");
        walked.reaches_roots(950);
        let (called, with_native) = walked.called_from_native();
        let label = &walked.run.label;
        assert!(called > 50 && with_native * 100 >= called * 98, "{label}: {with_native} of {called}");
        // HotSpot's own entry of a thread lies below all of its Java frames.
        let java = walked.samples(|stack| stack.has("java.lang.Thread.run"));
        let entered =
            walked.samples(|stack| stack.has("java.lang.Thread.run") && stack.has("thread_native_entry"));
        assert!(java > 500 && entered * 100 >= java * 98, "{label}: {entered} of {java}");
    }
}

#[test]
fn vmx_leaves_native_frames_to_the_backend_where_they_are_resolved() {
    for home in java_homes().into_iter().take(1) {
        let walked = walk(&home, StackWalker::Vmx, LIBRARIES[0], ",remotesym=true");
        let between = |stack: &Stack| {
            let inner = stack.frames.iter().position(|frame| frame.name == "programs.Demo.calledFromNative");
            let Some(inner) = inner else { return false };
            let below = &stack.frames[inner..];
            below.iter().any(|frame| frame.remote.is_some() && frame.object == LIBRARIES[0])
        };
        let (called, _) = walked.called_from_native();
        let remote = walked.samples(between);
        assert!(called > 50 && remote * 100 >= called * 98, "{}: {remote} of {called}", walked.run.label);
    }
}

#[test]
fn no_has_java_frames_alone_and_loses_no_time() {
    for home in java_homes() {
        let walked = walk(&home, StackWalker::No, LIBRARIES[0], "");
        walked.reaches_roots(998);
        let label = &walked.run.label;
        for stack in &walked.stacks {
            let allowed = |name: &str| name == "[no_Java_frame]" || name.starts_with("[unwalkable");
            let native = stack.frames.iter().find(|frame| frame.frame_type != "jvm" && !allowed(&frame.name));
            assert!(native.is_none(), "{label}: {native:?}");
            assert!(!stack.has("[no_Java_frame]") || stack.frames.len() == 1, "{label}: {stack:?}");
        }
        // The compilers' threads have no Java frames, and the library's work is the methods' that call it.
        assert!(walked.samples(|stack| stack.has("[no_Java_frame]")) > 10, "{label}");
        let native = |stack: &Stack| stack.frames[0].name == "programs.Native.spin";
        assert!(walked.samples(native) > 20, "{label}");
        assert_eq!(walked.all(), walked.run.counter("handler.periods_recorded").cast_signed(), "{label}");
    }
}

//! The results of each stack walker (`cstack`) for one program on real JVMs: Java, native code, and Java that
//! native code calls.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::estimate::assert_share;
use otlpprof_core::address::ElfVaddr;
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_model::attribute_keys;
use otlpprof_otlp::frames::frames;
use otlpprof_otlp::lookup::{DictionaryTables as _, Lookup};
use otlpprof_otlp::roots::{Ends, Root, Verdict, classify};
use otlpprof_testkit::binutils::addr2line;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
#[cfg(without_rules_of_26)]
use otlpprof_testkit::jdk::starts_with;
use otlpprof_testkit::jdk::{java_homes, java_version, newest_of, newest_or_all};
use otlpprof_testkit::stacks::{Stack, cpu_stacks};
use otlpprof_testkit::this_build::{built, libraries};

/// The native function between the Java method that calls it and the Java method that it calls.
const BETWEEN: &str = "Java_programs_Native_upcall";

/// A run of the sample program under a walker.
struct Walked {
    run: Finished,
    stacks: Vec<Stack>,
    /// The number of samples by the root that they reach, or by the reason why they reach none.
    verdicts: BTreeMap<&'static str, i64>,
}

fn walk(home: &Path, walker: StackWalker, library: &'static str, more: &str) -> Walked {
    walk_damaged(&[], home, walker, library, more)
}

/// [`walk`], where the VM's description of itself is damaged (`native/vmdamage`).
fn walk_damaged(
    damage: &[&str],
    home: &Path,
    walker: StackWalker,
    library: &'static str,
    more: &str,
) -> Walked {
    walk_for(1, &damaging(damage), home, walker, library, more)
}

/// [`walk`], with the sample program's argument for how long to run, and options of the JVM.
fn walk_for(
    length: u32,
    jvm_options: &str,
    home: &Path,
    walker: StackWalker,
    library: &'static str,
    more: &str,
) -> Walked {
    // A remote frame has no name that identifies it as an entry.
    let ends = if more.contains("remotesym") { Ends::Marked } else { Ends::Unmarked };
    let options = format!("cpu=250us,timestamps,file=FILE,cstack={}{more}", walker.name());
    // The program's threads use CPU time for many samples, however busy the machine is.
    let demo = JavaRun::new(home, "Demo").argument(length).library(library).agent(&options);
    let demo = match jvm_options {
        "" => demo,
        _ => demo.variable("JAVA_TOOL_OPTIONS", jvm_options),
    };
    let mut run = demo.run().expect_success();
    run.label = format!("{} {options} {jvm_options}", run.label);
    let messages = run.messages();
    let mut verdicts = BTreeMap::<_, i64>::new();
    for message in &messages {
        let lookup = Lookup::new(&message.data);
        let scopes = message.data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
        for profile in scopes.flat_map(|scope| &scope.profiles) {
            let named = lookup.attribute_text(&profile.attribute_indices, attribute_keys::STACK_WALKER);
            assert_eq!(named, Some(walker.name()), "{}", run.label);
            for sample in &profile.samples {
                let frames = frames(lookup, sample.stack_index);
                let verdict = match classify(&frames, ends, walker) {
                    Verdict::Reached(root, _) => root.name(),
                    Verdict::Broken(reason, _) => reason.name(),
                };
                let times: BTreeSet<_> = sample.timestamps_unix_nano.iter().collect();
                *verdicts.entry(verdict).or_default() += times.len() as i64;
            }
        }
    }
    let stacks = cpu_stacks(&messages);
    println!("{}: {verdicts:?}", run.label);
    Walked { run, stacks, verdicts }
}

impl Walked {
    /// The number of samples. A sample that stands for several periods counts once.
    fn samples(&self, wanted: impl Fn(&Stack) -> bool) -> i64 {
        self.stacks.iter().filter(|stack| wanted(stack)).map(|stack| stack.times).sum()
    }

    fn periods(&self) -> i64 {
        self.stacks.iter().map(|stack| stack.value).sum()
    }

    fn reached(&self) -> i64 {
        [Root::Java, Root::Virtual, Root::Native]
            .iter()
            .map(|root| self.verdicts.get(root.name()).copied().unwrap_or(0))
            .sum()
    }

    /// Asserts that at least this share of the samples reaches a root, and a known root if frames have names.
    #[track_caller]
    fn reaches_roots(&self, least: f64) {
        let all = self.verdicts.values().sum();
        assert!(all > 50, "{}: only {all} samples", self.run.label);
        self.assert_at_least(least, self.reached(), all, &format!("roots: {:?}", self.verdicts));
    }

    /// Asserts that `part` of `all` samples are at least this share.
    #[track_caller]
    fn assert_at_least(&self, least: f64, part: i64, all: i64, what: &str) {
        assert_share(part, all, least..=1.0, &format!("{}: {what}", self.run.label));
    }

    /// The samples in the Java method that native code calls, and of these the samples with that native code
    /// below.
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
        let walked = walk(&home, StackWalker::Vm, libraries()[0], "");
        walked.reaches_roots(0.99);
        let (called, with_native) = walked.called_from_native();
        assert!(called > 0 && with_native == 0, "{}: {with_native} of {called}", walked.run.label);
    }
}

#[test]
fn vmx_has_every_native_frame() {
    for home in java_homes() {
        let walked = walk(&home, StackWalker::Vmx, libraries()[0], "");
        walked.reaches_roots(0.99);
        let (called, with_native) = walked.called_from_native();
        walked.assert_at_least(0.98, with_native, called, "native frames between Java frames");
        // HotSpot's own entry of a thread lies below all of its Java frames.
        let java = walked.samples(|stack| stack.has("java.lang.Thread.run"));
        let entered =
            walked.samples(|stack| stack.has("java.lang.Thread.run") && stack.has("thread_native_entry"));
        walked.assert_at_least(0.98, entered, java, "the thread's entry");
    }
}

/// A frame of the library that the walker has resolved is remote, with an address in its function.
#[test]
fn native_frames_are_remote_in_every_walker() {
    let library = libraries()[0];
    for home in newest_or_all() {
        for walker in [StackWalker::Vmx, StackWalker::Fp, StackWalker::Dwarf] {
            let walked = walk(&home, walker, library, ",remotesym=true");
            // The VM's code and threads' entries are recognised, whatever names their frames have.
            walked.reaches_roots(0.99);
            let of_library = |stack: &Stack| -> Vec<ElfVaddr> {
                let frames = stack.frames.iter().filter(|frame| frame.object == library);
                frames.map(|frame| frame.remote.expect("not remote").address).collect()
            };
            let addresses = walked.stacks.iter().flat_map(of_library).collect();
            let names = addr2line(library, &addresses);
            let hashes =
                |stack: &&Stack| of_library(stack).first().is_some_and(|leaf| names[leaf] == "hash_block");
            let called = ["hash_block", "ddprof_hash", "Java_programs_Native_hash"];
            let right = |stack: &&Stack| of_library(stack).iter().map(|frame| &names[frame]).eq(called);
            let hashing: Vec<_> = walked.stacks.iter().filter(hashes).collect();
            let all: i64 = hashing.iter().map(|stack| stack.times).sum();
            let right: i64 = hashing.iter().copied().filter(right).map(|stack| stack.times).sum();
            walked.assert_at_least(0.98, right, all, "callers in the library");
            // The mixed stack has remote frames between Java frames as well.
            let between = |stack: &Stack| {
                let inner =
                    stack.frames.iter().position(|frame| frame.name == "programs.Demo.calledFromNative");
                inner.is_some_and(|inner| {
                    stack.frames[inner..]
                        .iter()
                        .any(|frame| frame.remote.is_some() && frame.object == library)
                })
            };
            let (called, _) = walked.called_from_native();
            let remote = walked.samples(between);
            if walker == StackWalker::Vmx {
                walked.assert_at_least(0.98, remote, called, "remote frames between Java frames");
            } else {
                assert!(called > 0 && remote == 0, "{}: {remote} of {called}", walked.run.label);
            }
        }
    }
}

#[test]
fn walker_no_has_only_java_frames_and_loses_no_time() {
    for home in java_homes() {
        let walked = walk(&home, StackWalker::No, libraries()[0], "");
        walked.reaches_roots(0.998);
        let label = &walked.run.label;
        for stack in &walked.stacks {
            let allowed = |name: &str| name == "[no_java_frame]" || name.starts_with("[unwalkable");
            let native = stack.frames.iter().find(|frame| frame.frame_type != "jvm" && !allowed(&frame.name));
            assert!(native.is_none(), "{label}: {native:?}");
            assert!(!stack.has("[no_java_frame]") || stack.frames.len() == 1, "{label}: {stack:?}");
        }
        // The compilers' threads have no Java frames, and the library's work counts for the methods that call
        // it.
        assert!(walked.samples(|stack| stack.has("[no_java_frame]")) > 0, "{label}");
        let native = |stack: &Stack| stack.frames[0].name == "programs.Native.spin";
        assert!(walked.samples(native) > 0, "{label}");
        assert_eq!(walked.periods(), walked.run.counter("handler.periods_recorded").cast_signed(), "{label}");
    }
}

impl Walked {
    /// The samples in `hash_block`, and of these the samples with its callers up to the Java method.
    fn hashing(&self) -> [i64; 2] {
        let names = |stack: &Stack| {
            let names = stack.frames.iter().map(|frame| frame.name.clone());
            names.take(4).collect::<Vec<_>>()
        };
        let right = ["hash_block", "ddprof_hash", "Java_programs_Native_hash", "programs.Native.hash"];
        [self.samples(|stack| names(stack)[0] == "hash_block"), self.samples(|stack| names(stack) == right)]
    }

    /// Asserts that most Java frames are from AsyncGetCallTrace. From 26 on it is not asked.
    fn asked_the_vm(&self, home: &Path) {
        let [asked, failed, avoided] =
            ["call_traces", "call_traces_failed", "call_traces_avoided"].map(|name| self.counter(name));
        let what = format!("answers: asked {asked}, failed {failed}, avoided {avoided}");
        println!("{}: {what}", self.run.label);
        if !can_be_asked(home) {
            assert_eq!((asked, failed), (0, 0), "{}", self.run.label);
            let says = "Java frames are read from the JVM's structures";
            assert_eq!(self.run.stderr.matches(says).count(), 1, "{}", self.run.stderr);
            return;
        }
        let [asked, failed] = [asked, failed].map(u64::cast_signed);
        self.assert_at_least(0.9, asked - failed, asked, &what);
    }

    fn counter(&self, name: &str) -> u64 {
        self.run.counter(&format!("handler.{name}"))
    }
}

#[test]
fn dwarf_has_java_frames_of_async_get_call_trace_below_whole_native_stacks() {
    for home in java_homes() {
        let walked = walk(&home, StackWalker::Dwarf, libraries()[0], "");
        walked.reaches_roots(0.99);
        walked.asked_the_vm(&home);
        let [all, right] = walked.hashing();
        walked.assert_at_least(0.95, right, all, "callers of hash_block");
        let (called, with_native) = walked.called_from_native();
        assert!(called > 0 && with_native == 0, "{}: {with_native} of {called}", walked.run.label);
    }
}

/// Regression: `fp` marked the frames of a library without frame pointers, which call frame information
/// describes.
#[test]
fn fp_has_the_frames_of_a_library_with_and_without_frame_pointers() {
    for home in java_homes() {
        for library in libraries() {
            let walked = walk(&home, StackWalker::Fp, library, "");
            walked.reaches_roots(0.99);
            walked.asked_the_vm(&home);
            let [all, right] = walked.hashing();
            walked.assert_at_least(0.95, right, all, &format!("callers of hash_block in {library}"));
            // Java frames are complete, whatever the native frames are.
            let whole = walked
                .samples(|stack| stack.has("programs.Native.spin") && stack.has("java.lang.Thread.run"));
            let spinning = walked.samples(|stack| stack.has("programs.Native.spin"));
            assert_eq!(whole, spinning, "{}", walked.run.label);
        }
    }
}

/// Whether the walkers ask the VM for Java frames: its answer has jmethodIDs, which until 25 lead to methods.
fn can_be_asked(home: &Path) -> bool {
    java_version(home) < 26
}

/// The VM keeps ids for ever, so they are only created where they are needed.
#[test]
fn nothing_is_asked_of_the_vm_where_its_structures_are_read() {
    for home in java_homes().into_iter().take(1) {
        for walker in [StackWalker::Vm, StackWalker::Vmx, StackWalker::No] {
            let walked = walk(&home, walker, libraries()[0], "");
            for name in ["call_traces", "call_traces_failed", "call_traces_avoided"] {
                assert_eq!(walked.counter(name), 0, "{}: {name}", walked.run.label);
            }
        }
    }
}

/// A wrong layout is found at start, not during a walk.
#[test]
fn a_vm_that_describes_itself_wrongly_is_asked_for_its_java_frames() {
    for home in newest_or_all() {
        let otherwise = "the stacks of this JVM cannot be walked";
        for (field, says, walker, in_use) in [
            ("Method::_constMethod", otherwise, "vm", "dwarf"),
            ("CodeBlob::_name", otherwise, "vmx", "dwarf"),
            ("JavaThread::_thread_state", otherwise, "no", "no"),
            ("JavaThread::_anchor", "was walked otherwise", "vm", "dwarf"),
            ("gHotSpotVMStructs", "does not describe its structures", "vm", "dwarf"),
        ] {
            let run = JavaRun::new(&home, "UserLoop")
                .argument(1)
                .variable("JAVA_TOOL_OPTIONS", &damaging(&field.split(' ').collect::<Vec<_>>()))
                .agent(&format!("cpu=100us,file=FILE,cstack={walker}"))
                .run()
                .expect_success();
            let printed = run.stderr.lines().filter(|line| line.contains(says)).count();
            let label = format!("{} {field}: {}", run.label, run.stderr);
            assert_eq!(printed, 1, "{label}");
            let messages = run.messages();
            let profile = &messages[0].data.resource_profiles[0].scope_profiles[0].profiles[0];
            let lookup = Lookup::new(&messages[0].data);
            let named = lookup.attribute_text(&profile.attribute_indices, "otlpprof.cstack");
            assert_eq!(named, Some(in_use), "{label}");
            let stacks = cpu_stacks(&messages);
            let frames = || stacks.iter().flat_map(|stack| stack.frames.iter());
            let samples = |name: &str| {
                stacks.iter().filter(|stack| stack.has(name)).map(|stack| stack.value).sum::<i64>()
            };
            let loops = samples("programs.UserLoop.main");
            assert!(loops > 0, "{label}: no sample in the loop");
            assert_eq!(frames().any(|frame| frame.object.contains("libjvm")), walker != "no", "{label}");
        }
    }
}

/// One part that is not described costs that part alone, and is named once.
#[test]
fn a_vm_that_does_not_describe_a_part_is_walked_by_the_others() {
    for home in newest_or_all() {
        for (field, effect) in [
            ("nmethod::_orig_pc_offset", "frames that are to be deoptimised have no lines"),
            ("vframeArray::_caller", "stacks end at frames that are being deoptimised"),
        ] {
            let walked = walk_damaged(&[&format!("-{field}")], &home, StackWalker::Vm, libraries()[0], "");
            let Finished { stderr, label, .. } = &walked.run;
            let said = stderr.lines().filter(|line| line.contains(effect));
            assert_eq!(said.count(), 1, "{label}: {stderr}");
            walked.reaches_roots(0.99);
        }
    }
}

/// The fields by which frames that are to be deoptimised are recognised, the newest first. A later release
/// may give them other names, as 26 did.
const DEOPT_HANDLERS: [&str; 3] = [
    "nmethod::_deopt_handler_entry_offset",
    "nmethod::_deopt_handler_offset",
    "CompiledMethod::_deopt_handler_begin",
];

/// The walk is compared with the VM's own description, as on an untried release.
#[test]
fn a_vm_that_does_not_describe_a_field_is_walked_by_the_field_that_is_found() {
    for home in newest_or_all() {
        let handler = DEOPT_HANDLERS[match java_version(&home) {
            ..23 => 2,
            23..26 => 1,
            26.. => 0,
        }];
        for (field, named) in [
            ("Method::_constMethod", "Method::_constMethod"),
            ("JavaThread::_anchor", "JavaThread::_anchor"),
            ("ConstMethod::_code_size", "ConstMethod::_code_size"),
            ("nmethod::_comp_level", "nmethod::_comp_level"),
            (handler, "nmethod::_deopt_handler"),
        ] {
            let walked = walk_damaged(&[&format!("-{field}")], &home, StackWalker::Vm, libraries()[0], "");
            let Finished { stderr, label, .. } = &walked.run;
            let found = format!("libjvm does not describe {named}, which a search has found at ");
            assert_eq!(stderr.matches(&found).count(), 1, "{label}: {stderr}");
            assert!(!stderr.contains(": 0 Java frames were walked"), "{label}: {stderr}");
            walked.reaches_roots(0.998);
        }
    }
}

/// Regression: Java frames had no lines where libjvm did not describe a field that no walk reads.
#[test]
fn a_vm_that_does_not_describe_a_field_that_is_not_needed_is_walked_as_ever() {
    for home in newest_or_all() {
        let walked = walk_damaged(&["-Method::_i2i_entry"], &home, StackWalker::Vm, libraries()[0], "");
        let Finished { stderr, label, .. } = &walked.run;
        assert!(!stderr.contains("warning: "), "{label}: {stderr}");
        walked.reaches_roots(0.998);
    }
}

/// The collectors. A JVM may be built without some.
#[cfg(without_rules_of_26)]
const COLLECTORS: [&str; 5] =
    ["-XX:+UseSerialGC", "-XX:+UseParallelGC", "-XX:+UseG1GC", "-XX:+UseShenandoahGC", "-XX:+UseZGC"];

/// The agent finds in the VM the names and numbers that are new in HotSpot 26 and later.
#[cfg(without_rules_of_26)]
#[test]
#[ignore = "long: runs of five seconds on each JDK, in a build of its own (scripts/without-rules-of-26.sh)"]
fn a_vm_is_walked_without_rules_of_26() {
    for home in java_homes() {
        let version = java_version(&home);
        let collectors = COLLECTORS.into_iter().filter(|collector| starts_with(&home, &[collector]));
        for (collector, walker) in collectors
            .flat_map(|collector| [StackWalker::Vm, StackWalker::Vmx].map(|walker| (collector, walker)))
        {
            let walked = walk_for(5, collector, &home, walker, libraries()[0], "");
            let Finished { stderr, label, .. } = &walked.run;
            let says = |text: &str| stderr.matches(text).count();
            let is_untried = usize::from(version > 25);
            assert_eq!(says("is read as it describes itself"), is_untried, "{label}: {stderr}");
            let found = "libjvm does not describe nmethod::_deopt_handler, which a search has found at";
            assert_eq!(says(found), is_untried, "{label}: {stderr}");
            assert_eq!(says("warning: "), 0, "{label}: {stderr}");
            walked.reaches_roots(0.999);
        }
    }
}

/// The layout does not depend on the release, and the walk is compared with the VM's own description.
#[test]
fn a_vm_of_an_untried_release_is_walked_as_it_describes_itself() {
    for home in newest_or_all() {
        for walker in [StackWalker::Vm, StackWalker::Vmx] {
            let walked = walk_damaged(&["GetVersionNumber"], &home, walker, libraries()[0], "");
            let Finished { stderr, label, .. } = &walked.run;
            let said =
                stderr.lines().filter(|line| line.contains("HotSpot 99 is read as it describes itself"));
            let said: Vec<_> = said.collect();
            assert!(said.len() == 1 && said[0].contains("Java frames were walked as"), "{label}: {stderr}");
            assert!(
                !said[0].contains(" 0 Java frames") && !said[0].contains("(0 compiled"),
                "{label}: {stderr}"
            );
            // The method that runs the probe, its calls of itself, and the native method that looks.
            let frozen = if java_version(&home) >= 21 { 23 } else { 0 };
            assert!(said[0].ends_with(&format!(" {frozen} of a virtual thread")), "{label}: {stderr}");
            walked.reaches_roots(0.99);
        }
    }
}

/// Options of the JVM that damage the VM's description of itself.
fn damaging(things: &[&str]) -> String {
    let agent = |thing: &&str| format!("-agentpath:{}={thing}", built(otlpprof_testkit::products::VM_DAMAGE));
    things.iter().map(agent).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_vm_without_async_get_call_trace_has_java_frames_by_its_structures() {
    for home in newest_or_all() {
        for walker in [StackWalker::Fp, StackWalker::Dwarf] {
            let run = JavaRun::new(&home, "Demo")
                .argument(1)
                .variable("JAVA_TOOL_OPTIONS", &damaging(&["AsyncGetCallTrace"]))
                .agent(&format!("cpu=250us,file=FILE,cstack={}", walker.name()))
                .run()
                .expect_success();
            let label = format!("{} {walker:?}: {}", run.label, run.stderr);
            let said = run.stderr.matches("this JVM has no AsyncGetCallTrace").count();
            assert_eq!(said, usize::from(can_be_asked(&home)), "{label}");
            assert_eq!(run.counter("handler.call_traces"), 0, "{label}");
            let stacks = cpu_stacks(&run.messages());
            let samples = |wanted: &dyn Fn(&Stack) -> bool| -> i64 {
                stacks.iter().filter(|stack| wanted(stack)).map(|stack| stack.value).sum()
            };
            let spins = |stack: &Stack| stack.has("programs.Native.spin");
            let spinning = samples(&spins);
            let whole = samples(&|stack| spins(stack) && stack.has("java.lang.Thread.run"));
            assert!(spinning > 0 && whole == spinning, "{label}: {whole} of {spinning}");
        }
    }
}

/// No source of Java frames is left.
#[test]
fn a_vm_that_cannot_be_asked_either_runs_on_without_java_frames() {
    for home in newest_or_all() {
        for walker in [StackWalker::Vm, StackWalker::Dwarf, StackWalker::No] {
            let run = JavaRun::new(&home, "UserLoop")
                .argument(1)
                .variable("JAVA_TOOL_OPTIONS", &damaging(&["AsyncGetCallTrace", "gHotSpotVMStructs"]))
                .agent(&format!("cpu=100us,file=FILE,cstack={}", walker.name()))
                .run()
                .expect_success();
            let label = format!("{} {walker:?}: {}", run.label, run.stderr);
            assert_eq!(
                run.stderr.matches("Server VM) does not describe its structures").count(),
                1,
                "{label}"
            );
            assert_eq!(run.stderr.matches(": no Java frames").count(), 1, "{label}");
            assert_eq!(run.stderr.matches("[otlpprof] warning").count(), 1, "{label}");
            assert!(!run.stderr.contains("are read from the JVM's structures"), "{label}");
            let stacks = cpu_stacks(&run.messages());
            let of_java = |stack: &&Stack| stack.frames.iter().any(|frame| frame.frame_type == "jvm");
            assert_eq!(stacks.iter().filter(of_java).count(), 0, "{label}");
            assert!(!stacks.is_empty(), "{label}");
        }
    }
}

/// Regression: on JDK 11 AsyncGetCallTrace ended one stack in a hundred at a method handle.
#[test]
fn no_call_trace_ends_at_a_method_handle() {
    for home in newest_of(java_homes().into_iter().filter(|home| can_be_asked(home)).collect()) {
        // The longer runs are for the case that other programs have used the CPU.
        let is_enough = [2, 10, 50].into_iter().any(|seconds| {
            let storm = JavaRun::new(&home, "HiddenClassStorm").argument(seconds);
            let run = storm.agent("cpu=500us,file=FILE,cstack=dwarf").run().expect_success();
            let stacks = cpu_stacks(&run.messages());
            let ends_there = |stack: &&Stack| {
                stack.frames.last().is_some_and(|frame| frame.name.starts_with("java.lang.invoke."))
            };
            let ended = stacks.iter().find(ends_there);
            assert!(ended.is_none(), "{}: {ended:?}", run.label);
            run.counter("handler.call_traces") > 500
        });
        assert!(is_enough, "{}: too few call traces", home.display());
    }
}

/// The youngest frames are kept, followed by the mark. Stacks that fit are complete.
#[test]
fn a_stack_that_is_deeper_than_asked_for_is_cut_and_marked() {
    const DEPTH: usize = 64;
    for home in newest_or_all() {
        for walker in StackWalker::ALL {
            let walked = walk(&home, walker, libraries()[0], &format!(",depth={DEPTH}"));
            let label = &walked.run.label;
            let frames_in_cut =
                |stack: &Stack| stack.frames.iter().position(|frame| frame.name == "[truncated]");
            for stack in &walked.stacks {
                let frames = stack.frames.len();
                match frames_in_cut(stack) {
                    Some(kept) => assert_eq!((kept, frames), (DEPTH, DEPTH + 1), "{label}: {stack:?}"),
                    None => assert!(frames <= DEPTH + 1, "{label}: {stack:?}"),
                }
            }
            let recursion = |stack: &Stack| {
                stack.frames.iter().filter(|frame| frame.name == "programs.Demo.recurse").count() >= DEPTH - 4
            };
            let deep = walked.samples(recursion);
            let cut = walked.samples(|stack| recursion(stack) && frames_in_cut(stack).is_some());
            assert!(deep > 0 && cut == deep, "{label}: {cut} of {deep}");
            assert!(walked.counter("truncated") > 0, "{label}");
            let spins = |stack: &Stack| stack.has("programs.Native.spin") && !stack.has("[truncated]");
            assert!(walked.samples(spins) > 0, "{label}");
        }
    }
}

/// A recursion with more frames than the longest stack that is kept.
#[test]
fn a_recursion_that_is_deeper_than_any_stack_is_kept_is_cut_and_marked() {
    const DEPTH: usize = 2048;
    for home in newest_or_all() {
        for walker in StackWalker::ALL {
            let options = format!("cpu=500us,file=FILE,cstack={}", walker.name());
            let deep = JavaRun::new(&home, "Deep").argument("java").argument(3000).argument(1500);
            let run = deep.agent(&options).run().expect_success();
            let label = format!("{} {options}", run.label);
            let (mut cut, mut deepest) = (0, 0);
            for stack in &cpu_stacks(&run.messages()) {
                let descends = |name: &str| name == "programs.Deep.descend";
                let (frames, mark) = match stack.frames.split_last() {
                    Some((last, frames)) if last.name == "[truncated]" => (frames, Some(last)),
                    _ => (&stack.frames[..], None),
                };
                assert!(frames.len() <= DEPTH, "{label}: {} frames", frames.len());
                deepest = deepest.max(frames.len());
                if mark.is_some() {
                    assert_eq!(frames.len(), DEPTH, "{label}");
                    // The oldest frames are cut off. Frames below the recursion remain only where a sample
                    // came in the middle of the descent.
                    let mut older = frames.iter().skip_while(|frame| !descends(&frame.name)).peekable();
                    let own = std::iter::from_fn(|| older.next_if(|frame| descends(&frame.name))).count();
                    let below = older.next().map(|frame| &frame.name[..]);
                    assert!(below.is_none_or(|name| name == "programs.Deep.main"), "{label}: {below:?}");
                    assert!(own > DEPTH / 2, "{label}: {own} frames of the recursion");
                    cut += stack.value;
                }
            }
            println!("{label}: {cut} cut, {deepest} frames at most");
            assert!(cut > 0, "{label}: none cut, {deepest} frames at most");
            assert!(run.counter("handler.truncated") > 0, "{label}");
        }
    }
}

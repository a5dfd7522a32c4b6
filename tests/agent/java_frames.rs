//! Java frames in the profiles of a real JVM: names, lines, inlining, and methods of unloaded classes.

use std::collections::BTreeSet;
use std::path::Path;

use crate::estimate::assert_share;
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_otlp::lookup::{DictionaryTables as _, Lookup};
use otlpprof_otlp::read::Message;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::java_run::{JavaRun, line_marked};
use otlpprof_testkit::jdk::{java_version, newest_or_all, newest_that_start_with};
use otlpprof_testkit::profiles;
use otlpprof_testkit::stacks::cpu_stacks;

const CALLEES: [&str; 2] = ["seventy", "thirty"];

/// The samples of each of the two callees: on the line that burns, and on other lines.
#[derive(Debug, Default)]
struct Split {
    burned: [i64; 2],
    /// On the line before the burning one, which counts and compares.
    counted: [i64; 2],
    elsewhere: [i64; 2],
}

impl Split {
    fn samples_of(&self, callee: usize) -> i64 {
        self.burned[callee] + self.counted[callee] + self.elsewhere[callee]
    }

    fn all(&self) -> i64 {
        self.samples_of(0) + self.samples_of(1)
    }

    fn add(&mut self, other: &Self) {
        for index in 0..2 {
            self.burned[index] += other.burned[index];
            self.counted[index] += other.counted[index];
            self.elsewhere[index] += other.elsewhere[index];
        }
    }
}

fn split_of(messages: &[Message]) -> Split {
    let mut split = Split::default();
    let lines = CALLEES.map(|name| line_marked("InlineSplit", &format!("burns: {name}")));
    for stack in cpu_stacks(messages).iter().filter(|stack| stack.thread == "main") {
        let Some(leaf) = stack.frames.first() else { continue };
        for (index, name) in CALLEES.iter().enumerate() {
            if leaf.name == format!("programs.InlineSplit.{name}") {
                assert_eq!(leaf.file, "InlineSplit.java");
                let place = match leaf.line - lines[index] {
                    0 => &mut split.burned,
                    -1 => &mut split.counted,
                    _ => &mut split.elsewhere,
                };
                place[index] += stack.times;
            }
        }
    }
    split
}

/// The program with its callees inlined into their caller, and with the compilers' messages about it.
fn inline_split(home: &Path, seconds: u32) -> JavaRun {
    let run =
        JavaRun::new(home, "InlineSplit").argument(seconds).jvm_option("-XX:+UnlockDiagnosticVMOptions");
    let run = run.jvm_option("-XX:+PrintInlining");
    CALLEES.iter().fold(run, |run, name| {
        run.jvm_option(&format!("-XX:CompileCommand=inline,programs/InlineSplit.{name}"))
    })
}

fn assert_inlined(run: &Finished) {
    for name in CALLEES {
        let inlined = run.stdout.lines().any(|line| {
            line.contains(&format!("InlineSplit::{name} (")) && line.contains("force inline by Compile")
        });
        assert!(inlined, "{}: {name} is not inlined\n{}", run.label, run.stdout);
    }
}

#[test]
fn two_inlined_callees_split_as_they_burn() {
    // Five standard errors of a share of 0.7 are then less than 0.03.
    const LEAST: i64 = 7_000;
    for home in newest_or_all() {
        let mut split = Split::default();
        // A busy machine gives the program little CPU time: as many runs as enough samples take.
        for _ in 0..10 {
            let run = inline_split(&home, 4).agent("cpu=250us,timestamps,file=FILE").run().expect_success();
            assert_inlined(&run);
            split.add(&split_of(&run.messages()));
            if split.all() > LEAST {
                break;
            }
        }
        let label = format!("{}: {split:?}", home.display());
        assert!(split.all() > LEAST, "too few samples: {label}");
        // Each call of a callee takes some cycles more than its loop.
        assert_share(split.samples_of(0), split.all(), 0.69..=0.71, &label);
        // The line before runs at most once for each unrolled copy of the body. No other line burns.
        for index in 0..2 {
            let (burned, counted) = (split.burned[index], split.counted[index]);
            assert_share(burned, burned + counted, 2.0 / 3.0..=1.0, &label);
            let all = split.samples_of(index);
            assert_share(all - split.elsewhere[index], all, 0.99..=1.0, &label);
        }
    }
}

/// Without the flag, which comes too late when an agent is attached to compiled code, the lines of the
/// preceding test are those of the loops' safepoints. So the flag has its effect, and the preceding test
/// detects it.
#[test]
fn code_compiled_before_an_attach_has_lines_at_safepoints_only() {
    for home in newest_or_all() {
        let mut jvm = inline_split(&home, 600).start();
        // The methods have their final compiled code after a second or two.
        jvm.wait_until("warm", |jvm| jvm.cpu_ticks() > 500);
        assert_eq!(jvm.flag("DebugNonSafepoints"), "false", "{}", jvm.label);
        jvm.load_agent_by_jcmd("cpu=500us,timestamps,interval=1h,file=FILE");
        assert_eq!(jvm.flag("DebugNonSafepoints"), "true", "{}", jvm.label);
        jvm.wait_for_profiles("profile.otlp", "enough samples", |messages| {
            let split = split_of(messages);
            (0..2).all(|index| split.samples_of(index) > 100)
        });
        jvm.load_agent_by_jcmd("stop");
        let split = split_of(&profiles::messages(&jvm.profiles().join("profile.otlp")));
        let label = format!("{}: {split:?}", home.display());
        for index in 0..2 {
            assert!(split.counted[index] + split.elsewhere[index] > split.burned[index], "{label}");
        }
        jvm.terminate();
        jvm.finish();
    }
}

#[test]
fn lines_between_safepoints_are_switched_on_at_the_start() {
    for home in newest_or_all() {
        let options = ["-XX:+UnlockDiagnosticVMOptions", "-XX:-DebugNonSafepoints"];
        let run = options
            .iter()
            .fold(JavaRun::new(&home, "UserLoop").argument(600), |run, option| run.jvm_option(option));
        let mut jvm = run.agent("file=FILE").start();
        jvm.wait_until("profiling", |jvm| jvm.stderr().contains("CPU sampling every"));
        assert_eq!(jvm.flag("DebugNonSafepoints"), "true", "{}", jvm.label);
        jvm.terminate();
        let finished = jvm.finish();
        assert!(!finished.stderr.contains("at safepoints only"), "{}: {}", finished.label, finished.stderr);
    }
}

/// The name, system name and type of each frame in a message's stacks.
fn functions_of(message: &Message) -> BTreeSet<[String; 3]> {
    let lookup = Lookup::new(&message.data);
    let dictionary = message.data.dictionary.as_ref().unwrap();
    let mut functions = BTreeSet::new();
    for location in &dictionary.location_table {
        let frame_type = lookup.attribute_text(&location.attribute_indices, "profile.frame.type");
        for line in &location.lines {
            let function = lookup.function(line.function_index).unwrap();
            let names = [function.name_strindex, function.system_name_strindex].map(|name| lookup.text(name));
            functions.insert([names[0], names[1], frame_type.unwrap()].map(str::to_owned));
        }
    }
    functions
}

/// A method has its descriptor only if that distinguishes it, and two methods of one name stay two.
#[test]
fn overloaded_methods_alone_have_their_descriptors() {
    for home in newest_or_all() {
        for format in ["proto", "json"] {
            // The longer runs are for the case that other programs have used the CPU.
            let has_all = [1.5, 8.0, 40.0].into_iter().any(|seconds| {
                let run = JavaRun::new(&home, "Overloads").argument(seconds);
                let run = run.jvm_option("-XX:CompileCommand=quiet");
                let run = run.jvm_option("-XX:CompileCommand=dontinline,programs.Overloads::*");
                let options = format!("cpu=500us,interval=1h,format={format},file=FILE");
                assert_overloads_are_named(&run.agent(&options).run().expect_success())
            });
            assert!(has_all, "{}: no sample of a method", home.display());
        }
    }
}

/// Checks the names of the program's methods. Returns whether each method has a sample.
fn assert_overloads_are_named(run: &Finished) -> bool {
    let functions: BTreeSet<_> = run.messages().iter().flat_map(functions_of).collect();
    let of = |name: &str| -> Vec<&str> {
        let of_name = functions.iter().filter(|function| function[0] == name);
        of_name.map(|[_, system_name, _]| system_name.as_str()).collect()
    };
    let methods = functions.iter().filter(|[.., frame_type]| frame_type == "jvm");
    for [name, system_name, _] in methods.filter(|[_, system_name, _]| !system_name.is_empty()) {
        assert!(of(name).len() > 1, "{}: {system_name}", run.label);
    }
    let [burn, alone, main] = ["burn", "alone", "main"].map(|name| of(&format!("programs.Overloads.{name}")));
    if burn.len() < 2 || alone.is_empty() || main.is_empty() {
        return false;
    }
    let both = ["programs/Overloads.burn(I)J", "programs/Overloads.burn(J)J"];
    assert_eq!((&burn[..], &alone[..], &main[..]), (&both[..], &[""][..], &[""][..]), "{}", run.label);
    true
}

/// The class, method, file and line of a class of the storm agree by construction.
#[test]
fn methods_of_classes_that_are_gone_keep_their_names() {
    for home in newest_or_all() {
        assert_storm_keeps_its_names(&home, StackWalker::Vm, &[]);
    }
}

/// The collectors unload classes while the program runs, and their collections begin in other ways than those
/// of the default collector.
fn assert_methods_of_classes_that_are_gone_keep_their_names_under(collector: &[&str]) {
    let options = [&["-XX:+UnlockExperimentalVMOptions", "-Xmx256m"], collector].concat();
    for home in newest_that_start_with(&options) {
        assert_storm_keeps_its_names(&home, StackWalker::Vm, &options);
    }
}

#[test]
fn methods_of_classes_that_are_gone_keep_their_names_under_serial() {
    assert_methods_of_classes_that_are_gone_keep_their_names_under(&["-XX:+UseSerialGC"]);
}

#[test]
fn methods_of_classes_that_are_gone_keep_their_names_under_parallel() {
    assert_methods_of_classes_that_are_gone_keep_their_names_under(&["-XX:+UseParallelGC"]);
}

#[test]
fn methods_of_classes_that_are_gone_keep_their_names_under_concurrent_mark_sweep() {
    assert_methods_of_classes_that_are_gone_keep_their_names_under(&["-XX:+UseConcMarkSweepGC"]);
}

#[test]
fn methods_of_classes_that_are_gone_keep_their_names_under_zgc() {
    assert_methods_of_classes_that_are_gone_keep_their_names_under(&["-XX:+UseZGC"]);
}

#[test]
fn methods_of_classes_that_are_gone_keep_their_names_under_shenandoah() {
    assert_methods_of_classes_that_are_gone_keep_their_names_under(&["-XX:+UseShenandoahGC"]);
    let generational = ["-XX:+UseShenandoahGC", "-XX:ShenandoahGCMode=generational"];
    assert_methods_of_classes_that_are_gone_keep_their_names_under(&generational);
}

/// AsyncGetCallTrace gives a method's id, and the method may be unloaded when the handler resolves the id.
#[test]
fn methods_of_classes_that_are_gone_keep_their_names_where_the_vm_is_asked() {
    for home in newest_or_all() {
        assert_storm_keeps_its_names(&home, StackWalker::Dwarf, &[]);
    }
}

/// The seconds for which a storm lasts. The longer runs are for the case that other programs have used the
/// CPU.
const STORM_SECONDS: [u32; 3] = [3, 20, 80];
/// The least number of frames of a storm, and of classes that were unloaded in it, for a verdict.
const LEAST_OF_STORM: usize = 200;
const LEAST_UNLOADED: usize = 100;

fn assert_storm_keeps_its_names(home: &Path, walker: StackWalker, jvm_options: &[&str]) {
    let mut storms = STORM_SECONDS.into_iter().map(|seconds| storm(home, seconds, walker, jvm_options));
    // ZGC unloads classes from JDK 12 on.
    let never_unloads = java_version(home) == 11 && jvm_options.contains(&"-XX:+UseZGC");
    let is_enough = storms.any(|(frames, unloaded)| {
        frames > LEAST_OF_STORM && (unloaded > LEAST_UNLOADED || never_unloads && unloaded == 0)
    });
    assert!(is_enough, "{} {walker:?} {jvm_options:?}: too few frames, or classes that went", home.display());
}

/// Runs a storm, and checks the names in each frame of its classes. Returns the number of these frames, and
/// the number of classes that were unloaded.
fn storm(home: &Path, seconds: u32, walker: StackWalker, jvm_options: &[&str]) -> (usize, usize) {
    let options = format!("cpu=500us,file=FILE,cstack={}", walker.name());
    let run = JavaRun::new(home, "HiddenClassStorm").argument(seconds).agent(&options);
    let run = jvm_options.iter().fold(run, |run, option| run.jvm_option(option));
    let run = run.run().expect_success();
    let label = format!("{} {options} {}", home.display(), jvm_options.join(" "));
    let (mut right, mut without_line, mut wrong) = (0, 0, Vec::new());
    for stack in cpu_stacks(&run.messages()) {
        for frame in stack.frames.iter() {
            let Some((class, method)) =
                frame.name.strip_prefix("programs.").and_then(|name| name.split_once('.'))
            else {
                continue;
            };
            // StormClass, which makes the storm's classes, is not one of them.
            let Some(number) = class.strip_prefix("Storm").filter(|digits| digits.parse::<i64>().is_ok())
            else {
                continue;
            };
            let agrees = method == format!("burn{number}") && frame.file == format!("Storm{number}.java");
            // In a few instructions of the interpreter the bytecode is not known, and so no line is given.
            if agrees && frame.line == 0 {
                without_line += 1;
            } else if agrees && number.parse() == Ok(frame.line) {
                right += 1;
            } else {
                wrong.push(frame.clone());
            }
        }
    }
    assert!(wrong.is_empty(), "{label}: {} of {} wrong: {wrong:?}", wrong.len(), wrong.len() + right);
    if right > LEAST_OF_STORM {
        let (right, all) = (right as i64, (right + without_line) as i64);
        assert_share(right, all, 0.99..=1.0, &format!("{label}: with a line"));
    }
    println!("{label}: {right} frames of the storm ({})", run.stdout.trim());
    let unloaded = run.stdout.trim().split_once("unloaded=").expect("the count").1;
    (right, unloaded.parse().expect("a number"))
}

/// Regression: samples in the intrinsic that compresses UTF-16, which pushes a word in JDK 11 to 21, were
/// marked.
#[test]
fn strings_that_are_compressed_have_their_callers() {
    for home in newest_or_all() {
        // With -Xbatch the program waits until its methods are compiled, however busy the machine is.
        let run = JavaRun::new(&home, "CompressedStrings").argument(40_000).jvm_option("-Xbatch");
        let run = run.agent("cpu=100us,file=FILE").run().expect_success();
        let mut all = 0;
        for stack in cpu_stacks(&run.messages()) {
            let names: Vec<&str> = stack.frames.iter().map(|frame| &*frame.name).collect();
            if names.first() != Some(&"java.lang.StringUTF16.compress") {
                continue;
            }
            all += stack.value;
            assert!(names.contains(&"programs.CompressedStrings.main"), "{}: {names:#?}", run.label);
            assert!(!names.iter().any(|name| name.starts_with("[unwalkable")), "{}: {names:#?}", run.label);
        }
        assert!(all > 20, "{}: {all} samples in the intrinsic", run.label);
    }
}
